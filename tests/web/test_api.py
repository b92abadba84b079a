"""The REST interface as a program meets it: agents, runs, threads."""

import time
from datetime import datetime
from uuid import uuid4

import pytest

from runtime.models import Run
from tests import world
from tests.web.api_client import QUESTION, ask, client, scripted_agent, until_over

pytestmark = pytest.mark.django_db(transaction=True)

TIMES = ["created_at", "started_at", "finished_at"]
RUN = ["id", "agent", "thread", "status", "reason", "error", "output", "usage", *TIMES]


@pytest.fixture
def api(site, house):
    """Linus's program."""
    return client(site, world.api_key(house.linus))


def test_a_key_lists_the_agents_it_may_start(api, house):
    world.agent("Hidden", hidden=True)
    world.agent("For others", audience="chosen")
    house.analyst.starters = "What is 2 + 2?\n\nWhat time is it?"
    house.analyst.save()
    items = api.get("/agents").json()["items"]
    assert {agent["slug"] for agent in items} == {"analyst", "concierge", "hr-desk", "librarian"}
    assert next(agent for agent in items if agent["slug"] == "analyst") == {
        "slug": "analyst",
        "name": "Analyst",
        "description": "Calculates and knows the time.",
        "greeting": "",
        "starters": ["What is 2 + 2?", "What time is it?"],
    }


def test_a_run_that_ends_within_the_wait_comes_whole(api):
    answer = ask(api)
    run = answer.json()
    assert answer.status_code == 200, answer.text
    assert list(run) == RUN
    assert (run["agent"], run["status"], run["reason"]) == ("concierge", "completed", None)
    assert "28 days" in run["output"]
    assert run["usage"]["total_tokens"] == run["usage"]["input_tokens"] + run["usage"]["output_tokens"]
    moments = [datetime.fromisoformat(run[name]) for name in ("created_at", "started_at", "finished_at")]
    assert moments == sorted(moments)
    assert api.get(f"/runs/{run['id']}").json() == run


def test_without_a_wait_the_run_is_accepted_and_goes_on(api):
    answer = ask(api, wait=0)
    assert answer.status_code in {200, 202}
    assert until_over(api, answer.json()["id"])["status"] == "completed"


def test_a_run_that_takes_longer_than_the_wait_is_still_running(api, model):
    scripted_agent(model)
    model.says("At last.", gate=0)
    answer = ask(api, agent="scribe", wait=0.3)
    assert (answer.status_code, answer.json()["finished_at"]) == (202, None)
    assert answer.json()["status"] in {"queued", "running"}
    model.goes_on()
    assert until_over(api, answer.json()["id"])["output"] == "At last."


def test_a_thread_goes_on_and_remembers(api):
    first = ask(api).json()
    second = ask(api, "And how do I book a train?", thread=first["thread"]).json()
    assert second["thread"] == first["thread"]
    said = api.get(f"/threads/{first['thread']}/messages").json()["items"]
    assert [message["role"] for message in said] == ["user", "assistant", "user", "assistant"]
    assert said[0] | {"id": "", "created_at": ""} == {
        "id": "",
        "role": "user",
        "text": QUESTION,
        "complete": True,
        "run": first["id"],
        "created_at": "",
    }


