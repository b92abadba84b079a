"""Handing a task to a delegate: a child run with its own label and limits, and what the coordinator gets back."""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Literal
from uuid import UUID, uuid4

from runtime import events
from runtime.events import FailReason, Origin
from runtime.ports import ToolResult
from runtime.run import prompt
from runtime.run.budget import Budget, delegate_limits, refuse_delegation
from runtime.run.frame import Frame, Outcome
from runtime.spec import DelegationSpec

type Execute = Callable[[Frame], Awaitable[Outcome]]

REFUSALS: dict[str, str] = {
    "cycle": "This colleague is already working on this request further up. Answer with what you have.",
    "depth": "The request has been handed on too often already. Answer with what you have.",
    "forbidden": "This colleague can't be asked.",
}
FAILURES: dict[FailReason, str] = {
    "timeout": "did not answer in time.",
    "budget": "stopped at a limit before it had an answer.",
    "forbidden": "may not be asked any more.",
    "failed": "could not answer.",
    "cancelled": "was stopped.",
}


async def hand_over(frame: Frame, edge: DelegationSpec, task: str, call: UUID, execute: Execute) -> ToolResult:
    """Hand a task over: a refusal is a stub result, everything else a child run with its own label."""
    reason = refuse_delegation(frame.path, edge, frame.world.agents)
    if reason:
        return ToolResult(REFUSALS[reason], False, reason)
    child = _child_frame(frame, edge, task, call)
    log = frame.ports.log
    log.record(events.DelegateStarted(frame.origin, call, child.origin, task))
    since = perf_counter()
    try:
        outcome = await execute(child)
    except asyncio.CancelledError:
        words = f"{child.agent.label} was stopped."
        log.record(events.DelegateFailed(frame.origin, call, child.origin.run, "cancelled", words, _since(since)))
        raise
    failure = _failure(outcome)
    if failure:
        words = edge.on_failure or f"{child.agent.label} {FAILURES[failure]}"
        log.record(
            events.DelegateFailed(
                frame.origin, call, child.origin.run, failure, f"{child.agent.label} {FAILURES[failure]}", _since(since)
            )
        )
        return ToolResult(_handed_back(words, child), False, "timeout" if failure == "timeout" else "failed")
    log.record(events.DelegateFinished(frame.origin, call, child.origin.run, outcome.text, _since(since)))
    return ToolResult(_handed_back(outcome.text, child))


def _child_frame(frame: Frame, edge: DelegationSpec, task: str, call: UUID) -> Frame:
    delegate = frame.world.agents[edge.delegate_id]
    origin = Origin(
        run=uuid4(),
        root=frame.origin.root,
        agent=delegate.label,
        slug=delegate.slug,
        parent=frame.origin.run,
        parent_call=call,
        depth=frame.origin.depth + 1,
        view=delegate.view,
    )
    now = asyncio.get_running_loop().time()
    return Frame(
        world=frame.world,
        agent=delegate,
        origin=origin,
        budget=Budget.of(delegate_limits(edge, delegate), now, frame.budget),
        ports=frame.ports,
        performer=frame.performer,
        path=(*frame.path, delegate.id),
        edges=(*frame.edges, edge.id),
        turns=prompt.handover(edge.context, task, frame.turns),
    )


def _failure(outcome: Outcome) -> FailReason | Literal[""]:
    """A delegate that ran out but has an answer has an answer."""
    match outcome.status, outcome.reason:
        case "completed", _:
            return ""
        case "limited", "max_seconds":
            return "timeout"
        case "limited", _:
            return "" if outcome.text else "budget"
        case _:
            return "failed"


def _handed_back(text: str, child: Frame) -> str:
    """The answer, then the sources consulted: one line a call, never a body (contract.md)."""
    if not child.consulted:
        return text
    return "\n".join([text, "", "Sources consulted:", *(f"- {line}" for line in child.consulted)])


def _since(moment: float) -> float:
    return round(perf_counter() - moment, 3)
