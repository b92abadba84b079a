"""R5: the database server is stopped at once and started again while runs are under way."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from django.db import connection, connections

from config.postgres import Cluster
from runtime.models import Message, Run
from tests import world
from tests.agui_checker import complaints
from tests.chaos.figures import figure
from tests.chaos.program import follow, http, post
from tests.chaos.town import Town
from tests.chaos.watching import nothing_open, until
from tests.conftest import TEST_DATA
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

AGAIN_WITHIN = 90.0


@pytest.fixture
def keeps_what_it_commits(transactional_db: None) -> Iterator[None]:
    """The tests' server may forget its last commits when it is stopped at once; here it may not."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = on')
    yield
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" RESET synchronous_commit')


@pytest.mark.usefixtures("keeps_what_it_commits")
@pytest.mark.parametrize(
    ("runs", "away"), [pytest.param(6, 4, id="short"), pytest.param(40, 25, id="long", marks=pytest.mark.long)]
)
def test_runs_outlast_a_restart_of_the_database(town: Town, model: ScriptedModel, key: str, runs, away):
    talker = scripted_agent(model, "Talker", audience="everyone")
    world.give(talker, world.tool("clock", audience="everyone"))
    model.when(after_tool=False).calls("clock", {}, text=["word "] * 25, delay=0.1, times=None)
    model.when(after_tool=True).says(["word "] * 20, delay=0.1, times=None)
    web = town.web().answers()
    connections.close_all()

    seen, answers, back = asyncio.run(through_an_outage(web.url, key, runs, away))

    until(nothing_open, AGAIN_WITHIN - (time.monotonic() - back), "runs are stuck")
    took = time.monotonic() - back
    assert set(Run.objects.values_list("status", "reason")) == {("completed", "")}
    assert set(Message.objects.filter(role="assistant").values_list("complete", flat=True)) == {True}
    for frames in seen:
        numbers = [frame.n for frame in frames]
        assert numbers == sorted(set(numbers))
        assert complaints([frame.event for frame in frames]) == []
    for answer in answers:
        assert answer.status_code == 503, (answer.url, answer.status_code, answer.text[:300])
        assert "database" in answer.text
    figure("R5", f"{runs} runs, database away for {away} s, pages say 503: completed {took:.0f} s after it was back")


async def through_an_outage(url: str, key: str, runs: int, away: float):
    """What readers of runs saw, what pages answered meanwhile, and when the database was back."""
    async with http(key) as client:
        taken = await asyncio.gather(*(post(client, [url], "talker", f"Talk-{n}") for n in range(runs)))
        readers = [asyncio.create_task(follow(client, [url], run, lambda: 10**9)) for run, _ in taken]
        await asyncio.sleep(1.5)
        await asyncio.to_thread(stop_at_once)
        since = time.monotonic()
        answers = await asyncio.gather(
            client.get(f"{url}/chat/", headers={"Cookie": "roster_session=" + "x" * 32}),
            client.get(f"{url}/api/v1/agents"),
            client.post(f"{url}/api/v1/runs", json={"agent": "talker", "input": "Now?"}),
        )
        await asyncio.sleep(max(0, away - (time.monotonic() - since)))
        await asyncio.to_thread(start_again)
        back = time.monotonic()
        await post(client, [url], "talker", "Talk-again")
        return await asyncio.gather(*readers), answers, back


def stop_at_once() -> None:
    Cluster(TEST_DATA, durable=False).stop("immediate")


def start_again() -> None:
    Cluster(TEST_DATA, durable=False).start()
