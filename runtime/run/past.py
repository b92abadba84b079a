"""A log folded back into what its runs need to go on: the finished steps as a model reads them, and what is still open.

A step is one reply of a model with the results of its calls. Everything of a reply is recorded at once (its text, its
usage, its calls), so that a log holds a reply whole or not at all.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from agents_admin.text import BadJson, read_json
from runtime import events
from runtime.events import Event, Logged, Origin
from runtime.ports import PastCall, RequestedCall, Turn

NOT_MADE = frozenset({"unknown", "invalid", "cycle", "depth", "forbidden", "budget", "refused"})
"""Reasons of calls that were answered without being made: they count against no limit."""


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A call that was announced and not answered. `ready`: its work may have begun.

    `again` or `happened`: what a person said about it.
    """

    request: RequestedCall
    label: str
    acts: bool = False
    ready: bool = False
    again: bool = False
    happened: bool = False

    @property
    def uncertain(self) -> bool:
        """Whether only a person can know what to do: it acts, and may have acted."""
        return self.acts and self.ready and not self.again and not self.happened


@dataclass(slots=True)
class Past:
    """What one run did before. `done` are its finished turns; `calls` were asked for and not answered."""

    origin: Origin
    since: datetime
    done: list[Turn] = field(default_factory=list)
    calls: dict[UUID, PastRequest] = field(default_factory=dict)
    children: dict[UUID, UUID] = field(default_factory=dict)
    consulted: list[str] = field(default_factory=list)
    per_tool: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    tokens: int = 0
    tool_calls: int = 0
    text: str = ""
    answer: str = ""
    finished: events.RunFinished | None = None
    log: list[Event] = field(default_factory=list)
    _said: str = ""


def age(pasts: Mapping[UUID, Past], run: UUID) -> float:
    """Seconds since a run was started, in whichever process: its time limit counts from there."""
    return (datetime.now(UTC) - pasts[run].since).total_seconds() if run in pasts else 0.0


def subtree(pasts: Mapping[UUID, Past], run: UUID) -> list[Event]:
    """What a run and its delegates said, a delegate's events after its coordinator's."""
    children = [child for child in pasts[run].children.values() if child in pasts]
    return [*pasts[run].log, *(event for child in children for event in subtree(pasts, child))]


def fold(log: Iterable[Logged]) -> dict[UUID, Past]:
    """By run. Messages that broke off are left out of what a model is shown."""
    pasts: dict[UUID, Past] = {}
    waiting_since: datetime | None = None
    for logged in log:
        of = logged.event.of
        past = pasts.get(of.run)
        if past is None:
            past = pasts[of.run] = Past(of, logged.at)
        if events.pauses(logged.event):
            waiting_since = logged.at
        if isinstance(logged.event, events.RunResumed):
            _forget_decisions(pasts)
            if waiting_since is not None:
                _leave_out(logged.at - waiting_since, pasts)
                waiting_since = None
        past.log.append(logged.event)
        _add(past, logged.event)
    _count_delegates(pasts)
    return pasts


def _leave_out(waited: timedelta, pasts: Mapping[UUID, Past]) -> None:
    """While a person makes up their mind no time limit runs."""
    for past in pasts.values():
        past.since += waited


def _forget_decisions(pasts: Mapping[UUID, Past]) -> None:
    """“Do it again” holds for one attempt: after it the call may have acted once more."""
    for past in pasts.values():
        past.calls = {key: replace(call, again=False, happened=False) for key, call in past.calls.items()}


def confirmed(pasts: Mapping[UUID, Past]) -> list[tuple[Origin, UUID]]:
    """The calls that a person said have happened: what is left is to tell their runs."""
    return [(past.origin, key) for past in pasts.values() for key, call in past.calls.items() if call.happened]


def uncertain(pasts: Mapping[UUID, Past]) -> list[tuple[Origin, UUID]]:
    """The calls that a person must decide about before these runs can go on."""
    return [(past.origin, key) for past in pasts.values() for key, call in past.calls.items() if call.uncertain]


def _add(past: Past, event: Event) -> None:
    match event:
        case events.MessageFinished(text=text, complete=complete):
            past.text = text
            past._said = text if complete else ""
        case events.Usage():
            _end_reply(past, event)
        case events.DelegateStarted(call=call, child=child):
            past.children[call] = child.run
        case events.RunFinished():
            past.finished = event
        case _:
            _add_call(past, event)


def _end_reply(past: Past, usage: events.Usage) -> None:
    past.steps += 1
    past.tokens += usage.input_tokens + usage.output_tokens
    past.answer = past._said
    if past._said:
        past.done.append(Turn("assistant", past._said))
    past._said = ""


def _add_call(past: Past, event: Event) -> None:
    match event:
        case events.ToolCalled(call=call, name=name, label=label, side_effect=effect):
            past.answer = ""
            past.calls[call] = PastRequest(RequestedCall(call, name, {}), label, effect == "acts")
        case events.ToolArguments(call=call, text=text):
            request = _with_arguments(past.calls[call].request, text)
            past.calls[call] = replace(past.calls[call], request=request)
            _attach(past, request)
        case events.ToolReady(call=call):
            past.calls[call] = replace(past.calls[call], ready=True)
        case events.ApprovalDecided(call=call, approved=approved):
            past.calls[call] = replace(past.calls[call], again=approved, happened=not approved)
        case events.ToolReturned():
            _end_call(past, event)


def _with_arguments(call: RequestedCall, text: str) -> RequestedCall:
    try:
        value = read_json(text)
    except BadJson:
        return RequestedCall(call.id, call.name, {}, text)
    return (
        RequestedCall(call.id, call.name, value)
        if isinstance(value, dict)
        else RequestedCall(call.id, call.name, {}, text)
    )


def _attach(past: Past, call: RequestedCall) -> None:
    """Calls belong to the reply that has just ended; without text it has no turn yet."""
    made = past_call(call)
    last = past.done[-1] if past.done else None
    if last is not None and last.role == "assistant":
        past.done[-1] = Turn("assistant", last.text, (*last.calls, made))
    else:
        past.done.append(Turn("assistant", "", (made,)))


def _end_call(past: Past, event: events.ToolReturned) -> None:
    known = past.calls.pop(event.call)
    past.done.append(Turn("tool", event.content, (past_call(known.request),), event.ok))
    if event.reason not in NOT_MADE:
        past.tool_calls += 1
        past.per_tool[known.request.name] += 1
    if event.ok:
        past.consulted.append(source_line(known.label, known.request))


def past_call(call: RequestedCall) -> PastCall:
    return PastCall(str(call.id), call.name, call.arguments)


def source_line(label: str, call: RequestedCall) -> str:
    """One line of “sources consulted”: which tool with which arguments, never what it gave."""
    return f"{label}({arguments_text(call)[:200]})"


def arguments_text(call: RequestedCall) -> str:
    """The arguments as JSON text; as the model wrote them when they are not JSON."""
    return call.unreadable if call.unreadable is not None else json.dumps(call.arguments, ensure_ascii=False)


def _count_delegates(pasts: dict[UUID, Past]) -> None:
    """A run's tokens hold its delegates': children come after their parents in a log."""
    for past in reversed(pasts.values()):
        if past.origin.parent in pasts:
            pasts[past.origin.parent].tokens += past.tokens
