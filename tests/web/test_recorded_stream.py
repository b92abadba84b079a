"""A recorded run, so that clients can be built against it: Boss asks a delegate that answers, one that fails, one that
takes too long, and one that asks another. tests/fixtures/recorded_run/ holds its log and its public stream.

    UPDATE_FIXTURES=1 pytest tests/web/test_recorded_stream.py        records it anew

Ids, times and durations are made the same every time; everything else must be.
"""

import json
import os
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from runtime import event_data, store
from runtime.events import Logged
from tests import world
from tests.agui_checker import complaints
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel
from tests.web.api_client import client, settle

RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "recorded_run"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SECONDS = re.compile(r'"seconds": [0-9.]+')


def company(model: ScriptedModel) -> None:
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)

    def agent(name: str):
        slug = name.lower().replace(" ", "-")
        return world.agent(name, model=world.model(slug, provider=served), audience="everyone")

    boss, clerk, broken, slow, desk, librarian = map(agent, ("Boss", "Clerk", "Broken", "Slow", "HR desk", "Librarian"))
    for delegate, limits in ((clerk, {}), (broken, {}), (slow, {"timeout_seconds": 1}), (desk, {})):
        world.delegate(boss, delegate, **limits)
    world.delegate(desk, librarian)
    world.give(clerk, world.tool("calculator", audience="everyone"))
    handbook = world.memory("Employee handbook", {"Leave": world.LEAVE}, slug="handbook", audience="everyone")
    world.give(librarian, handbook)


def script(model: ScriptedModel) -> None:
    # Each text in one piece: those of several are put together as time has it.
    boss = model.for_model("boss")
    asked = [{"name": "ask_clerk", "arguments": {"task": "What is 6 * 7?"}}]
    boss.says(["Let me ask around."], calls=asked)
    for name, task in (("broken", "Anything?"), ("slow", "Any time?"), ("hr-desk", "How many days of leave?")):
        boss.calls(f"ask_{name}", {"task": task})
    boss.says(["It is 42, and you get 28 days of leave."], reasoning=["Two of four answered."])
    model.for_model("clerk").calls("calculator", {"expression": "6 * 7"}).says(["It is 42."])
    model.for_model("broken").fails("401")
    model.for_model("slow").fails("hang-after-token", text="Half an answer")
    hr_desk, librarian = model.for_model("hr-desk"), model.for_model("librarian")
    hr_desk.calls("ask_librarian", {"task": "Days of annual leave?"}).says(["28 days, it says."])
    librarian.calls("search_handbook", {"query": "annual leave"}).says(["28 days a year."])


@pytest.fixture
def recorded(site: str, model: ScriptedModel, transactional_db: None) -> dict[str, str]:
    """The log and the stream of the run, normalised, by file name."""
    company(model)
    script(model)
    api = client(site, world.api_key(world.linus()))
    asked = {"agent": "boss", "input": "Ask everybody."}
    stream = api.post("/runs", json=asked, headers={"Accept": "text/event-stream"}).text
    settle()
    run = json.loads(stream.split("data: ")[1].split("\n")[0])["runId"]
    log = running(lambda: store.load_log(run))
    check_order([logged.event for logged in log])
    lines = ",\n".join(json.dumps(line(logged), ensure_ascii=False) for logged in log)
    same = Same()
    return {"log.json": same(f"[\n{lines}\n]\n"), "stream.sse": same(stream)}


def line(logged: Logged) -> dict[str, object]:
    of = {name: None if value is None else str(value) for name, value in asdict(logged.event.of).items()}
    kind = type(logged.event).__name__
    return {
        "n": logged.n,
        "event": kind,
        "of": of | {"depth": logged.event.of.depth},
        "data": event_data.dump(logged.event),
    }


class Same:
    """Replaces ids by their order of appearance, and durations by none."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return _SECONDS.sub('"seconds": 0.0', _ID.sub(self._place, text))

    def _place(self, found: re.Match[str]) -> str:
        return self._known.setdefault(found[0], f"00000000-0000-4000-8000-{len(self._known) + 1:012d}")


def test_the_run_is_told_as_it_was_recorded(recorded: dict[str, str]) -> None:
    if os.environ.get("UPDATE_FIXTURES") == "1":
        for name, text in recorded.items():
            (RECORDED / name).write_text(text)
    for name, text in recorded.items():
        assert text.splitlines() == (RECORDED / name).read_text().splitlines(), name


def test_what_was_recorded_is_conformant_and_has_every_kind_of_delegate() -> None:
    blocks = (RECORDED / "stream.sse").read_text().strip().split("\n\n")
    frames = [json.loads(block.split("data: ", 1)[1]) for block in blocks if not block.startswith(":")]
    assert complaints(frames) == []
    names = {frame["subagentRunId"]: frame["name"] for frame in frames if frame["type"] == "SUBAGENT_STARTED"}
    ends = {
        names[frame["subagentRunId"]]: frame.get("code", "")
        for frame in frames
        if frame["type"] in {"SUBAGENT_FINISHED", "SUBAGENT_ERROR"}
    }
    assert ends == {"Clerk": "", "Broken": "failed", "Slow": "timeout", "HR desk": "", "Librarian": ""}
