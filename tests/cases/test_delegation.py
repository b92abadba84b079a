"""Cases 6 and 8 to 13 of what users of such systems suffered (tests/cases/README.md)."""

import json
import re
from uuid import UUID

import httpx
import pytest

from agents_admin.actor import Actor
from agents_admin.models import Agent, Delegation
from runtime import events, store
from runtime.models import Run, Thread, ToolCall
from runtime.resolve import resolve
from runtime.run import Outcome
from runtime.spec import RuntimeAgent
from tests import world
from tests.loop import ask, running
from tests.plain_run import CALCULATOR, Ran, agent, edge, returns, run_plainly, world_of
from tests.scripted import ScriptedModel
from tests.web.api_client import QUESTION, client, scripted_agent, settle
from tests.web.api_client import ask as ask_api
from tests.web.chat_client import Chat
from tests.web.widget_client import Visitor

SECRET = "The code of the safe is 4711."


def mismatched(messages: list[dict]) -> list[str]:
    """Calls that are not answered exactly once, right after they were made, and answers to nothing."""
    wrong: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                wrong.append(f"{message['tool_call_id']} was not asked for")
            continue
        wrong += [f"{call} was not answered" for call in waiting]
        waiting = [call["id"] for call in message.get("tool_calls") or []]
    return wrong + [f"{call} was not answered" for call in waiting]


def ended(ran: Ran) -> Outcome:
    assert ran.outcome is not None
    return ran.outcome


def test_case_6_a_call_beside_text_is_made_and_both_are_kept(model: ScriptedModel) -> None:
    model.answers(
        {"text": "Let me work that out.", "calls": [{"name": "calculator", "arguments": {"expression": "1+1"}}]}
    )
    model.says("It is two.")

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))))

    assert [event.text for event in ran.log.of_kind(events.MessageFinished)] == ["Let me work that out.", "It is two."]
    assert returns(ran) == [(True, "")]
    assert ended(ran).text == "It is two."
    spoken = model.requests[1].messages[-2]
    assert (spoken["content"], len(spoken["tool_calls"])) == ("Let me work that out.", 1)


def test_case_6_an_answer_that_stays_empty_after_a_call_is_said_in_words(model: ScriptedModel) -> None:
    model.calls("calculator", {"expression": "1+1"}).says("", times=2)

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))))

    assert (ended(ran).status, ended(ran).reason) == ("failed", "empty")
    assert ended(ran).error == "The model gave no answer. Please ask again."
    assert len(model.requests) == 3


