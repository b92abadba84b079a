"""Runs through the whole core, on the real database; the offline provider or the fake model server answers."""

import asyncio
from uuid import uuid4

import pytest

from runtime import events, execute, store
from runtime.errors import RunError
from runtime.execute import Request
from runtime.models import Event, Message, Run, Thread, ToolCall
from runtime.runner import runner
from tests import world
from tests.loop import ask, running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


def refused(actor, request: Request) -> RunError:
    with pytest.raises(RunError) as refusal:
        running(lambda: execute.start(actor, request))
    return refusal.value


def scripted_agent(model: ScriptedModel, name: str = "Poet"):
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    return world.agent(name, model=world.model("scripted", provider=served), audience="everyone")


def test_concierge_is_asked_for_leave_and_the_librarian_finds_it_two_levels_down():
    house = world.house()

    log = ask(world.actor_of(house.linus), "concierge", "How many days of annual leave do I get?")

    labels = [logged.event.of.agent for logged in log if isinstance(logged.event, events.RunStarted)]
    assert labels == ["Concierge", "HR desk", "Librarian"]
    run = Run.objects.get(depth=0)
    assert run.status == "completed"
    assert "28" in run.output
    assert "Leave" in run.output
    assert Message.objects.get(role="assistant").text == run.output
    assert Thread.objects.get().user == house.linus
    assert [call.state for call in ToolCall.objects.all()] == ["done"] * 3
    assert [child.parent.agent_slug for child in Run.objects.filter(depth__gt=0).order_by("depth")] == [
        "concierge",
        "hr-desk",
    ]


def test_the_log_is_numbered_without_gaps_and_reads_the_same_from_the_table():
    house = world.house()

    log = ask(world.actor_of(house.linus), "concierge", "What is 1,249 * 0.21?")

    assert [logged.n for logged in log] == list(range(1, len(log) + 1))
    check_order([logged.event for logged in log])
    assert "262.29" in Run.objects.get(depth=0).output
    assert running(lambda: store.load_log(log[0].event.of.root)) == log


def test_a_reader_catches_up_by_number(model: ScriptedModel):
    agent = scripted_agent(model)
    model.says(["word "] * 20, delay=0.02)
    log = ask(world.actor_of(world.linus()), agent.slug, "Write.")

    async def rest():
        return [logged async for batch in execute.follow(log[0].event.of.root, 4) for logged in batch]

    assert running(rest) == log[4:]


def test_a_run_goes_on_when_nobody_watches(model: ScriptedModel):
    agent = scripted_agent(model)
    model.says(["word "] * 10, delay=0.02)

    async def work():
        started = await execute.start(world_actor, Request(agent.slug, "Write."))
        async for _ in execute.follow(started.run):
            break
        assert await execute.wait(started.run, 10)

    world_actor = world.actor_of(world.linus())
    running(work)

    assert Run.objects.get().output == "word " * 10


def test_the_conversation_is_remembered_as_far_as_the_agent_says(model: ScriptedModel):
    agent = scripted_agent(model)
    type(agent).objects.update(history_messages=2)
    actor = world.actor_of(world.linus())
    model.says("One.").says("Two.").says("Three.")
    ask(actor, agent.slug, "First?")
    thread = Thread.objects.get().pk
    ask(actor, agent.slug, "Second?", thread=thread)

    ask(actor, agent.slug, "Third?", thread=thread)

    said = [message["content"] for message in model.requests[-1].messages]
    assert said == ["Second?", "Two.", "Third?"]


def test_somebody_elses_thread_is_not_there():
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", "Hello")
    thread = Thread.objects.get().pk

    assert refused(world.actor_of(house.maya), Request("concierge", "Hi", thread)).code == "not_found"
    assert refused(world.actor_of(house.ada), Request("concierge", "Hi", thread)).code == "not_found"
    assert refused(world.actor_of(house.linus), Request("concierge", "Hi", uuid4())).code == "not_found"


def test_a_thread_stays_with_its_agent():
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", "Hello")

    refusal = refused(world.actor_of(house.linus), Request("analyst", "Hi", Thread.objects.get().pk))

    assert (refusal.code, refusal.field) == ("invalid", "thread")


@pytest.mark.parametrize("text", ["", "   \n\t", "x" * 100_001])
def test_messages_that_say_nothing_or_too_much_are_refused_in_words(text: str):
    house = world.house()

    refusal = refused(world.actor_of(house.linus), Request("concierge", text))

    assert (refusal.code, refusal.field) == ("invalid", "input")
    assert Run.objects.count() == 0


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "مرحبا 👋🏽 <script>{{x}}</script>"])
def test_odd_text_is_stored_cleaned_and_answered(text: str):
    house = world.house()

    ask(world.actor_of(house.linus), "concierge", text)

    said = Message.objects.get(role="user").text
    assert said == text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")


def test_a_busy_thread_takes_one_message_at_a_time_also_at_once(model: ScriptedModel):
    agent = scripted_agent(model)
    actor = world.actor_of(world.linus())
    model.says("Hello.")
    ask(actor, agent.slug, "Hello")
    thread = Thread.objects.get().pk
    model.says(["word "] * 20, gate=1, times=None)

    async def work():
        outcomes = await asyncio.gather(
            *(execute.start(actor, Request(agent.slug, "More", thread)) for _ in range(5)), return_exceptions=True
        )
        model.goes_on()
        return outcomes

    outcomes = running(work)

    assert sum(isinstance(one, execute.Started) for one in outcomes) == 1
    assert {one.code for one in outcomes if isinstance(one, RunError)} == {"run_in_progress"}
    assert Message.objects.filter(role="user").count() == 2


