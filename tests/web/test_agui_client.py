"""The public stream is read by a client that we did not write: @ag-ui/client on Node, for every way a run can go.

The client verifies order and shapes; what it lets pass is added here: exactly one terminal event, everything closed,
`parentToolCallId` names a call that was seen, the protocol version declared, no warning about what it had to strip.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agents_admin.models import Agent
from runtime import review, runner, takeover
from runtime.models import Event, Run, ToolCall
from tests import world
from tests.agui_checker import complaints
from tests.dying import acting_agent, die_in_an_act
from tests.loop import running
from tests.scripted import API_KEY, ScriptedModel
from tests.web.api_client import QUESTION, client, settle

pytestmark = pytest.mark.django_db(transaction=True)

HERE = Path(__file__).resolve().parents[1] / "agui_client"
INSTALL = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]


class Client:
    """The client in a Node process of its own, reading one stream after the other."""

    def __init__(self, node: subprocess.Popen[str], site: str, key: str) -> None:
        self.node = node
        self.site = site
        self.key = key

    def start(self, agent: str, text: str = "Please help.") -> None:
        self._read({"url": f"{self.site}/api/v1/runs", "body": {"agent": agent, "input": text}})

    def events_of(self, run: str, after: int = 0) -> None:
        self._read({"url": f"{self.site}/api/v1/runs/{run}/events", "after": after})

    def _read(self, job: dict[str, Any]) -> None:
        assert self.node.stdin
        self.node.stdin.write(json.dumps(job | {"key": self.key}) + "\n")
        self.node.stdin.flush()

    def report(self) -> dict[str, Any]:
        """What became of the stream that was asked for last."""
        assert self.node.stdout
        return dict(json.loads(self.node.stdout.readline()))

    def reads(self, agent: str, text: str = "Please help.") -> dict[str, Any]:
        """The whole stream of a new run, which must have been beyond reproach."""
        self.start(agent, text)
        return beyond_reproach(self.report())


def beyond_reproach(report: dict[str, Any]) -> dict[str, Any]:
    assert (report["error"], report["warnings"]) == (None, [])
    assert complaints(report["events"]) == []
    return report


@pytest.fixture(scope="session")
def node() -> Iterator[subprocess.Popen[str]]:
    """Without Node, or without the packages, these tests are skipped, or fail under REQUIRE_NODE=1."""
    say = pytest.fail if os.environ.get("REQUIRE_NODE") == "1" else pytest.skip
    if shutil.which("node") is None or shutil.which("npm") is None:
        say("There is no Node: install nodejs and npm to read the stream with the official AG-UI client.")
    if not (HERE / "node_modules" / "@ag-ui" / "client").exists():
        installed = subprocess.run(INSTALL, cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
        if installed.returncode:
            say(f"npm could not install the AG-UI client: {installed.stderr[-500:]}")
    with subprocess.Popen(
        ["node", "read.mjs"], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        yield running
        assert running.stdin
        running.stdin.close()


@pytest.fixture
def reader(node: subprocess.Popen[str], site: str) -> Iterator[Client]:
    yield Client(node, site, world.api_key(world.linus()))
    settle()


def staff(model: ScriptedModel, *names: str) -> list[Agent]:
    """Agents with models of their own on the scripted server, each the delegate of the one before."""
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    made = [world.agent(name, model=world.model(name.lower(), provider=served), audience="everyone") for name in names]
    for coordinator, delegate in pairwise(made):
        world.delegate(coordinator, delegate)
    return made


def of_type(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in report["events"] if event["type"] == kind]


def text_of(report: dict[str, Any]) -> str:
    return "".join(event["delta"] for event in of_type(report, "TEXT_MESSAGE_CONTENT"))


def test_a_plain_answer(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Poet")
    model.says("Roses are red.")
    report = reader.reads("poet")
    assert report["outcome"] == "success"
    assert [message["content"] for message in report["messages"]] == ["Roses are red."]


def test_thinking_aloud_before_the_answer(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Poet")
    model.says("Red.", reasoning="Which colour?")
    report = reader.reads("poet")
    assert [message["role"] for message in report["messages"]] == ["reasoning", "assistant"]


def test_a_tool(reader: Client, model: ScriptedModel) -> None:
    (poet,) = staff(model, "Poet")
    world.give(poet, world.tool("calculator"))
    model.calls("calculator", {"expression": "6*7"}).says("It is 42.")
    report = reader.reads("poet")
    assert [message["role"] for message in report["messages"]] == ["assistant", "tool", "assistant"]
    assert report["messages"][1]["content"] == "6*7 = 42"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("calculator", {"expression": "1/0"}), ("calculator", "{broken"), ("calculator", {}), ("nonsense", {"a": 1})],
)
def test_a_failing_tool_or_a_call_that_makes_no_sense(
    reader: Client, model: ScriptedModel, name: str, arguments: Any
) -> None:
    (poet,) = staff(model, "Poet")
    world.give(poet, world.tool("calculator"))
    model.calls(name, arguments).says("I could not work it out.")
    report = reader.reads("poet")
    assert len(of_type(report, "TOOL_CALL_RESULT")) == 1
    assert report["outcome"] == "success"


def test_a_delegate_that_answers(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Boss", "Helper")
    model.for_model("boss").calls("ask_helper", {"task": "Count."}).says("Three.")
    model.for_model("helper").says("There are three.")
    report = reader.reads("boss")
    assert [event["name"] for event in of_type(report, "SUBAGENT_STARTED")] == ["Helper"]
    assert len(of_type(report, "SUBAGENT_FINISHED")) == 1
    assert "There are three." in of_type(report, "TOOL_CALL_RESULT")[0]["content"]


def failed_delegate(report: dict[str, Any]) -> str:
    assert of_type(report, "SUBAGENT_FINISHED") == []
    (failure,) = of_type(report, "SUBAGENT_ERROR")
    assert report["outcome"] == "success"
    return str(failure["code"])


def test_a_delegate_that_takes_too_long(reader: Client, model: ScriptedModel) -> None:
    boss, _ = staff(model, "Boss", "Helper")
    boss.roster.update(timeout_seconds=1)
    model.for_model("boss").calls("ask_helper", {"task": "Count."}).says("It took too long.")
    model.for_model("helper").says(["One ", "two "], delay=3)
    assert failed_delegate(reader.reads("boss")) == "timeout"


def test_a_delegate_that_runs_out_of_tokens(reader: Client, model: ScriptedModel) -> None:
    boss, helper = staff(model, "Boss", "Helper")
    boss.roster.update(max_tokens=10)
    world.give(helper, world.tool("calculator"))
    model.for_model("boss").calls("ask_helper", {"task": "Count."}).says("It was too much.")
    usage = {"prompt_tokens": 50, "completion_tokens": 50}
    model.for_model("helper").calls("calculator", {"expression": "1+1"}, usage=usage).says("", times=None)
    assert failed_delegate(reader.reads("boss")) == "budget"


def test_a_delegate_that_was_asked_often_enough(reader: Client, model: ScriptedModel) -> None:
    boss, _ = staff(model, "Boss", "Helper")
    boss.roster.update(max_calls=1)
    model.for_model("boss").calls("ask_helper", {"task": "A"}).calls("ask_helper", {"task": "B"}).says("Enough.")
    model.for_model("helper").says("Yes.")
    report = reader.reads("boss")
    assert len(of_type(report, "SUBAGENT_STARTED")) == 1
    assert len(of_type(report, "TOOL_CALL_RESULT")) == 2


def test_a_delegate_that_nobody_knows(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Boss", "Helper")
    model.for_model("boss").calls("ask_nobody", {"task": "Count."}).says("There is no such colleague.")
    report = reader.reads("boss")
    assert of_type(report, "SUBAGENT_STARTED") == []
    assert "ask_helper" in of_type(report, "TOOL_CALL_RESULT")[0]["content"]


@pytest.mark.parametrize("fault", ["401", "cut-after-token", "not-json", "empty-body"])
def test_a_delegate_that_crashes(reader: Client, model: ScriptedModel, fault: str) -> None:
    staff(model, "Boss", "Helper")
    model.for_model("boss").calls("ask_helper", {"task": "Count."}).says("It broke.")
    model.for_model("helper").fails(fault, times=None)
    assert failed_delegate(reader.reads("boss")) == "failed"


def test_nested_delegates(reader: Client, site: str) -> None:
    world.house()
    report = reader.reads("concierge", QUESTION)
    hr_desk, librarian = of_type(report, "SUBAGENT_STARTED")
    assert "parentToolCallId" in hr_desk
    assert librarian["parentSubagentRunId"] == hr_desk["subagentRunId"]
    assert "28 days" in text_of(report)


def test_delegates_in_parallel_two_of_them_the_same(reader: Client, model: ScriptedModel) -> None:
    boss, _ = staff(model, "Boss", "Helper")
    world.delegate(boss, staff(model, "Other")[0])
    asked = [("ask_helper", {"task": "A"}), ("ask_helper", {"task": "A"}), ("ask_other", {"task": "B"})]
    model.for_model("boss").calls_all(asked).says("All answered.")
    model.for_model("helper").says("Helper here.", times=2, delay=0.05)
    model.for_model("other").says("Other here.", delay=0.02)
    report = reader.reads("boss")
    started = of_type(report, "SUBAGENT_STARTED")
    assert sorted(event["name"] for event in started) == ["Helper", "Helper", "Other"]
    assert len({event["parentToolCallId"] for event in started}) == 3


def test_ids_that_a_provider_repeats(reader: Client, model: ScriptedModel) -> None:
    (poet,) = staff(model, "Poet")
    world.give(poet, world.tool("calculator"))
    model.fails("same-ids", text="").fails("same-ids", text="").says("Done.")
    report = reader.reads("poet")
    assert len({event["toolCallId"] for event in of_type(report, "TOOL_CALL_START")}) == 4


def test_a_coordinator_whose_model_fails_in_the_middle(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Poet")
    model.fails("cut-after-token")
    report = reader.reads("poet")
    assert report["events"][-1]["type"] == "RUN_ERROR"


def stop_when(reader: Client, busy: Any) -> dict[str, Any]:
    """Somebody stops the run that the client reads, once the model is `busy`."""
    api = client(reader.site, reader.key)
    for _ in range(400):
        runs = api.get("/runs").json()["items"]
        if runs and busy():
            break
        time.sleep(0.02)
    assert api.post(f"/runs/{runs[0]['id']}/cancel").status_code == 202
    return beyond_reproach(reader.report())


def test_stop_in_the_middle_of_an_answer(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Poet")
    model.says(["word "] * 500, delay=0.05)
    reader.start("poet")
    assert stop_when(reader, lambda: model.open_streams)["outcome"] == "cancelled"


def test_stop_while_a_nested_delegate_works(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Boss", "Helper", "Third")
    model.for_model("boss").calls("ask_helper", {"task": "Count."})
    model.for_model("helper").calls("ask_third", {"task": "Count."})
    model.for_model("third").says(["word "] * 500, delay=0.05)
    reader.start("boss")
    report = stop_when(reader, lambda: len(model.requests) == 3 and model.open_streams)
    assert report["outcome"] == "cancelled"
    assert [event["code"] for event in of_type(report, "SUBAGENT_ERROR")] == ["cancelled"] * 2


def test_an_answer_that_is_huge(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Poet")
    words = "x" * 20_000 + "🦉\r\n\u2028"
    model.says([words] * 50, burst=True)
    assert reader.reads("poet")["messages"][0]["content"] == words * 50


def test_an_answer_that_is_empty(reader: Client, model: ScriptedModel) -> None:
    staff(model, "Poet")
    model.says("", times=None)
    assert reader.reads("poet")["events"][-1]["code"] == "empty"


def test_a_run_that_is_over_is_read_again(reader: Client, site: str) -> None:
    world.house()
    live = reader.reads("concierge", QUESTION)
    reader.events_of(live["events"][0]["runId"])
    assert beyond_reproach(reader.report())["events"] == live["events"]


def boss_of_one_who_acts(model: ScriptedModel) -> Agent:
    boss, clerk = staff(model, "Boss", "Clerk")
    world.give(clerk, world.tool("clock", name="Stamp", side_effect="acts"))
    model.for_model("boss").when(after_tool=False).calls("ask_clerk", {"task": "Stamp."})
    model.for_model("clerk").calls("stamp", {}).says("Stamped.")
    model.for_model("boss").when(after_tool=True).says("Clerk stamped it.")
    return boss


@pytest.mark.parametrize("delegated", [False, True])
def test_a_run_that_waits_for_a_person_is_interrupted_and_goes_on_as_another(
    reader: Client, model: ScriptedModel, delegated: bool
) -> None:
    agent = boss_of_one_who_acts(model) if delegated else acting_agent(model)
    run = die_in_an_act(agent, depth=int(delegated))
    linus = world.actor_of(world.linus())
    running(lambda: takeover.take_over(runner.runner()))
    assert Run.objects.get(pk=run).status == "needs_review"

    reader.events_of(str(run))
    before = beyond_reproach(reader.report())
    assert before["outcome"] == "interrupt"
    (interrupt,) = before["interrupts"]
    call = ToolCall.objects.get(state="unknown")
    assert (interrupt["id"], interrupt["reason"]) == (str(call.pk), "needs_review")
    assert "“Stamp”" in interrupt["message"]

    reader.events_of(str(run), after=Event.objects.filter(root=run).latest("n").n)
    running(lambda: review.review(linus, run, call.pk, "happened"))
    after = beyond_reproach(reader.report())
    assert after["outcome"] == "success"
    started = after["events"][0]
    assert started["parentRunId"] == before["events"][0]["runId"] == str(run)
    assert started["runId"] != started["parentRunId"]
    assert text_of(after) == ("Clerk stamped it." if delegated else "Stamped.")
    assert of_type(after, "TOOL_CALL_START") == []
    assert [event["name"] for event in of_type(after, "SUBAGENT_STARTED")] == ["Clerk"] * delegated
