"""R13: a right that is taken away ends open streams, and the next step is refused."""

import asyncio
import time
from collections.abc import Callable

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import connections

from agents_admin.models import Agent, ApiKey
from runtime.models import Run, ToolCall
from tests import world
from tests.chaos.figures import figure
from tests.chaos.program import http, post, read
from tests.chaos.watching import over, until
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

CLOSED_WITHIN = 5.0


def nobody_may() -> None:
    Agent.objects.update(audience="chosen")


def agent_off() -> None:
    Agent.objects.update(enabled=False)


def key_off() -> None:
    ApiKey.objects.update(enabled=False)


def person_off() -> None:
    User.objects.filter(username="linus").update(is_active=False)


@pytest.mark.parametrize("take_away", [nobody_may, agent_off, key_off, person_off])
def test_a_right_that_is_taken_away_ends_the_stream_and_the_next_step(
    site, transactional_db, model: ScriptedModel, key: str, take_away: Callable[[], None]
):
    agent = scripted_agent(model, "Talker", audience="signed-in")
    world.give(agent, world.tool("clock", audience="everyone"))
    model.calls("clock", {}, text=["and so on "] * 60, delay=0.1)
    model.says("This must never be asked for.", times=None)

    run_id, closed_after = asyncio.run(read_until_closed(site, key, take_away))

    assert closed_after <= CLOSED_WITHIN
    run = Run.objects.get(pk=run_id)
    until(lambda: over(run), 30, "the run goes on")
    assert (run.status, run.reason) == ("failed", "forbidden")
    assert run.output.startswith("and so on ")
    assert ToolCall.objects.get().reason == "forbidden"
    assert len(model.requests) == 1
    figure("R13", f"{take_away.__name__}: stream closed after {closed_after:.1f} s, the next step refused")


async def read_until_closed(site: str, key: str, take_away: Callable[[], None]) -> tuple[str, float]:
    """The run, and how long after the loss its stream was closed before its end."""
    async with http(key) as client:
        run, _ = await post(client, [site], "talker", "Talk")
        since = 0.0
        try:
            async for frame in read(client, site, run, 0):
                assert not frame.last
                if not since and frame.event["type"] == "TEXT_MESSAGE_CONTENT":
                    await asyncio.to_thread(in_thread, take_away)
                    since = time.monotonic()
        except httpx.TransportError:
            pass
        return run, time.monotonic() - since


def in_thread(change: Callable[[], None]) -> None:
    change()
    connections.close_all()
