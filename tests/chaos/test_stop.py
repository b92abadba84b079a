"""R12, R13: Stop and a right that is taken away work at once, wherever the run is."""

import asyncio
import time
from collections.abc import Callable

import pytest

from agents_admin.models import Agent, ApiKey
from runtime import events, store
from runtime.models import Run
from tests import world
from tests.chaos.figures import figure
from tests.chaos.program import http, post
from tests.chaos.town import Town
from tests.chaos.watching import over, until
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

STOPPED_WITHIN = 1.0
CLOSED_WITHIN = 5.0


@pytest.fixture
def three_levels(transactional_db: None, model: ScriptedModel):
    """Boss asks Helper, who asks Aide, who talks until somebody stops it. After it, Boss would use the clock."""
    boss, helper, aide = (scripted_agent(model, name, audience="everyone") for name in ("Boss", "Helper", "Aide"))
    world.delegate(boss, helper)
    world.delegate(helper, aide)
    world.give(boss, world.tool("clock", audience="everyone"))
    model.for_model("boss").when(after_tool=False).calls("ask_helper", {"task": "Talk."}, times=None)
    model.for_model("boss").when(after_tool=True).calls("clock", {}, times=None)
    model.for_model("helper").when(after_tool=False).calls("ask_aide", {"task": "Talk."}, times=None)
    model.for_model("aide").says(["and so on "] * 600, delay=0.05, times=None)
    return boss


def test_stop_reaches_three_levels_down_also_from_another_process(
    town: Town, model: ScriptedModel, three_levels, key: str
):
    webs = [town.web(), town.web()]
    here, there = (web.answers().url for web in webs)
    took = [stopped(model, key, here, posted_to) for posted_to in (here, there)]
    figure("R12", f"Stop, three levels down: {took[0]:.2f} s, posted to another process {took[1]:.2f} s")


def stopped(model: ScriptedModel, key: str, url: str, posted_to: str) -> float:
    """Start a run at one process, stop it at one; the seconds until the model's stream was closed."""
    asked = len(model.requests)

    async def work() -> str:
        async with http(key) as client:
            run, _ = await post(client, [url], "boss", f"Talk-{posted_to}-{url}"[-20:] + str(asked))
            until_talking(model)
            answer = await client.post(f"{posted_to}/api/v1/runs/{run}/cancel")
            assert answer.status_code == 202
            return run

    run = Run.objects.get(pk=asyncio.run(work()))
    took = until(lambda: model.open_streams == 0, STOPPED_WITHIN + 1, "the model still talks")
    assert took <= STOPPED_WITHIN
    until(lambda: over(run), 5, "the run was not stopped")
    assert run.status == "cancelled"
    time.sleep(0.5)
    assert len(model.requests) == asked + 3
    log = [logged.event for logged in running(lambda: store.load_log(run.pk))]
    check_order(log)
    assert [event.name for event in log if isinstance(event, events.ToolCalled)] == ["ask_helper", "ask_aide"]
    said = [event for event in log if isinstance(event, events.MessageFinished)]
    assert [(event.of.agent, event.complete) for event in said] == [("Aide", False)]
    assert said[0].text.startswith("and so on ")
    assert Run.objects.get(root=run.pk, depth=2).output == said[0].text
    return took


def until_talking(model: ScriptedModel) -> None:
    until(lambda: model.open_streams > 0, 20, "the model was not asked")
    time.sleep(0.3)


@pytest.fixture
def talker(transactional_db: None, model: ScriptedModel):
    """Talks for some seconds, then wants the clock, then would talk again."""
    agent = scripted_agent(model, "Talker", audience="signed-in")
    world.give(agent, world.tool("clock", audience="everyone"))
    model.when(after_tool=False).calls("clock", {}, text=["and so on "] * 100, delay=0.1)
    model.says("This must never be asked for.", times=None)
    return agent


def nobody_may(agent: Agent) -> None:
    Agent.objects.filter(pk=agent.pk).update(audience="chosen")


def agent_off(agent: Agent) -> None:
    Agent.objects.filter(pk=agent.pk).update(enabled=False)


def key_off(agent: Agent) -> None:
    ApiKey.objects.update(enabled=False)


def person_off(agent: Agent) -> None:
    type(world.linus()).objects.filter(username="linus").update(is_active=False)


TAKEN_AWAY: list[Callable[[Agent], None]] = [nobody_may, agent_off, key_off, person_off]


def test_a_right_that_is_taken_away_ends_streams_and_steps(town: Town, model: ScriptedModel, key: str):
    """One run for each way of losing the right, on agents of their own."""
