"""What a run may still spend, and where a delegation may go: plain values and functions.

Seconds and tokens of a root are one envelope: all runs of its tree spend from it, a child's own limits only narrow it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.ports import CallReason
from runtime.spec import MAX_DEPTH, AgentSpec, DelegationSpec, Limits


def smallest(*limits: Limits) -> Limits:
    """The smallest of each limit; None is no limit."""
    return Limits(
        max_steps=_smallest([one.max_steps for one in limits]),
        max_tool_calls=_smallest([one.max_tool_calls for one in limits]),
        max_seconds=_smallest([one.max_seconds for one in limits]),
        max_tokens=_smallest([one.max_tokens for one in limits]),
    )


def _smallest[N: (int, float)](values: Sequence[N | None]) -> N | None:
    return min((value for value in values if value is not None), default=None)


@dataclass(slots=True)
class Budget:
    """One run's share of its tree's envelope. `deadline` is a time of the event loop's clock, or infinite."""

    limits: Limits
    deadline: float
    parent: "Budget | None" = None
    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, limits: Limits, now: float, parent: "Budget | None" = None) -> "Budget":
        own = float("inf") if limits.max_seconds is None else now + limits.max_seconds
        return cls(limits, min(own, parent.deadline) if parent else own, parent)

    def tokens_left(self) -> float:
        own = float("inf") if self.limits.max_tokens is None else self.limits.max_tokens - self.tokens
        return min(own, self.parent.tokens_left()) if self.parent else own

    def spend(self, tokens: int) -> None:
        self.tokens += tokens
        if self.parent:
            self.parent.spend(tokens)

    def take_step(self) -> bool:
        """Count one model call; false when it is not allowed."""
        if self.limits.max_steps is not None and self.steps >= self.limits.max_steps:
            return False
        if self.tokens_left() <= 0:
            return False
        self.steps += 1
        return True

    def grant_step(self) -> None:
        """One step more, whatever its own limits say, at the cost of the parent's."""
        self.limits = Limits(max_steps=self.steps + 1)

    @property
    def on_last_step(self) -> bool:
        return self.limits.max_steps is not None and self.steps >= self.limits.max_steps

    def take_tool_call(self) -> bool:
        if self.limits.max_tool_calls is not None and self.tool_calls >= self.limits.max_tool_calls:
            return False
        self.tool_calls += 1
        return True


def delegate_limits(edge: DelegationSpec, delegate: AgentSpec) -> Limits:
    """What holds for a delegate's run beside what is left of the tree: the smaller of its own and the delegation's."""
    return smallest(delegate.limits, edge.limits)


def refuse_delegation(path: Sequence[int], edge: DelegationSpec, agents: Mapping[int, AgentSpec]) -> CallReason:
    """Why the agent at the end of `path` (ids from the root) may not hand over along `edge`; empty when it may.

    Rows can be changed behind the admin's back, so cycles and depth are checked on the call path too.
    """
    if edge.delegate_id not in agents:
        return "forbidden"
    if edge.delegate_id in path:
        return "cycle"
    if len(path) > MAX_DEPTH:
        return "depth"
    return ""
