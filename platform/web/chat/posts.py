"""What a person sent: read from a form, started as a run. The chat page and the widget share it."""

from uuid import UUID

from django.http import QueryDict

from agents_admin.actor import Actor
from agents_admin.text import clean
from runtime import execute
from runtime.errors import RunError
from runtime.models import Run


async def post(actor: Actor, form: QueryDict) -> Run:
    """Start what the form asks for and give its run, the thread with it.

    The text is the field `text`, or that of the button that was pressed: `starter`, or `retry` with the run whose input
    is sent again. Raises RunError.
    """
    retry = form.get("retry")
    asked = await _retried(actor, form, retry) if retry else _typed(form)
    started = await execute.start(actor, asked)
    run = await Run.objects.for_actor(actor).select_related("thread").filter(pk=started.run).afirst()
    if run is None:  # another tab deleted the conversation just now
        raise _missing("conversation")
    return run


def _typed(form: QueryDict) -> execute.Request:
    # Browsers send every line end as CR LF.
    text = clean(form.get("starter") or form.get("text", "")).replace("\r\n", "\n")
    thread = form.get("thread", "")
    return execute.Request(_agent(form), text, _id(thread, "conversation") if thread else None)


async def _retried(actor: Actor, form: QueryDict, run: str) -> execute.Request:
    roots = Run.objects.for_actor(actor).filter(pk=_id(run, "answer"), depth=0)
    found = await roots.afirst()
    if found is None:
        raise _missing("answer")
    return execute.Request(_agent(form) or found.agent_slug, found.input, found.thread_id)


def _agent(form: QueryDict) -> str:
    return clean(form.get("agent", ""))


def _id(text: str, what: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _missing(what) from None


def _missing(what: str) -> RunError:
    return RunError("not_found", f"This {what} does not exist, or it is not yours.")
