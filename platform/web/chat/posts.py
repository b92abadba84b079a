"""What a person sent: read from a form, started as a run. The chat page and the widget share it."""

from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse

from agents_admin.actor import Actor
from agents_admin.text import clean
from runtime import execute
from runtime.errors import RunError
from runtime.models import Run
from web.chat.turns import Places, begun
from web.errors import STATUS

ARRIVED = "Your message before this one had arrived. This one is kept: send it when that one is answered."


class Arrived(RunError):  # noqa: N818 - it says what happened
    """Another text was sent under this key before, by a page that has not heard so: `run` is what became of it."""

    def __init__(self, run: Run) -> None:
        super().__init__("idempotency_conflict", ARRIVED)
        self.run = run


async def post(actor: Actor, form: QueryDict) -> tuple[Run, bool]:
    """Start what the form asks for; its run, the thread with it, and whether it was started just now.

    The text is the field `text`, or that of the button that was pressed: `starter`, or `retry` with the run whose input
    is sent again. The field `key` is of one message: sent again, it finds its run. Raises RunError, Arrived among them.
    """
    retry = form.get("retry")
    asked = await _retried(actor, form, retry) if retry else _typed(form)
    started = await execute.start(actor, asked)
    run = await Run.objects.for_actor(actor).select_related("thread").filter(pk=started.run).afirst()
    if run is None:  # another tab deleted the conversation just now
        raise _missing("conversation")
    if not started.created and run.input != asked.text:
        raise Arrived(run)
    return run, started.created


def sent(request: HttpRequest, run: Run, places: Places, *, is_new: bool = False, kept: str = "") -> HttpResponse:
    """What was sent as a turn of its own, for the end of the page. `kept` says why what is typed there stays.

    `is_new` when the page did not know the conversation.
    """
    context = {"turn": begun(run, places), "thread": run.thread, "stop": places.stop(run.pk), "is_new": is_new}
    context |= {"key": uuid4(), "kept": kept}
    response = render(request, "chat/sent.html", context)
    if kept:
        response.status_code = STATUS["idempotency_conflict"]
        response["HX-Reswap"] = "beforeend"
    if is_new:
        response["HX-Replace-Url"] = reverse("chat-thread", args=[run.thread_id])
    return response


def _typed(form: QueryDict) -> execute.Request:
    # Browsers send every line end as CR LF.
    text = clean(form.get("starter") or form.get("text", "")).replace("\r\n", "\n")
    thread = form.get("thread", "")
    return execute.Request(_agent(form), text, _id(thread, "conversation") if thread else None, run=_key(form))


async def _retried(actor: Actor, form: QueryDict, run: str) -> execute.Request:
    roots = Run.objects.for_actor(actor).filter(pk=_id(run, "answer"), depth=0)
    found = await roots.afirst()
    if found is None:
        raise _missing("answer")
    return execute.Request(_agent(form) or found.agent_slug, found.input, found.thread_id, run=_key(form))


def _agent(form: QueryDict) -> str:
    return clean(form.get("agent", ""))


def _key(form: QueryDict) -> UUID | None:
    try:
        return UUID(form.get("key", ""))
    except ValueError:
        return None


def _id(text: str, what: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _missing(what) from None


def _missing(what: str) -> RunError:
    return RunError("not_found", f"This {what} does not exist, or it is not yours.")
