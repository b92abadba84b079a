import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.core.paginator import InvalidPage
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from unfold.sites import UnfoldAdminSite

from agents_admin.text import clean

_SAVES = {"_save", "_continue", "_addanother"}
_SIGN_IN = "sign-in"
_SECRET = re.compile(rf"(?!{_SIGN_IN}).*(password|secret|api_key)\w*")


class RosterAdminSite(UnfoldAdminSite):
    index_title = "Home"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Every page gets clean text, in its address and in its form. A form that is sent after the session ended is
        kept while the person signs in again."""

        def with_clean_text(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            request.GET = cleaned(request.GET)  # type: ignore[assignment]
            request.POST = cleaned(request.POST)  # type: ignore[assignment]
            return view(request, *args, **kwargs)

        page = super().admin_view(update_wrapper(with_clean_text, view), cacheable)

        def signed_in(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            return self._signed_in_again(request) or page(request, *args, **kwargs)

        return update_wrapper(signed_in, page)

    def _signed_in_again(self, request: HttpRequest) -> HttpResponse | None:
        """The page to sign in on, which holds what was typed; None when there is no need, or it was used just now."""
        if request.method != "POST" or request.user.is_authenticated or _SAVES.isdisjoint(request.POST):
            return None
        if request.FILES or any(value and _SECRET.fullmatch(name) for name, value in request.POST.items()):
            messages.warning(request, "Your session had ended, so nothing was saved. Sign in and enter it again.")
            return None
        given = request.POST if f"{_SIGN_IN}-username" in request.POST else None
        form = self.login_form(request, given, prefix=_SIGN_IN)
        if form.is_valid():
            login(request, form.get_user())
            return None
        typed = [
            (name, value)
            for name, values in cleaned(request.POST).lists()
            for value in values
            if name != "csrfmiddlewaretoken" and not name.startswith(_SIGN_IN)
        ]
        context = self.each_context(request) | {
            "title": "Sign in again",
            "form": form,
            "app_path": request.get_full_path(),
            "typed": typed,
        }
        return TemplateResponse(request, "admin/sign_in_again.html", context, status=403)

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Unfold's search of the sidebar fails on a page that isn't there; then nothing was found."""
        try:
            return super().search(request, extra_context)
        except InvalidPage:
            return HttpResponse()


def cleaned(given: QueryDict) -> QueryDict:
    """The same values with `clean` text."""
    result = QueryDict(mutable=True, encoding=given.encoding)
    for key, values in given.lists():
        result.setlist(clean(key), [clean(str(value)) for value in values])
    result._mutable = False
    return result