@pytest.mark.django_db(transaction=True)
def test_case_8_names_of_any_script_are_safe_unique_and_lead_to_their_agent(model: ScriptedModel) -> None:
    """Slugs that came past the admin included."""
    boss = scripted_agent(model, "Boss")
    for number, slug in enumerate(("日本語の代理人", "العربية", "a b/c{}", "é" * 50, "è" * 50, "x" * 50)):
        helper = scripted_agent(model, f"Helper {number}", slug=f"helper-{number}")
        Agent.objects.filter(pk=helper.pk).update(slug=slug)
        world.delegate(boss, helper)
    actor = world.actor_of(world.linus())
    names = [edge.name for edge in running(lambda: resolve("boss", actor)).root.roster]
    model.for_model("boss").calls_all([(name, {"task": name}) for name in names]).says("Done.")

    log = ask(actor, "boss", "Ask all of them.")

    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == 6
    reached = [event.event for event in log if isinstance(event.event, events.DelegateStarted)]
    assert {started.task: started.child.agent for started in reached} == {
        name: f"Helper {number}" for number, name in enumerate(names)
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", ["task", "summary", "conversation"])
def test_case_9_a_delegate_is_shown_what_the_policy_says_and_no_secret(model: ScriptedModel, policy: str) -> None:
    boss = scripted_agent(model, "Boss", instructions=f"Be kind. {SECRET}")
    helper = scripted_agent(model, "Helper", instructions="Help.")
    world.delegate(boss, helper, context=policy)
    actor = world.actor_of(world.linus())
    model.for_model("boss").says("Good morning.")
    ask(actor, "boss", f"I am Linus. {'x' * 3000} So much for that.")
    model.for_model("boss").calls("ask_helper", {"task": "Count the days."}).says("Seven.")
    model.for_model("helper").says("Seven days.")

    ask(actor, "boss", "How many?", thread=Thread.objects.get().pk)

    (asked,) = [request.messages for request in model.requests if request.model == "helper"]
    assert [message["role"] for message in asked] == ["system", "user"]
    assert asked[0]["content"] == "Help."
    shown = {words: words in asked[1]["content"] for words in ("I am Linus.", "So much for that.", "How many?")}
    known = policy != "task"
    assert shown == {"I am Linus.": policy == "conversation", "So much for that.": known, "How many?": known}
    assert asked[1]["content"].endswith("Count the days.")
    assert SECRET not in json.dumps([request.body for request in model.requests if request.model == "helper"])
    assert [mismatched(request.messages) for request in model.requests] == [[]] * len(model.requests)


@pytest.mark.django_db(transaction=True)
def test_case_11_a_handoff_is_replayed_as_a_pair_also_when_the_tool_is_gone(model: ScriptedModel) -> None:
    boss, helper = scripted_agent(model, "Boss"), scripted_agent(model, "Helper")
    world.delegate(boss, helper)
    world.give(helper, world.tool("calculator"))
    actor = world.actor_of(world.linus())
    model.for_model("boss").calls_all([("ask_helper", {"task": "one"}), ("ask_helper", {"task": "two"})]).says("Both.")
    model.for_model("helper").when(after_tool=False).calls("calculator", {"expression": "1+1"}, times=2)
    model.for_model("helper").when(after_tool=True).says("I have counted.", times=2)
    ask(actor, "boss", "Do both.")
    Delegation.objects.all().delete()
    model.for_model("boss").says("It was two.")

    log = ask(actor, "boss", "And what was it?", thread=Thread.objects.get().pk)

    last = model.requests[-1]
    assert last.tools == []
    assert mismatched(last.messages) == []
    calls = [call["function"] for message in last.messages for call in message.get("tool_calls") or []]
    assert [(call["name"], json.loads(call["arguments"])["task"]) for call in calls] == [
        ("ask_helper", "one"),
        ("ask_helper", "two"),
    ]
    assert "calculator" not in json.dumps([call["name"] for call in calls]), "a delegate's own calls are its own"
    assert all("ask_helper" not in str(m["content"]) for m in last.messages if m["role"] != "tool")
    assert log[-1].event == events.RunFinished(log[-1].event.of, "completed")


@pytest.mark.django_db(transaction=True)
def test_case_11_no_transcript_stands_in_an_answer() -> None:
    house = world.house()
    Delegation.objects.update(context="conversation")
    actor = world.actor_of(house.linus)
    ask(actor, "concierge", QUESTION)
    thread = Thread.objects.get().pk
    ask(actor, "concierge", "And how do I book a train?", thread=thread)
    ask(actor, "concierge", QUESTION, thread=thread)

    for run in Run.objects.filter(depth=0):
        for words in ("The conversation so far", "Person:", "Agent:", "ask_hr", "tool_call", "{", "Sources consulted"):
            assert words not in run.output, run.output


def tree_of(run: Run) -> tuple:
    """A run and what it did, without ids and times."""
    calls = [
        (
            call.name,
            call.label,
            call.arguments,
            call.state,
            call.child_run and tree_of(Run.objects.get(pk=call.child_run)),
        )
        for call in ToolCall.objects.filter(run=run)
    ]
    return run.agent_slug, run.agent_label, run.depth, run.view, run.status, run.reason, run.output, calls


@pytest.mark.django_db(transaction=True)
def test_case_12_every_channel_resolves_to_the_same_agent() -> None:
    house = world.house()
    shop = world.widget(house.concierge)
    linus = house.linus.pk
    actors = [Actor(channel, user_id=linus) for channel in ("chat", "api", "terminal", "admin")]
    actors.append(Actor("widget", widget_id=shop.pk, visitor="somebody"))

    async def all_of_them() -> list[RuntimeAgent]:
        return [await resolve("concierge", actor) for actor in actors]

    resolved = running(all_of_them)

    assert all(one == resolved[0] for one in resolved)
    assert {spec.label for spec in resolved[0].agents.values()} == {"Concierge", "HR desk", "Librarian", "Analyst"}


@pytest.mark.django_db(transaction=True)
def test_case_12_the_same_question_gives_the_same_tree_of_runs_everywhere(site: str) -> None:
    """By talk's way in, REST stream, REST wait, chat and widget."""
    house = world.house()
    api = client(site, world.api_key(house.linus))
    visitor = Visitor(site, world.widget(house.concierge).pk).arrive()
    ask(world.actor_of(house.linus, channel="terminal"), "concierge", QUESTION)
    ask_api(api)
    stream = {"Accept": "text/event-stream"}
    api.post("/runs", json={"agent": "concierge", "input": QUESTION}, headers=stream)
    with Chat(site, house.linus) as chat:
        chat.say(QUESTION)
    visitor.answer_to(QUESTION)
    settle()

    runs = list(Run.objects.filter(depth=0))

    assert sorted(run.channel for run in runs) == ["api", "api", "chat", "terminal", "widget"]
    first = tree_of(runs[0])
    assert "28 days" in first[6]
    assert [tree_of(run) for run in runs] == [first] * 5


def test_case_13_parallel_calls_keep_their_arguments_results_and_labels(model: ScriptedModel) -> None:
    """Two calls to one delegate among them; the delegates' models repeat the task that they were given."""
    first, second = (agent(n, name, model.spec(f"m{n}")) for n, name in ((2, "First"), (3, "Second")))
    boss = agent(1, "Boss", model.spec("boss"), roster=(edge(1, first), edge(2, second)))
    wanted = [("ask_2", "alpha"), ("ask_3", "beta"), ("ask_2", "gamma"), ("ask_3", "delta")]
    model.for_model("boss").calls_all([(name, {"task": task}) for name, task in wanted]).says("Done.")

    ran = run_plainly(world_of(boss, first, second))

    tasks = {event.call: json.loads(event.text)["task"] for event in ran.log.of_kind(events.ToolArguments)}
    labels = {event.call: event.label for event in ran.log.of_kind(events.ToolCalled)}
    results = {event.call: event.content for event in ran.log.of_kind(events.ToolReturned)}
    assert list(tasks.values()) == ["alpha", "beta", "gamma", "delta"]
    assert results == {call: f"Echo: {task}" for call, task in tasks.items()}
    for started in ran.log.of_kind(events.DelegateStarted):
        assert (started.task, started.child.agent) == (tasks[started.call], labels[started.call])
    sent = model.requests[-1].messages
    ids = [call["id"] for message in sent for call in message.get("tool_calls") or []]
    answers = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert [answers[one] for one in ids] == [f"Echo: {task}" for _, task in wanted]


def frames_of(api: httpx.Client, run: str) -> list[dict]:
    return list(api.get(f"/runs/{run}/events").json()["events"])


@pytest.mark.django_db(transaction=True)
def test_case_10_two_delegates_carry_the_same_labels_on_stream_rows_and_page(site: str, model: ScriptedModel) -> None:
    boss = scripted_agent(model, "Boss")
    for name in ("First helper", "Second helper"):
        world.delegate(boss, scripted_agent(model, name, slug=name.lower().replace(" ", "-")))
    model.for_model("boss").calls_all([("ask_first-helper", {"task": "a"}), ("ask_second-helper", {"task": "b"})])
    model.for_model("boss").says("Both have answered.")
    linus = world.linus()
    with Chat(site, linus) as chat:
        thread = chat.say("Ask both.", "boss")
        run = Run.objects.get(depth=0)
        live = chat.http.get(f"/chat/runs/{run.pk}/stream/").text
        page = chat.page(f"/chat/{thread}/")
    log = running(lambda: load(run.pk))
    in_rows = [logged.event.of.agent for logged in log]
    started = [logged.event.child.agent for logged in log if isinstance(logged.event, events.DelegateStarted)]
    children = Run.objects.filter(depth=1)
    assert {child.pk: child.agent_label for child in children} == {
        logged.event.of.run: logged.event.of.agent for logged in log if logged.event.of.depth == 1
    }
    assert set(in_rows) == {"Boss", "First helper", "Second helper"}
    public = frames_of(client(site, world.api_key(linus)), str(run.pk))
    assert [frame["name"] for frame in public if frame["type"] == "SUBAGENT_STARTED"] == started
    assert [label.text for label in page.all(css_class="label")] == started
    assert live.index(started[0]) < live.index(started[1])


async def load(run: UUID) -> list[events.Logged]:
    return await store.load_log(run)
