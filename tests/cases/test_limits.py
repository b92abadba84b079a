"""Cases 2 and 14 of what users of such systems suffered (tests/cases/README.md): costs and limits that lie."""

from time import monotonic

import pytest

from agents_admin.models import Agent
from runtime import events
from runtime.models import ToolCall
from runtime.spec import Limits
from tests import world
from tests.cases.test_delegation import ended
from tests.plain_run import CALCULATOR, agent, edge, run_plainly, world_of
from tests.scripted import ScriptedModel
from tests.web.api_client import ask as ask_api
from tests.web.api_client import client, scripted_agent
from tests.web.chat_client import Chat


def test_case_14_the_whole_tree_and_its_retries_have_one_time(model: ScriptedModel) -> None:
    helper = agent(2, "Helper", model.spec("helper"), limits=Limits(6, 6, 300, None))
    boss = agent(1, "Boss", model.spec("boss"), roster=(edge(1, helper),), limits=Limits(6, 6, 1.0, None))
    model.for_model("boss").calls("ask_2", {"task": "x"}, times=None)
    model.for_model("helper").fails("503", times=None, wait=0.3)
    since = monotonic()

    ran = run_plainly(world_of(boss, helper))

    assert (ended(ran).status, ended(ran).reason) == ("limited", "max_seconds")
    assert monotonic() - since < 4


def test_case_14_the_whole_tree_has_one_purse_of_tokens(model: ScriptedModel) -> None:
    """A delegate that may spend more on its own spends its coordinator's."""
    helper = agent(2, "Helper", model.spec("helper"), tools=(CALCULATOR,), limits=Limits(6, 6, 300, 10_000))
    boss = agent(1, "Boss", model.spec("boss"), roster=(edge(1, helper),), limits=Limits(6, 6, 300, 250))
    costs = {"prompt_tokens": 90, "completion_tokens": 10}
    model.for_model("boss").calls("ask_2", {"task": "x"}, times=None, usage=costs)
    model.for_model("helper").calls("calculator", {"expression": "1+1"}, times=None, usage=costs)

    ran = run_plainly(world_of(boss, helper))

    assert (ended(ran).status, ended(ran).reason) == ("limited", "max_tokens")
    assert sum(event.input_tokens + event.output_tokens for event in ran.log.of_kind(events.Usage)) == 300
    assert ran.log.of_kind(events.DelegateFailed)[0].reason == "budget"


@pytest.mark.django_db(transaction=True)
def test_case_14_a_limit_holds_at_the_next_question_and_says_its_name(site: str, model: ScriptedModel) -> None:
    """Without a restart; “stopped at the limit of steps” with the partial result, never as a success."""
    analyst = scripted_agent(model, "Analyst")
    world.give(analyst, world.tool("calculator"))
    model.when(tools=True, after_tool=False).calls("calculator", {"expression": "1+1"}, times=None)
    model.when(after_tool=True, tools=True).says("It is two.", times=None)
    model.when(tools=False).says("So far: two.", times=None)
    api = client(site, world.api_key(world.linus()))
    assert ask_api(api, agent="analyst").json()["status"] == "completed"

    Agent.objects.update(max_steps=2)
    limited = ask_api(api, agent="analyst").json()

    assert (limited["status"], limited["reason"], limited["output"]) == ("limited", "max_steps", "So far: two.")
    with Chat(site, world.linus()) as chat:
        assert "Stopped at the limit of steps" in chat.page(f"/chat/{limited['thread']}/").text
    Agent.objects.update(max_tool_calls=0, max_steps=6)
    model.when(after_tool=True).says("No tool.", times=None)
    ask_api(api, agent="analyst")
    assert list(ToolCall.objects.order_by("created_at").values_list("reason", flat=True)) == ["", "", "budget"]


@pytest.mark.parametrize("stop", ["by a person", "by the clock", "by the server"])
def test_case_2_what_a_broken_off_answer_cost_is_counted_as_well_as_can_be(model: ScriptedModel, stop: str) -> None:
    """No server counts an answer that it could not finish; its words are estimated, and marked as that."""
    if stop == "by the server":
        model.fails("cut-after-token")
    else:
        model.says(["word "] * 400, delay=0.01)
    seconds = 0.5 if stop == "by the clock" else 300
    poet = agent(1, "Poet", model.spec(), instructions="Write. " * 100, limits=Limits(6, 6, seconds, None))

    ran = run_plainly(
        world_of(poet), cancel_when=(lambda event: isinstance(event, events.MessageText)) if "person" in stop else None
    )

    (usage,) = ran.log.of_kind(events.Usage)
    assert usage.estimated
    assert usage.model == "small"
    assert 150 < usage.input_tokens < 250
    assert 0 < usage.output_tokens < 400


def test_a_model_that_said_nothing_cost_nothing(model: ScriptedModel) -> None:
    model.fails("401", times=None)

    assert run_plainly(world_of(agent(1, "Poet", model.spec()))).log.of_kind(events.Usage) == []
