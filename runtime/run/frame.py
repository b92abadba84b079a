"""One run of one agent, root or delegate: what it has open, what it may still do, what it said."""

from asyncio import CancelledError, Task, wait
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from uuid import UUID, uuid4

from runtime import events
from runtime.events import Origin, Status
from runtime.ports import BoundTool, CallReason, Ports, Reply, RequestedCall, Right, ToolResult, Turn, estimated_tokens
from runtime.run.budget import Budget
from runtime.run.past import Past, arguments_text, past_call, source_line
from runtime.spec import AgentSpec, RuntimeAgent

MAX_EMPTY_REPLIES = 2


class Revoked(Exception):  # noqa: N818 - it is a fact, not a fault
    """The actor may not use an agent on this path any more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `error` is for the person who asked, `detail` for administrators.

    `answer` is what it said in the end, if it came to an end; `text` is the last it said at all.
    """

    status: Status
    text: str = ""
    reason: str = ""
    error: str = ""
    detail: str = ""
    answer: str = ""


@dataclass(slots=True)
class OpenCall:
    request: RequestedCall
    label: str
    since: float
    ready: bool = False
    taken: bool = False


@dataclass(slots=True)
class Frame:
    """The Conversation of one run with the engine.

    `path` are the agents from the root to this one, `edges` the delegations between them. `done` are the turns of the
    finished steps. `pasts` is what the runs of this tree did before, in another process.
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
    pasts: Mapping[UUID, Past] = field(default_factory=dict)
    tools: dict[str, BoundTool] = field(default_factory=dict)
    done: list[Turn] = field(default_factory=list)
    calls: dict[UUID, OpenCall] = field(default_factory=dict)
    results: dict[UUID, ToolResult] = field(default_factory=dict)
    per_tool: Counter[str] = field(default_factory=Counter)
    working: set[Task[object]] = field(default_factory=set)
    message: UUID | None = None
    reasoning: UUID | None = None
    pieces: list[str] = field(default_factory=list)
    text: str = ""
    answer: str = ""
    consulted: list[str] = field(default_factory=list)
    empty_replies: int = 0
    final: bool = False
    cut_short: bool = False
    checked: bool = False

    @property
    def past(self) -> Past | None:
        return self.pasts.get(self.origin.run)

    def remember(self, past: Past) -> None:
        """Go on where another process stopped."""
        self.done = list(past.done)
        self.consulted = list(past.consulted)
        self.per_tool = Counter(past.per_tool)
        self.text, self.answer = past.text, past.answer
        self.budget.steps, self.budget.tool_calls, self.budget.tokens = past.steps, past.tool_calls, past.tokens
        self.calls = {
            key: OpenCall(known.request, known.label, perf_counter(), ready=known.ready, taken=True)
            for key, known in past.calls.items()
        }

    # What the engine tells (runtime.ports.Conversation)

    async def step(self) -> bool:
        if self.empty_replies >= MAX_EMPTY_REPLIES:
            return False
        if not self.budget.take_step():
            self.cut_short = True
            return False
        await self._check_right()
        self.final = self.budget.on_last_step
        self.cut_short = self.final and bool(self.tools)
        return True

    async def _check_right(self) -> None:
        """The first step's right was asked just before: when the agent was resolved, or its delegation called."""
        if self.checked and not await self.ports.may_call(Right(self.path, self.edges)):
            raise Revoked
        self.checked = True

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

    def fell_back(self, failed: str, to: str, why: str) -> None:
        words = f"{failed} could not be asked, {to} was asked instead: {why}"
        self.ports.log.record(events.Notice(self.origin, words, "administrators"))

    def broke_off(self, model: str, asked_tokens: int) -> None:
        if self.message is None and self.reasoning is None:
            return
        said = estimated_tokens(sum(map(len, self.pieces)) if self.message else 0)
        self.budget.spend(asked_tokens + said)
        self.ports.log.record(events.Usage(self.origin, model, asked_tokens, said, estimated=True))

    def replied(self, reply: Reply) -> None:
        if reply.text and self.message is None:
            self.said(reply.text)  # a provider that does not stream
        self.close_message(complete=True)
        self.budget.spend(reply.input_tokens + reply.output_tokens)
        self.ports.log.record(
            events.Usage(self.origin, reply.model, reply.input_tokens, reply.output_tokens, reply.estimated)
        )
        self.text = reply.text or self.text
        self.answer = "" if reply.calls else reply.text
        self.empty_replies = 0 if reply.text or reply.calls else self.empty_replies + 1
        if reply.text or reply.calls:
            self.done.append(Turn("assistant", reply.text, tuple(past_call(call) for call in reply.calls)))
        self.results = {}
        for call in reply.calls:
            self._announce(call)
        for call in reply.calls:
            if call.name not in self.tools:
                self.returned(call.id, ToolResult(self._no_such_tool(call.name), False, "unknown"))

    def _announce(self, call: RequestedCall) -> None:
        tool = self.tools.get(call.name)
        label = tool.label if tool else call.name[:100]
        kind, effect = (tool.kind, tool.side_effect) if tool else ("unknown", "read-only")
        view = tool.view if tool else "full"
        self.calls[call.id] = OpenCall(call, label, perf_counter())
        self.ports.log.record(events.ToolCalled(self.origin, call.id, call.name[:100], label, kind, effect, view))
        self.ports.log.record(events.ToolArguments(self.origin, call.id, arguments_text(call)))

    def _no_such_tool(self, name: str) -> str:
        return f"There is no tool {name[:100]!r}. Tools: {', '.join(self.tools) or 'none'}."

    def result(self, call: UUID) -> ToolResult:
        return self.results[call]

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

    def ready(self, call: UUID) -> None:
        """What follows is work: after a crash nobody knows how far it came. Said once."""
        if not self.calls[call].ready:
            self.calls[call].ready = True
            self.ports.log.record(events.ToolReady(self.origin, call))

    def returned(self, call: UUID, result: ToolResult) -> None:
        open_call = self.calls[call]
        self.ready(call)
        del self.calls[call]
        for source in result.sources:
            self.ports.log.record(events.SourceCited(self.origin, call, source.memory, source.document, source.passage))
        if result.ok:
            self.consulted.append(source_line(open_call.label, open_call.request))
        self.results[call] = result
        self.done.append(Turn("tool", result.content, (past_call(open_call.request),), result.ok))
        seconds = round(perf_counter() - open_call.since, 3)
        self.ports.log.record(events.ToolReturned(self.origin, call, result.ok, result.content, result.reason, seconds))

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
        """Close everything that is open, innermost first: the work of calls has ended before the calls are closed.

        Cancelled meanwhile, it breaks that work off, and all is closed before it raises CancelledError.
        """
        cancelled = False
        while self.working:
            try:
                await wait(self.working)
            except CancelledError:
                cancelled = True
                self._break_off()
        for call in reversed(list(self.calls)):
            self.returned(call, ToolResult("The call was stopped.", False, reason))
        self.close_message(complete=False)
        if cancelled:
            raise CancelledError

    def _break_off(self) -> None:
        """Once: whoever is ending ends by itself."""
        for task in self.working:
            if not task.cancelling():
                task.cancel()
