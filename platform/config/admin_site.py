from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.core.paginator import InvalidPage
from django.http import HttpRequest, HttpResponse, QueryDict
from unfold.sites import UnfoldAdminSite

from agents_admin.text import clean


class RosterAdminSite(UnfoldAdminSite):
    index_title = "Home"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Every page gets clean text, in its address and in its form."""

        def with_clean_text(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            request.GET = cleaned(request.GET)  # type: ignore[assignment]
            request.POST = cleaned(request.POST)  # type: ignore[assignment]
            return view(request, *args, **kwargs)

        return super().admin_view(update_wrapper(with_clean_text, view), cacheable)

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
