"""What the middle of the street needs from its edges, as small Protocols: `execute` passes the implementations in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

import httpx

from runtime.events import Event, Origin, View
from runtime.spec import DelegationSpec

NOTHING_FOUND = "Nothing found"
"""How the answer of a search that found nothing begins, and a delegate's that has nothing to tell."""

CONSULTED = "Sources consulted:"
"""The line between a delegate's answer and the calls it rests on, in what its coordinator gets back."""

TASK_FOLLOWS = "Your task:"
"""The line before the task, for a delegate that is shown a part of the conversation first."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that a search found. `number` counts from 1 within its document; `score` only ranks;
    `heading` is the path of headings it stands under, the document's title first."""

    memory: str
    document: str
    number: int
    text: str
    score: float = 0.0
    heading: str = ""


class SearchMemory(Protocol):
    async def __call__(self, memory_id: int, query: str) -> Sequence[Passage]:
        """The best passages first; empty when nothing is relevant."""


@dataclass(frozen=True, slots=True)
class Right:
    """One call to be checked: the agents and delegations on the path from the root, and the row that is to be used."""

    agents: tuple[int, ...]
    delegations: tuple[int, ...] = ()
    tool: int | None = None
    memory: int | None = None


class MayCall(Protocol):
    async def __call__(self, right: Right) -> bool:
        """Whether every row on the path is still enabled and usable by the run's actor, now."""


class Log(Protocol):
    """The log of one root run. Recording never blocks and never raises."""

    def record(self, event: Event) -> None:
        """Append one event."""

    def text(self, of: Origin, message: UUID, delta: str) -> None:
        """Append to a message; deltas that come close together become one event."""

    async def commit(self) -> None:
        """Wait until everything recorded so far is committed: what an `acts` tool does comes after its row.

        Raises RunLost when another process has taken the run over: nothing may be done for it here any more.
        """

    def acting(self, calls: int) -> None:
        """One more (1) or one fewer (-1) call that acts is under way: a process that stops waits for these."""


class RunLost(Exception):  # noqa: N818 - it is a fact, not a fault
    """Another process runs this run now."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a run may reach. `http` is the guarded client of `agents_admin.egress`."""

    log: Log
    may_call: MayCall
    search: SearchMemory
    http: httpx.AsyncClient


@dataclass(frozen=True, slots=True)
class Source:
    memory: str
    document: str
    passage: int


type CallReason = Literal[
    "",
    "unknown",
    "invalid",
    "cycle",
    "depth",
    "forbidden",
    "budget",
    "refused",
    "timeout",
    "failed",
    "unsure",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back: `content` is what the model reads, in words also when it is not ok."""

    content: str
    ok: bool = True
    reason: CallReason = ""
    sources: tuple[Source, ...] = ()


class Call(Protocol):
    async def __call__(self, arguments: Mapping[str, object], call_id: UUID) -> ToolResult:
        """Do the work. May raise: the run turns any exception into a soft failure in words, and cancels on timeout."""


class StartChild(Protocol):
    async def __call__(self, edge: DelegationSpec, task: str, call_id: UUID) -> ToolResult:
        """Run the delegate of `edge` as a child of the run that asks; gives its answer or a soft failure."""


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool as the model sees it (`name`, `description`, `parameters`: a JSON Schema object) and what it does."""

    name: str
    label: str
    kind: str
    description: str
    parameters: Mapping[str, object]
    call: Call
    right: Right
    side_effect: str = "read-only"
    view: View = "full"
    approval: str = "never"
    timeout_seconds: float | None = None
    max_output_chars: int = 20_000
    max_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation as a model reads it.

    An assistant's may carry calls; a tool's carries the one it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple["PastCall", ...] = ()
    ok: bool = True


@dataclass(frozen=True, slots=True)
class PastCall:
    id: str
    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call as a model asked for it; `unreadable` holds the raw arguments when they are not a JSON object."""

    id: UUID
    name: str
    arguments: Mapping[str, object]
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One finished model call. `finish` is the provider's reason, `length` when the answer was cut at its limit."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    finish: str = ""
    calls: tuple[RequestedCall, ...] = ()


def estimated_tokens(chars: int) -> int:
    """When nobody counted: four characters of English are about one."""
    return -(-chars // 4)


class Conversation(Protocol):
    """What the engine tells a run while it drives the model, and what it asks of it."""

    @property
    def final(self) -> bool:
        """Whether the model call under way must answer without tools: it is the last one allowed."""

    async def step(self) -> bool:
        """Before each model call. False: no further call is allowed, the run ends here."""

    def said(self, delta: str) -> None: ...

    def thought(self, delta: str) -> None: ...

    def fell_back(self, failed: str, to: str, why: str) -> None:
        """A model could not be reached before it said anything; the next one is asked."""

    def broke_off(self, model: str, asked_tokens: int) -> None:
        """A model call ended in the middle; what it said until then has a price that no server tells."""

    def replied(self, reply: Reply) -> None:
        """One whole step of the model: its text and the calls it asks for, in order, none of them performed yet."""

    async def perform(self, name: str, arguments: Mapping[str, object]) -> str:
        """Do one requested call and give what the model reads. Raises nothing but cancellation."""

    def result(self, call: UUID) -> ToolResult:
        """What a call of the step under way came to; calls of unknown tools have a result too."""
