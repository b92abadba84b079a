"""The benchmark measures what it says: whole answers, read from servers that are really there."""

import asyncio

import httpx
import pytest

from tests import world
from tests.bench import measure
from tests.bench.figures import Figure, table
from tests.bench.load import BrokenAnswerError, Client, Target, load
from tests.bench.programs import free_port, model_server, uvicorn, wait_for
from tests.bench.sides import SCRIPT, TOKENS, bare_side, direct_target
from tests.web.api_client import scripted_agent, settle


@pytest.fixture(scope="module")
def model_url():
    with model_server() as server:
        httpx.put(f"{server.url}/script/bench", json=SCRIPT, trust_env=False).raise_for_status()
        yield f"{server.url}/s/bench/v1"


def everything(target):
    """All that one run sends."""
    parts = []

    async def ask():
        client = await Client(target, parts.append).connect()
        await client.run()
        client.close()

    asyncio.run(ask())
    return b"".join(parts).decode()


def test_bare_streams_the_whole_answer_and_lets_a_reader_leave(model_url):
    with uvicorn("tests.bench.bare:application", free_port(), {"MODEL_URL": model_url}) as program:
        wait_for(program, "/")
        side = bare_side(program)
        said = everything(side.asks("plain"))
        held = asyncio.run(measure.hold(side, (1, 3), 1.0, lambda: 0))
    assert [token.strip() for token in TOKENS if token.strip() not in said] == []
    assert [one.streams for one in held] == [1, 3]
    assert all(one.threads and one.megabytes and one.late_ms for one in held)


def test_direct_reads_until_the_end(model_url):
    done = asyncio.run(load(direct_target(model_url), clients=2, seconds=0))
    assert done.runs == 2
    assert all(first > 0 for first in done.first_texts)


def test_an_answer_that_is_cut_short_is_no_run(model_url):
    target = direct_target(model_url)
    never = Target(target.name, target.url, target.body, b"a word that never comes")
    with pytest.raises(BrokenAnswerError, match="fake model server answered 200"):
        asyncio.run(load(never, clients=1, seconds=0))


@pytest.mark.django_db(transaction=True)
def test_roster_is_asked_as_a_program_asks_it(site, model):
    scripted_agent(model, "Plain")
    model.says(TOKENS)
    key = world.api_key(world.linus())
    body = b'{"agent": "plain", "input": "plain"}'
    headers = {"authorization": f"Bearer {key}"}
    said = everything(Target("Roster", f"{site}/api/v1/runs", body, b"RUN_FINISHED", headers))
    assert "TEXT_MESSAGE_CONTENT" in said
    settle()


def test_the_table_has_a_ratio_where_both_were_measured():
    lines = table([Figure("CPU per run", "ms", 9.0, 18.0), Figure("SQL statements per run", "", 13)]).splitlines()
    assert lines[1].split() == ["CPU", "per", "run,", "ms", "9", "18", "0.5"]
    assert lines[2].split() == ["SQL", "statements", "per", "run", "13"]