def test_a_busy_thread_takes_no_second_message(api, model):
    scripted_agent(model)
    model.says("Slowly.", gate=0)
    first = ask(api, agent="scribe", wait=0).json()
    answer = ask(api, agent="scribe", thread=first["thread"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_in_progress")
    assert api.delete(f"/threads/{first['thread']}").status_code == 409
    model.goes_on()
    until_over(api, first["id"])
    assert api.delete(f"/threads/{first['thread']}").status_code == 204


def test_a_thread_of_another_agent_is_refused(api):
    thread = ask(api).json()["thread"]
    answer = ask(api, agent="analyst", thread=thread)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "thread")


def test_the_same_idempotency_key_gives_the_same_run(api):
    first, again = ask(api, key="order-17"), ask(api, key="order-17")
    assert (again.status_code, again.json()) == (200, first.json())
    other = ask(api, "Something else", key="order-17")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert len(api.get("/runs").json()["items"]) == 1


def test_an_idempotency_key_is_each_users_own(api, site, house):
    maya = client(site, world.api_key(house.maya))
    assert ask(api, key="order-17").json()["id"] != ask(maya, key="order-17").json()["id"]


def test_a_run_is_stopped_and_what_was_written_is_kept(api, model):
    scripted_agent(model)
    model.says(["One ", "two ", "three"], gate=1)
    run = ask(api, agent="scribe", wait=0).json()["id"]
    while "TEXT_MESSAGE_CONTENT" not in api.get(f"/runs/{run}/events").text:
        time.sleep(0.05)
    assert api.post(f"/runs/{run}/cancel").status_code == 202
    over = until_over(api, run)
    assert over["status"] == "cancelled"
    assert over["output"].startswith("One")
    again = api.post(f"/runs/{run}/cancel")
    assert (again.status_code, again.json()) == (202, over)


def test_a_failed_run_says_so_and_its_events_say_why(api, model):
    scripted_agent(model)
    model.fails("401", times=None)
    run = ask(api, agent="scribe").json()
    assert run["status"] == "failed"
    last = api.get(f"/runs/{run['id']}/events").json()["events"][-1]
    assert last["type"] == "RUN_ERROR"
    assert len(last["message"]) > 20


def test_lists_are_filtered_and_paged(api, house):
    runs = [ask(api, f"What is {n} + 1?", agent="analyst").json() for n in range(2)]
    runs.append(ask(api).json())
    everything = api.get("/runs").json()
    assert [run["id"] for run in everything["items"]] == [run["id"] for run in reversed(runs)]
    assert everything["next"] is None
    for query, wanted in (
        ({"agent": "concierge"}, runs[2:]),
        ({"thread": runs[0]["thread"]}, runs[:1]),
        ({"status": "completed", "agent": "analyst"}, runs[1::-1]),
        ({"status": "failed"}, []),
        ({"agent": "\x00"}, []),
    ):
        assert [run["id"] for run in api.get("/runs", params=query).json()["items"]] == [run["id"] for run in wanted]


def test_cursors_lead_through_everything_once(api):
    for n in range(53):
        assert api.post("/threads", json={"agent": "analyst", "title": f"Thread {n}"}).status_code == 201
    first = api.get("/threads").json()
    second = api.get("/threads", params={"cursor": first["next"]}).json()
    assert (len(first["items"]), len(second["items"]), second["next"]) == (50, 3, None)
    titles = [thread["title"] for thread in first["items"] + second["items"]]
    assert titles == [f"Thread {n}" for n in reversed(range(53))]


def test_threads_are_made_renamed_and_deleted(api):
    made = api.post("/threads", json={"agent": "concierge", "title": " My\nleave "})
    assert made.status_code == 201
    thread = made.json()
    assert list(thread) == ["id", "agent", "title", "created_at", "updated_at"]
    assert (thread["agent"], thread["title"]) == ("concierge", "My leave")
    renamed = api.patch(f"/threads/{thread['id']}", json={"title": "Holidays"})
    assert (renamed.status_code, renamed.json()["title"]) == (200, "Holidays")
    assert ask(api, thread=thread["id"]).json()["thread"] == thread["id"]
    assert api.get("/threads", params={"agent": "concierge"}).json()["items"][0]["title"] == "Holidays"
    assert api.delete(f"/threads/{thread['id']}").status_code == 204
    assert api.get(f"/threads/{thread['id']}").status_code == 404
    assert api.get("/runs").json()["items"] == []


def test_what_a_delegate_did_is_no_run_of_its_own(api):
    run = ask(api).json()
    assert [one["id"] for one in api.get("/runs").json()["items"]] == [run["id"]]
    events = api.get(f"/runs/{run['id']}/events").json()["events"]
    for child in {event["subagentRunId"] for event in events if "subagentRunId" in event}:
        for answer in (
            api.get(f"/runs/{child}"),
            api.get(f"/runs/{child}/events"),
            api.get(f"/runs/{child}/events", headers={"Accept": "text/event-stream"}),
            api.post(f"/runs/{child}/cancel"),
        ):
            assert answer.status_code == 404


def test_metadata_is_kept_and_bounded(api):
    assert ask(api, metadata={"order": 17, "tags": ["a", None], "ratio": 0.5}).status_code == 200
    for metadata in ({"long": "x" * 20_000}, ["a list"]):
        answer = ask(api, metadata=metadata)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "metadata")


def test_numbers_that_few_programs_can_hold_are_kept(api):
    numbers = [10**25, -(10**25), 2**63, {"deep": 10**299}]
    run = ask(api, metadata={"n": numbers}).json()
    assert Run.objects.get(pk=run["id"]).metadata == {"n": numbers}


def test_an_id_that_is_nothing_is_not_found(api):
    for path in (f"/runs/{uuid4()}", "/runs/nonsense", f"/threads/{uuid4()}", f"/threads/{uuid4()}/messages"):
        assert api.get(path).status_code == 404, path
