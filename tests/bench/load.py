"""The load: HTTP/1.1 on bare asyncio connections, so that the client costs little beside what it measures."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import httptools

WORD = b"word"
"""Every word of the scripted answers begins with it, and nothing before the first text of a stream has it."""


@dataclass(frozen=True)
class Target:
    """Where one run is asked for, and the bytes of a stream that say it ended well."""

    name: str
    url: str
    body: bytes
    end: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def request(self) -> bytes:
        parts = urlsplit(self.url)
        headers = {
            "host": parts.netloc,
            "content-type": "application/json",
            "accept": "text/event-stream",
            "content-length": str(len(self.body)),
        }
        lines = [f"{name}: {value}" for name, value in (headers | self.headers).items()]
        return "\r\n".join([f"POST {parts.path} HTTP/1.1", *lines]).encode() + b"\r\n\r\n" + self.body


class BrokenAnswerError(Exception):
    """An answer was not what the target promises."""


class Client(asyncio.Protocol):
    """One kept connection; one answer at a time. `heard` is called with what arrives of a body."""

    def __init__(self, target: Target, heard: Callable[[bytes], None] | None = None) -> None:
        self.target = target
        self.request = target.request
        self.heard = heard
        self.parser = httptools.HttpResponseParser(self)
        self.done: asyncio.Future[None]

    async def connect(self) -> "Client":
        parts = urlsplit(self.target.url)
        loop = asyncio.get_running_loop()
        self.done = loop.create_future()
        await loop.create_connection(lambda: self, parts.hostname or "", parts.port or 80)
        return self

    async def run(self) -> float:
        """One run from request to end; gives the seconds to its first text. Raises BrokenAnswerError."""
        started = self.send()
        async with asyncio.timeout(60):
            await self.done
        if self.parser.get_status_code() != 200 or self.target.end not in self.tail:
            raise BrokenAnswerError(
                f"{self.target.name} answered {self.parser.get_status_code()}: …{self.tail[-400:]!r}"
            )
        return self.first_text - started

    def send(self) -> float:
        self.done = asyncio.get_running_loop().create_future()
        self.first_text = 0.0
        self.begun = asyncio.Event()
        self.tail = b""
        self.transport.write(self.request)
        return time.monotonic()

    def close(self) -> None:
        self.done.cancel()
        self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.tail = (self.tail + body)[-1000:]
        if not self.first_text and WORD in self.tail:
            self.first_text = time.monotonic()
            self.begun.set()
        if self.heard:
            self.heard(body)

    def on_message_complete(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(
                BrokenAnswerError(f"{self.target.name} closed the connection: …{self.tail[-400:]!r}")
            )


@dataclass(frozen=True)
class Load:
    """What came of some seconds of load. `first_texts` in seconds."""

    runs: int
    seconds: float
    first_texts: list[float]

    @property
    def rate(self) -> float:
        return self.runs / self.seconds


async def load(target: Target, clients: int, seconds: float) -> Load:
    """So many clients, each asking again as soon as it was answered; runs that began in time are waited for."""
    connected = [await Client(target).connect() for _ in range(clients)]
    started = time.monotonic()
    try:
        lists = await asyncio.gather(*(_ask_until(client, started + seconds) for client in connected))
    finally:
        for client in connected:
            client.close()
    first_texts = [first for answered in lists for first in answered]
    return Load(len(first_texts), time.monotonic() - started, first_texts)


async def _ask_until(client: Client, deadline: float) -> list[float]:
    first_texts = [await client.run()]
    while time.monotonic() < deadline:
        first_texts.append(await client.run())
    return first_texts
