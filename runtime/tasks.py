"""What the background worker does. A task carries ids at most, and keeps no result: our own tables hold the state."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.contrib.sessions.models import Session
from django.utils import timezone
from django_q.tasks import async_task

from runtime import retention, runner, store
from runtime.takeover import take_over

WATCH_SECONDS = 55.0
"""How long a shift looks for runs that nobody runs; the schedule starts one every minute."""
SHIFT_SECONDS = 240.0
"""Shorter than the queue's timeout: a shift that still has runs then hands them on to its successor."""
STOPPING = multiprocessing.Event()
"""Set by the worker when it is told to end, for the processes that it forked: a shift then lets go of its runs."""
_LOOK_SECONDS = 0.25
SHIFT_LOCK = 7_241_002


def housekeeping() -> None:
    """Every minute: drop what has expired or is old, and go on with the runs of processes that died."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    if asyncio.run(_work()):
        async_task("runtime.tasks.housekeeping")


async def _work() -> bool:
    """Whether runs are left for a successor. One shift at a time: many runs share its loop."""
    try:
        async with _alone() as is_alone:
            if not is_alone:
                return False
            runs_are_left = await _shift()
            await retention.tidy()
            return runs_are_left
    finally:
        await runner.stop()


async def _shift() -> bool:
    here = runner.runner()
    here.hub.start()  # a Stop from another process is heard at once
    loop = asyncio.get_running_loop()
    started = loop.time()
    while loop.time() - started < (SHIFT_SECONDS if here.tasks else WATCH_SECONDS) and not STOPPING.is_set():
        await here.renew()
        await take_over(here)
        await _beat(here)
    return bool(here.tasks)


async def _beat(here: runner.Runner) -> None:
    """Until it is time to renew leases, all runs have ended, or the worker ends."""
    looks = int(min(runner.BEAT_SECONDS, WATCH_SECONDS) / _LOOK_SECONDS)
    had = bool(here.tasks)
    for _ in range(looks):
        if STOPPING.is_set() or (had and not here.tasks):
            return
        await asyncio.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def _alone() -> AsyncIterator[bool]:
    """Whether no other shift is under way; a shift that was killed holds nothing."""
    async with store.connection() as connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s) AS got", (SHIFT_LOCK,))
        row = await cursor.fetchone()
        got = bool(row and row["got"])
        try:
            yield got
        finally:
            if got:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (SHIFT_LOCK,))
