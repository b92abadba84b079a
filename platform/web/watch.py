"""Open streams are looked at every few seconds: who lost the right to one is let go. One statement for all of them."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from runtime import resolve

logger = logging.getLogger(__name__)

SECONDS = 3.0

type Ticket = Mapping[str, Any]
"""`run`, `user`, `key`, `widget`: which run is read, and by whom."""


class Watch:
    """The open streams of one process."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Ticket, Callable[[], object]]] = {}
        self._numbers = count()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def over(self, ticket: Ticket, close: Callable[[], object]) -> Iterator[None]:
        """`close` is called when the right to this stream ends."""
        number = next(self._numbers)
        self._open[number] = (ticket, close)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look(), context=contextvars.Context())
        try:
            yield
        finally:
            del self._open[number]

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(SECONDS)
            try:
                await self._close_lost()
            except Exception:  # the database may be away: the next look tries again
                logger.exception("The rights of open streams could not be checked")

    async def _close_lost(self) -> None:
        streams = dict(self._open)
        for number in await resolve.lost({number: ticket for number, (ticket, _) in streams.items()}):
            if number in self._open:
                streams[number][1]()
