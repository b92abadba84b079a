"""R7, R3: streams that are cut, and streams whose process dies. Readers get exactly what they miss."""

import asyncio
import random
import time
from uuid import UUID

import httpx
import pytest

from runtime.execute import HEARTBEAT_SECONDS
from runtime.models import Run
from tests.agui_checker import complaints
from tests.chaos.figures import figure
from tests.chaos.program import Frame, follow, http, post, read
from tests.chaos.town import Town
from tests.chaos.watching import nothing_open, until
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

DICE = random.Random(4713)
TERMINAL_WITHIN = HEARTBEAT_SECONDS
"""Sooner than a reader looks again who was told nothing."""
OWNED_WITHIN = 30.0
"""R3. A lease of 20 s, looked at every 5."""


@pytest.mark.parametrize(
    "streams", [pytest.param(40, id="short"), pytest.param(500, id="long", marks=pytest.mark.long)]
)
def test_cut_streams_miss_nothing_and_repeat_nothing(town: Town, model: ScriptedModel, key: str, streams):
    """Two processes behind one address: whoever comes back meets either of them."""
    scripted_agent(model, "Talker", audience="everyone")
    model.says(["word "] * 20, delay=0.1, times=None)
    url = town.web(workers=2).answers().url
    cuts = 0

    def soon() -> int:
        nonlocal cuts
        cuts += 1
        return DICE.randint(1, 6)

    async def reader(client: httpx.AsyncClient, number: int) -> float:
        run, _ = await post(client, [url], "talker", f"Talk-{number}")
        seen = await follow(client, [url], run, soon)
        whole = [frame async for frame in read(client, url, run, 0)]
        assert seen == whole
        assert complaints([frame.event for frame in seen]) == []
        since = time.monotonic()
        assert [frame async for frame in read(client, url, run, seen[-2].n)] == [seen[-1]]
        return time.monotonic() - since

    async def all_of_them() -> list[float]:
        places = asyncio.Semaphore(40)

        async def one(number: int) -> float:
            async with places:
                return await reader(client, number)

        async with http(key) as client:
            return await asyncio.gather(*(one(number) for number in range(streams)))

    waits = sorted(asyncio.run(all_of_them()))
    p95 = waits[len(waits) * 95 // 100]
    figure("R7", f"{streams} streams, {cuts} connections: 0 missing, 0 twice; terminal event p95 {p95:.2f} s")
    assert p95 < TERMINAL_WITHIN


@pytest.mark.parametrize(
    "streams", [pytest.param(12, id="short"), pytest.param(100, id="long", marks=pytest.mark.long)]
)
def test_streams_go_on_when_the_process_dies(town: Town, model: ScriptedModel, key: str, streams):
    """The readers come back to a process that lives; what they saw before and after is one conformant stream."""
    scripted_agent(model, "Talker", audience="everyone")
    model.says(["word "] * 50, delay=0.1, times=streams).says(["again "] * 10, delay=0.02, times=None)
    dying, living = town.web(), town.web()
    urls = [dying.answers().url, living.answers().url]
    owned: list[float] = []

    async def all_of_them() -> list[list[Frame]]:
        async with http(key) as client:
            taken = await asyncio.gather(*(post(client, urls[:1], "talker", f"Talk-{n}") for n in range(streams)))
            runs = [run for run, _ in taken]
            readers = [asyncio.create_task(follow(client, urls, run, lambda: 10**9)) for run in runs]
            await asyncio.sleep(DICE.uniform(1, 2))
            await asyncio.to_thread(dying.kill)
            since = time.monotonic()
            owner = await asyncio.to_thread(owner_of, runs[0])
            await asyncio.to_thread(until, lambda: all_owned(owner), OWNED_WITHIN, "runs are owned by nobody")
            owned.append(time.monotonic() - since)
            return await asyncio.gather(*readers)

    seen = asyncio.run(all_of_them())
    until(nothing_open, 30, "runs are stuck")

    assert set(Run.objects.values_list("status", "attempts")) == {("completed", 2)}
    for frames in seen:
        numbers = [frame.n for frame in frames]
        assert numbers == sorted(set(numbers))
        assert complaints([frame.event for frame in frames]) == []
    figure("R3", f"{streams} runs of a killed process were owned again within {owned[0]:.1f} s")
    figure("R7", f"{streams} streams across a kill -9: 0 missing, 0 twice")


def owner_of(run: str) -> UUID | None:
    return Run.objects.get(pk=run).owner_process


def all_owned(dead: UUID | None) -> bool:
    """By a process that lives, or over."""
    return not Run.objects.filter(depth=0, owner_process=dead, finished_at=None).exists()
