"""From a resolved agent to its outcome: a frame around the engine, child frames for delegates, a close for every open."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal
from uuid import UUID, uuid4

from runtime import engine, events
from runtime.errors import ModelError
from runtime.events import FailReason, Origin, Status
from runtime.ports import BoundTool, Ports, Right, ToolResult, Turn
from runtime.run import prompt
from runtime.run.budget import Budget, delegate_limits, refuse_delegation
from runtime.run.calls import perform
from runtime.run.frame import MAX_EMPTY_REPLIES, Frame
from runtime.spec import AgentSpec, DelegationSpec, MemorySpec, RuntimeAgent, ToolSpec
from runtime.tools import BUILDERS
from runtime.tools.delegate import build_delegate
from runtime.tools.search import build_search

logger = logging.getLogger(__name__)

NO_ANSWER = "The model gave no answer."
STOPPED_WORDS = {
    "max_steps": "It stopped at its limit of steps.",
    "max_seconds": "It stopped at its time limit.",
    "max_tokens": "It stopped at its limit of tokens.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `error` is for the person who asked, `detail` for administrators."""

    status: Status
    text: str = ""
    reason: str = ""
    error: str = ""
    detail: str = ""


async def run(world: RuntimeAgent, origin: Origin, turns: Sequence[Turn], ports: Ports) -> Outcome:
    """Run the root. Records everything on `ports.log`, the one terminal event last. Raises only CancelledError."""
    now = asyncio.get_running_loop().time()
    frame = Frame(
        world=world,
        agent=world.root,
        origin=origin,
        budget=Budget.of(world.root.limits, now),
        ports=ports,
        performer=perform,
        path=(world.root_id,),
        turns=turns,
    )
    return await _execute(frame)


async def _execute(frame: Frame) -> Outcome:
    log = frame.ports.log
    log.record(events.RunStarted(frame.origin))
    if frame.origin.depth == 0:
        for left_out in frame.world.omitted:
            words = f"{left_out.agent} works without {left_out.what}: {left_out.why}"
            log.record(events.Notice(frame.origin, words, "administrators"))
    try:
        outcome = await _converse(frame)
    except asyncio.CancelledError:
        await frame.close("cancelled")
        log.record(events.RunFinished(frame.origin, "cancelled"))
        raise
    log.record(events.RunFinished(frame.origin, outcome.status, outcome.reason, outcome.error, outcome.detail))
    return outcome


async def _converse(frame: Frame) -> Outcome:
    deadline = None if frame.budget.deadline == float("inf") else frame.budget.deadline
    try:
        _equip(frame)
        turns = prompt.opening(frame.agent, frame.world.agents, frame.turns)
        async with asyncio.timeout_at(deadline):
            await engine.converse(frame.agent, list(frame.tools.values()), turns, frame, frame.ports.http)
    except TimeoutError:
        await frame.close("timeout")
        return Outcome("limited", frame.text, "max_seconds")
    except ModelError as error:
        await frame.close("failed")
        return Outcome("failed", frame.text, "model", error.message, error.detail)
    except Exception as error:  # whatever goes wrong inside one run ends that run, in words
        logger.exception("Run %s failed", frame.origin.run)
        await frame.close("failed")
        words = "Something went wrong while this was being answered. Please try again."
        return Outcome("failed", frame.text, "internal", words, f"{type(error).__name__}: {error}")
    return _ended(frame)


def _ended(frame: Frame) -> Outcome:
    if frame.cut_short:
        out_of_tokens = frame.budget.tokens_left() <= 0
        return Outcome("limited", frame.text, "max_tokens" if out_of_tokens else "max_steps")
    if frame.empty_replies >= MAX_EMPTY_REPLIES or not frame.text:
        return Outcome("failed", frame.text, "empty", "The model gave no answer. Please ask again.")
    return Outcome("completed", frame.text)


def _equip(frame: Frame) -> None:
    agent = frame.agent
    bound = [_bind_tool(frame, tool) for tool in agent.tools]
    bound += [_bind_memory(frame, memory) for memory in agent.memories]
    bound += [_bind_delegate(frame, edge) for edge in agent.roster if edge.delegate_id in frame.world.agents]
    frame.tools = {tool.name: tool for tool in bound}


def _bind_tool(frame: Frame, tool: ToolSpec) -> BoundTool:
    parameters, call = BUILDERS[tool.kind](tool, frame.ports)
    return BoundTool(
        name=tool.name,
        label=tool.label,
        kind=tool.kind,
        description=tool.description,
        parameters=parameters,
        call=call,
        right=Right(frame.path, frame.edges, tool=tool.id),
        side_effect=tool.side_effect,
        approval=tool.approval,
        timeout_seconds=tool.timeout_seconds,
        max_output_chars=tool.max_output_chars,
        max_calls=tool.max_calls,
    )


def _bind_memory(frame: Frame, memory: MemorySpec) -> BoundTool:
    parameters, call = build_search(memory, frame.ports)
    return BoundTool(
        name=memory.name,
        label=memory.label,
        kind="memory",
        description=memory.description,
        parameters=parameters,
        call=call,
        right=Right(frame.path, frame.edges, memory=memory.id),
        timeout_seconds=30,
    )


def _bind_delegate(frame: Frame, edge: DelegationSpec) -> BoundTool:
    delegate = frame.world.agents[edge.delegate_id]

    async def start_child(edge: DelegationSpec, task: str, call_id: UUID) -> ToolResult:
        return await _delegate(frame, edge, task, call_id)

    parameters, call = build_delegate(edge, delegate, start_child)
    return BoundTool(
        name=edge.name,
        label=delegate.label,
        kind="delegate",
        description=prompt.delegate_description(edge, delegate),
        parameters=parameters,
        call=call,
        right=Right((*frame.path, edge.delegate_id), (*frame.edges, edge.id)),
        max_calls=edge.max_calls,
    )


async def _delegate(frame: Frame, edge: DelegationSpec, task: str, call: UUID) -> ToolResult:
    """Hand a task over: a refusal is a stub result, everything else a child run with its own label."""
    reason = refuse_delegation(frame.path, edge, frame.world.agents)
    if reason:
        return ToolResult(REFUSALS[reason], False, reason)
    child = _child_frame(frame, edge, task, call)
    log = frame.ports.log
    log.record(events.DelegateStarted(frame.origin, call, child.origin, task))
    since = perf_counter()
    try:
        outcome = await _execute(child)
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


def _child_frame(frame: Frame, edge: DelegationSpec, task: str, call: UUID) -> Frame:
    delegate: AgentSpec = frame.world.agents[edge.delegate_id]
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
        performer=perform,
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
