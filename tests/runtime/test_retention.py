"""What becomes of finished runs with time, on real rows."""

import asyncio
import json
from uuid import UUID

import pytest
from django.utils.module_loading import import_string

from runtime import events, execute, retention, retold, store, tasks
from runtime.events import Logged
from runtime.models import Event, Message, Run, Thread, ToolCall
from tests import world
from tests.agui_checker import complaints
from tests.loop import ask, running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel
from web.api.agui import AguiRenderer
from web.sse import RunHead

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "How many days of annual leave do I get?"


@pytest.fixture(autouse=True)
def keeps(settings):
    settings.EVENTS_COLLAPSE_HOURS = settings.EVENTS_KEEP_DAYS = settings.RUNS_KEEP_DAYS = 0
    return settings


def told(model: ScriptedModel) -> list[Logged]:
    """The log of a run that thinks, speaks in many pieces and asks a delegate who does, too."""
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    boss, helper = (world.agent(name, model=world.model(name.lower(), provider=served)) for name in ("Boss", "Helper"))
    world.delegate(boss, helper)
    model.for_model("boss").calls("ask_helper", {"task": "Count."})
    model.for_model("boss").says([f"word{n} " for n in range(8)], delay=0.06, reasoning="Let me think.")
    model.for_model("helper").says(["One ", "two ", "three."], delay=0.06)
    return ask(world.actor_of(world.linus()), "boss", "Count.")


def age(hours: float) -> None:
    Run.objects.update(finished_at=store_time(hours))


def store_time(hours: float):
    return running(lambda: store.fetch("SELECT now() - %s * interval '1 hour' AS t", (hours,)))[0]["t"]


def texts(log: list[Logged], depth: int = 0) -> list[str]:
    return [one.event.text for one in log if isinstance(one.event, events.MessageText) and one.event.of.depth == depth]


def public(log: list[Logged], after: int = 0) -> list[dict]:
    root = log[0].event.of.root
    renderer = AguiRenderer(RunHead(root, UUID(int=1), after))
    return [json.loads(frame) for one in log if (frame := renderer.frames(one)) is not None and one.n > after]


def test_the_pieces_of_texts_become_one_piece_each_at_the_place_of_the_last(model: ScriptedModel, keeps):
    log = told(model)
    keeps.EVENTS_COLLAPSE_HOURS = 24
    age(hours=23)
    running(retention.tidy)
    root = log[0].event.of.root
    assert running(lambda: store.load_log(root)) == log

    age(hours=25)
    running(retention.tidy)

    after = running(lambda: store.load_log(root))
    whole = "".join(f"word{n} " for n in range(8))
    assert len(texts(log)) > 3
    assert (texts(after), texts(after, depth=1)) == ([whole], ["One two three."])
    kept = [one for one in log if not isinstance(one.event, events.MessageText | events.ReasoningText)]
    assert [one for one in after if one in kept] == kept
    last = [one.n for one in log if isinstance(one.event, events.MessageText) and not one.event.of.depth][-1]
    assert [one.n for one in after if isinstance(one.event, events.MessageText) and not one.event.of.depth] == [last]
    check_order([one.event for one in after])
    running(retention.tidy)
    assert running(lambda: store.load_log(root)) == after


def test_a_late_reader_gets_the_whole_text_and_one_who_had_a_part_of_it_a_snapshot(model: ScriptedModel, keeps):
    log = told(model)
    before = public(log)
    keeps.EVENTS_COLLAPSE_HOURS = 24
    age(hours=25)
    running(retention.tidy)
    after = running(lambda: retold.load_log(log[0].event.of.root))

    assert complaints(public(after)) == []
    text = "".join(frame["delta"] for frame in before if frame["type"] == "TEXT_MESSAGE_CONTENT")
    assert [frame["delta"] for frame in public(after) if frame["type"] == "TEXT_MESSAGE_CONTENT"] == [text]

    pieces = [one.n for one in log if isinstance(one.event, events.MessageText) and not one.event.of.depth]
    for seen in pieces[:-1]:
        snapshot, *rest = public(after, seen)
        assert snapshot["type"] == "MESSAGES_SNAPSHOT"
        roles = [message["role"] for message in snapshot["messages"]]
        assert roles == ["assistant", "tool", "reasoning", "assistant"]
        assert snapshot["messages"][-1]["content"] == text
        assert [frame["type"] for frame in rest] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert [frame["type"] for frame in public(after, pieces[-1])] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    started = pieces[0] - 1
    assert next(frame["type"] for frame in public(after, started)) == "TEXT_MESSAGE_CONTENT"


