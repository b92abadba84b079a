"""The chat page of signed-in people."""

import re
from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_GET, require_POST

from agents_admin.actor import Actor
from runtime import execute
from runtime.errors import RunError
from runtime.events import WAITING
from runtime.models import Run
from runtime.resolve import AgentCard, agents_for
from web.access import session_actor
from web.chat import history
from web.chat.newer import newer
from web.chat.places import PLACES
from web.chat.posts import Arrived, post, sent
from web.chat.refusals import in_place
from web.errors import STATUS
from web.http import UserRequest
from web.sse import stream_response

# A page that a browser keeps would be shown again by its back button: without what was said since, or to who is
# signed in next.
not_kept = cache_control(private=True, no_store=True)


@require_GET
@not_kept
async def start_page(request: UserRequest) -> HttpResponse:
    """A new conversation, with the agent that `?agent=` names or the first one."""
    return await _start(request, await session_actor(request), request.GET.get("agent"))


@require_GET
@not_kept
async def thread_page(request: UserRequest, thread: UUID) -> HttpResponse:
    actor = await session_actor(request)
    before, after = _uuid(request.GET.get("before", "")), _uuid(request.GET.get("after", ""))
    if request.htmx and before:
        earlier = await sync_to_async(history.conversation)(actor, thread, PLACES, before)
        return render(request, "chat/turns.html", {"conversation": _found(earlier)})
    if request.htmx and after:
        return await newer(actor, after, PLACES)
    return await _thread(request, actor, thread)


@require_POST
async def send(request: UserRequest) -> HttpResponse:
    """What was sent as a turn of its own, or what is wrong with it, in words and with the text kept."""
    actor = await session_actor(request)
    is_new = not request.POST.get("thread") and "retry" not in request.POST
    try:
        run, _ = await post(actor, request.POST)
    except Arrived as earlier:
        if not request.htmx:
            return await _thread(request, actor, earlier.run.thread_id, **_kept(request, earlier))
        return sent(request, earlier.run, PLACES, is_new=is_new, kept=earlier.message)
    except RunError as error:
        return await _refused(request, actor, error)
    if not request.htmx:
        return redirect("chat-thread", run.thread_id)
    return sent(request, run, PLACES, is_new=is_new)


@require_GET
async def stream(request: UserRequest, run: UUID) -> HttpResponse:
    """The events after `?after=`, until the run ends."""
    actor = await session_actor(request)
    given = request.GET.get("after", "")
    after = int(given) if re.fullmatch("[0-9]{1,9}", given) else 0
    try:
        return await stream_response(actor, run=run, renderer="chat", after=after)
    except RunError as error:
        raise Http404 from error


@require_POST
async def stop(request: UserRequest, run: UUID) -> HttpResponse:
    try:
        await execute.cancel(await session_actor(request), run)
    except RunError as error:
        raise Http404 from error
    return HttpResponse(status=204)


async def _start(request: UserRequest, actor: Actor, slug: str | None, **context: Any) -> HttpResponse:
    agents = await agents_for(actor)
    chosen = _chosen(agents, slug)
    if slug is not None and chosen is None:
        raise Http404
    return await _page(request, actor, {"agents": agents, "agent": chosen} | context)


async def _thread(request: UserRequest, actor: Actor, thread: UUID, **context: Any) -> HttpResponse:
    before = _uuid(request.GET.get("before", ""))
    found = _found(await sync_to_async(history.conversation)(actor, thread, PLACES, before))
    # Slugs are given to other agents in time.
    agent = next((agent for agent in await agents_for(actor) if agent.id == found.thread.agent_id), None)
    run = found.open
    page = {"conversation": found, "thread": found.thread, "agent": agent}
    page |= {"run": run, "stop": PLACES.stop(run) if run else ""}
    return await _page(request, actor, page | context)


async def _page(request: UserRequest, actor: Actor, context: dict[str, Any]) -> HttpResponse:
    listed = await sync_to_async(history.threads)(actor)
    status = context.pop("status", 200)
    person = await request.auser()  # `request.user` would be loaded again, and synchronously
    page = {"threads": listed, "places": PLACES, "staff": person.is_staff, "key": uuid4()}
    return render(request, "chat/page.html", page | context, status=status)


async def _refused(request: UserRequest, actor: Actor, error: RunError) -> HttpResponse:
    if request.htmx:
        context = {"problem": error.message, "where": await _open_turn(actor, request, error)}
        return in_place(render_to_string("chat/problem.html", context), STATUS[error.code], "#composer-problem")
    kept = _kept(request, error)
    if thread := _uuid(request.POST.get("thread", "")):
        return await _thread(request, actor, thread, **kept)
    agents = await agents_for(actor)
    return await _page(request, actor, {"agents": agents, "agent": _chosen(agents, request.POST.get("agent"))} | kept)


def _kept(request: UserRequest, error: RunError) -> dict[str, Any]:
    return {"problem": error.message, "text": request.POST.get("text", ""), "status": STATUS[error.code]}


async def _open_turn(actor: Actor, request: UserRequest, error: RunError) -> str:
    """The place on the page of the answer that is in the way; empty when none is."""
    thread = _uuid(request.POST.get("thread", "")) if error.code == "run_in_progress" else None
    waiting = Run.objects.for_actor(actor).filter(thread=thread, depth=0, status__in=WAITING)
    found = await waiting.afirst() if thread else None
    return f"o-{found.pk}" if found else ""


def _chosen(agents: list[AgentCard], slug: str | None) -> AgentCard | None:
    if slug is None:
        return agents[0] if agents else None
    return next((agent for agent in agents if agent.slug == slug), None)


def _found(conversation: history.Conversation | None) -> history.Conversation:
    if conversation is None:
        raise Http404
    return conversation


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
