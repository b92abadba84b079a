"""What the background worker does. A task carries ids at most, and keeps no result: our own tables hold the state."""

import asyncio

from django.contrib.sessions.models import Session
from django.utils import timezone
from django_q.tasks import async_task

from runtime import runner
from runtime.takeover import take_over

SHIFT_SECONDS = 240
"""Shorter than the queue's timeout: a task that still has runs then hands them on to its successor."""


def housekeeping() -> None:
    """Every minute: go on with the runs of processes that died, drop what has expired."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    if asyncio.run(_shift()):
        async_task("runtime.tasks.housekeeping")


async def _shift() -> bool:
    """Many runs in one loop, until there are none or the shift is over; whether some are left for the next."""
    here = runner.runner()
    try:
        async with asyncio.timeout(SHIFT_SECONDS):
            await take_over(here)
            while here.tasks:
                await here.renew()
                await asyncio.wait(list(here.tasks.values()), timeout=runner.BEAT_SECONDS)
                await take_over(here)
    except TimeoutError:
        return True
    finally:
        await runner.stop()
    return False