def test_a_log_that_is_gone_is_told_again_from_the_rows(model: ScriptedModel, keeps):
    log = told(model)
    keeps.EVENTS_KEEP_DAYS = 90
    age(hours=89 * 24)
    running(retention.tidy)
    assert Event.objects.exists()

    age(hours=91 * 24)
    running(retention.tidy)

    assert not Event.objects.exists()
    root = log[0].event.of.root
    again = running(lambda: retold.load_log(root))
    check_order([one.event for one in again])
    assert complaints(public(again)) == []

    def essence(frames: list[dict]) -> list[tuple]:
        kinds = {"TEXT_MESSAGE_START", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "RUN_FINISHED"}
        kinds |= {"SUBAGENT_STARTED", "SUBAGENT_FINISHED", "RUN_STARTED"}
        return [tuple(map(str, frame.values())) for frame in frames if frame["type"] in kinds]

    assert essence(public(again)) == essence(public(log))
    assert "".join(texts(again)) == "".join(texts(log))


def test_who_follows_a_run_whose_log_is_gone_comes_to_its_end(model: ScriptedModel, keeps):
    root = told(model)[0].event.of.root
    keeps.EVENTS_KEEP_DAYS = 1
    age(hours=48)
    running(retention.tidy)

    async def followed() -> list[Logged]:
        async with asyncio.timeout(5):
            return [one for batch in [batch async for batch in execute.until_pause(root)] for one in batch]

    assert events.ends(running(followed)[-1].event)


def test_old_runs_go_with_everything_of_theirs_and_young_ones_stay(keeps):
    house = world.house()
    linus = world.actor_of(house.linus)
    ask(linus, "concierge", QUESTION)
    old = Thread.objects.get()
    ask(linus, "concierge", QUESTION)
    Run.objects.filter(thread=old).update(finished_at=store_time(hours=31 * 24))
    keeps.RUNS_KEEP_DAYS = 30

    running(retention.tidy)

    young = Thread.objects.get()
    assert young != old
    assert {run.thread for run in Run.objects.all()} == {young}
    assert Message.objects.count() == 2
    assert set(ToolCall.objects.values_list("run__thread", flat=True)) == {young.pk}
    assert set(Event.objects.values_list("root__thread", flat=True)) == {young.pk}


def test_a_conversation_that_goes_on_loses_its_old_runs_only(keeps):
    house = world.house()
    linus = world.actor_of(house.linus)
    ask(linus, "concierge", QUESTION)
    thread = Thread.objects.get()
    Run.objects.update(finished_at=store_time(hours=31 * 24))
    ask(linus, "concierge", "And how do I book a train?", thread=thread.pk)
    keeps.RUNS_KEEP_DAYS = 30

    running(retention.tidy)

    assert Run.objects.filter(depth=0).get().thread == thread


def test_runs_that_have_not_ended_are_never_old(keeps):
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", QUESTION)
    Run.objects.update(status="needs_review", finished_at=None, created_at=store_time(hours=9999))
    keeps.RUNS_KEEP_DAYS = keeps.EVENTS_KEEP_DAYS = keeps.EVENTS_COLLAPSE_HOURS = 1
    rows = Run.objects.count(), Event.objects.count()

    running(retention.tidy)

    assert (Run.objects.count(), Event.objects.count()) == rows


def test_many_old_runs_go_in_batches(keeps, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    house = world.house()
    for _ in range(5):
        ask(world.actor_of(house.linus), "analyst", "What is 2 + 2?")
    age(hours=48)
    keeps.EVENTS_KEEP_DAYS = 1

    running(retention.tidy)

    assert not Event.objects.exists()
    assert set(Run.objects.filter(depth=0).values_list("log_state", flat=True)) == {"gone"}


def test_the_worker_tidies_up_every_minute(keeps, monkeypatch):
    monkeypatch.setattr(tasks, "WATCH_SECONDS", 0.1)
    house = world.house()
    ask(world.actor_of(house.linus), "analyst", "What is 2 + 2?")
    age(hours=48)
    keeps.EVENTS_KEEP_DAYS = 1

    import_string("runtime.tasks.housekeeping")()

    assert not Event.objects.exists()


def test_what_is_written_of_a_run_while_its_conversation_is_deleted_goes_with_it():
    """Django deletes what it has seen; the rest would keep the conversation, with an error."""
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", QUESTION)

    running(lambda: store.fetch("DELETE FROM runtime_thread"))

    assert not any(rows.objects.exists() for rows in (Thread, Run, Message, ToolCall, Event))
