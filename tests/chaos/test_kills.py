"""R2, R3: web processes and the worker are killed while runs act. Nothing acts twice, nothing is stuck."""

import asyncio
import random
from collections import Counter

import pytest
from django.db import connections
from django_q.tasks import async_task

from runtime.models import Run, ToolCall
from runtime.takeover import MAX_ATTEMPTS
from tests.chaos.effects import Effects
from tests.chaos.figures import figure
from tests.chaos.program import http, post
from tests.chaos.town import Process, Town, Web
from tests.chaos.watching import nothing_open, until

DICE = random.Random(4712)
SETTLES_WITHIN = 90
TOLD_TO_STOP = 0.2
"""How many processes are ended as a restart ends them."""


@pytest.mark.parametrize(
    ("kills", "per_kill"),
    [pytest.param(8, 5, id="short"), pytest.param(100, 3, id="long", marks=pytest.mark.long)],
)
def test_nothing_that_acts_happens_twice(town: Town, busy_clerk, effects: Effects, key: str, kills, per_kill):
    webs, worker = [town.web(), town.web()], town.worker()
    asyncio.run(runs_under_fire(webs, worker, key, kills, per_kill))
    since_last = until(nothing_open, SETTLES_WITHIN, "runs are stuck")

    runs = Counter(Run.objects.filter(depth=0).values_list("status", flat=True))
    assert runs.total() == kills * per_kill
    calls = {str(call.pk): call for call in ToolCall.objects.select_related("run")}
    assert set(effects.calls) <= set(calls), "something acted that the ledger does not know"
    assert set(effects.calls.values()) <= {1}, "something acted twice"
    for number, call in calls.items():
        said = (call.state, call.reason, call.content, effects.calls[number])
        never_begun = call.state == "failed" and (
            # The run was given up, or it waits because of the other call.
            call.run.reason == "process_died" or call.run.status == "needs_review"
        )
        if never_begun:
            assert effects.calls[number] == 0, said
            continue
        assert call.state in {"done", "unknown"}, said
        assert call.state == "unknown" or effects.calls[number] == 1, said
    ended = Run.objects.filter(depth=0).exclude(status="needs_review")
    assert not ended.filter(attempts__gt=MAX_ATTEMPTS).exclude(reason="process_died").exists()
    assert set(runs) <= {"completed", "needs_review", "failed"}
    flagged = sum(call.state == "unknown" for call in calls.values())
    figure(
        "R2",
        f"{kills} kills over {kills * per_kill} runs: {sum(effects.calls.values())} effects, 0 twice, "
        f"{flagged} flagged, 0 stuck {since_last:.0f} s after the last kill ({dict(runs)})",
    )


def wake_worker() -> None:
    """Its own schedule wakes it every minute only."""
    async_task("runtime.tasks.housekeeping")
    connections.close_all()


async def runs_under_fire(webs: list[Web], worker: Process, key: str, kills: int, per_kill: int) -> None:
    async with http(key) as client:
        posts: list[asyncio.Task[object]] = []
        for kill in range(kills):
            victim = DICE.choice([*webs, worker])
            for web in webs:
                await asyncio.to_thread(web.answers)
            for number in range(per_kill):
                urls = [web.url for web in DICE.sample(webs, len(webs))]
                posts.append(asyncio.create_task(post(client, urls, "clerk", f"Book-{kill}-{number}")))
            await asyncio.to_thread(wake_worker)
            await asyncio.sleep(DICE.uniform(0.05, 0.6))
            told = DICE.random() < TOLD_TO_STOP
            await asyncio.to_thread(victim.stop if told else victim.kill)
            victim.start()
        await asyncio.gather(*posts)
