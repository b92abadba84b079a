"""Threads and what was said in them."""

from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone
from ninja import Query, Router
from ninja.responses import Status

from agents_admin.text import clean
from runtime.errors import RunError
from runtime.models import Run, Thread
from runtime.resolve import agents_for
from web.api import rows
from web.api.cursor import AS_SAID, NEWEST_UPDATED, page
from web.api.schema import MessageOut, NewThread, Page, Paged, Refusal, ThreadChange, ThreadFilter, ThreadOut
from web.api.wire import ApiRequest, only_known_filters

router = Router(tags=["Threads"])
OPEN = ("queued", "running", "waiting_approval", "needs_review")


@router.get("/threads", response={200: Page[ThreadOut], 401: Refusal, 422: Refusal}, operation_id="list_threads")
@only_known_filters
async def list_threads(request: ApiRequest, query: Query[ThreadFilter]) -> dict[str, Any]:
    """Your threads, those with the latest messages first."""
    found = rows.threads(request.auth)
    if query.agent is not None:
        found = found.filter(agent_slug=query.agent)
    items, following = await page(found, NEWEST_UPDATED, query.cursor)
    return {"items": [ThreadOut.of(thread) for thread in items], "next": following}


@router.post(
    "/threads",
    response={201: ThreadOut, frozenset({401, 404, 413, 415, 422}): Refusal},
    operation_id="make_thread",
)
@only_known_filters
async def make_thread(request: ApiRequest, payload: NewThread) -> Status[ThreadOut]:
    """An empty thread. `POST runs` makes one by itself when none is given."""
    actor = request.auth
    agent = next((card for card in await agents_for(actor) if card.slug == payload.agent), None)
    if agent is None:
        raise _no_agent()
    now = timezone.now()
    try:
        thread = await Thread.objects.acreate(
            agent_id=agent.id,
            agent_slug=agent.slug,
            agent_label=agent.name,
            title=_line(payload.title),
            channel=actor.channel,
            user_id=actor.user_id,
            created_at=now,
            updated_at=now,
        )
    except IntegrityError:  # it was deleted just now
        raise _no_agent() from None
    return Status(201, ThreadOut.of(thread))


@router.get(
    "/threads/{uuid:thread_id}",
    response={200: ThreadOut, frozenset({401, 404, 422}): Refusal},
    operation_id="get_thread",
)
@only_known_filters
async def get_thread(request: ApiRequest, thread_id: UUID) -> ThreadOut:
    return ThreadOut.of(await rows.thread_of(request.auth, thread_id))


@router.patch(
    "/threads/{uuid:thread_id}",
    response={200: ThreadOut, frozenset({401, 404, 413, 415, 422}): Refusal},
    operation_id="change_thread",
)
@only_known_filters
async def change_thread(request: ApiRequest, thread_id: UUID, payload: ThreadChange) -> ThreadOut:
    """Give the thread another title."""
    await rows.threads(request.auth).filter(pk=thread_id).aupdate(title=_line(payload.title))
    return ThreadOut.of(await rows.thread_of(request.auth, thread_id))


@router.delete(
    "/threads/{uuid:thread_id}",
    response={204: None, frozenset({401, 404, 409, 422}): Refusal},
    operation_id="delete_thread",
)
@only_known_filters
async def delete_thread(request: ApiRequest, thread_id: UUID) -> Status[None]:
    """The thread with its messages, runs and events; while a run is open it is refused."""
    thread = await rows.thread_of(request.auth, thread_id)
    if await Run.objects.filter(thread=thread, depth=0, status__in=OPEN).aexists():
        raise RunError("run_in_progress", "An answer is still being written. Wait for it, or cancel the run first.")
    await thread.adelete()
    return Status(204, None)


@router.get(
    "/threads/{uuid:thread_id}/messages",
    response={200: Page[MessageOut], frozenset({401, 404, 422}): Refusal},
    operation_id="list_messages",
)
@only_known_filters
async def list_messages(request: ApiRequest, thread_id: UUID, query: Query[Paged]) -> dict[str, Any]:
    """What was said, the oldest first."""
    thread = await rows.thread_of(request.auth, thread_id)
    items, following = await page(rows.messages(thread), AS_SAID, query.cursor)
    return {"items": [MessageOut.of(message) for message in items], "next": following}


def _no_agent() -> RunError:
    return RunError("not_found", "There is no such agent, or you may not use it.", "agent")


def _line(title: str) -> str:
    return " ".join(clean(title).split())
