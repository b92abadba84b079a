"""Runs through the whole core, on the real database; the offline provider or the fake model server answers."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runtime import events, execute, runner, store
from runtime.events import Logged
from runtime.models import Message, Run, Thread, ToolCall
from tests import world

pytestmark = pytest.mark.django_db(transaction=True)


def running(work: Callable[[], Awaitable[object]]) -> object:
    """Do asynchronous work in an event loop of its own, with a runner that is stopped at the end."""

    async def all_of_it() -> object:
        try:
            return await work()
        finally:
            await runner.stop()

    return asyncio.run(all_of_it())


def ask(actor, agent: str, text: str, **fields) -> list[Logged]:
    """The whole log of one run."""

    async def work():
        started = await execute.start(actor, execute.Request(agent, text, **fields))
        log = [logged async for batch in execute.follow(started.run) for logged in batch]
        assert await execute.wait(started.run, 5)
        return log

    return running(work)


def test_concierge_is_asked_for_leave_and_the_librarian_finds_it_two_levels_down():
    house = world.house()

    log = ask(world.actor_of(house.linus), "concierge", "How many days of annual leave do I get?")

    labels = [logged.event.of.agent for logged in log if isinstance(logged.event, events.RunStarted)]
    assert labels == ["Concierge", "HR desk", "Librarian"]
    run = Run.objects.get(depth=0)
    assert run.status == "completed"
    assert "28" in run.output
    assert "Leave" in run.output
    assert Message.objects.filter(role="assistant").get().text == run.output
    assert Thread.objects.get().user == house.linus
    assert [call.state for call in ToolCall.objects.all()] == ["done"] * 3


def test_the_log_is_numbered_without_gaps_and_reads_the_same_from_the_table():
    house = world.house()

    log = ask(world.actor_of(house.linus), "concierge", "What is 1,249 * 0.21?")

    assert [logged.n for logged in log] == list(range(1, len(log) + 1))
    assert "262.29" in Run.objects.get(depth=0).output

    async def stored():
        return await store.load_log(log[0].event.of.root)

    assert running(stored) == log
