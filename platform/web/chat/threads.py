"""The list of a person's conversations: more of it, a new title, one less."""

from datetime import datetime
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

from agents_admin.actor import Actor
from agents_admin.text import clean
from runtime.models import Run, Thread
from web.access import session_actor
from web.chat import history
from web.chat.refusals import in_place
from web.http import UserRequest

LONGEST_TITLE = 200
OPEN = ("queued", "running", "waiting_approval", "needs_review")


@require_GET
async def more(request: UserRequest) -> HttpResponse:
    """The next page of the list, after `?before=`."""
    actor = await session_actor(request)
    listed = await sync_to_async(history.threads)(actor, _moment(request.GET.get("before", "")))
    return render(request, "chat/threads.html", {"threads": listed})


@require_POST
async def rename(request: UserRequest, thread: UUID) -> HttpResponse:
    actor = await session_actor(request)
    title = " ".join(clean(request.POST.get("title", "")).split())
    problem = _wrong(title)
    if problem:
        row = await Thread.objects.for_actor(actor).filter(pk=thread).afirst()
    else:
        row = await sync_to_async(_renamed)(actor, thread, title)
    if row is None:
        raise Http404
    context = {"thread": row, "problem": problem, "typed": title, "current": request.POST.get("current") == "yes"}
    if not request.htmx:
        return redirect("chat-thread", thread)
    row_html = render_to_string("chat/thread_row.html", context, request)
    if problem:
        return in_place(row_html, 422)
    return HttpResponse(row_html + (render_to_string("chat/title.html", context) if context["current"] else ""))


@require_POST
async def delete(request: UserRequest, thread: UUID) -> HttpResponse:
    """The conversation with everything that happened in it. One that is being answered has to be stopped first."""
    actor = await session_actor(request)
    row = await Thread.objects.for_actor(actor).filter(pk=thread).afirst()
    if row is None:
        raise Http404
    if await Run.objects.filter(thread=row, depth=0, status__in=OPEN).aexists():
        context = {"thread": row, "problem": "It is still being answered. Stop it first.", "current": True}
        return in_place(render_to_string("chat/thread_row.html", context, request), 409)
    await row.adelete()
    if not request.htmx:
        return redirect("chat")
    response = HttpResponse()
    if request.POST.get("current") == "yes":
        response["HX-Redirect"] = reverse("chat")
    return response


def _renamed(actor: Actor, thread: UUID, title: str) -> Thread | None:
    mine = Thread.objects.for_actor(actor).filter(pk=thread)
    mine.update(title=title)
    return mine.first()


def _wrong(title: str) -> str:
    if not title:
        return "A conversation needs a title."
    if len(title) > LONGEST_TITLE:
        return f"A title has at most {LONGEST_TITLE} characters; this one has {len(title):,}."
    return ""


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None
