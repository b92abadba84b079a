"""Views that read in two steps while the world moves in between: never an error 500, never a half-told story."""

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.contrib import admin
from django.db import connection
from django.http import Http404
from django.test import RequestFactory

from agents_admin.models import Agent
from runtime import execute, trace
from runtime.admin import RunAdmin
from runtime.errors import RunError
from runtime.execute import Request, Started
from runtime.models import Run, Thread, ToolCall
from runtime.review import review
from tests import waiting, world
from tests.loop import ask, running
from tests.scripted import ScriptedModel
from tests.web.api_client import settle
from tests.web.chat_client import a_thread, desk
from tests.web.widget_client import run_in, thread_in
from web.api import threads as api_threads
from web.api.schema import NewThread, ThreadChange
from web.chat import history, threads
from web.chat.places import PLACES

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
    model.says("slow " * 20, gate=1)
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


def test_a_conversation_that_is_deleted_while_it_is_renamed_is_not_there() -> None:
    linus = world.linus()
    thread = a_thread(linus, "Paper")
    with meanwhile("UPDATE", Thread.objects.all().delete):
        assert threads._renamed(world.actor_of(linus), thread.pk, "Ink") is None


def test_a_thread_that_is_deleted_while_its_title_is_changed_is_not_there(monkeypatch):
    request = RequestFactory().patch("/")
    request.auth = world.actor_of(world.linus())
    thread = a_thread(world.linus(), "Paper")
    thread_of = api_threads.rows.thread_of

    async def found_and_deleted(*given):
        found = await thread_of(*given)
        await Thread.objects.all().adelete()
        return found

    monkeypatch.setattr(api_threads.rows, "thread_of", found_and_deleted)

    told = running(lambda: api_threads.change_thread(request, thread_id=thread.pk, payload=ThreadChange(title="Ink")))
    assert told.title == "Ink"  # as it was, and no error


def test_an_agent_that_is_deleted_while_a_thread_is_made_is_not_there(monkeypatch):
    world.house()
    request = RequestFactory().post("/")
    request.auth = world.actor_of(world.linus())
    agents_for = api_threads.agents_for

    async def listed_and_deleted(*given):
        found = await agents_for(*given)
        await Agent.objects.filter(slug="concierge").adelete()
        return found

    monkeypatch.setattr(api_threads, "agents_for", listed_and_deleted)
    with pytest.raises(RunError) as refusal:
        running(lambda: api_threads.make_thread(request, payload=NewThread(agent="concierge")))
    assert refusal.value.code == "not_found"


def drop_logs() -> None:
    """As retention does it after a long time."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runtime_run SET log_state = 'gone' WHERE depth = 0")
        cursor.execute("DELETE FROM runtime_event")


def asked() -> Run:
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", "How many days of annual leave do I get?")
    return Run.objects.get(depth=0)


def test_a_log_that_is_dropped_while_the_page_is_read_is_told_again() -> None:
    run = asked()
    with meanwhile("runtime_run", drop_logs):
        page = history.conversation(world.actor_of(world.linus()), run.thread_id, PLACES)
    assert page is not None
    assert "28 days" in page.turns[0].html


@pytest.mark.parametrize("reads", ['FROM "runtime_event"', 'FROM "runtime_run"'])
def test_a_conversation_that_is_deleted_while_the_page_is_read_is_no_error(reads: str) -> None:
    run = asked()
    with meanwhile(reads, Thread.objects.all().delete):
        assert history.conversation(world.actor_of(world.linus()), run.thread_id, PLACES) is not None


def test_a_run_whose_log_is_gone_may_go_itself_while_the_page_is_read() -> None:
    run = asked()
    drop_logs()
    with meanwhile('FROM "runtime_event"', Thread.objects.all().delete):
        assert history.conversation(world.actor_of(world.linus()), run.thread_id, PLACES) is not None


def test_the_admins_page_of_a_run_tells_it_once_when_its_log_is_dropped_meanwhile():
    run = asked()
    for reads in ('FROM "runtime_run"', 'FROM "runtime_event"'):
        with meanwhile(reads, drop_logs):
            steps = trace.tree(Run.objects.get(pk=run.pk)).steps
        assert len([step for step in steps if "28 days" in step.said]) == 1, reads


def test_the_admins_page_of_a_run_that_is_deleted_meanwhile_is_not_there() -> None:
    run = asked()
    stale = Run.objects.get(pk=run.pk)
    Thread.objects.all().delete()
    page = RunAdmin(Run, admin.site)
    with pytest.raises(Http404):
        page.page_context(RequestFactory().get("/"), stale)


def test_two_steps_that_are_decided_at_once_are_both_decided(model: ScriptedModel) -> None:
    run = waiting.waiting(waiting.clerk(model), calls=2)
    actor, calls = world.actor_of(world.linus()), ToolCall.objects.values_list("pk", flat=True)

    async def work(calls: list[UUID]) -> None:
        await asyncio.gather(*(review(actor, run.pk, call, "happened") for call in calls))
        assert await execute.wait(run.pk, 10)

    running(partial(work, list(calls)))
    assert Run.objects.get().output == "Ordered."


def test_another_tab_of_a_visitor_gets_the_turns_that_it_lacks(visitor, stranger):
    first = visitor.say("What is 2 + 2?")
    there = f"conversation/?after={run_in(first)}"
    settle()
    assert visitor.frame("GET", there).status_code == 204
    visitor.answer_to("And 3 + 3?", thread=thread_in(first))
    newer = visitor.frame("GET", there).text
    assert ("3 + 3" in newer, "2 + 2" in newer, 'class="button send"' in newer) == (True, False, True)
    assert stranger.frame("GET", there).status_code == 204
    assert visitor.frame("GET", "conversation/?after=x").status_code == 404
