"""From a resolved agent to its outcome: a frame around the engine, closes for all opens."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from runtime import engine, events
from runtime.errors import ModelError
from runtime.events import Origin
from runtime.ports import Ports, Turn
from runtime.run import prompt
from runtime.run.budget import Budget
from runtime.run.calls import perform
from runtime.run.delegation import hand_over
from runtime.run.equip import equip
from runtime.run.frame import MAX_EMPTY_REPLIES, Frame, Outcome
from runtime.spec import RuntimeAgent

logger = logging.getLogger(__name__)


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
        equip(frame, partial(hand_over, execute=_execute))
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
