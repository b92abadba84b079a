"""What another tab has added to a conversation. The chat page and the widget share it."""

from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.http import HttpResponse
from django.template.loader import render_to_string

from agents_admin.actor import Actor
from web.chat import history
from web.chat.turns import Places


async def newer(actor: Actor, after: UUID, places: Places) -> HttpResponse:
    """For a page whose last turn is `after`; 204 when it lacks nothing."""
    found = await sync_to_async(history.newer)(actor, after, places)
    if found is None:
        return HttpResponse(status=204)
    run = found.open
    context = {"turns": found.turns, "thread": found.thread.pk, "run": run, "stop": places.stop(run) if run else ""}
    context["key"] = uuid4()
    return HttpResponse(render_to_string("chat/newer.html", context))
