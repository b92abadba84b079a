"""The widget: the script for other people's pages, the frame that it opens there, the conversation in the frame."""

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.csp import CSP
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_GET, require_POST

from agents_admin.actor import Actor
from runtime import execute
from runtime.errors import RunError
from runtime.models import Run, Thread
from runtime.resolve import AgentCard, agents_for
from web.chat import history
from web.chat.newer import newer
from web.chat.posts import Arrived, post, sent
from web.sse import stream_response
from web.widget import quota, row
from web.widget.visit import Visit, for_visitors

LOADER_SECONDS = 300
"""How long browsers may keep the script: so late comes a change to it."""
EARLIER_SHOWN = 5


@dataclass(frozen=True, slots=True)
class WidgetPlaces:
    """The addresses of one widget (web.chat.turns.Places)."""

    widget: UUID
    decides = False

    @property
    def send(self) -> str:
        return reverse("widget-send", args=[self.widget])

    def stream(self, run: UUID, after: int) -> str:
        return f"{reverse('widget-stream', args=[self.widget, run])}?after={after}"

    def stop(self, run: UUID) -> str:
        return reverse("widget-stop", args=[self.widget, run])


@require_GET
async def loader(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(_loader(), content_type="text/javascript; charset=utf-8")
    response["Cache-Control"] = f"public, max-age={LOADER_SECONDS}"
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@require_GET
@xframe_options_exempt
async def frame(request: HttpRequest, widget: UUID) -> HttpResponse:
    """The empty page in the panel: the same for everybody, and shown only inside the widget's sites."""
    found = await row.find(widget)
    if found is None:
        raise Http404
    response = render(request, "widget/frame.html", {"widget": found}, status=200 if found.enabled else 403)
    response._csp_config = settings.SECURE_CSP | {  # type: ignore[attr-defined]  # where the middleware looks
        "frame-ancestors": list(found.origins) or [CSP.NONE],
        "style-src": [CSP.SELF, CSP.NONCE],
    }
    return response


@require_GET
@for_visitors
async def conversation(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The visitor's last conversation, that of `?thread=`, or with `?new` an empty one.

    `?before=`: turns before that run. `?after=`: those after it.
    """
    places = WidgetPlaces(visit.widget.id)
    if before := request.GET.get("before"):
        earlier = await sync_to_async(_earlier)(visit.actor, places, before)
        return render(request, "chat/turns.html", {"conversation": earlier})
    if after := request.GET.get("after"):
        return await newer(visit.actor, _uuid(after), places)
    card = await _card(visit)
    found = await sync_to_async(_chosen)(visit.actor, places, card, request.GET)
    context = {"widget": visit.widget, "places": places, "agent": card, "agents": [card] if card else []}
    context["key"] = uuid4()
    if found is None:
        threads = await sync_to_async(history.threads)(visit.actor)
        return render(request, "widget/conversation.html", context | {"earlier": threads.items[:EARLIER_SHOWN]})
    run = found.open
    shown = {"conversation": found, "thread": found.thread, "run": run, "stop": places.stop(run) if run else ""}
    return render(request, "widget/conversation.html", context | shown)


@require_POST
@for_visitors
async def send(request: HttpRequest, visit: Visit) -> HttpResponse:
    """What was sent as a turn of its own. A message that is refused, or sent once more, counts for nothing."""
    places = WidgetPlaces(visit.widget.id)
    limits = quota.of_message(visit.widget, visit.actor.visitor, quota.address_of(request))
    await quota.take(visit.widget, limits)
    try:
        run, created = await post(visit.actor, request.POST)
    except RunError as error:
        await quota.give_back(visit.widget, limits)
        if isinstance(error, Arrived):
            return sent(request, error.run, places, kept=error.message)
        raise
    if not created:
        await quota.give_back(visit.widget, limits)
    return sent(request, run, places)


@require_GET
@for_visitors
async def stream(request: HttpRequest, visit: Visit, run: UUID) -> HttpResponse:
    """The events after `?after=`, until the run ends."""
    given = request.GET.get("after", "")
    after = int(given) if re.fullmatch("[0-9]{1,9}", given) else 0
    return await stream_response(visit.actor, run=run, renderer="widget", after=after)


@require_POST
@for_visitors
async def stop(request: HttpRequest, visit: Visit, run: UUID) -> HttpResponse:
    await execute.cancel(visit.actor, run)
    return HttpResponse(status=204)


async def _card(visit: Visit) -> AgentCard | None:
    """The widget's agent with the widget's greeting; None when visitors can't use it."""
    cards = await agents_for(visit.actor)
    return replace(cards[0], greeting=visit.widget.greeting or cards[0].greeting) if cards else None


def _earlier(actor: Actor, places: WidgetPlaces, before: str) -> history.Conversation:
    """The turns before a run of the same conversation."""
    run = Run.objects.for_actor(actor).filter(pk=_uuid(before), depth=0).first()
    found = history.conversation(actor, run.thread_id, places, run.pk) if run else None
    return _found(found)


def _chosen(
    actor: Actor, places: WidgetPlaces, card: AgentCard | None, query: QueryDict
) -> history.Conversation | None:
    if thread := query.get("thread"):
        return _found(history.conversation(actor, _uuid(thread), places))
    if "new" in query:
        return None
    threads = Thread.objects.for_actor(actor)
    last = (threads.filter(agent=card.id) if card else threads).first()
    return history.conversation(actor, last.pk, places) if last else None


def _found(conversation: history.Conversation | None) -> history.Conversation:
    if conversation is None:
        raise _gone()
    return conversation


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _gone() from None


def _gone() -> RunError:
    return RunError("not_found", "This conversation does not exist any more, or it is not yours.")


@cache
def _loader() -> str:
    return Path(finders.find("js/widget.js") or "").read_text()
