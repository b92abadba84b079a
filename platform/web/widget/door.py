"""What a page that shows the widget asks for: how it looks, a token for its visitor, to forget that visitor.

Answered only to pages whose Origin is one of the widget's sites, letter by letter, and readable (CORS) only there. No
cookie is read: a token is in the body, which is a simple request and needs no preflight.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from agents_admin.actor import Actor
from runtime import execute
from runtime.errors import RunError
from runtime.models import Run, Thread
from web.chat.threads import OPEN
from web.errors import run_error_json
from web.widget import quota, row
from web.widget.row import Widget
from web.widget.token import LIFETIME, RENEWABLE, Pass, issue, new_visitor, read

STOPPING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a site that may show the widget."""

    widget: Widget
    origin: str


type View = Callable[[HttpRequest, Page], Coroutine[Any, Any, HttpResponse]]


def for_pages(view: View) -> Callable[[HttpRequest, UUID], Coroutine[Any, Any, HttpResponse]]:
    """The view gets a `Page`, and its refusals (RunError) become JSON in words."""

    @csrf_exempt
    @wraps(view)
    async def answer(request: HttpRequest, widget: UUID) -> HttpResponse:
        found = await row.find(widget)
        origin = request.headers.get("Origin", "")
        if found is None or origin not in found.origins:
            return _refused(RunError("forbidden", "This widget may not be shown on this site."))
        try:
            if not found.enabled:
                raise RunError("forbidden", "This widget is switched off.")
            response = await view(request, Page(found, origin))
        except RunError as error:
            response = _refused(error)
        response["Access-Control-Allow-Origin"] = origin
        return response

    return answer


@require_GET
@for_pages
async def look(request: HttpRequest, page: Page) -> HttpResponse:
    """What the button needs before anybody has opened it; nothing is stored for it, and nothing counted."""
    widget = page.widget
    response = JsonResponse({"title": widget.title, "theme": widget.theme, "accent": widget.accent})
    response["Cache-Control"] = "private, max-age=60"
    patch_vary_headers(response, ("Origin",))
    return response


@require_POST
@for_pages
async def token(request: HttpRequest, page: Page) -> HttpResponse:
    """A token: for the visitor of the field `token`, which may have expired, or for a new one."""
    widget = page.widget
    known = _said(request, page)
    if known is None:
        await quota.take(widget, quota.of_new_visitor(widget, quota.address_of(request)))
    made = issue(known or Pass(widget.id, page.origin, new_visitor()))
    return _fresh(JsonResponse({"token": made, "seconds": int(LIFETIME.total_seconds())}))


@require_POST
@for_pages
async def forget(request: HttpRequest, page: Page) -> HttpResponse:
    """Delete the conversations of the visitor of the field `token`. What is being answered is stopped first."""
    known = _said(request, page)
    if known is None:
        raise RunError("unauthenticated", "This token is not valid, so there is nobody to forget.")
    visitor = Actor("widget", widget_id=known.widget, visitor=known.visitor)
    await _stop(visitor)
    await Thread.objects.for_actor(visitor).adelete()
    return _fresh(JsonResponse({}))


async def _stop(visitor: Actor) -> None:
    is_open = Run.objects.for_actor(visitor).filter(depth=0, status__in=OPEN)
    runs = [run.pk async for run in is_open]
    for run in runs:
        await execute.cancel(visitor, run)
    await asyncio.gather(*(execute.wait(run, STOPPING_SECONDS) for run in runs))
    if await is_open.all().aexists():  # asked anew
        raise RunError("run_in_progress", "An answer is still being written. Stop it, then try again.")


def _said(request: HttpRequest, page: Page) -> Pass | None:
    """A token of another widget or site says nothing here."""
    found = read(request.POST.get("token", ""), RENEWABLE)
    return found if found and (found.widget, found.origin) == (page.widget.id, page.origin) else None


def _refused(error: RunError) -> HttpResponse:
    response = run_error_json(error)
    if isinstance(error, quota.OverQuota):
        response["Retry-After"] = str(error.seconds)
    return _fresh(response)


def _fresh(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    return response
