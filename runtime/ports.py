"""What the middle of the street needs from its edges, as small Protocols: `execute` passes the implementations in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

import httpx

from runtime.events import Event


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that a search found. `number` counts from 1 within its document; `score` only ranks."""

    memory: str
    document: str
    number: int
    text: str
    score: float = 0.0


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


class Record(Protocol):
    def __call__(self, event: Event) -> None:
        """Append to the log of the root run. Never blocks, never raises."""


class Commit(Protocol):
    async def __call__(self) -> None:
        """Wait until everything recorded so far is committed: what an `acts` tool does comes after its row."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a run may reach. `http` is the guarded client of `agents_admin.egress`."""

    record: Record
    commit: Commit
    may_call: MayCall
    search: SearchMemory
    http: httpx.AsyncClient


@dataclass(frozen=True, slots=True)
class Source:
    memory: str
    document: str
    passage: int


type CallReason = Literal[
    "", "unknown", "invalid", "cycle", "depth", "forbidden", "budget", "refused", "timeout", "failed", "cancelled"
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
    approval: str = "never"
    timeout_seconds: float | None = None
    max_output_chars: int = 20_000
    max_calls: int | None = None
    arguments_label: str = field(default="")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation as a model reads it: plain text, or a call/result pair replayed from history."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple["PastCall", ...] = ()
    call_id: str = ""


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
