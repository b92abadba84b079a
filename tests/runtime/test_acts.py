"""Calls that act happen at most once: what may have happened waits for a person, and is flagged."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from uuid import uuid4

import pytest

from agents_admin.actor import Actor
from runtime import events, execute, review, runner, takeover
from runtime.errors import RunError
from runtime.execute import Request
from runtime.models import Run, ToolCall
from tests import world
from tests.dying import acting_agent, die_in_an_act, goes_on, log_of, scripted_agent
from tests.loop import ask, running
from tests.plain_run import check_order
from tests.scripted import ScriptedModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


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
