"""What the worker does by itself, every minute."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from config.management.commands.up import schedule_housekeeping
from runtime import execute, runner, tasks
from runtime.models import Run
from runtime.record import NUMBERS_LEFT_FREE
from tests import world
from tests.chaos.watching import until
from tests.dying import die_at, is_text, scripted_agent
from tests.loop import running
from tests.scripted import ScriptedModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


def test_the_schedule_that_a_start_makes_drops_expired_sessions_and_comes_once(monkeypatch):
    monkeypatch.setattr(tasks, "WATCH_SECONDS", 0.0)
    now = timezone.now()
    for key, days in (("old", -1), ("current", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + timedelta(days=days))
    schedule_housekeeping()
    schedule_housekeeping()
    schedule = Schedule.objects.get()
    import_string(schedule.func)()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["current"]


def test_a_run_that_the_worker_goes_on_with_is_stopped_from_another_process_at_once(model: ScriptedModel, monkeypatch):
    agent, linus = scripted_agent(model, "Poet"), world.actor_of(world.linus())
    model.says(["word "] * 400, delay=0.02, times=None)
    died = die_at(agent.slug, is_text())
    monkeypatch.setattr(tasks, "WATCH_SECONDS", 6.0)
    monkeypatch.setattr(runner, "BEAT_SECONDS", 60.0)  # at a beat it would be found without being told

    async def stop() -> None:
        runner.runner().start()
        async for batch in execute.follow(died, seconds=10):
            if any(logged.n > NUMBERS_LEFT_FREE and is_text()(logged.event) for logged in batch):
                break
        await execute.cancel(linus, died)
        assert await execute.wait(died, 4)

    with ThreadPoolExecutor(1) as worker:
        shift = worker.submit(asyncio.run, tasks._work())
        try:
            running(stop)
        finally:
            shift.result()

    assert Run.objects.get().status == "cancelled"


def test_a_worker_that_is_told_to_end_lets_go_of_its_runs(model: ScriptedModel):
    agent = scripted_agent(model, "Poet")
    model.says(["word "] * 400, delay=0.02, times=None)
    die_at(agent.slug, is_text())
    try:
        with ThreadPoolExecutor(1) as worker:
            shift = worker.submit(asyncio.run, tasks._work())
            until(lambda: Run.objects.exclude(owner_process=None).exists(), 10, "nobody went on with it")
            before = Run.objects.get().attempts
            tasks.STOPPING.set()
            assert shift.result(timeout=tasks.WATCH_SECONDS / 2)
    finally:
        tasks.STOPPING.clear()

    run = Run.objects.get()
    assert (run.status, run.attempts, run.owner_process) == ("running", before - 1, None)
