"""What a process runs: runs as tasks of its event loop, their logs, their leases."""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary, WeakSet

import httpx
from django.conf import settings

from agents_admin import egress
from runtime import store
from runtime.hub import Hub
from runtime.record import Log, Writer

logger = logging.getLogger(__name__)

LEASE_SECONDS = 20
BEAT_SECONDS = 5
DRAIN_SECONDS = 3.0
"""How long a process that stops lets its runs go on; what is not finished then goes on in another one."""
ACTING_SECONDS = 30.0
"""How long it waits for calls that act, so that nobody has to ask whether they happened."""
LAST_SECONDS = 5.0
"""How long it tries to write what is not written yet."""

_RENEW = """
WITH mine AS (
    SELECT r.id FROM runtime_run r JOIN unnest(%s::uuid[], %s::int[]) AS o(id, epoch) USING (id, epoch)
    ORDER BY r.id FOR NO KEY UPDATE OF r
)
UPDATE runtime_run r SET lease_until = now() + make_interval(secs => %s) FROM mine WHERE r.id = mine.id
RETURNING r.id, r.cancel_requested
"""
_LET_GO = """
UPDATE runtime_run SET lease_until = now(), owner_process = NULL, attempts = attempts - 1
WHERE owner_process = %s AND depth = 0 AND status IN ('queued', 'running')
"""

type Adopt = Callable[["Runner"], Awaitable[int]]
"""Go on with some runs that nobody runs; gives their number."""


class Runner:
    """One per event loop. A run is a task of this loop: it depends on no request and no browser."""

    def __init__(self) -> None:
        self.process = uuid4()
        self.writer = Writer(self.drop)
        self.http: httpx.AsyncClient = egress.client(egress.Policy(egress.parse_allow(",".join(settings.EGRESS_ALLOW))))
        self.hub = Hub(self.cancel)
        self.tasks: dict[UUID, asyncio.Task[object]] = {}
        self._told: WeakSet[asyncio.Task[object]] = WeakSet()
        self._beat: asyncio.Task[None] | None = None

    def start(self, adopt: Adopt | None = None) -> None:
        """Listen to other processes, renew leases, and `adopt` the runs of processes that died, every BEAT_SECONDS."""
        self.hub.start()
        if self._beat is None:
            self._beat = asyncio.get_running_loop().create_task(self._look_after(adopt))

    async def stop(self) -> None:
        """Let runs go on for a moment, hand the rest to other processes, let go of everything."""
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait([self._beat])
        try:
            await self._drain()
        except (*store.AWAY, TimeoutError):
            logger.warning("The database is away: what runs here goes on elsewhere when its leases end")
        await self.hub.stop()
        await self.writer.stop()
        await self.http.aclose()

    def launch(self, root: UUID, work: Coroutine[object, object, object]) -> None:
        """The task gets an empty context: nothing of the request that started it may outlive the request."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, context=contextvars.Context())
        self.tasks[root] = task
        task.add_done_callback(lambda done: self._ended(root, done))

    def cancel(self, root: UUID) -> None:
        """Stop a run of this process, as the person who asked wants it; its log says so."""
        self._end(root)

    def drop(self, root: UUID) -> None:
        """End a run's work here without a word: it is another process's."""
        self._end(root)

    def _end(self, root: UUID) -> None:
        """Once: a second cancellation would break off what closes the run after the first."""
        task = self.tasks.get(root)
        if task is not None and task not in self._told:
            self._told.add(task)
            task.cancel()

    def log(self, root: UUID) -> Log | None:
        return self.writer.logs.get(root)

    def _ended(self, root: UUID, task: asyncio.Task[object]) -> None:
        if not task.cancelled() and task.exception() is not None:
            logger.error("Run %s broke off", root, exc_info=task.exception())
        if self.tasks.get(root) is not task:  # another attempt is under way
            return
        del self.tasks[root]
        log = self.writer.logs.get(root)
        if log is not None and not log.ended and not log.frozen:  # it broke off, or was stopped before it began
            self.writer.lose(root)

    async def _look_after(self, adopt: Adopt | None) -> None:
        while True:
            adopted = 0
            try:
                await self.renew()
                adopted = await adopt(self) if adopt is not None else 0
            except Exception:  # the database may be away: the next beat tries again
                logger.exception("Leases could not be renewed")
            if not adopted:
                await asyncio.sleep(BEAT_SECONDS)

    async def renew(self) -> None:
        """Keep the runs of this process its own for LEASE_SECONDS more; those that are not any more are dropped."""
        async with self.writer.writing:
            held = {root: log.epoch for root, log in self.writer.logs.items()}
            if not held:
                return
            rows = await store.fetch(_RENEW, (list(held), list(held.values()), LEASE_SECONDS))
        for root in held.keys() - {row["id"] for row in rows}:
            self.writer.lose(root)
        for row in rows:
            if row["cancel_requested"]:  # whoever said so may not have been heard
                self.cancel(row["id"])

    async def _drain(self) -> None:
        """Runs end by themselves, or are let go of at once when nothing that acts is under way."""
        if self.tasks:
            await asyncio.wait(list(self.tasks.values()), timeout=DRAIN_SECONDS)
        await self._wait_for_acts()
        for log in self.writer.logs.values():
            log.freeze()
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        async with asyncio.timeout(LAST_SECONDS):
            await self.writer.flush()
            await store.fetch(_LET_GO, (self.process,))

    async def _wait_for_acts(self) -> None:
        until = asyncio.get_running_loop().time() + ACTING_SECONDS
        while asyncio.get_running_loop().time() < until:
            if not any(log.acting_calls for log in self.writer.logs.values()):
                return
            await asyncio.sleep(0.05)


_runners: WeakKeyDictionary[asyncio.AbstractEventLoop, Runner] = WeakKeyDictionary()


def runner() -> Runner:
    """This event loop's runner, made on first use."""
    loop = asyncio.get_running_loop()
    found = _runners.get(loop)
    if found is None:
        found = _runners[loop] = Runner()
    return found


async def stop() -> None:
    """Let go of everything that this event loop's runs hold: runs, connections, the pool."""
    found = _runners.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.stop()
    await store.close()
