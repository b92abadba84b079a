"""What must still be said about a log that broke off: plain functions over events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from runtime import events
from runtime.events import Event, Status


@dataclass(frozen=True, slots=True)
class Ending:
    """How the runs of a log that broke off end. `words` are for the person who asked."""

    status: Status
    reason: str = ""
    words: str = ""


STOPPED = Ending("cancelled")
DIED = Ending(
    "failed", "process_died", "The server stopped several times while this was being answered. Please ask again."
)


def closes(log: Iterable[Event], ending: Ending) -> list[Event]:
    """One close for everything that is open, innermost first, the terminal event last; empty for a finished log."""
    opened: dict[Door, tuple[int, Event]] = {}
    texts: dict[UUID, list[str]] = {}
    for place, event in enumerate(log):
        _keep_text(event, texts)
        if door := opens(event):
            opened[door] = (place, event)
        elif door := shuts(event):
            opened.pop(door, None)
    # A run opens before what is inside it, a delegate's run after the call and the delegate that hold it: backwards,
    # the closes come innermost first.
    newest_first = sorted(opened.values(), key=lambda entry: entry[0], reverse=True)
    return [_closing(event, texts, ending) for _, event in newest_first]


def _keep_text(event: Event, texts: dict[UUID, list[str]]) -> None:
    if isinstance(event, events.MessageText):
        texts.setdefault(event.message, []).append(event.text)


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


def interruption(log: Iterable[Event]) -> list[Event]:
    """The closes of messages that broke off with a process: another one says them again. Everything else stays open."""
    return [
        close for close in closes(log, DIED) if isinstance(close, events.MessageFinished | events.ReasoningFinished)
    ]
