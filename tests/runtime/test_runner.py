"""What a process holds of its runs, and lets go of: also when they break off, and when the database is away."""

import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest
from psycopg import OperationalError

from runtime import events, execute, project, runner, store, takeover
from runtime.execute import Request
from runtime.models import Run
from runtime.past_turns import conversation_before
from tests import world
from tests.dying import die_at, is_text, log_of, scripted_agent
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import ScriptedModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]

_OVERDUE = "UPDATE runtime_run SET lease_until = now() - interval '1 second' WHERE depth = 0"


async def taken_over(here: runner.Runner) -> None:
    """A row that is being written to is left for the next beat."""
    while await takeover.take_over(here) == 0:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def poet(model: ScriptedModel):
    model.says(["word "] * 100, delay=0.02).says("The whole poem.", times=None)
    return scripted_agent(model, "Poet")


def test_a_run_that_is_stopped_before_its_work_begins_ends_for_its_readers(model: ScriptedModel):
    agent, linus = poet(model), world.actor_of(world.linus())
    died = die_at(agent.slug, is_text())

    async def work():
        here = runner.runner()
        assert await takeover.take_over(here) == 1
        here.cancel(died)  # its task has not had a turn
        reading = asyncio.create_task(execute.wait(died, 5))
        await execute.cancel(linus, died)
        assert here.log(died) is None
        await store.fetch(_OVERDUE)
        await taken_over(here)
        assert await reading

    running(work)

    assert Run.objects.get().status == "cancelled"
    check_order([logged.event for logged in log_of(died)])


def test_a_takeover_that_the_database_breaks_off_leaves_nothing_in_the_way_of_the_next(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    died = die_at(poet(model).slug, is_text())
    asked = conversation_before

    async def away(row, most):
        raise OperationalError("server closed the connection unexpectedly")

    async def work():
        here = runner.runner()
        monkeypatch.setattr(takeover, "conversation_before", away)
        with pytest.raises(OperationalError):
            await takeover.take_over(here)
        assert here.writer.logs == {}
        monkeypatch.setattr(takeover, "conversation_before", asked)
        await store.fetch(_OVERDUE)
        await taken_over(here)
        assert await execute.wait(died, 5)

    running(work)

    assert Run.objects.get().status == "completed"


def test_a_process_that_stops_lets_go_of_what_it_has_claimed_and_not_begun(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    died = die_at(poet(model).slug, is_text())
    before = Run.objects.get(pk=died)

    async def never(row, most):
        await asyncio.Event().wait()

    async def work():
        here = runner.runner()
        monkeypatch.setattr(takeover, "conversation_before", never)
        here.start(takeover.take_over)
        owner = "SELECT owner_process AS it FROM runtime_run"
        while (await store.fetch(owner))[0]["it"] != here.process:  # noqa: ASYNC110 - a row, not an event
            await asyncio.sleep(0.01)

    running(work)

    run = Run.objects.get(pk=died)
    assert run.epoch == before.epoch + 1
    assert run.attempts == before.attempts
    assert run.owner_process is None


def test_a_process_stops_in_time_also_when_the_database_is_away(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch):
    agent, actor = poet(model), world.actor_of(world.linus())

    async def away(*_: object):
        raise OperationalError("the database is away")

    async def work():
        started = await execute.start(actor, Request(agent.slug, "Write."))
        async for batch in execute.follow(started.run):
            if any(isinstance(logged.event, events.MessageText) for logged in batch):
                break
        here = runner.runner()
        monkeypatch.setattr(runner, "DRAIN_SECONDS", 0.1)
        monkeypatch.setattr(project, "write", away)
        await asyncio.wait_for(runner.stop(), 10)
        assert here.http.is_closed
        assert here.tasks == {}
        await asyncio.sleep(0.2)
        assert model.open_streams == 0

    running(work)


def test_a_stop_that_comes_just_when_a_time_limit_does_is_not_mistaken_for_it():
    async def impatient() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def work():
        here, root = runner.runner(), uuid4()
        here.launch(root, impatient())
        task = here.tasks[root]
        while not task.cancelling():  # noqa: ASYNC110 - the moment is what is meant
            await asyncio.sleep(0)
        here.cancel(root)
        await asyncio.wait_for(asyncio.wait([task]), 1)
        assert task.cancelled()

    running(work)


def test_an_attempt_that_ends_late_leaves_the_next_one_alone():
    async def slowly() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(0.05)

    async def work():
        here, root = runner.runner(), uuid4()
        here.launch(root, slowly())
        await asyncio.sleep(0)
        late = here.tasks[root]
        here.drop(root)
        log = here.writer.open(root, 1)
        here.launch(root, asyncio.sleep(10))
        await asyncio.wait([late])
        await asyncio.sleep(0)
        assert here.log(root) is log
        here.drop(root)

    running(work)
