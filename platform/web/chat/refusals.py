"""A refusal in words that htmx may show. js/chat.js keeps error pages that don't say their place out of the page."""

from django.http import HttpResponse


def in_place(html: str, status: int, target: str = "") -> HttpResponse:
    """The fragment for `target` (a selector; empty: what the request itself aims at), which it fills or replaces."""
    response = HttpResponse(html, status=status)
    response["HX-Reswap"] = "innerHTML" if target else "outerHTML"
    if target:
        response["HX-Retarget"] = target
    return response
