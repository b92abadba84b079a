"""Views that read in two steps while the world moves in between: never an error 500, never a half-told story."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from agents_admin.models import Agent
from runtime import execute
from runtime.errors import RunError
from runtime.execute import Request, Started
from runtime.models import Run, Thread
from tests import world
from tests.loop import ask, running
from tests.scripted import ScriptedModel
from tests.web.chat_client import desk

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def meanwhile(reads: str, happens: Callable[[], object]):
    """`happens` once, right after the first statement with `reads` in it."""
    done = False

    def between(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal done
        found = run(sql, params, many, context)
        if reads in sql and not done:
            done = True
            happens()
        return found

    with connection.execute_wrapper(between):
        yield
    assert done


@pytest.mark.parametrize("gone", [Agent, Thread])
def test_what_is_deleted_while_a_message_is_accepted_is_not_there(model, monkeypatch, gone):
    agent, actor = desk(model), world.actor_of(world.linus())
    thread = Thread.objects.create(user_id=actor.user_id, agent=agent, agent_slug="desk", channel="chat")
    conversation = execute.conversation

    async def read_and_deleted(*given):
        turns = await conversation(*given)
        await gone.objects.all().adelete()
        return turns

    monkeypatch.setattr(execute, "conversation", read_and_deleted)
    with pytest.raises(RunError) as refusal:
        running(lambda: execute.start(actor, Request("desk", "Hello", thread.pk)))
    assert refusal.value.code == "not_found"
    assert "was deleted" in refusal.value.message


@pytest.mark.parametrize("step", ["resolve", "conversation"])
def test_a_request_repeated_while_the_first_is_being_stored_gives_the_same_run(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    agent, actor = desk(model), world.actor_of(world.linus())
    model.says("slow " * 20, delay=0.05)
    thread = Thread.objects.create(user_id=actor.user_id, agent=agent, agent_slug="desk", channel="api")
    request = Request("desk", "Hello", thread.pk, idempotency_key="k1", idempotency_hash="h1")
    whole = getattr(execute, step)

    async def work() -> tuple[Started, Started]:
        first: list[Started] = []

        async def overtaken(*given: Any) -> Any:
            monkeypatch.setattr(execute, step, whole)
            found = await whole(*given)
            first.append(await execute.start(actor, request))
            return found

        monkeypatch.setattr(execute, step, overtaken)
        again = await execute.start(actor, request)
        await execute.cancel(actor, again.run)
        await execute.wait(again.run, 5)
        return first[0], again

    first, again = running(work)
    assert (again.run, again.created) == (first.run, False)


def drop_logs() -> None:
    """As retention does it after a long time."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runtime_run SET log_state = 'gone' WHERE depth = 0")
        cursor.execute("DELETE FROM runtime_event")


def asked() -> Run:
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", "How many days of annual leave do I get?")
    return Run.objects.get(depth=0)
