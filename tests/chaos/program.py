"""A program that uses the REST interface and does not give up: it asks again until it is answered."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx

GIVES_UP_AFTER = 120.0
PAUSE = 0.1


def http(key: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(20), limits=limits, trust_env=False)


async def post(client: httpx.AsyncClient, urls: list[str], agent: str, text: str) -> tuple[str, int]:
    """Send one message until a process has taken it; the text is its Idempotency-Key.

    Gives the run's id, and how often the message was sent.
    """
    async with asyncio.timeout(GIVES_UP_AFTER):
        for attempt in count(1):
            url = urls[attempt % len(urls)]
            try:
                answer = await client.post(
                    f"{url}/api/v1/runs", json={"agent": agent, "input": text}, headers={"Idempotency-Key": text}
                )
            except httpx.TransportError:
                await asyncio.sleep(PAUSE)
                continue
            if answer.status_code in {200, 202}:
                return str(answer.json()["id"]), attempt
            assert answer.status_code in {500, 503}, answer.text
            await asyncio.sleep(PAUSE)
    raise AssertionError


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream: its number and what it says."""

    n: int
    event: dict[str, Any]

    @property
    def last(self) -> bool:
        return self.event["type"] in {"RUN_FINISHED", "RUN_ERROR"}


async def follow(client: httpx.AsyncClient, urls: list[str], run: str, cuts: Callable[[], int]) -> list[Frame]:
    """Everything that a reader sees of a run who is cut off after so many events again and again, and comes back.

    Each time at another address, with the number of the last event it saw. `cuts` says after how many.
    """
    seen: list[Frame] = []
    async with asyncio.timeout(GIVES_UP_AFTER):
        for attempt in count():
            left = cuts()
            try:
                async with aclosing(read(client, urls[attempt % len(urls)], run, seen[-1].n if seen else 0)) as frames:
                    async for frame in frames:
                        seen.append(frame)
                        left -= 1
                        if left == 0 or frame.last:
                            break
            except httpx.TransportError:
                await asyncio.sleep(PAUSE)
            if seen and seen[-1].last:
                return seen
    raise AssertionError


async def read(client: httpx.AsyncClient, url: str, run: str, after: int) -> AsyncGenerator[Frame]:
    """One connection to a run's stream, until it ends or breaks (httpx.TransportError)."""
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(after)} if after else {})
    async with client.stream("GET", f"{url}/api/v1/runs/{run}/events", headers=headers) as answer:
        if answer.status_code == 503:
            raise httpx.ReadError("503")
        assert answer.status_code == 200, (await answer.aread()).decode()
        number = 0
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                yield Frame(number, json.loads(line[6:]))
