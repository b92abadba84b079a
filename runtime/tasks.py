"""What the background worker does. A task carries ids at most, and keeps no result: our own tables hold the state."""

import asyncio

from django.contrib.sessions.models import Session
from django.utils import timezone

from runtime import store
from runtime.reaper import reap


def housekeeping() -> None:
    """Every minute: end the runs whose process died, drop what has expired."""
    asyncio.run(_reap())
    Session.objects.filter(expire_date__lt=timezone.now()).delete()


async def _reap() -> None:
    try:
        await reap()
    finally:
        await store.close()
