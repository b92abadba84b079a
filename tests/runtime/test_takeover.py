"""A run goes on in another process after its last finished step: nothing that was found is lost."""

import asyncio
from uuid import UUID

import pytest

from runtime import events, execute, runner, store, takeover
from runtime.execute import Request
from runtime.models import Event as EventRow
from runtime.models import Message, Run, ToolCall
from tests import world
from tests.dying import die_at, goes_on, is_text, log_of, scripted_agent
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import ScriptedModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


def test_a_message_that_broke_off_is_closed_left_out_of_history_and_said_again(model: ScriptedModel):
    agent = scripted_agent(model, "Poet")
    model.says(["broken "] * 200, delay=0.02).says("The whole poem.")

    run = goes_on(die_at(agent.slug, is_text()))

    assert run.status == "completed"
    assert run.output == "The whole poem."
    assert [message.complete for message in Message.objects.filter(role="assistant")] == [False, True]
    assert [message["content"] for message in model.requests[-1].messages] == ["Please help."]


def test_finished_steps_are_not_repeated(model: ScriptedModel):
    agent = scripted_agent(model, "Analyst")
    world.give(agent, world.tool("calculator"))
    model.when(after_tool=False).calls("calculator", {"expression": "2+2"}, times=None)
    model.when(after_tool=True).says(["four "] * 100, delay=0.02)
    model.when(after_tool=True).says("It is four.")

    run = goes_on(die_at(agent.slug, is_text()))

    assert run.output == "It is four."
    assert ToolCall.objects.count() == 1
    assert len(model.requests) == 3
    assert "2+2" in str(model.requests[-1].messages)


def test_a_delegate_goes_on_in_the_middle_of_its_own_work(model: ScriptedModel):
    boss, helper = scripted_agent(model, "Boss"), scripted_agent(model, "Helper")
    world.delegate(boss, helper)
    world.give(helper, world.tool("calculator"))
    model.for_model("boss").when(after_tool=False).calls("ask_helper", {"task": "Count."})
    model.for_model("boss").when(after_tool=True).says("Done.")
    model.for_model("helper").when(after_tool=False).calls("calculator", {"expression": "1+1"})
    model.for_model("helper").when(after_tool=True).says(["two "] * 100, delay=0.02)
    model.for_model("helper").when(after_tool=True).says("It is two.")

    run = goes_on(die_at("boss", is_text(depth=1)))

    assert run.output == "Done."
    assert Run.objects.filter(depth=1).count() == 1
    child = run.children.get()
    assert (child.status, child.output) == ("completed", "It is two.")
    assert [request.model for request in model.requests] == ["boss", "helper", "helper", "helper", "boss"]
    assert len([one for one in log_of(run.pk) if isinstance(one.event, events.DelegateStarted)]) == 1


def test_a_call_that_only_reads_is_made_again(model: ScriptedModel):
    agent = scripted_agent(model, "Reader")
    world.give(agent, world.tool("clock", name="Clock"))
    model.calls("clock", {}).says("Noon.", times=None)

    died = die_at(agent.slug, lambda event: isinstance(event, events.ToolCalled))
    run = goes_on(died)

    assert run.output == "Noon."
    assert ToolCall.objects.get().state == "done"


def test_a_run_that_keeps_killing_its_process_is_ended_in_words(model: ScriptedModel):
    agent = scripted_agent(model, "Poison")
    model.says(["x "] * 100, delay=0.02, times=None)
    died = die_at(agent.slug, is_text())
    Run.objects.filter(pk=died).update(attempts=takeover.MAX_ATTEMPTS)

    run = goes_on(died)

    assert (run.status, run.reason) == ("failed", "process_died")
    assert "ask again" in run.error


def test_a_run_that_was_stopped_while_nobody_ran_it_is_cancelled(model: ScriptedModel):
    agent = scripted_agent(model, "Poet")
    model.says(["x "] * 100, delay=0.02, times=None)
    died = die_at(agent.slug, is_text())
    linus = world.actor_of(world.linus())
    running(lambda: execute.cancel(linus, died))

    assert goes_on(died).status == "cancelled"


def test_rights_are_asked_again_when_a_run_goes_on(model: ScriptedModel):
    agent = scripted_agent(model, "Poet")
    model.says(["x "] * 100, delay=0.02, times=None)
    died = die_at(agent.slug, is_text())
    type(agent).objects.filter(pk=agent.pk).update(enabled=False)

    run = goes_on(died)

    assert (run.status, run.reason) == ("failed", "forbidden")


def test_a_process_that_was_only_slow_can_not_write_to_a_run_that_was_taken_over(model: ScriptedModel):
    agent = scripted_agent(model, "Poet")
    model.says(["slow "] * 60, delay=0.02).says("The new owner's words.")
    actor = world.actor_of(world.linus())

    async def work() -> UUID:
        started = await execute.start(actor, Request(agent.slug, "Please help."))
        slow = runner.runner()
        async for batch in execute.follow(started.run):
            if any(is_text()(logged.event) for logged in batch):
                break
        other = runner.Runner()
        await store.fetch("UPDATE runtime_run SET lease_until = now() - interval '1 second'")
        # A row that is being written to is left for the next beat.
        while await takeover.take_over(other) == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await other.tasks[started.run]
        await other.writer.flush()
        await asyncio.sleep(0.2)
        assert slow.tasks == {}
        await other.stop()
        return started.run

    run = Run.objects.get(pk=running(work))

    assert run.output == "The new owner's words."
    check_order([logged.event for logged in log_of(run.pk)])


def test_a_process_that_stops_lets_its_runs_go_on_in_another_one(model: ScriptedModel, monkeypatch):
    monkeypatch.setattr(runner, "DRAIN_SECONDS", 0.1)
    agent = scripted_agent(model, "Poet")
    model.says(["slow "] * 60, delay=0.02).says("Said elsewhere.")
    actor = world.actor_of(world.linus())

    async def stopped() -> UUID:
        started = await execute.start(actor, Request(agent.slug, "Please help."))
        async for batch in execute.follow(started.run):
            if any(is_text()(logged.event) for logged in batch):
                break
        return started.run

    run = goes_on(running(stopped))

    assert (run.status, run.output, run.attempts) == ("completed", "Said elsewhere.", 1)


def test_a_run_whose_log_can_not_be_read_ends_and_holds_up_nobody(model: ScriptedModel):
    agent = scripted_agent(model, "Poet")
    model.says(["x "] * 100, delay=0.02, times=2).says("Said elsewhere.")
    broken, other = die_at(agent.slug, is_text()), die_at(agent.slug, is_text())
    EventRow.objects.filter(root=broken, kind="MessageStarted").update(kind="OfALaterVersion")
    Run.objects.filter(pk=broken).update(attempts=takeover.MAX_ATTEMPTS, lease_until="2019-01-01T00:00:00Z")

    async def both() -> None:
        assert await takeover.take_over(runner.runner()) == 2
        assert await execute.wait(other, 10)

    running(both)

    run = Run.objects.get(pk=broken)
    assert (run.status, run.reason) == ("failed", "process_died")
    assert Run.objects.get(pk=other).status == "completed"
