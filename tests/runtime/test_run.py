"""One run: limits, refusals, failures. Plain Python, real HTTP to the fake server."""

import pytest

from runtime import events
from runtime.ports import Passage
from runtime.spec import Limits, MemorySpec
from tests.plain_run import CALCULATOR, agent, returns, run_plainly, world_of
from tests.scripted import ScriptedModel


def test_a_plain_answer_completes(model: ScriptedModel):
    model.says("Good morning.")

    ran = run_plainly(world_of(agent(1, "Concierge", model.spec())))

    assert ran.outcome.status == "completed"
    assert ran.outcome.text == "Good morning."
    assert ran.log.of_kind(events.Usage)[0].output_tokens > 0


def test_instructions_reach_the_model_exactly_as_written(model: ScriptedModel):
    model.says("Yes.")

    run_plainly(world_of(agent(1, "Concierge", model.spec(), instructions="Say {{x}} and {name} and {% if %}.")))

    assert model.requests[0].messages[0] == {"role": "system", "content": "Say {{x}} and {name} and {% if %}."}


def test_a_tool_call_is_performed_and_its_result_goes_back(model: ScriptedModel):
    model.calls("calculator", {"expression": "1,249 * 0.21"}).says("It is 262.29.")

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))))

    assert ran.outcome.text == "It is 262.29."
    assert "262.29" in model.requests[1].messages[-1]["content"]
    assert returns(ran) == [(True, "")]


def test_an_unknown_tool_is_answered_with_the_names_of_those_there_are(model: ScriptedModel):
    model.calls("calculater", {}).says("Sorry.")

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))))

    assert returns(ran) == [(False, "unknown")]
    assert "calculator" in model.requests[1].messages[-1]["content"]
    assert ran.outcome.status == "completed"


@pytest.mark.parametrize("arguments", ["{not json", "[1, 2]", '{"expression": 5}', "{}", '{"self": "x", "name": "y"}'])
def test_arguments_that_do_not_fit_are_returned_to_the_model_in_words(model: ScriptedModel, arguments: str):
    model.calls("calculator", arguments).says("Sorry.")

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))))

    assert returns(ran) == [(False, "invalid")]
    assert ran.outcome.text == "Sorry."


def test_calls_beyond_the_limit_get_a_stub_and_the_run_goes_on(model: ScriptedModel):
    model.calls_all([("calculator", {"expression": "1+1"})] * 3).says("Two.")
    analyst = agent(1, "Analyst", model.spec(), tools=(CALCULATOR,), limits=Limits(6, 2, 300, None))

    ran = run_plainly(world_of(analyst))

    assert sorted(returns(ran)) == [(False, "budget"), (True, ""), (True, "")]
    assert ran.outcome.status == "completed"


def test_no_tool_calls_means_none(model: ScriptedModel):
    model.calls("calculator", {"expression": "1+1"}).says("Two.")
    analyst = agent(1, "Analyst", model.spec(), tools=(CALCULATOR,), limits=Limits(6, 0, 300, None))

    assert returns(run_plainly(world_of(analyst))) == [(False, "budget")]


def test_on_the_last_step_the_model_is_asked_without_tools_and_the_run_is_limited(model: ScriptedModel):
    model.when(tools=True).calls("calculator", {"expression": "1+1"}, times=None)
    model.when(tools=False).says("I have two.", times=None)
    analyst = agent(1, "Analyst", model.spec(), tools=(CALCULATOR,), limits=Limits(3, 6, 300, None))

    ran = run_plainly(world_of(analyst))

    assert (ran.outcome.status, ran.outcome.reason) == ("limited", "max_steps")
    assert ran.outcome.text == "I have two."
    assert [bool(request.tools) for request in model.requests] == [True, True, False]


def test_spent_tokens_end_the_run_with_what_there_is(model: ScriptedModel):
    model.calls("calculator", {"expression": "1+1"}, times=None)
    analyst = agent(1, "Analyst", model.spec(), tools=(CALCULATOR,), limits=Limits(6, 6, 300, 1))

    ran = run_plainly(world_of(analyst))

    assert (ran.outcome.status, ran.outcome.reason) == ("limited", "max_tokens")
    assert len(model.requests) == 1


def test_zero_tokens_means_none(model: ScriptedModel):
    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), limits=Limits(6, 6, 300, 0))))

    assert (ran.outcome.status, ran.outcome.reason) == ("limited", "max_tokens")
    assert model.requests == []


def test_the_time_limit_keeps_the_partial_text(model: ScriptedModel):
    model.says(["Once ", "upon ", "a ", "time"] * 200, delay=0.02)

    ran = run_plainly(world_of(agent(1, "Poet", model.spec(), limits=Limits(6, 6, 1.5, None))))

    assert (ran.outcome.status, ran.outcome.reason) == ("limited", "max_seconds")
    assert ran.outcome.text.startswith("Once ")
    assert not ran.log.of_kind(events.MessageFinished)[0].complete


def test_an_empty_answer_is_asked_for_once_more_then_said_in_words(model: ScriptedModel):
    model.says("", times=None)

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))))

    assert (ran.outcome.status, ran.outcome.reason) == ("failed", "empty")
    assert len(model.requests) == 2


def test_an_agent_without_tools_is_asked_once_more_too(model: ScriptedModel):
    model.says("").says("Here I am.")

    ran = run_plainly(world_of(agent(1, "Poet", model.spec())))

    assert (ran.outcome.status, ran.outcome.text) == ("completed", "Here I am.")


def test_a_failing_model_fails_the_run_in_words(model: ScriptedModel):
    model.fails("401", times=None)

    ran = run_plainly(world_of(agent(1, "Concierge", model.spec())))

    assert ran.outcome.status == "failed"
    assert "key" in ran.outcome.error
    assert model.spec().api_key.value not in ran.outcome.detail


def test_a_right_that_was_taken_away_is_gone_at_the_next_call(model: ScriptedModel):
    model.calls("calculator", {"expression": "1+1"}).says("I can't.")

    ran = run_plainly(
        world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))), may=lambda right: right.tool != CALCULATOR.id
    )

    assert returns(ran) == [(False, "forbidden")]


def test_a_search_cites_its_sources(model: ScriptedModel):
    librarian = agent(1, "Librarian", model.spec(), memories=(MemorySpec(5, "search_handbook", "Handbook", "Rules."),))
    model.calls("search_handbook", {"query": "leave"}).says("28 days.")

    ran = run_plainly(world_of(librarian), memories={5: [Passage("Handbook", "Leave", 2, "You get 28 days.")]})

    cited = ran.log.of_kind(events.SourceCited)
    assert [(one.memory, one.document, one.passage) for one in cited] == [("Handbook", "Leave", 2)]


def test_the_fallback_is_asked_before_anything_was_said(model: ScriptedModel):
    model.for_model("first").fails("401", times=None)
    model.for_model("second").says("I am here.")
    spec = model.spec("first", fallback=model.spec("second"))

    ran = run_plainly(world_of(agent(1, "Concierge", spec)))

    assert ran.outcome.text == "I am here."
    (notice,) = ran.log.of_kind(events.Notice)
    assert notice.audience == "administrators"


def test_a_right_is_asked_again_before_each_further_step(model: ScriptedModel):
    asked = []
    model.calls("calculator", {"expression": "1+1"}, times=None)

    def may(right):
        asked.append(right)
        return right.tool is not None or len(asked) < 2

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))), may=may)

    assert (ran.outcome.status, ran.outcome.reason) == ("failed", "forbidden")
    assert len(model.requests) == 1
