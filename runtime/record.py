"""Events → rows. A Log numbers the events of its root run; one Writer per event loop commits those of many runs."""

import asyncio
import contextvars
import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from psycopg import Error

from runtime import crash, project, store
from runtime.events import Event, Logged, MessageStarted, MessageText, Origin, ends
from runtime.ports import RunLost

logger = logging.getLogger(__name__)

TEXT_SECONDS = 0.04
"""Deltas of a message that come within this time become one event: a page can't show more."""
FLUSH_SECONDS = 0.02
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)


NUMBERS_LEFT_FREE = 100_000
"""After a takeover numbering goes on this much higher: readers may have seen text that no commit held."""


class Log:
    """The log of one root run in the process that runs it. Watchers of this process read `events` at once.

    `epoch` is the ownership under which events are written: a write of an earlier owner changes nothing. `before` are
    the events of earlier owners.
    """

    def __init__(
        self,
        root: UUID,
        epoch: int,
        written: Callable[[], None],
        hurry: Callable[[], None],
        before: Sequence[Logged] = (),
    ) -> None:
        self.root = root
        self.epoch = epoch
        self.events: list[Logged] = list(before)
        self.saved = self._shown = len(before)
        self.ended = False
        self.lost = False
        self.acting_calls = 0
        self.frozen = False
        self._next = before[-1].n + NUMBERS_LEFT_FREE if before else 1
        self._held: dict[UUID, tuple[Origin, list[str]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._committed = asyncio.Event()
        self._written = written
        self._hurry = hurry

    def since(self, after: int) -> list[Logged]:
        """The events numbered above `after` that readers may see: text at once, everything else once it is committed.

        What was seen to open or close is then in the log for ever, whichever process goes on with it.
        """
        first = bisect_right(self.events, after, hi=self._shown, key=lambda logged: logged.n)
        return self.events[first : self._shown]

    def numbered(self, n: int) -> int:
        """How many events there are up to this number."""
        return bisect_right(self.events, n, key=lambda logged: logged.n)

    def _show(self) -> None:
        shown = max(self._shown, self.saved)
        while shown < len(self.events) and isinstance(self.events[shown].event, MessageText):
            shown += 1
        if shown > self._shown:
            self._shown = shown
            self._changed.set()

    def freeze(self) -> None:
        """Nothing is recorded any more: what ends here is this process's work, not the run."""
        self._release()
        self.frozen = True

    def acting(self, calls: int) -> None:
        self.acting_calls += calls

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
        if self.frozen:
            return
        self.events.append(Logged(self._next, datetime.now(UTC), event))
        self._next += 1
        self.ended = self.ended or ends(event)
        if self._shown == len(self.events) - 1:
            self._show()
        if len(self.events) == 1:
            # A run's start waits for its first words: a commit of its own would only hold theirs up.
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._written)
        else:
            self._written()
        if self.ended or isinstance(event, MessageStarted):
            self._hurry()

    async def commit(self) -> None:
        """Wait until everything recorded so far is in the database. Raises RunLost."""
        self._release()
        goal = len(self.events)
        self._written()
        self._hurry()
        while self.saved < goal:
            if self.lost:
                raise RunLost
            self._committed.clear()
            await self._committed.wait()
        if self.lost:
            raise RunLost

    async def changed(self, after: int, seconds: float) -> None:
        """Wait until there is an event numbered above `after`, at most so many seconds."""
        if self.since(after):
            return
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def mark_saved(self, count: int) -> None:
        self.saved += count
        self._committed.set()
        self._show()

    def mark_lost(self) -> None:
        """Another process has it: what was recorded here since is not the run's."""
        self.lost = True
        self.frozen = True
        self._committed.set()
        self._changed.set()


class Writer:
    """Commits the pending events of all logs of this process together: one transaction for many runs.

    `lost` is called with a run that turned out to be another process's.
    """

    def __init__(self, lost: Callable[[UUID], None]) -> None:
        self.logs: dict[UUID, Log] = {}
        self._lost = lost
        self._dirty = asyncio.Event()
        self._hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unsure = False
        self.writing = asyncio.Lock()

    def open(self, root: UUID, epoch: int, before: Sequence[Logged] = ()) -> Log:
        log = self.logs[root] = Log(root, epoch, self._dirty.set, self._hurried.set, before)
        if self._task is None or self._task.done():
            # An empty context: the writer outlives the request that happened to open the first log.
            self._task = asyncio.get_running_loop().create_task(self._work(), context=contextvars.Context())
        return log

    async def flush(self) -> None:
        """Commit what is pending."""
        async with self.writing:
            await self._write()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        failures = 0
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self.flush()
                failures = 0
            except Exception:  # the database may be away; the events stay pending and are written when it is back
                self._unsure = True
                logger.exception("Events could not be written; trying again")
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                self._dirty.set()
            else:
                await self._gather()

    async def _gather(self) -> None:
        """Let events of many runs come together, unless somebody waits for the commit."""
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._hurried.wait()
        except TimeoutError:
            return
        self._hurried.clear()

    async def _write(self) -> None:
        if self._unsure:
            await self._find_out()
        batch = [(log, log.events[log.saved :]) for log in self.logs.values() if len(log.events) > log.saved]
        if not batch:
            return
        try:
            await self._commit(batch)
        except store.AWAY:
            raise
        except (Error, TypeError, ValueError):  # what is wrong with the events of one run holds up nobody else
            for log, pending in batch:
                await self._commit_or_lose(log, pending)

    async def _find_out(self) -> None:
        """A connection that broke may have taken the answer to a commit with it."""
        kept = await project.kept({root: log.epoch for root, log in self.logs.items()})
        for root, n in kept.items():
            if log := self.logs.get(root):
                self._done(log, max(0, log.numbered(n) - log.saved))
        self._unsure = False

    async def _commit_or_lose(self, log: Log, pending: list[Logged]) -> None:
        """A run whose events can't be written breaks off. After its lease it is tried again, at last ended in words."""
        try:
            await self._commit([(log, pending)])
        except store.AWAY:
            raise
        except Exception:
            logger.exception("The events of run %s can't be written: it breaks off", log.root)
            self.lose(log.root)

    async def _commit(self, batch: Sequence[tuple[Log, list[Logged]]]) -> None:
        crash.point("events-unwritten")
        owned = await project.write(
            {log.root: log.epoch for log, _ in batch},
            [(log.root, logged) for log, pending in batch for logged in pending],
        )
        crash.point("events-written")
        for log, pending in batch:
            if log.root in owned:
                self._done(log, len(pending))
            else:
                self.lose(log.root)

    def _done(self, log: Log, count: int) -> None:
        log.mark_saved(count)
        if log.ended and log.saved == len(log.events):
            self.logs.pop(log.root, None)

    def lose(self, root: UUID) -> None:
        """Forget a run that goes on in another process, or in another attempt: its readers read the table."""
        log = self.logs.pop(root, None)
        if log is not None:
            logger.warning("Run %s is not run here any more", root)
            log.mark_lost()
            self._lost(root)
