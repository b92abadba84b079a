"""Who visits: the bearer token of a request → Actor. Sessions and their cookies count for nothing here."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.csrf import csrf_exempt

from agents_admin.actor import Actor
from runtime.errors import RunError
from web.chat.refusals import in_place
from web.errors import STATUS
from web.widget import row
from web.widget.quota import OverQuota
from web.widget.row import Widget
from web.widget.token import read


@dataclass(frozen=True, slots=True)
class Visit:
    actor: Actor
    widget: Widget


async def visit(request: HttpRequest, widget: UUID) -> Visit:
    """The visitor of `Authorization: Bearer …`. Raises RunError `unauthenticated`, `forbidden`.

    The widget's row is asked each time: a site that was taken off it, or a widget switched off, is out at once.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    said = read(token.strip()) if scheme.lower() == "bearer" else None
    if said is None or said.widget != widget:
        raise RunError("unauthenticated", "This conversation has expired. Reload the page to go on.")
    found = await row.find(widget)
    if found is None or not found.enabled:
        raise RunError("forbidden", "This assistant is switched off.")
    if said.origin not in found.origins:
        raise RunError("forbidden", "This assistant may not be shown on this site any more.")
    return Visit(Actor("widget", widget_id=widget, visitor=said.visitor), found)


type View = Callable[..., Coroutine[Any, Any, HttpResponse]]


def for_visitors(view: View) -> View:
    """The view gets a `Visit`, and its refusals (RunError) become words beside the composer."""

    @csrf_exempt
    @wraps(view)
    async def answer(request: HttpRequest, widget: UUID, **named: UUID) -> HttpResponse:
        try:
            response = await view(request, await visit(request, widget), **named)
        except RunError as error:
            response = _refused(error)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return answer


def _refused(error: RunError) -> HttpResponse:
    words = render_to_string("chat/problem.html", {"problem": error.message})
    response = in_place(words, STATUS[error.code], "#composer-problem")
    if isinstance(error, OverQuota):
        response["Retry-After"] = str(error.seconds)
    return response
