"""From a resolved agent to its outcome: a frame around the engine, closes for all opens."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from uuid import UUID

from runtime import engine, events
from runtime.errors import ModelError
from runtime.events import Origin
from runtime.ports import Ports, RunLost, Turn
from runtime.run import prompt
from runtime.run.budget import Budget
from runtime.run.calls import perform
from runtime.run.delegation import abandon, hand_over
from runtime.run.equip import equip
from runtime.run.frame import MAX_EMPTY_REPLIES, Frame, Outcome, Revoked
from runtime.run.handoff import WRITE_UP
from runtime.run.past import Past, age
from runtime.spec import RuntimeAgent

logger = logging.getLogger(__name__)

RESCUE_SECONDS = 20.0
"""What a delegate that ran out of time may still use to write up what it has."""
FAILED = "Something went wrong while this was being answered. Please try again."
EMPTY = "The model gave no answer. Please ask again."
REVOKED = "You may not use this agent any more."


async def run(
    world: RuntimeAgent,
    origin: Origin,
    turns: Sequence[Turn],
    ports: Ports,
    pasts: Mapping[UUID, Past] | None = None,
) -> Outcome:
    """Run the root. Records everything on `ports.log`, the one terminal event last. Raises only CancelledError.

    `pasts` is what an earlier process did of it (`past.fold`): finished steps are not repeated.
    """
    pasts = pasts or {}
    since = asyncio.get_running_loop().time() - age(pasts, origin.run)
    frame = Frame(
        world=world,
        agent=world.root,
        origin=origin,
        budget=Budget.of(world.root.limits, since),
        ports=ports,
        performer=perform,
        path=(world.root_id,),
        turns=turns,
        pasts=pasts,
    )
    return await _execute(frame)


async def _execute(frame: Frame) -> Outcome:
    past = frame.past
    if past is None:
        _start(frame)
    else:
        frame.remember(past)
        if past.finished:
            ended = past.finished
            return Outcome(ended.status, past.text, ended.reason, ended.error, ended.detail, past.answer)
    try:
        outcome = await _converse(frame)
        if frame.origin.depth and not outcome.answer and outcome.reason != "forbidden":
            outcome = await _rescued(frame, outcome)
    except asyncio.CancelledError:
        with suppress(asyncio.CancelledError):  # again: what closes the run goes on to its end
            await frame.close("cancelled")
        frame.ports.log.record(events.RunFinished(frame.origin, "cancelled"))
        raise
    frame.ports.log.record(
        events.RunFinished(frame.origin, outcome.status, outcome.reason, outcome.error, outcome.detail)
    )
    return outcome


def _start(frame: Frame) -> None:
    log = frame.ports.log
    log.record(events.RunStarted(frame.origin))
    if frame.origin.depth == 0:
        for left_out in frame.world.omitted:
            words = f"{left_out.agent} works without {left_out.what}: {left_out.why}"
            log.record(events.Notice(frame.origin, words, "administrators"))


async def _converse(frame: Frame) -> Outcome:
    deadline = None if frame.budget.deadline == float("inf") else frame.budget.deadline
    try:
        equip(frame, partial(hand_over, execute=_execute))
        async with asyncio.timeout_at(deadline):
            await _finish_step(frame)
            if not frame.answer:
                await _ask(frame)
            if frame.empty_replies == 1:  # without tools the engine takes an empty reply for an answer
                await _ask(frame)
    except TimeoutError:
        await frame.close("timeout")
        detail = f"The limit of {frame.budget.limits.max_seconds} seconds, or what was left of the tree's, was used up."
        return Outcome("limited", frame.text, "max_seconds", detail=detail)
    except ModelError as error:
        await frame.close("failed")
        return Outcome("failed", frame.text, "model", error.message, error.detail)
    except Revoked:
        await frame.close("forbidden")
        return Outcome("failed", frame.text, "forbidden", REVOKED)
    except RunLost:
        raise asyncio.CancelledError from None
    except Exception as error:  # whatever goes wrong inside one run ends that run, in words
        logger.exception("Run %s failed", frame.origin.run)
        await frame.close("failed")
        return Outcome("failed", frame.text, "internal", FAILED, f"{type(error).__name__}: {error}")
    return _ended(frame)


async def _ask(frame: Frame, *more: Turn) -> None:
    turns = [*prompt.opening(frame.agent, frame.world.agents, frame.turns), *frame.done, *more]
    await engine.converse(frame.agent, list(frame.tools.values()), turns, frame, frame.ports.http)


async def _finish_step(frame: Frame) -> None:
    """The calls that the last step of an earlier process left open, at the same time as it would have done them."""
    open_calls = list(frame.calls.values())
    for call in open_calls:
        if call.request.name not in frame.tools:
            abandon(frame, call.request.id)
    await asyncio.gather(*(perform(frame, call.request) for call in open_calls))


def _ended(frame: Frame) -> Outcome:
    if frame.cut_short:
        limits = frame.budget.limits
        if frame.budget.tokens_left() <= 0:
            detail = f"{frame.budget.tokens:,} tokens were used; the limit is {limits.max_tokens}, or the tree's."
            return Outcome("limited", frame.text, "max_tokens", detail=detail, answer=frame.answer)
        detail = f"All {limits.max_steps} steps were used."
        return Outcome("limited", frame.text, "max_steps", detail=detail, answer=frame.answer)
    if frame.empty_replies >= MAX_EMPTY_REPLIES or not frame.answer:
        return Outcome("failed", frame.text, "empty", EMPTY)
    return Outcome("completed", frame.text, answer=frame.answer)


async def _rescued(frame: Frame, outcome: Outcome) -> Outcome:
    """One extra model call without tools, while the coordinator has time and tokens left: write up what there is."""
    parent = frame.budget.parent
    now = asyncio.get_running_loop().time()
    if not frame.done or parent is None or parent.tokens_left() <= 0 or parent.deadline <= now:
        return outcome
    frame.budget.grant_step()
    frame.tools, frame.empty_replies = {}, 0
    try:
        async with asyncio.timeout_at(min(now + RESCUE_SECONDS, parent.deadline)):
            await _ask(frame, Turn("system", WRITE_UP))
    except RunLost:
        raise asyncio.CancelledError from None
    except Exception as error:  # what it found is handed back as it is
        if not isinstance(error, TimeoutError | ModelError | Revoked):
            logger.exception("Run %s could not be written up", frame.origin.run)
        frame.close_message(complete=False)
        return outcome
    return Outcome(outcome.status, frame.text, outcome.reason, outcome.error, outcome.detail, frame.answer)
