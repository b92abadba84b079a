"""R8: many live streams on one process, each with two events a second."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests import world
from tests.chaos.figures import figure
from tests.chaos.program import http, post, read
from tests.chaos.town import Town, Web
from tests.conftest import CHECKOUT
from tests.scripted import API_KEY, ScriptedModel

LATE = 1.0
MEGABYTES = 300
MOST_CONNECTIONS = 17
"""Two pools of eight and the one that listens, whatever the number of streams."""
WARM_UP = 2.0
NAME = "load"
"""What the connections of the process call themselves."""


@pytest.fixture
def clock_server():
    """The model server whose words are the time they were sent."""
    command = [sys.executable, "-m", "tests.bench.model"]
    server = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
    server.kill()
    server.wait(10)


@pytest.mark.parametrize(
    ("streams", "words"),
    [pytest.param(60, 30, id="short"), pytest.param(500, 120, id="long", marks=pytest.mark.long)],
)
def test_many_live_streams_are_on_time_in_little_memory(town: Town, clock_server: str, key: str, streams, words):
    script = ScriptedModel(clock_server, "load", {})
    script.answers({"fault": "clock", "words": words, "delay": 0.5}, times=None)
    provider = world.provider("clock", kind="openai", base_url=script.base_url, api_key=API_KEY, timeout_seconds=300)
    world.agent("Talker", model=world.model("clock", provider=provider), audience="everyone")
    town.environ["PGAPPNAME"] = NAME
    web = town.web().answers()

    lateness, connections = asyncio.run(watched(town, web, key, streams))

    assert len(lateness) >= 10 * streams
    p95 = sorted(lateness)[len(lateness) * 95 // 100]
    memory = peak_megabytes(web)
    figure("R8", f"{streams} streams: p95 {p95:.2f} s, {memory:.0f} MB, {connections} database connections")
    assert p95 <= LATE
    assert memory <= MEGABYTES
    assert 0 < connections <= MOST_CONNECTIONS


async def watched(town: Town, web: Web, key: str, streams: int) -> tuple[list[float], int]:
    """How late each word came, once all streams were open; the connections that the process had then."""
    late: list[float] = []
    opening = asyncio.Semaphore(8)
    since = float("inf")

    opened = 0

    async def watch(number: int) -> None:
        nonlocal opened
        async with opening:
            run, _ = await post(client, [web.url], "talker", f"Talk-{number}")
        async for frame in read(client, web.url, run, 0):
            opened += frame.event["type"] == "RUN_STARTED"
            if frame.event["type"] == "TEXT_MESSAGE_CONTENT" and time.monotonic() > since:
                now = time.monotonic()
                late.extend(now - float(word.split("@")[1]) for word in frame.event["delta"].split())

    async with http(key) as client:
        watching = [asyncio.create_task(watch(number)) for number in range(streams)]
        while opened < streams:
            for failed in [task for task in watching if task.done()]:
                failed.result()
            await asyncio.sleep(0.1)
        await asyncio.sleep(WARM_UP)
        since = time.monotonic()
        await asyncio.sleep(1)
        connections = await asyncio.to_thread(connections_of, town)
        await asyncio.gather(*watching)
    return late, connections


def connections_of(town: Town) -> int:
    with psycopg.connect(town.environ["DATABASE_URL"]) as own:
        found = own.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (NAME,)).fetchone()
    return int(found[0]) if found else 0


def peak_megabytes(web: Web) -> float:
    assert web.running is not None
    status = Path(f"/proc/{web.running.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
