"""What other processes say: one LISTEN connection per event loop wakes the local readers of their runs.

It needs a direct connection (a transaction-mode pooler drops notifications). After a reconnect everybody is woken,
since what was said in between is only in the table.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from psycopg import AsyncConnection, Error

from runtime import store

logger = logging.getLogger(__name__)

EVENTS = "roster_events"
CANCEL = "roster_cancel"
_RECONNECT_SECONDS = 1.0


class Hub:
    """`cancelled` is called with the id of a run that somebody stopped in another process."""

    def __init__(self, cancelled: Callable[[UUID], None]) -> None:
        self.connected = False
        self._cancelled = cancelled
        self._watching: dict[UUID, set[asyncio.Event]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._listen())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    @contextmanager
    def watch(self, root: UUID) -> Iterator[asyncio.Event]:
        """A bell that rings whenever somebody says that this run has new events."""
        bell = asyncio.Event()
        self._watching[root].add(bell)
        try:
            yield bell
        finally:
            self._watching[root].discard(bell)
            if not self._watching[root]:
                del self._watching[root]

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except (Error, OSError):
                logger.warning("The LISTEN connection was lost; reconnecting")
            self.connected = False
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _hear(self) -> None:
        parameters = store.connection_parameters() | {"autocommit": True}
        async with await AsyncConnection.connect(**parameters) as connection:
            await connection.execute(f"LISTEN {EVENTS}")
            await connection.execute(f"LISTEN {CANCEL}")
            self.connected = True
            await store.drop_broken()
            self._ring_all()
            async for notice in connection.notifies():
                self._heard(notice.channel, notice.payload)

    def _heard(self, channel: str, payload: str) -> None:
        try:
            run = UUID(payload)
        except ValueError:
            return
        if channel == CANCEL:
            self._cancelled(run)
        for bell in self._watching.get(run, ()):
            bell.set()

    def _ring_all(self) -> None:
        for bells in self._watching.values():
            for bell in bells:
                bell.set()


async def rung(bell: asyncio.Event, seconds: float) -> None:
    """Wait for a bell, at most so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
