"""Django's middleware, run inside the event loop where it does no I/O.

As shipped each of them goes through a thread for every hook, which halves the requests a second.
"""

from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csp import ContentSecurityPolicyMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware

from config.policy import ADMIN
from web.access import NotSignedInError
from web.login import sign_in_first


class Inline:
    """Mixed in before a MiddlewareMixin whose hooks do no I/O."""

    async def __acall__(self: Any, request: HttpRequest) -> Any:
        answer = self.process_request(request) if hasattr(self, "process_request") else None
        answer = answer or await self.get_response(request)
        return self.process_response(request, answer) if hasattr(self, "process_response") else answer


class Security(Inline, SecurityMiddleware):
    pass


class Common(Inline, CommonMiddleware):
    pass


class Authentication(Inline, AuthenticationMiddleware):
    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return sign_in_first(request) if isinstance(exception, NotSignedInError) else None


class Messages(Inline, MessageMiddleware):
    pass


class FrameOptions(Inline, XFrameOptionsMiddleware):
    pass


class Csrf(Inline, CsrfViewMiddleware):
    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            self.__dict__["process_view"] = self._process_view_inline  # a sync one would get a thread

    async def _process_view_inline(self, *given: Any) -> Any:
        return CsrfViewMiddleware.process_view(self, *given)


class Session(SessionMiddleware):
    """Only a changed session needs the database, so only that goes to a thread."""

    async def __acall__(self: Any, request: HttpRequest) -> Any:
        self.process_request(request)
        response = await self.get_response(request)
        if request.session.modified:
            return await sync_to_async(self.process_response)(request, response)
        return self.process_response(request, response)


class ContentPolicy(Inline, ContentSecurityPolicyMiddleware):
    def process_response(self, request: HttpRequest, response: Any) -> Any:
        if request.path.startswith("/admin/") and not hasattr(response, "_csp_config"):
            response._csp_config = ADMIN
        return super().process_response(request, response)
