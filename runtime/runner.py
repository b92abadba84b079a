"""What a process runs: runs as tasks of its event loop, their logs, their leases, and the reaper."""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

import httpx
from django.conf import settings

from agents_admin import egress
from runtime import store
from runtime.hub import Hub
from runtime.reaper import reap
from runtime.record import Log, Writer

logger = logging.getLogger(__name__)

LEASE_SECONDS = 20
BEAT_SECONDS = 5

_RENEW = """
UPDATE runtime_run SET lease_until = now() + make_interval(secs => %s)
WHERE id = ANY(%s::uuid[]) AND status IN ('queued', 'running')
"""


class Runner:
    """One per event loop. A run is a task of this loop: it depends on no request and no browser."""

    def __init__(self) -> None:
        self.process = uuid4()
        self.writer = Writer()
        self.http: httpx.AsyncClient = egress.client(egress.Policy(egress.parse_allow(",".join(settings.EGRESS_ALLOW))))
        self.hub = Hub(self.cancel)
        self.tasks: dict[UUID, asyncio.Task[object]] = {}
        self._beat: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen to other processes, renew leases and reap; before that, runs work but nobody looks after them."""
        self.hub.start()
        if self._beat is None:
            self._beat = asyncio.get_running_loop().create_task(self._look_after())

    async def stop(self) -> None:
        """Stop every run (each closes its log), commit, let go of everything."""
        for task in self.tasks.values():
            task.cancel()
        if self.tasks:
            await asyncio.wait(list(self.tasks.values()))
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait([self._beat])
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
        if root in self.tasks:
            self.tasks[root].cancel()

    def log(self, root: UUID) -> Log | None:
        return self.writer.logs.get(root)

    def _ended(self, root: UUID, task: asyncio.Task[object]) -> None:
        self.tasks.pop(root, None)
        if not task.cancelled() and task.exception() is not None:
            logger.error("Run %s broke off", root, exc_info=task.exception())

    async def _look_after(self) -> None:
        while True:
            try:
                if self.tasks:
                    await store.fetch(_RENEW, (LEASE_SECONDS, list(self.tasks)))
                await reap()
            except Exception:  # the database may be away: the next beat tries again
                logger.exception("Leases could not be renewed")
            await asyncio.sleep(BEAT_SECONDS)


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
