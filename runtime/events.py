"""What happens in a run: a union of small frozen classes. The log numbers them 1, 2, 3 … within a root run.

Opens and closes pair up on every path, cancellation and crashes included; when a run is aborted the closes come
innermost first, and exactly one RunFinished of the root ends the log.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

type Status = Literal[
    "queued", "running", "waiting_approval", "needs_review", "completed", "limited", "cancelled", "failed"
]
TERMINAL: frozenset[str] = frozenset({"completed", "limited", "cancelled", "failed"})
WAITING: frozenset[str] = frozenset({"waiting_approval", "needs_review"})
"""For a person: nobody runs it until somebody has decided."""

type FailReason = Literal["timeout", "budget", "forbidden", "failed", "cancelled"]
type View = Literal["full", "summary", "none"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The run an event belongs to, with the agent's label as it was then. Stored once, on the Run row."""

    run: UUID
    root: UUID
    agent: str
    slug: str
    parent: UUID | None = None
    parent_call: UUID | None = None
    depth: int = 0
    view: View = "full"


@dataclass(frozen=True, slots=True)
class RunStarted:
    of: Origin


@dataclass(frozen=True, slots=True)
class RunPaused:
    """`reason` is `needs_review` or `approval`. Delegates at work are paused before their coordinators."""

    of: Origin
    reason: str


@dataclass(frozen=True, slots=True)
class RunResumed:
    """Of the root alone when another process goes on; after a pause of every paused run, coordinators first."""

    of: Origin


@dataclass(frozen=True, slots=True)
class RunFinished:
    """`error` is a plain sentence for the person who asked; `detail` is for administrators only."""

    of: Origin
    status: Status
    reason: str = ""
    error: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MessageStarted:
    of: Origin
    message: UUID


@dataclass(frozen=True, slots=True)
class MessageText:
    """`first`: in a log that was collapsed, the number of the first of the pieces that this one holds together."""

    of: Origin
    message: UUID
    text: str
    first: int = 0


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """`text` is the whole message, equal to its deltas joined; `complete` is false when it was cut short."""

    of: Origin
    message: UUID
    text: str
    complete: bool = True


@dataclass(frozen=True, slots=True)
class ReasoningStarted:
    of: Origin
    message: UUID


@dataclass(frozen=True, slots=True)
class ReasoningText:
    """`first` as of MessageText."""

    of: Origin
    message: UUID
    text: str
    first: int = 0


@dataclass(frozen=True, slots=True)
class ReasoningFinished:
    of: Origin
    message: UUID


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """`name` is what the model called, `label` what people read; `kind` is `delegate`, `memory` or a tool kind.
    `view` is that of the delegate that is called, which never starts when the call is refused."""

    of: Origin
    call: UUID
    name: str
    label: str
    kind: str
    side_effect: str = "read-only"
    view: View = "full"


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """The arguments as JSON text, whole."""

    of: Origin
    call: UUID
    text: str


@dataclass(frozen=True, slots=True)
class ToolReady:
    """The arguments are complete: what follows is work."""

    of: Origin
    call: UUID


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """`content` is what the model reads. `reason` of a call that is not ok: `unknown`, `invalid`, `cycle`, `depth`,
    `forbidden`, `budget`, `refused`, `timeout`, `failed`, `unsure` (it may have happened), `cancelled`."""

    of: Origin
    call: UUID
    ok: bool
    content: str
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DelegateStarted:
    """Said by the coordinator's run (`of`); `child` is the delegate's run."""

    of: Origin
    call: UUID
    child: Origin
    task: str


@dataclass(frozen=True, slots=True)
class DelegateFinished:
    of: Origin
    call: UUID
    child: UUID
    answer: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DelegateFailed:
    """`message` is one plain public sentence."""

    of: Origin
    call: UUID
    child: UUID
    reason: FailReason
    message: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    of: Origin
    call: UUID


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """About a call whose work may have begun, `approved` says “do it again”, and not approved “it happened”.

    `by` is the person's username as it was then, for administrators; empty in logs that are older than it."""

    of: Origin
    call: UUID
    approved: bool
    by: str = ""


@dataclass(frozen=True, slots=True)
class SourceCited:
    """A passage that was found: `document` is its title, `passage` its number in the document, from 1."""

    of: Origin
    call: UUID
    memory: str
    document: str
    passage: int


@dataclass(frozen=True, slots=True)
class Notice:
    """`audience` `administrators`: never on a stream that the person who asked can see."""

    of: Origin
    text: str
    audience: Literal["everyone", "administrators"] = "everyone"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call; `estimated` when the provider did not say."""

    of: Origin
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False


type Event = (
    RunStarted
    | RunPaused
    | RunResumed
    | RunFinished
    | MessageStarted
    | MessageText
    | MessageFinished
    | ReasoningStarted
    | ReasoningText
    | ReasoningFinished
    | ToolCalled
    | ToolArguments
    | ToolReady
    | ToolReturned
    | DelegateStarted
    | DelegateFinished
    | DelegateFailed
    | ApprovalAsked
    | ApprovalDecided
    | SourceCited
    | Notice
    | Usage
)


@dataclass(frozen=True, slots=True)
class Logged:
    """An event with its place in the log of its root run and the time it happened (UTC)."""

    n: int
    at: datetime
    event: Event


def ends(event: Event) -> bool:
    """Whether this is the one terminal event of a log."""
    return isinstance(event, RunFinished) and event.of.depth == 0


def pauses(event: Event) -> bool:
    """Whether the whole tree waits for a person from here on; RunResumed of the root comes before anything else."""
    return isinstance(event, RunPaused) and event.of.depth == 0
