"""One kept thread for what is synchronous in a request, instead of two new ones for each."""

from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext

from config.lifespan import App, Receive, Send

KEPT = 8
"""Threads that wait for the next request; more are made and ended when more requests come at once."""


class KeptThreads:
    """Django's thread for one request, taken from those that earlier requests are done with.

    Django has the end of every request in such a thread, also where all of it was asynchronous; by itself it makes one
    for that, and another one to end it.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self._idle: list[ThreadPoolExecutor] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "request")
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.app(scope, receive, send)
        finally:
            if len(self._idle) < KEPT:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)