def test_the_same_idempotency_key_gives_the_same_run_also_at_once():
    house = world.house()
    actor = world.actor_of(house.linus)
    request = Request("concierge", "Hello", idempotency_key="k1", idempotency_hash="h1")

    async def work():
        return await asyncio.gather(*(execute.start(actor, request) for _ in range(5)))

    started = running(work)

    assert len({one.run for one in started}) == 1
    assert [one.created for one in started].count(True) == 1
    other = Request("concierge", "Else", idempotency_key="k1", idempotency_hash="h2")
    assert refused(actor, other).code == "idempotency_conflict"


def test_stop_ends_a_run_and_keeps_what_was_said(model: ScriptedModel):
    agent = scripted_agent(model)
    actor = world.actor_of(world.linus())
    model.says(["word "] * 200, delay=0.02)

    async def work():
        started = await execute.start(actor, Request(agent.slug, "Write."))
        async for batch in execute.follow(started.run):
            if any(isinstance(logged.event, events.MessageText) for logged in batch):
                await execute.cancel(actor, started.run)
        await execute.cancel(actor, started.run)
        return started.run

    run = Run.objects.get(pk=running(work))

    assert run.status == "cancelled"
    assert run.output.startswith("word")
    assert not Message.objects.get(role="assistant").complete


def test_nobody_else_can_stop_a_run(model: ScriptedModel):
    agent = scripted_agent(model)
    model.says(["word "] * 5, delay=0.02)

    async def work():
        started = await execute.start(world.actor_of(linus), Request(agent.slug, "Write."))
        for stranger in (maya, ada):
            with pytest.raises(RunError) as refusal:
                await execute.cancel(world.actor_of(stranger), started.run)
            assert refusal.value.code == "not_found"
        await execute.wait(started.run, 10)

    linus, maya, ada = world.linus(), world.maya(), world.ada()
    running(work)

    assert Run.objects.get().status == "completed"


def test_an_omission_is_on_the_log_for_administrators_and_on_the_row():
    house = world.house()
    type(house.hr_desk).objects.filter(slug="hr-desk").update(audience="chosen")

    log = ask(world.actor_of(house.linus), "concierge", "How many days of annual leave do I get?")

    notices = [logged.event for logged in log if isinstance(logged.event, events.Notice)]
    assert [notice.audience for notice in notices] == ["administrators"]
    assert "HR desk" in notices[0].text
    assert Run.objects.get(depth=0).omitted[0][:2] == ["Concierge", "the delegate HR desk"]
    assert "HR desk" not in Run.objects.get(depth=0).output


def test_tokens_are_counted_on_the_run_that_spent_them(model: ScriptedModel):
    agent = scripted_agent(model)
    model.says("Hello there.", usage={"prompt_tokens": 12, "completion_tokens": 3})

    ask(world.actor_of(world.linus()), agent.slug, "Hello")

    run = Run.objects.get()
    assert (run.input_tokens, run.output_tokens) == (12, 3)


def test_deleting_an_agent_leaves_its_runs_with_their_labels():
    house = world.house()
    ask(world.actor_of(house.linus), "concierge", "What is 2 + 2?")

    house.concierge.delete()

    run = Run.objects.get(depth=0)
    assert (run.agent, run.agent_slug, run.agent_label) == (None, "concierge", "Concierge")
    assert Event.objects.filter(root=run).exists()


@pytest.mark.parametrize("turns", range(4))
def test_a_run_that_is_stopped_twice_ends_once_and_its_model_is_silent(model: ScriptedModel, turns: int):
    """By the process that was asked, and by the word that reaches it from the database."""
    house = world.house()
    boss, helper = (scripted_agent(model, name) for name in ("Boss", "Helper"))
    world.delegate(boss, helper)
    model.when(tools=True).calls("ask_helper", {"task": "Talk."})
    model.when(tools=False).says(["and so on "] * 100, delay=0.02)

    async def work():
        started = await execute.start(world.actor_of(house.linus), Request(boss.slug, "Talk."))
        async for batch in execute.follow(started.run):
            if any(isinstance(logged.event, events.MessageText) for logged in batch):
                break
        runner().cancel(started.run)
        for _ in range(turns):
            await asyncio.sleep(0)
        runner().cancel(started.run)
        log = [logged.event async for batch in execute.follow(started.run, seconds=5) for logged in batch]
        await asyncio.sleep(0.2)  # the server hears of it through its socket
        check_order(log)
        assert model.open_streams == 0

    running(work)
    assert set(Run.objects.values_list("status", flat=True)) == {"cancelled"}


def test_a_caller_who_leaves_just_when_the_message_is_stored_is_answered_all_the_same(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    agent, actor, fetch = scripted_agent(model), world.actor_of(world.linus()), store.fetch
    model.says("Hello.")
    stored = asyncio.Event()

    async def slow(sql, parameters=()):
        rows = await fetch(sql, parameters)
        if sql == execute._BEGIN:
            stored.set()
            await asyncio.sleep(0.05)
        return rows

    monkeypatch.setattr(store, "fetch", slow)

    async def work():
        asking = asyncio.create_task(execute.start(actor, Request(agent.slug, "Hello?")))
        await stored.wait()
        asking.cancel()
        await asyncio.wait([asking])
        run = (await fetch("SELECT id FROM runtime_run"))[0]["id"]
        assert await execute.wait(run, 5)

    running(work)

    assert Run.objects.get().output == "Hello."
