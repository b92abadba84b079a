"""Runs whose process died or let go of them: any living process claims them and goes on after the last finished step.

A claim raises the run's epoch, so that a process that was only slow can't write to it any more. A run that kills its
process again and again is ended in words after MAX_ATTEMPTS.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from agents_admin.actor import Actor
from runtime import closing, crash, events, project, store
from runtime.closing import Ending
from runtime.errors import RunError
from runtime.events import Event, Logged, Origin
from runtime.past_turns import conversation_before
from runtime.ports import Ports, Turn
from runtime.project import Statement
from runtime.record import NUMBERS_LEFT_FREE
from runtime.resolve import may_call, resolve
from runtime.run import past, run
from runtime.runner import LEASE_SECONDS, Runner
from runtime.search import search
from runtime.store import Row

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
BATCH = 20
CONFIRMED = "A person confirmed that this was done."
GONE_ON = "The server was restarted in the middle; the answer goes on from the last finished step."

_CLAIM = """
UPDATE runtime_run
SET epoch = epoch + 1, attempts = attempts + 1, owner_process = %s, lease_until = now() + make_interval(secs => %s)
WHERE id IN (
    SELECT id FROM runtime_run WHERE depth = 0 AND status IN ('queued', 'running') AND lease_until < now()
    ORDER BY lease_until LIMIT %s FOR UPDATE SKIP LOCKED
)
RETURNING *
"""
_GIVE_UP = """
UPDATE runtime_run SET status = 'failed', reason = %s, error = %s, finished_at = now(), lease_until = NULL
WHERE id = %s AND epoch = %s
"""
"""The end of a run whose log can't be read."""


async def take_over(runner: Runner) -> int:
    """Claim runs that nobody runs and go on with them here; gives their number."""
    claimed = await store.fetch(_CLAIM, (runner.process, LEASE_SECONDS, BATCH))
    for row in claimed:
        crash.point("run-claimed")
        try:
            await _go_on(runner, row)
        except store.AWAY:
            raise
        except Exception:  # what is wrong with one run is not the others' fault
            logger.exception("Run %s could not be taken over", row["id"])
            if row["attempts"] > MAX_ATTEMPTS:
                await store.fetch(_GIVE_UP, (closing.DIED.reason, closing.DIED.words, row["id"], row["epoch"]))
    return len(claimed)


async def _go_on(runner: Runner, row: Row) -> None:
    log = await store.load_log(row["id"])
    ending = _ending(row)
    if ending is not None:
        await _end(row, log, ending)
        return
    if past.uncertain(past.fold(log)):
        await _pause(row, log)
        return
    actor = actor_of(row)
    try:
        if row["agent_id"] is None:
            raise RunError("not_found", "The agent was deleted.")
        world = await resolve(row["agent_id"], actor, started=True)
    except RunError as error:
        await _end(row, log, Ending("failed", "forbidden", error.message))
        return
    turns = [*await conversation_before(row, world.root.history_messages), Turn("user", row["input"])]
    origin = store.origin_of(row)
    own = runner.writer.open(row["id"], row["epoch"], log)
    for event in resumption(origin, log):
        own.record(event)
    pasts = past.fold(own.events)
    ports = Ports(log=own, may_call=partial(may_call, actor), search=search, http=runner.http)
    runner.launch(row["id"], run(world, origin, turns, ports, pasts))
    logger.info("Run %s goes on here (attempt %s)", row["id"], row["attempts"])


def _ending(row: Row) -> Ending | None:
    if row["cancel_requested"]:
        return closing.STOPPED
    return closing.DIED if row["attempts"] > MAX_ATTEMPTS else None


def resumption(origin: Origin, log: list[Logged]) -> list[Event]:
    """What is said before a run goes on: what broke off is closed, what was paused resumed, what happened returned."""
    said = [logged.event for logged in log]
    if not said:
        return []
    resumed = closing.paused(said) or [origin]
    return [
        *closing.interruption(said),
        *(events.RunResumed(of) for of in resumed),
        *(events.ToolReturned(of, call, True, CONFIRMED) for of, call in past.confirmed(past.fold(log))),
        events.Notice(origin, GONE_ON),
    ]


async def _end(row: Row, log: list[Logged], ending: Ending) -> None:
    """Close what the log left open; a run whose process died before its first event gets a whole log."""
    said = [logged.event for logged in log] or [events.RunStarted(store.origin_of(row))]
    missing = closing.closes(said, ending)
    await append(row, log, missing if log else [*said, *missing])
    logger.warning("Run %s was ended: %s", row["id"], ending.reason or ending.status)


async def _pause(row: Row, log: list[Logged]) -> None:
    asked = [events.ApprovalAsked(of, call) for of, call in past.uncertain(past.fold(log))]
    said = [logged.event for logged in log]
    await append(row, log, [*asked, *closing.suspension(said, store.origin_of(row), "needs_review")])


async def append(row: Row, log: list[Logged], missing: list[Event], then: Sequence[Statement] = ()) -> bool:
    """Write events to a log that no process of this run's is writing to, and `then` what belongs to them.

    Whether it was still the owner's to write.
    """
    now = datetime.now(UTC)
    first = log[-1].n + NUMBERS_LEFT_FREE if log else 1
    numbered = [(row["id"], Logged(first + place, now, event)) for place, event in enumerate(missing)]
    return bool(await project.write({row["id"]: row["epoch"]}, numbered, then))


def actor_of(row: Row) -> Actor:
    """Who started a run, with the rights that they have now."""
    return Actor(
        channel=row["channel"],
        user_id=row["user_id"],
        key_id=row["api_key_id"],
        widget_id=row["widget_id"],
        visitor=row["visitor"],
    )
