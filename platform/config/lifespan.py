"""Answers the server's start and stop, which Django's own application refuses."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Any, Any, Any], Awaitable[None]]


type Hook = Callable[[], Awaitable[None]]


class Lifespan:
    """`on_start` runs before the first request; `on_stop` after the last, in reverse order."""

    def __init__(self, app: App, on_start: Sequence[Hook] = (), on_stop: Sequence[Hook] = ()) -> None:
        self.app = app
        self.on_start = on_start
        self.on_stop = on_stop

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        await receive()
        for hook in self.on_start:
            await hook()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for hook in reversed(self.on_stop):
            await hook()
        await send({"type": "lifespan.shutdown.complete"})
