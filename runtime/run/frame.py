"""One run of one agent, root or delegate: what it has open, what it may still do, what it said."""

import json
from asyncio import Task, wait
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from uuid import UUID, uuid4

from runtime import events
from runtime.events import Origin, Status
from runtime.ports import BoundTool, CallReason, Ports, Reply, RequestedCall, ToolResult, Turn
from runtime.run.budget import Budget
from runtime.spec import AgentSpec, RuntimeAgent

MAX_EMPTY_REPLIES = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `error` is for the person who asked, `detail` for administrators."""

    status: Status
    text: str = ""
    reason: str = ""
    error: str = ""
    detail: str = ""


@dataclass(slots=True)
class OpenCall:
    request: RequestedCall
    label: str
    since: float
    taken: bool = False


@dataclass(slots=True)
class Frame:
    """The Conversation of one run with the engine.

    `path` are the agents from the root to this one, `edges` the delegations between them.
    """

    world: RuntimeAgent
    agent: AgentSpec
    origin: Origin
    budget: Budget
    ports: Ports
    performer: Callable[["Frame", RequestedCall], Awaitable[str]]
    path: tuple[int, ...]
    edges: tuple[int, ...] = ()
    turns: Sequence[Turn] = ()
    tools: dict[str, BoundTool] = field(default_factory=dict)
    calls: dict[UUID, OpenCall] = field(default_factory=dict)
    per_tool: Counter[str] = field(default_factory=Counter)
    working: set[Task[object]] = field(default_factory=set)
    message: UUID | None = None
    reasoning: UUID | None = None
    pieces: list[str] = field(default_factory=list)
    text: str = ""
    consulted: list[str] = field(default_factory=list)
    empty_replies: int = 0
    final: bool = False
    cut_short: bool = False

    # What the engine tells (runtime.ports.Conversation)

    def step(self) -> bool:
        if self.empty_replies >= MAX_EMPTY_REPLIES:
            return False
        if not self.budget.take_step():
            self.cut_short = True
            return False
        self.final = self.budget.on_last_step
        self.cut_short = self.final and bool(self.tools)
        return True

    def said(self, delta: str) -> None:
        if self.message is None:
            self.close_reasoning()
            self.message = uuid4()
            self.pieces = []
            self.ports.log.record(events.MessageStarted(self.origin, self.message))
        self.pieces.append(delta)
        self.ports.log.text(self.origin, self.message, delta)

    def thought(self, delta: str) -> None:
        if self.reasoning is None:
            self.reasoning = uuid4()
            self.ports.log.record(events.ReasoningStarted(self.origin, self.reasoning))
        self.ports.log.record(events.ReasoningText(self.origin, self.reasoning, delta))

    def replied(self, reply: Reply) -> None:
        if reply.text and self.message is None:
            self.said(reply.text)  # a provider that does not stream
        self.close_message(complete=True)
        self.empty_replies = 0 if reply.text else self.empty_replies + 1
        self.text = reply.text or self.text
        self.budget.spend(reply.input_tokens + reply.output_tokens)
        self.ports.log.record(
            events.Usage(self.origin, reply.model, reply.input_tokens, reply.output_tokens, reply.estimated)
        )

    def requested(self, calls: Sequence[RequestedCall]) -> None:
        if calls:
            self.empty_replies = 0
        for call in calls:
            tool = self.tools.get(call.name)
            label = tool.label if tool else call.name[:100]
            self.calls[call.id] = OpenCall(call, label, perf_counter())
            self.ports.log.record(
                events.ToolCalled(
                    self.origin,
                    call.id,
                    call.name[:100],
                    label,
                    tool.kind if tool else "unknown",
                    tool.side_effect if tool else "read-only",
                )
            )
            self.ports.log.record(events.ToolArguments(self.origin, call.id, arguments_text(call)))
            self.ports.log.record(events.ToolReady(self.origin, call.id))
        for call in calls:
            if call.name not in self.tools:
                known = ", ".join(self.tools) or "none"
                self.returned(call.id, ToolResult(f"There is no tool {call.name!r}. Tools: {known}.", False, "unknown"))

    def refusal(self, call: UUID) -> str:
        return f"There is no such tool. Tools: {', '.join(self.tools) or 'none'}."

    async def perform(self, name: str, arguments: Mapping[str, object]) -> str:
        return await self.performer(self, self._take(name, arguments))

    def _take(self, name: str, arguments: Mapping[str, object]) -> RequestedCall:
        """The engine is not told call ids: identical calls are interchangeable, first in first out."""
        for call in self.calls.values():
            if not call.taken and call.request.name == name and call.request.arguments == arguments:
                call.taken = True
                return call.request
        raise AssertionError(f"{name} was performed without being requested")

    # What is open, and how it is closed

    def returned(self, call: UUID, result: ToolResult) -> None:
        open_call = self.calls.pop(call)
        for source in result.sources:
            self.ports.log.record(events.SourceCited(self.origin, call, source.memory, source.document, source.passage))
        if result.ok:
            self.consulted.append(f"{open_call.label}({arguments_text(open_call.request)[:200]})")
        self.ports.log.record(
            events.ToolReturned(
                self.origin, call, result.ok, result.content, result.reason, _seconds_since(open_call.since)
            )
        )

    def close_message(self, *, complete: bool) -> None:
        self.close_reasoning()
        if self.message is not None:
            whole = "".join(self.pieces)
            self.text = whole
            self.ports.log.record(events.MessageFinished(self.origin, self.message, whole, complete))
            self.message = None

    def close_reasoning(self) -> None:
        if self.reasoning is not None:
            self.ports.log.record(events.ReasoningFinished(self.origin, self.reasoning))
            self.reasoning = None

    async def close(self, reason: CallReason) -> None:
        """Close everything that is open, innermost first: the work of calls has ended before the calls are closed."""
        if self.working:
            await wait(self.working)
        for call in reversed(list(self.calls)):
            self.returned(call, ToolResult("The call was stopped.", False, reason))
        self.close_message(complete=False)


def arguments_text(call: RequestedCall) -> str:
    """The arguments as JSON text; as the model wrote them when they are not JSON."""
    return call.unreadable if call.unreadable is not None else json.dumps(call.arguments, ensure_ascii=False)


def _seconds_since(moment: float) -> float:
    return round(perf_counter() - moment, 3)
