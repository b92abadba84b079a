"""R4: the process dies at each named point, between every two commits. What follows is asserted for each."""

import asyncio
import signal
from contextlib import suppress
from functools import partial

import httpx

from runtime import crash, store
from runtime.models import Message, Run, ToolCall
from runtime.takeover import MAX_ATTEMPTS
from tests.chaos.effects import Effects
from tests.chaos.figures import figure
from tests.chaos.program import http, post
from tests.chaos.town import START_SECONDS, Town, Web
from tests.chaos.watching import give_up_leases, over, until
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

NOT_YET = ("run-stored", "events-unwritten", "events-written")
ACTED = {"acts-committed": 0, "acts-done": 1}
"""How often the call had arrived when its process died."""
STOPPED = "stop-stored"
CLAIMED = "run-claimed"


def test_whatever_a_process_was_about_to_commit_when_it_died(
    town: Town, clerk, model: ScriptedModel, effects: Effects, key: str
):
    assert {*NOT_YET, *ACTED, STOPPED, CLAIMED} == set(crash.POINTS)
    slow_talker(model)

    die_at_their_points(town, key)
    give_up_leases()
    assert town.web(CRASH_AT=CLAIMED).ends(START_SECONDS) == -signal.SIGKILL
    give_up_leases()
    living = town.web().answers()

    runs = {run.input: run for run in Run.objects.filter(depth=0)}
    assert set(runs) == {*NOT_YET, *ACTED, STOPPED}
    for point, run in runs.items():
        until(partial(over, run), 60, f"the run of {point} is stuck")
        assert run.attempts <= MAX_ATTEMPTS
        assert asked_again(living, key, run) == str(run.pk)
    assert Message.objects.filter(role="user").count() == len(runs)

    assert {runs[point].status for point in NOT_YET} == {"completed"}
    assert {runs[point].status for point in ACTED} == {"needs_review"}
    assert runs[STOPPED].status == "cancelled"
    for point, happened in {STOPPED: 0, **dict.fromkeys(NOT_YET, 1), **ACTED}.items():
        calls = ToolCall.objects.filter(run=runs[point])
        assert sum(effects.calls[str(call.pk)] for call in calls) == happened, point
        assert {call.state for call in calls} <= ({"unknown"} if point in ACTED else {"done"})
    for run in runs.values():
        if run.status != "needs_review":
            check_order([logged.event for logged in running(partial(store.load_log, run.pk))])
    figure("R4", f"{len(crash.POINTS)} crash points: as asserted for each")


def slow_talker(model: ScriptedModel) -> None:
    """Talks until it is stopped."""
    talks = ScriptedModel(model.server, f"{model.key}-slow", {})
    scripted_agent(talks, "Talker", audience="everyone")
    talks.says(["and so on "] * 600, delay=0.1, times=None)


def die_at_their_points(town: Town, key: str) -> None:
    """All of them start first, so that none takes over what another one left."""
    points = [*NOT_YET, *ACTED, STOPPED]
    webs = [town.web(CRASH_AT=point) for point in points]
    for web in webs:
        web.answers()
    for point, web in zip(points, webs, strict=True):
        with suppress(httpx.TransportError):  # it may die before it answers
            call(web, key, "/runs", {"agent": "talker" if point == STOPPED else "clerk", "input": point}, point)
        if point == STOPPED:
            with suppress(httpx.TransportError):
                call(web, key, f"/runs/{Run.objects.get(input=point).pk}/cancel")
    for point, web in zip(points, webs, strict=True):
        assert web.ends(30) == -signal.SIGKILL, point


def call(web: Web, key: str, path: str, body: object = None, repeat: str = "") -> None:
    headers = {"Authorization": f"Bearer {key}"} | ({"Idempotency-Key": repeat} if repeat else {})
    httpx.post(f"{web.url}/api/v1{path}", json=body, headers=headers, trust_env=False, timeout=20)


def asked_again(web: Web, key: str, run: Run) -> str:
    """What the program that was not answered gets for the same Idempotency-Key."""

    async def again() -> str:
        async with http(key) as client:
            return (await post(client, [web.url], run.agent_slug, run.input))[0]

    return asyncio.run(again())
