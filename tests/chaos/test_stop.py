"""R12: Stop works at once, wherever the run is."""

import asyncio
import time

import pytest

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
TIMES = 5
"""A connection that is left open does not show each time."""


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
    took = {url: max(stopped(model, key, here, url) for _ in range(TIMES)) for url in (here, there)}
    figure("R12", f"Stop, three levels down: {took[here]:.2f} s, posted to another process {took[there]:.2f} s")


def stopped(model: ScriptedModel, key: str, url: str, posted_to: str) -> float:
    """Start a run at one process, stop it at one; the seconds until the model's stream was closed."""
    asked = len(model.requests)

    async def work() -> str:
        async with http(key) as client:
            run, _ = await post(client, [url], "boss", f"Talk-{posted_to}-{url}"[-20:] + str(asked))
            until(lambda: len(model.requests) == asked + 3 and model.open_streams > 0, 20, "Aide was not asked")
            await asyncio.sleep(0.3)
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
