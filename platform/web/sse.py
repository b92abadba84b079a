"""Events → streaming responses, written below Django.

A Django view says who may see what (`stream_response`); the response's header carries that past the end of Django's
request, and `StreamLayer` then streams on the bare connection. Django's own streaming keeps a thread for every stream.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import orjson
from django.http import HttpResponse

from agents_admin.actor import Actor
from runtime import execute
from runtime.events import Logged
from web.watch import Watch

logger = logging.getLogger(__name__)

HEADER = "X-Roster-Stream"
QUIET_SECONDS = 15
"""The longest silence on a stream: proxies close what looks dead."""

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RunHead:
    """The root run of a stream, its thread, and the number of the last event that the reader has seen."""

    run: UUID
    thread: UUID
    after: int = 0


class Renderer(Protocol):
    """A fold over one log from its first event. `frames` gives what an event is on this stream, if anything.

    `end` comes after the last one: a whole frame, or nothing.
    """

    @property
    def end(self) -> str: ...

    def frames(self, logged: Logged) -> str | None: ...


type Renderers = Mapping[str, Callable[[RunHead], Renderer]]


async def stream_response(actor: Actor, *, run: UUID, renderer: str, after: int = 0) -> HttpResponse:
    """The response of a view that streams a run's events above `after`.

    Raises RunError `not_found` when the run isn't the actor's.
    """
    thread = await execute.owned_thread(actor, run)
    return stream_of_own(actor, RunHead(run, thread, after), renderer)


def stream_of_own(actor: Actor, head: RunHead, renderer: str) -> HttpResponse:
    """The same for a run that is known to be the actor's: nobody is asked."""
    response = HttpResponse(content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-store, no-transform"
    response["X-Accel-Buffering"] = "no"
    response[HEADER] = orjson.dumps(
        {
            "run": head.run,
            "thread": head.thread,
            "renderer": renderer,
            "after": head.after,
            "user": actor.user_id,
            "key": actor.key_id,
            "widget": actor.widget_id,
        }
    ).decode()
    return response


class StreamLayer:
    """Wraps Django: lets every response pass but those that ask for a stream."""

    def __init__(self, app: App, renderers: Renderers) -> None:
        self.app = app
        self.renderers = renderers
        self.watch = Watch()
        self._writing: set[asyncio.Task[None]] = set()
        self._closed = False

    def close(self) -> None:
        """End every stream, open or asked for later; readers come back with the number of the last event they saw."""
        self._closed = True
        for task in self._writing:
            task.cancel()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked: Message = {}

        async def pass_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                ticket = next((value for name, value in message["headers"] if name.lower() == _HEADER), None)
                if ticket is not None:
                    asked.update(message, ticket=orjson.loads(ticket))
            if not asked:
                await send(message)

        await self.app(scope, receive, pass_on)
        if asked:
            await self._stream(asked, _last_event_id(scope), receive, send)

    async def _stream(self, asked: Message, seen: int | None, receive: Receive, send: Send) -> None:
        ticket = asked["ticket"]
        headers = [(name, value) for name, value in asked["headers"] if name.lower() not in _NOT_OURS]
        await send({"type": "http.response.start", "status": asked["status"], "headers": headers})
        after = ticket["after"] if seen is None else seen
        head = RunHead(UUID(ticket["run"]), UUID(ticket["thread"]), after)
        writing = asyncio.create_task(self._write(head, self.renderers[ticket["renderer"]](head), send))
        leaving = asyncio.create_task(_left(receive))
        self._writing.add(writing)
        if self._closed:
            writing.cancel()
        try:
            with self.watch.over(ticket, writing.cancel):
                await asyncio.wait([writing, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._writing.discard(writing)
            for task in (writing, leaving):
                task.cancel()
        await asyncio.wait([writing, leaving])
        if not writing.cancelled() and writing.exception() is not None:
            logger.error("A stream of run %s broke off", head.run, exc_info=writing.exception())
        with suppress(Exception):  # the reader may be gone
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, head: RunHead, renderer: Renderer, send: Send) -> None:
        """The renderer folds the whole log; what the reader has already is not sent again.

        A stream ends at a pause too: who comes back with its number waits for what follows.
        """
        quiet_since = asyncio.get_running_loop().time()
        async with aclosing(execute.until_pause(head.run, head.after)) as batches:
            async for batch in batches:
                body = b"".join(_frame(logged, renderer, head.after) for logged in batch)
                now = asyncio.get_running_loop().time()
                if not body and now - quiet_since >= QUIET_SECONDS - execute.HEARTBEAT_SECONDS:
                    body = b": still here\n\n"
                if body:
                    quiet_since = now
                    await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": renderer.end.encode(), "more_body": True})


_HEADER = HEADER.lower().encode()
_NOT_OURS = {_HEADER, b"content-length"}


def _frame(logged: Logged, renderer: Renderer, after: int) -> bytes:
    text = renderer.frames(logged)
    if text is None or logged.n <= after:
        return b""
    data = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\ndata: ")
    return f"id: {logged.n}\ndata: {data}\n\n".encode()


def _last_event_id(scope: Message) -> int | None:
    value = next((value for name, value in scope["headers"] if name == b"last-event-id"), b"")
    return int(value) if value.isdigit() and len(value) < 10 else None


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
