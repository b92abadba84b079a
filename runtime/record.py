"""Events → rows. A Log numbers the events of its root run; one Writer per event loop commits those of many runs."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from psycopg import IntegrityError

from runtime import project
from runtime.events import Event, Logged, MessageText, Origin, ends

logger = logging.getLogger(__name__)

TEXT_SECONDS = 0.04
"""Deltas of a message that come within this time become one event: a page can't show more."""
FLUSH_SECONDS = 0.02
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)


class Log:
    """The log of one root run in the process that runs it. Watchers of this process read `events` at once."""

    def __init__(self, root: UUID, written: Callable[[], None]) -> None:
        self.root = root
        self.events: list[Logged] = []
        self.saved = 0
        self.ended = False
        self._held: dict[UUID, tuple[Origin, list[str]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._committed = asyncio.Event()
        self._written = written

    def record(self, event: Event) -> None:
        self._release()
        self._append(event)

    def text(self, of: Origin, message: UUID, delta: str) -> None:
        """The first delta of a message goes out at once, what follows within TEXT_SECONDS goes together."""
        held = self._held.get(message)
        if held is not None:
            held[1].append(delta)
            return
        self._append(MessageText(of, message, delta))
        self._held[message] = (of, [])
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TEXT_SECONDS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        busy = [message for message, (_, deltas) in self._held.items() if deltas]
        for message in busy:
            of, deltas = self._held[message]
            self._append(MessageText(of, message, "".join(deltas)))
            deltas.clear()
        self._held = {message: self._held[message] for message in busy}
        if busy:
            self._timer = asyncio.get_running_loop().call_later(TEXT_SECONDS, self._tick)

    def _release(self) -> None:
        """What other events say comes after all the text that came before them."""
        for message, (of, deltas) in self._held.items():
            if deltas:
                self._append(MessageText(of, message, "".join(deltas)))
        self._held = {}

    def _append(self, event: Event) -> None:
        self.events.append(Logged(len(self.events) + 1, datetime.now(UTC), event))
        self.ended = self.ended or ends(event)
        self._changed.set()
        self._written()

    async def commit(self) -> None:
        """Wait until everything recorded so far is in the database."""
        self._release()
        goal = len(self.events)
        self._written()
        while self.saved < goal:
            self._committed.clear()
            await self._committed.wait()

    async def changed(self, after: int, seconds: float) -> None:
        """Wait until there is an event numbered above `after`, at most so many seconds."""
        if len(self.events) > after:
            return
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def mark_saved(self, n: int) -> None:
        self.saved = n
        self._committed.set()


class Writer:
    """Commits the pending events of all logs of this process together: one transaction for many runs."""

    def __init__(self) -> None:
        self.logs: dict[UUID, Log] = {}
        self._dirty = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def open(self, root: UUID) -> Log:
        log = self.logs[root] = Log(root, self._dirty.set)
        if self._task is None or self._task.done():
            # An empty context: the writer outlives the request that happened to open the first log.
            self._task = asyncio.get_running_loop().create_task(self._work(), context=contextvars.Context())
        return log

    async def stop(self) -> None:
        """Commit what is pending, once more, and end."""
        await self._flush()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        failures = 0
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._flush()
                failures = 0
            except Exception:  # the database may be away; the events stay pending and are written when it is back
                logger.exception("Events could not be written; trying again")
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                self._dirty.set()
            else:
                await asyncio.sleep(FLUSH_SECONDS)

    async def _flush(self) -> None:
        async with self._writing:
            await self._write()

    async def _write(self) -> None:
        batch = [(log, log.events[log.saved :]) for log in self.logs.values() if len(log.events) > log.saved]
        if not batch:
            return
        try:
            await self._commit(batch)
        except IntegrityError:
            # One of these runs was deleted while it ran: alone, it holds up nobody else.
            for log, pending in batch:
                await self._commit_or_drop(log, pending)

    async def _commit_or_drop(self, log: Log, pending: list[Logged]) -> None:
        try:
            await self._commit([(log, pending)])
        except IntegrityError:
            logger.warning("Run %s was deleted while it ran: %s events were dropped", log.root, len(pending))
            self._saved(log, pending[-1].n)

    async def _commit(self, batch: Sequence[tuple[Log, list[Logged]]]) -> None:
        await project.write([(log.root, logged) for log, pending in batch for logged in pending])
        for log, pending in batch:
            self._saved(log, pending[-1].n)

    def _saved(self, log: Log, n: int) -> None:
        log.mark_saved(n)
        if log.ended and n == len(log.events):
            self.logs.pop(log.root, None)
