"""Runs whose process died in the middle of a call that acts, as rows."""

import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.utils import timezone

from agents_admin.models import Agent
from runtime import events, project, runner, takeover
from runtime.events import Event, Logged, Origin
from runtime.models import Run, Thread
from tests import world
from tests.loop import running
from tests.scripted import API_KEY, ScriptedModel

LABEL = "Order paper"


def clerk(model: ScriptedModel, **fields: object) -> Agent:
    """An agent with a tool that acts; it says “Ordered.” once it knows what came of its calls."""
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    made = world.agent("Clerk", model=world.model("clerk", provider=served), audience="everyone", **fields)
    tool = world.tool("calculator", name=LABEL, slug="order_paper", side_effect="acts", audience="everyone")
    world.give(made, tool)
    model.when(after_tool=True).says("Ordered.", times=None)
    return made


def broken_off(agent: Agent, *, calls: int = 1, **owner: object) -> Run:
    """A run in the middle of so many calls; `owner` is Linus unless said otherwise. Its process is still there."""
    owner = owner or {"user": world.linus(), "channel": "chat"}
    shared = {"agent": agent, "agent_slug": agent.slug, "agent_label": agent.name} | owner
    thread = Thread.objects.create(title="Paper", **shared)
    key = uuid4()
    later = timezone.now() + timedelta(minutes=10)
    run = Run.objects.create(
        id=key, root_id=key, thread=thread, status="queued", input="We need paper.", lease_until=later, **shared
    )
    log = [(key, logged) for logged in _log(Origin(key, key, agent.name, agent.slug), calls)]
    _apart(lambda: project.write({key: 0}, log))
    return run


def _apart(work: Callable[[], Awaitable[object]]) -> None:
    """In a thread of its own: beside a browser this one has a loop that runs."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(running, work).result()


def _log(of: Origin, calls: int) -> list[Logged]:
    message = uuid4()
    said: list[Event] = [
        events.RunStarted(of),
        events.MessageStarted(of, message),
        events.MessageText(of, message, "I order it."),
        events.MessageFinished(of, message, "I order it."),
        events.Usage(of, "clerk", 10, 5),
    ]
    for number in range(calls):
        call = uuid4()
        said += [
            events.ToolCalled(of, call, "order_paper", LABEL, "calculator", "acts"),
            events.ToolArguments(of, call, f'{{"expression": "{number} + 500"}}'),
            events.ToolReady(of, call),
        ]
    return [Logged(n, datetime.now(UTC), event) for n, event in enumerate(said, 1)]


def lose(run: Run) -> None:
    """Its process is dead, and another one has found that a person must decide."""
    Run.objects.filter(pk=run.pk).update(lease_until="2020-01-01T00:00:00Z")
    _apart(lambda: takeover.take_over(runner.runner()))
    for _ in range(200):
        if Run.objects.get(pk=run.pk).status == "needs_review":
            return
        time.sleep(0.02)
    raise AssertionError(Run.objects.get(pk=run.pk).status)


def waiting(agent: Agent, calls: int = 1) -> Run:
    run = broken_off(agent, calls=calls)
    lose(run)
    return Run.objects.get(pk=run.pk)
