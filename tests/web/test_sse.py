"""Streams and a server that stops: none keeps it waiting, none goes on without a reader."""

import asyncio
from uuid import uuid4

import orjson
import pytest

from runtime.events import Logged
from tests.loop import running
from web.sse import Message, StreamLayer

pytestmark = pytest.mark.django_db(transaction=True)


class Silent:
    end = ""

    def frames(self, logged: Logged) -> None:
        return None


async def says_yes(scope: Message, receive: object, send) -> None:
    """A view that lets a run be read; nothing ever happens in this one."""
    ticket = {"run": uuid4(), "thread": uuid4(), "renderer": "silent", "after": 0}
    ticket |= {"user": None, "key": None, "widget": None}
    headers = [(b"x-roster-stream", orjson.dumps(ticket))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def reading(layer: StreamLayer, sent: list[Message]) -> asyncio.Task[None]:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    return asyncio.ensure_future(layer({"type": "http", "headers": []}, receive, send))


def test_a_stream_asked_for_when_the_server_has_begun_to_stop_ends_at_once():
    async def work():
        layer = StreamLayer(says_yes, {"silent": lambda head: Silent()})
        layer.close()
        sent: list[Message] = []
        await asyncio.wait_for(reading(layer, sent), 2)
        assert sent[0]["status"] == 200
        assert sent[-1]["more_body"] is False

    running(work)


def test_a_stream_that_the_server_breaks_off_leaves_nobody_writing():
    async def work():
        layer = StreamLayer(says_yes, {"silent": lambda head: Silent()})
        before = asyncio.all_tasks()
        stream = reading(layer, [])
        await asyncio.sleep(0.1)
        stream.cancel()
        await asyncio.wait([stream])
        await asyncio.sleep(0.1)
        left = [task.get_coro().__qualname__ for task in asyncio.all_tasks() - before]
        assert [name for name in left if "_write" in name or "_left" in name] == []

    running(work)
