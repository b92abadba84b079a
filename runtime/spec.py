"""What `resolve` gives: everything a run needs to know of the rows, frozen. Plain values, no Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents_admin.kinds import SideEffect, ToolSettings

type DelegateView = Literal["full", "summary", "none"]
type ContextPolicy = Literal["task", "summary", "conversation"]
type ApprovalPolicy = Literal["never", "ask", "refuse"]

MAX_DEPTH = 5
"""The deepest level of a delegate; the root is depth 0 (contract.md, Delegation)."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A decrypted secret that no repr, log line or traceback shows."""

    value: str = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model and the provider that serves it. Timeouts in seconds."""

    id: int
    label: str
    kind: str
    model_id: str
    base_url: str = ""
    api_key: Secret = Secret("")
    timeout_seconds: float = 120.0
    idle_seconds: float = 60.0
    context_window: int | None = None
    fallback: "ModelSpec | None" = None


@dataclass(frozen=True, slots=True)
class CredentialSpec:
    """A secret and the origins (`scheme://host[:port]`) it may be sent to. `header` is used by the kind `header`."""

    id: int
    kind: Literal["bearer", "header", "basic"]
    secret: Secret
    origins: tuple[str, ...]
    header: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as one agent has it: `name` is what the model calls, unique for that agent."""

    id: int
    name: str
    label: str
    kind: str
    settings: ToolSettings
    description: str
    side_effect: SideEffect = "read-only"
    approval: ApprovalPolicy = "never"
    timeout_seconds: float = 30.0
    max_output_chars: int = 20_000
    max_calls: int | None = None
    credential: CredentialSpec | None = None


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """A memory that an agent may search; `name` is its search tool's name."""

    id: int
    name: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class Limits:
    """None: no own limit. 0: none allowed. `max_seconds` and `max_tokens` of a root are one envelope for its tree."""

    max_steps: int | None = 6
    max_tool_calls: int | None = 6
    max_seconds: float | None = 300
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class DelegationSpec:
    """One line of a roster, as an edge to `delegate_id`; `name` is the tool the coordinator's model calls."""

    id: int
    delegate_id: int
    name: str
    when_to_use: str = ""
    max_calls: int | None = None
    limits: Limits = Limits(None, None, None, None)
    on_failure: str = ""
    context: ContextPolicy = "task"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    id: int
    slug: str
    label: str
    model: ModelSpec
    description: str = ""
    instructions: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    memories: tuple[MemorySpec, ...] = ()
    roster: tuple[DelegationSpec, ...] = ()
    limits: Limits = Limits()
    history_messages: int = 20
    view: DelegateView = "full"


@dataclass(frozen=True, slots=True)
class Omission:
    """Something an agent has that this actor may not use; for administrators only."""

    agent: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class RuntimeAgent:
    """One agent and everything reachable from it, permission-checked and frozen.

    `agents` is flat, edges go by id: a shared delegate appears once, and a cycle in the rows is representable.
    """

    root_id: int
    agents: Mapping[int, AgentSpec]
    omitted: tuple[Omission, ...] = ()

    @property
    def root(self) -> AgentSpec:
        return self.agents[self.root_id]
