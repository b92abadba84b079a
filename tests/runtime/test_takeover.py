"""A run goes on in another process after its last finished step: nothing is lost, nothing that acts happens twice.

A process's death is played by dropping everything that no commit holds; tests/chaos kills real ones.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from uuid import UUID, uuid4

import pytest

from agents_admin.actor import Actor
from runtime import events, execute, review, runner, store, takeover
from runtime.errors import RunError
from runtime.events import Event
from runtime.execute import Request
from runtime.models import Event as EventRow
from runtime.models import Message, Run, ToolCall
from tests import world
from tests.loop import ask, running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


def scripted_agent(model: ScriptedModel, name: str, **fields):
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    named = world.model(name.lower(), provider=served)
    return world.agent(name, model=named, audience="everyone", **fields)


def die_at(agent: str, when: Callable[[Event], bool]) -> UUID:
    """Start a run for Linus and let its process die when an event comes up that is `when`, with what was committed."""
    actor = world.actor_of(world.linus())

    async def work() -> UUID:
        started = await execute.start(actor, Request(agent, "Please help."))
        here = runner.runner()
        log = here.writer.logs[started.run]
        while not any(when(logged.event) for logged in log.events):  # sooner than any reader  # noqa: ASYNC110
            await asyncio.sleep(0)
        await here.writer.flush()
        for root in list(here.writer.logs):
            here.writer.lose(root)
        await asyncio.sleep(0.05)
        return started.run

    died = running(work)
    Run.objects.filter(pk=died, depth=0).update(lease_until="2020-01-01T00:00:00Z")
    return died


def goes_on(run_id: UUID) -> Run:
    """Another process takes it over and comes to its end."""

    async def work() -> None:
        assert await takeover.take_over(runner.runner()) == 1
        assert await execute.wait(run_id, 10)

    running(work)
    check_order([logged.event for logged in log_of(run_id)])
    return Run.objects.get(pk=run_id)


def log_of(run_id: UUID):
    return running(lambda: store.load_log(run_id))


def is_text(depth: int = 0) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, events.MessageText) and event.of.depth == depth


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


def acting_agent(model: ScriptedModel):
    agent = scripted_agent(model, "Clerk")
    world.give(agent, world.tool("clock", name="Stamp", side_effect="acts"))
    model.calls("stamp", {}).says("Stamped.")
    return agent


def die_in_an_act(agent, depth: int = 0) -> UUID:
    died = die_at(agent.slug, lambda event: isinstance(event, events.ToolReady) and event.of.depth == depth)
    # What came after is lost: the ledger says it was begun, and not that it ended.
    ready = EventRow.objects.filter(root=died, kind="ToolReady").order_by("-n")[0].n
    EventRow.objects.filter(root=died, n__gt=ready).delete()
    ToolCall.objects.update(state="started", content="", seconds=None)
    Run.objects.filter(root=died).update(status="running", finished_at=None)
    return died


def test_an_act_that_may_have_happened_waits_for_a_person(model: ScriptedModel):
    died = die_in_an_act(acting_agent(model))

    running(lambda: takeover.take_over(runner.runner()))

    assert Run.objects.get(pk=died).status == "needs_review"
    assert ToolCall.objects.get().state == "unknown"
    assert running(lambda: takeover.take_over(runner.runner())) == 0


@pytest.mark.parametrize("decision", ["happened", "again"])
def test_a_person_says_what_happened_and_the_run_goes_on(model: ScriptedModel, decision: review.Decision):
    died = die_in_an_act(acting_agent(model))
    running(lambda: takeover.take_over(runner.runner()))
    linus, maya, call = world.actor_of(world.linus()), world.actor_of(world.maya()), ToolCall.objects.get().pk

    async def decide() -> None:
        for actor, wrong in ((maya, call), (linus, uuid4())):
            with pytest.raises(RunError):
                await review.review(actor, died, wrong, decision)
        await review.review(linus, died, call, decision)
        with pytest.raises(RunError):
            await review.review(linus, died, call, decision)
        assert await execute.wait(died, 10)

    running(decide)
    check_order([logged.event for logged in log_of(died)])

    run = Run.objects.get(pk=died)
    assert (run.status, run.output) == ("completed", "Stamped.")
    assert ToolCall.objects.get().state == "done"
    returned = [one.event for one in log_of(died) if isinstance(one.event, events.ToolReturned)]
    assert [(one.content == takeover.CONFIRMED) for one in returned] == [decision == "happened"]


def test_stop_ends_a_run_that_waits_for_a_person(model: ScriptedModel):
    died = die_in_an_act(acting_agent(model))
    running(lambda: takeover.take_over(runner.runner()))
    linus, maya = world.actor_of(world.linus()), world.actor_of(world.maya())

    async def stop() -> None:
        with pytest.raises(RunError):
            await execute.cancel(maya, died)
        await execute.cancel(linus, died)
        assert await execute.wait(died, 10)

    running(stop)
    check_order([logged.event for logged in log_of(died)])
    assert Run.objects.get(pk=died).status == "cancelled"
    assert ToolCall.objects.get().state == "unknown"
    assert len(model.requests) == 1


def test_a_thread_that_waits_for_a_person_says_so(model: ScriptedModel):
    died = Run.objects.get(pk=die_in_an_act(acting_agent(model)))
    running(lambda: takeover.take_over(runner.runner()))
    linus, more = world.actor_of(world.linus()), Request("clerk", "And now?", died.thread_id)

    with pytest.raises(RunError, match="waits for a person to decide"):
        running(lambda: execute.start(linus, more))


def test_a_visitor_of_a_widget_never_decides(model: ScriptedModel):
    agent = acting_agent(model)
    died, widget = die_in_an_act(agent), world.widget(agent)
    running(lambda: takeover.take_over(runner.runner()))
    Run.objects.update(user=None, widget=widget, visitor="v1")
    visitor, call = Actor("widget", widget_id=widget.pk, visitor="v1"), ToolCall.objects.get().pk

    with pytest.raises(RunError, match="who works here"):
        running(lambda: review.review(visitor, died, call, "again"))
    assert Run.objects.get(pk=died).status == "needs_review"


def test_of_two_people_who_decide_at_once_one_does(model: ScriptedModel):
    died = die_in_an_act(acting_agent(model))
    running(lambda: takeover.take_over(runner.runner()))
    linus, ada, call = world.actor_of(world.linus()), world.actor_of(world.ada()), ToolCall.objects.get().pk

    async def decide() -> Sequence[object]:
        done = await asyncio.gather(
            review.review(linus, died, call, "happened"),
            review.review(ada, died, call, "again", anybodys=True),
            return_exceptions=True,
        )
        assert await execute.wait(died, 10)
        return done

    assert [error.code for error in running(decide) if isinstance(error, RunError)] == ["decided"]
    assert Run.objects.get(pk=died).status == "completed"


def test_a_decision_is_whole_when_its_process_dies_right_after_it(model: ScriptedModel, monkeypatch):
    died = die_in_an_act(acting_agent(model))
    running(lambda: takeover.take_over(runner.runner()))
    linus, call = world.actor_of(world.linus()), ToolCall.objects.get().pk

    async def append_and_die(*given) -> None:
        assert await takeover.append(*given)
        raise ConnectionError

    monkeypatch.setattr(review, "append", append_and_die)
    with pytest.raises(ConnectionError):
        running(lambda: review.review(linus, died, call, "again"))

    assert goes_on(died).status == "completed"
    assert ToolCall.objects.get().state == "done"


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


@contextmanager
def service(status: int) -> Iterator[str]:
    """Answers every POST with a status."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nothing: pytest shows enough."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("status", "state"), [(404, "failed"), (502, "unknown")])
def test_an_act_that_failed_and_may_have_happened_is_flagged_in_the_ledger(
    model: ScriptedModel, status: int, state: str
):
    agent = scripted_agent(model, "Clerk")
    model.calls("order", {}).says("I tried.")

    with service(status) as url:
        world.give(agent, world.tool("http", name="Order", settings={"method": "POST", "url": f"{url}/orders"}))
        ask(world.actor_of(world.linus()), agent.slug, "Order it.")

    assert ToolCall.objects.get().state == state
