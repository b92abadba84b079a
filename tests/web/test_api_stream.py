"""The event stream of real runs: AG-UI 1.0 in the right order, resumed without loss, closed when the right is gone."""

import json

import httpx
import pytest

from agents_admin.models import ApiKey
from tests import world
from tests.agui_checker import complaints
from tests.web.api_client import QUESTION, ask, client, scripted_agent

pytestmark = pytest.mark.django_db(transaction=True)

STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def api(site, house):
    return client(site, world.api_key(house.linus))


def events_in(text: str) -> list[tuple[int, dict]]:
    """The numbered events of a stream. Comments are allowed, everything else must be an event of ours."""
    assert "\r" not in text
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    found = []
    for block in blocks:
        number, data = block.split("\n")
        found.append((int(number.removeprefix("id: ")), json.loads(data.removeprefix("data: "))))
    return found


def streamed(api: httpx.Client, path: str, **headers: str) -> list[tuple[int, dict]]:
    answer = api.get(path, headers=STREAM | headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert "no-store" in answer.headers["Cache-Control"]
    return events_in(answer.text)


def test_a_delegated_answer_streams_as_conformant_ag_ui(api):
    answer = api.post("/runs", json={"agent": "concierge", "input": QUESTION, "wait": 5}, headers=STREAM)
    assert answer.status_code == 200
    numbers, frames = zip(*events_in(answer.text), strict=True)
    assert list(numbers) == sorted(set(numbers))
    assert complaints(list(frames)) == []
    assert api.get(f"/runs/{frames[0]['runId']}").json()["status"] == "completed"
    names = {frame["subagentRunId"]: frame["name"] for frame in frames if frame["type"] == "SUBAGENT_STARTED"}
    parents = [frame.get("parentSubagentRunId") for frame in frames if frame["type"] == "SUBAGENT_STARTED"]
    assert list(names.values()) == ["HR desk", "Librarian"]
    assert [names.get(parent or "") for parent in parents] == [None, "HR desk"]
    steps = [frame["value"]["status"] for frame in frames if frame["type"] == "CUSTOM"]
    assert steps[:2] == ["HR desk asks Librarian", "Librarian looks into Employee handbook"]
    text = "".join(frame["delta"] for frame in frames if frame["type"] == "TEXT_MESSAGE_CONTENT")
    assert "28 days" in text


def test_stream_list_and_every_resume_say_the_same(api):
    run = ask(api).json()["id"]
    whole = streamed(api, f"/runs/{run}/events")
    listed = api.get(f"/runs/{run}/events").json()
    assert [(event.pop("id"), event) for event in listed["events"]] == whole
    last = whole[-1][0]
    assert listed["next"] == last
    for n in range(last + 2):
        missing = [event for event in whole if event[0] > n]
        assert streamed(api, f"/runs/{run}/events", **{"Last-Event-ID": str(n)}) == missing
        assert streamed(api, f"/runs/{run}/events?after={n}") == missing
        rest = api.get(f"/runs/{run}/events?after={n}").json()
        assert [(event.pop("id"), event) for event in rest["events"]] == missing
        assert rest["next"] == max(n, last)


def test_a_reader_who_joins_in_the_middle_misses_nothing(api, model):
    scripted_agent(model)
    model.says([f"word{n} " for n in range(12)], delay=0.1)
    run = ask(api, agent="scribe", wait=0).json()["id"]
    live = streamed(api, f"/runs/{run}/events")
    assert complaints([frame for _, frame in live]) == []
    text = "".join(frame["delta"] for _, frame in live if frame["type"] == "TEXT_MESSAGE_CONTENT")
    assert text == "".join(f"word{n} " for n in range(12))
    assert streamed(api, f"/runs/{run}/events") == live


def test_a_stopped_run_ends_its_stream_as_cancelled(api, model):
    scripted_agent(model)
    model.says(["One ", "two ", "three"], gate=1)
    with api.stream("POST", "/runs", json={"agent": "scribe", "input": "Count."}, headers=STREAM) as answer:
        text = ""
        for piece in answer.iter_text():
            text += piece
            if "TEXT_MESSAGE_CONTENT" in piece:
                run = events_in(text)[0][1]["runId"]
                assert api.post(f"/runs/{run}/cancel").status_code == 202
    frames = [frame for _, frame in events_in(text)]
    assert complaints(frames) == []
    assert frames[-1]["outcome"] == {"type": "cancelled"}


def test_the_reader_may_leave_the_run_goes_on(api, model):
    scripted_agent(model)
    model.says([f"word{n} " for n in range(8)], delay=0.1)
    with api.stream("POST", "/runs", json={"agent": "scribe", "input": "Go."}, headers=STREAM) as answer:
        first = next(answer.iter_text())
    run = events_in(first.rpartition("\n\n")[0])[0][1]["runId"]
    assert [frame["type"] for _, frame in streamed(api, f"/runs/{run}/events")][-1] == "RUN_FINISHED"
    assert "word7" in api.get(f"/runs/{run}").json()["output"]


def test_a_stream_closes_when_its_key_is_switched_off(site, house, model):
    api = client(site, world.api_key(house.linus, name="switched off soon"))
    scripted_agent(model)
    model.says(["One ", "two"], delay=30)
    other = client(site, world.api_key(house.linus))
    with api.stream("POST", "/runs", json={"agent": "scribe", "input": "Go."}, headers=STREAM) as answer:
        pieces = answer.iter_text()
        next(pieces)
        ApiKey.objects.filter(name="switched off soon").update(enabled=False)
        rest = "".join(pieces)
    run = other.get("/runs").json()["items"][0]
    other.post(f"/runs/{run['id']}/cancel")
    assert run["status"] == "running"
    assert "two" not in rest


def test_a_delegate_that_is_not_shown_is_not_on_the_stream(api, house):
    house.hr_desk.delegate_view = "none"
    house.hr_desk.save()
    frames = api.get(f"/runs/{ask(api).json()['id']}/events").json()["events"]
    assert "SUBAGENT_STARTED" not in {frame["type"] for frame in frames}
    assert "Librarian" not in json.dumps([frame for frame in frames if frame["type"] != "TOOL_CALL_RESULT"])
    house.hr_desk.delegate_view = "summary"
    house.hr_desk.save()
    frames = api.get(f"/runs/{ask(api).json()['id']}/events").json()["events"]
    assert [frame["name"] for frame in frames if frame["type"] == "SUBAGENT_STARTED"] == ["HR desk"]
    assert "CUSTOM" not in {frame["type"] for frame in frames}
