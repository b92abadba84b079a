"""Asynchronous work in a test: an event loop with a runner of its own, stopped at the end."""

import asyncio
from collections.abc import Awaitable, Callable

from agents_admin.actor import Actor
from runtime import execute, runner
from runtime.events import Logged


def running[Result](work: Callable[[], Awaitable[Result]]) -> Result:
    async def all_of_it() -> Result:
        try:
            return await work()
        finally:
            await runner.stop()

    return asyncio.run(all_of_it())


def ask(actor: Actor, agent: str, text: str, **fields) -> list[Logged]:
    """The whole log of one run, as a watcher in the same process reads it."""

    async def work() -> list[Logged]:
        started = await execute.start(actor, execute.Request(agent, text, **fields))
        log = [logged async for batch in execute.follow(started.run) for logged in batch]
        assert await execute.wait(started.run, 5)
        return log

    return running(work)
