"""The writer of logs and a database that fails in the middle of a commit."""

import asyncio
from datetime import UTC, datetime

import pytest
from psycopg import OperationalError

from runtime import events, execute, project, record, runner, store, takeover
from runtime.events import Logged, Origin
from runtime.execute import Request
from runtime.models import Message, Run
from tests import world
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel
from tests.waiting import broken_off, clerk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


def poet(model: ScriptedModel):
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    return world.agent("Poet", model=world.model("scripted", provider=served), audience="everyone")


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_answer_is_lost_is_neither_repeated_nor_forgotten(model: ScriptedModel, monkeypatch, committed):
    poet(model)
    model.says(["word "] * 20, delay=0.01, usage={"prompt_tokens": 12, "completion_tokens": 3})
    actor, write, asked = world.actor_of(world.linus()), project.write, 0

    async def written_and_cut_off(epochs, batch):
        nonlocal asked
        asked += 1
        owned = await write(epochs, batch) if committed or asked % 2 == 0 else None
        if asked % 2:
            raise OperationalError("server closed the connection unexpectedly")
        return owned

    monkeypatch.setattr(project, "write", written_and_cut_off)
    monkeypatch.setattr(record, "RETRY_SECONDS", (0.01,))

    async def work():
        started = await execute.start(actor, Request("poet", "Write."))
        return [logged async for batch in execute.follow(started.run) for logged in batch]

    log = running(work)

    check_order([logged.event for logged in log])
    assert asked > 2
    run = Run.objects.get()
    assert (run.status, run.input_tokens, run.output_tokens) == ("completed", 12, 3)
    assert Message.objects.get(role="assistant").text == "word " * 20


def test_events_of_one_batch_count_all_their_tokens(model: ScriptedModel):
    run = broken_off(clerk(model), calls=0)
    of = Origin(run.pk, run.pk, "Clerk", "clerk")
    said = [(run.pk, Logged(100 + n, datetime.now(UTC), events.Usage(of, "clerk", 100, 10))) for n in range(3)]

    running(lambda: project.write({run.pk: 0}, said))

    run.refresh_from_db()
    assert (run.input_tokens, run.output_tokens) == (310, 35)


def test_a_model_that_claims_absurd_numbers_of_tokens_stops_nobody(model: ScriptedModel):
    run = broken_off(clerk(model), calls=0)
    of = Origin(run.pk, run.pk, "Clerk", "clerk")
    absurd = [(run.pk, Logged(100, datetime.now(UTC), events.Usage(of, "clerk", 2**31 - 1, 2**31 - 1)))]

    running(lambda: project.write({run.pk: 0}, absurd))

    run.refresh_from_db()
    assert run.input_tokens == run.output_tokens == 2**31 - 1


def test_a_run_whose_events_can_not_be_written_holds_up_nobody_else(model: ScriptedModel):
    agent, actor = poet(model), world.actor_of(world.linus())
    model.says(["word "] * 20, delay=0.02, times=None)

    async def work():
        bad, good = [await execute.start(actor, Request(agent.slug, "Write.")) for _ in range(2)]
        log = runner.runner().log(bad.run)
        log.record(events.Notice(log.events[0].event.of, "A NUL, which no column holds: \0"))
        assert await execute.wait(good.run, 5)
        assert runner.runner().log(bad.run) is None
        await store.fetch("UPDATE runtime_run SET lease_until = now() - interval '1 second'")
        while await takeover.take_over(runner.runner()) == 0:  # noqa: ASYNC110 - a row, not an event
            await asyncio.sleep(0.01)
        assert await execute.wait(bad.run, 5)

    running(work)

    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}


def test_a_run_that_ended_and_is_not_written_yet_is_not_run_again(model: ScriptedModel, monkeypatch):
    """The database was away for longer than a lease."""
    agent, actor, write = poet(model), world.actor_of(world.linus()), project.write
    model.says("Once.").says("Twice.")
    away = True

    async def written_when_it_is_back(epochs, batch):
        if away:
            raise OperationalError("the database is away")
        return await write(epochs, batch)

    monkeypatch.setattr(project, "write", written_when_it_is_back)
    monkeypatch.setattr(record, "RETRY_SECONDS", (0.2,))

    async def work():
        nonlocal away
        started = await execute.start(actor, Request(agent.slug, "Write."))
        here = runner.runner()
        await here.tasks[started.run]
        await store.fetch("UPDATE runtime_run SET lease_until = now() - interval '1 second'")
        await here.renew()
        assert await takeover.take_over(here) == 0
        away = False
        assert await execute.wait(started.run, 5)

    running(work)

    assert Run.objects.get().output == "Once."
