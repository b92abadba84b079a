"""Runs whose process dies, played by dropping everything that no commit holds; tests/chaos kills real ones."""

import asyncio
from collections.abc import Callable
from uuid import UUID

from runtime import events, execute, runner, store, takeover
from runtime.events import Event
from runtime.execute import Request
from runtime.models import Event as EventRow
from runtime.models import Run, ToolCall
from tests import world
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel


def scripted_agent(model: ScriptedModel, name: str, **fields):
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    named = world.model(name.lower(), provider=served)
    return world.agent(name, model=named, audience="everyone", **fields)


def die_at(agent: str, when: Callable[[Event], bool]) -> UUID:
    """Start a run for Linus and let its process die when an event comes up that is `when`, with what was committed."""
    died = _die_at(agent, when)
    _may_be_taken_over(died)
    return died


def _die_at(agent: str, when: Callable[[Event], bool]) -> UUID:
    actor = world.actor_of(world.linus())

    async def work() -> UUID:
        started = await execute.start(actor, Request(agent, "Please help."))
        here = runner.runner()
        log = here.writer.logs[started.run]
        while not any(when(logged.event) for logged in log.events):  # sooner than any reader  # noqa: ASYNC110
            await asyncio.sleep(0)
        # Sudden: what it would have done while its last commit is under way, its successor finds undone.
        for root, dying in here.writer.logs.items():
            dying.frozen = True
            here.drop(root)
        await here.writer.flush()
        for root in list(here.writer.logs):
            here.writer.lose(root)
        await asyncio.sleep(0.05)
        # A process that ends would let go of it, and the served site could have it before a test has seen to its rows.
        await store.fetch("UPDATE runtime_run SET owner_process = NULL, lease_until = now() + interval '1 hour'")
        return started.run

    return running(work)


def _may_be_taken_over(died: UUID) -> None:
    Run.objects.filter(pk=died, depth=0).update(lease_until="2020-01-01T00:00:00Z")


def goes_on(run_id: UUID) -> Run:
    """Another process takes it over and comes to its end."""

    async def work() -> None:
        assert await takeover.take_over(runner.runner()) == 1
        assert await execute.wait(run_id, 10)

    running(work)
    check_order([logged.event for logged in log_of(run_id)])
    return Run.objects.get(pk=run_id)


def log_of(run_id: UUID):
    return running(lambda: store.load_log(run_id))


def is_text(depth: int = 0) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, events.MessageText) and event.of.depth == depth


def acting_agent(model: ScriptedModel):
    agent = scripted_agent(model, "Clerk")
    world.give(agent, world.tool("clock", name="Stamp", side_effect="acts"))
    model.calls("stamp", {}).says("Stamped.")
    return agent


def die_in_an_act(agent, depth: int = 0) -> UUID:
    died = _die_at(agent.slug, lambda event: isinstance(event, events.ToolReady) and event.of.depth == depth)
    # What came after is lost: the ledger says it was begun, and not that it ended.
    ready = EventRow.objects.filter(root=died, kind="ToolReady").order_by("-n")[0].n
    EventRow.objects.filter(root=died, n__gt=ready).delete()
    ToolCall.objects.update(state="started", content="", seconds=None)
    Run.objects.filter(root=died).update(status="running", finished_at=None)
    _may_be_taken_over(died)
    return died
