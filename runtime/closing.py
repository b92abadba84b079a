"""What must still be said about a log that broke off: plain functions over events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from runtime import events
from runtime.events import Event, Origin, Status


@dataclass(frozen=True, slots=True)
class Ending:
    """How the runs of a log that broke off end. `words` are for the person who asked."""

    status: Status
    reason: str = ""
    words: str = ""


STOPPED = Ending("cancelled")
NOT_MADE = "The server stopped before this was done, and it was not done. Ask for it again if it is still needed."
DIED = Ending(
    "failed", "process_died", "The server stopped several times while this was being answered. Please ask again."
)


def closes(log: Sequence[Event], ending: Ending) -> list[Event]:
    """One close for everything that is open, innermost first, the terminal event last; empty for a finished log.

    What is paused is resumed first.
    """
    texts: dict[UUID, list[str]] = {}
    for event in log:
        if isinstance(event, events.MessageText):
            texts.setdefault(event.message, []).append(event.text)
    begun = _begun(log)
    said: list[Event] = [events.RunResumed(of) for of in paused(log)]
    for event in _open(log):
        if isinstance(event, events.ToolCalled) and event.call not in begun:
            said.append(events.ToolReady(event.of, event.call))
        said.append(_closing(event, texts, ending))
    return said


def _begun(log: Iterable[Event]) -> set[UUID]:
    """The calls that are whole: what came after was work."""
    return {event.call for event in log if isinstance(event, events.ToolReady)}


def _open(log: Iterable[Event]) -> list[Event]:
    """The openings that have no close, the newest first.

    A run opens before what is inside it, a delegate's run after the call and the delegate that hold it: backwards,
    what is innermost comes first.
    """
    opened: dict[Door, Event] = {}
    for event in log:
        if door := opens(event):
            opened[door] = event
        elif door := shuts(event):
            opened.pop(door, None)
    return list(opened.values())[::-1]


type Door = tuple[str, UUID]
"""What opens and closes: `run`, `message`, `reasoning`, `call` or `delegate`, and its id."""


def opens(event: Event) -> Door | None:
    """What this event opens, if anything."""
    match event:
        case events.RunStarted(of=of):
            return "run", of.run
        case events.MessageStarted(message=message):
            return "message", message
        case events.ReasoningStarted(message=message):
            return "reasoning", message
        case events.ToolCalled(call=call):
            return "call", call
        case events.DelegateStarted(child=child):
            return "delegate", child.run
    return None


def shuts(event: Event) -> Door | None:
    """What this event closes, if anything."""
    match event:
        case events.RunFinished(of=of):
            return "run", of.run
        case events.MessageFinished(message=message):
            return "message", message
        case events.ReasoningFinished(message=message):
            return "reasoning", message
        case events.ToolReturned(call=call):
            return "call", call
        case events.DelegateFinished(child=run) | events.DelegateFailed(child=run):
            return "delegate", run
    return None


def _closing(event: Event, texts: dict[UUID, list[str]], ending: Ending) -> Event:
    match event:
        case events.RunStarted(of=of):
            return events.RunFinished(of, ending.status, ending.reason, ending.words)
        case events.MessageStarted(of=of, message=message):
            return events.MessageFinished(of, message, "".join(texts.get(message, ())), complete=False)
        case events.ReasoningStarted(of=of, message=message):
            return events.ReasoningFinished(of, message)
        case events.ToolCalled(of=of, call=call):
            return events.ToolReturned(of, call, False, "The call was stopped.", "cancelled")
        case events.DelegateStarted(of=of, call=call, child=child):
            return events.DelegateFailed(of, call, child.run, _reason(ending), f"{child.agent} was stopped.")
    raise AssertionError(event)


def _reason(ending: Ending) -> Literal["cancelled", "failed"]:
    return "cancelled" if ending.status == "cancelled" else "failed"


def paused(log: Iterable[Event]) -> list[Origin]:
    """The runs that wait for a person, coordinators first; empty while a log goes on."""
    waiting: dict[UUID, Origin] = {}
    for event in log:
        match event:
            case events.RunPaused(of=of):
                waiting[of.run] = of
            case events.RunResumed(of=of):
                waiting.pop(of.run, None)
    return sorted(waiting.values(), key=lambda of: of.depth)


def suspension(log: Sequence[Event], root: Origin, reason: str) -> list[Event]:
    """What is said when a log stops to wait for a person: all but the calls that wait could be over.

    Messages that broke off are closed, the root's calls that have not begun are whole, every run is paused.
    """
    begun = _begun(log)
    said = interruption(log)
    delegates: list[Origin] = []
    for event in _open(log):
        match event:
            case events.ToolCalled(of=of, call=call) if of.depth == 0 and call not in begun:
                said += _not_begun(event)
            case events.DelegateStarted(child=child):
                delegates.append(child)
    return [*said, *(events.RunPaused(of, reason) for of in (*delegates, root))]


def _not_begun(called: events.ToolCalled) -> list[Event]:
    """One that acts is answered, so that nobody has to ask whether it happened; others are simply made later."""
    whole: list[Event] = [events.ToolReady(called.of, called.call)]
    if called.side_effect == "acts":
        whole.append(events.ToolReturned(called.of, called.call, False, NOT_MADE, "failed"))
    return whole


def interruption(log: Sequence[Event]) -> list[Event]:
    """The closes of messages that broke off with a process: another one says them again. Everything else stays open."""
    return [
        close for close in closes(log, DIED) if isinstance(close, events.MessageFinished | events.ReasoningFinished)
    ]
