"""Handing a task to a delegate: a child run with its own label and limits, and what the coordinator gets back."""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from uuid import UUID, uuid4

from runtime import events
from runtime.closing import STOPPED, closes
from runtime.events import FailReason, Origin
from runtime.ports import ToolResult
from runtime.run import prompt
from runtime.run.budget import Budget, delegate_limits, refuse_delegation
from runtime.run.frame import Frame, Outcome
from runtime.run.handoff import FAILURES, cut_short, failure_of, handed_back
from runtime.run.past import age, subtree
from runtime.spec import DelegationSpec

type Execute = Callable[[Frame], Awaitable[Outcome]]

REFUSALS: dict[str, str] = {
    "cycle": "This colleague is already working on this request further up. Answer with what you have.",
    "depth": "The request has been handed on too often already. Answer with what you have.",
    "forbidden": "This colleague can't be asked.",
}


async def hand_over(frame: Frame, edge: DelegationSpec, task: str, call: UUID, execute: Execute) -> ToolResult:
    """A refusal is a stub result; everything else is a child run, its failures soft, under its own label."""
    reason = refuse_delegation(frame.path, edge, frame.world.agents)
    if reason:
        return ToolResult(REFUSALS[reason], False, reason)
    child = _child_frame(frame, edge, task, call)
    if frame.past is None or call not in frame.past.children:
        frame.ports.log.record(events.DelegateStarted(frame.origin, call, child.origin, task))
    since = perf_counter()
    try:
        outcome = await execute(child)
    except asyncio.CancelledError:
        _record_failure(frame, child, call, "cancelled", since)
        raise
    failure = failure_of(outcome)
    if failure:
        _record_failure(frame, child, call, failure, since)
        words = edge.on_failure or f"{child.agent.label} {FAILURES[failure]}"
        reason = failure if failure in {"timeout", "budget", "forbidden"} else "failed"
        return ToolResult(cut_short(words, outcome.answer, child), False, reason)
    seconds = round(perf_counter() - since, 3)
    answer = outcome.answer or outcome.text
    frame.ports.log.record(events.DelegateFinished(frame.origin, call, child.origin.run, answer, seconds))
    return ToolResult(handed_back(answer, child))


def abandon(frame: Frame, call: UUID) -> None:
    """A delegate that was at work when its process died, and may not be asked any more."""
    run = frame.past.children.get(call) if frame.past else None
    if run is None:
        return
    for event in closes(subtree(frame.pasts, run), STOPPED):
        frame.ports.log.record(event)
    words = f"{frame.pasts[run].origin.agent} {FAILURES['forbidden']}"
    frame.ports.log.record(events.DelegateFailed(frame.origin, call, run, "forbidden", words))


def _record_failure(frame: Frame, child: Frame, call: UUID, reason: FailReason, since: float) -> None:
    words = f"{child.agent.label} {FAILURES[reason]}"
    seconds = round(perf_counter() - since, 3)
    frame.ports.log.record(events.DelegateFailed(frame.origin, call, child.origin.run, reason, words, seconds))


def _child_frame(frame: Frame, edge: DelegationSpec, task: str, call: UUID) -> Frame:
    delegate = frame.world.agents[edge.delegate_id]
    before = frame.past.children.get(call) if frame.past else None
    run = before or uuid4()
    origin = Origin(
        run=run,
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
        budget=Budget.of(delegate_limits(edge, delegate), now - age(frame.pasts, run), frame.budget),
        ports=frame.ports,
        performer=frame.performer,
        path=(*frame.path, delegate.id),
        edges=(*frame.edges, edge.id),
        turns=prompt.handover(edge.context, task, frame.turns),
        pasts=frame.pasts,
    )
