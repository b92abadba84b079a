"""One run and its delegates: limits, refusals, failures, stopping. Plain Python, real HTTP to the fake server."""

from collections.abc import Callable
from time import monotonic, sleep

import pytest

from agents_admin.kinds import CalculatorSettings
from runtime import events
from runtime.ports import Passage
from runtime.spec import Limits, MemorySpec, ToolSpec
from tests.plain_run import agent, edge, run_plainly, world_of
from tests.scripted import ScriptedModel

CALCULATOR = ToolSpec(1, "calculator", "Calculator", "calculator", CalculatorSettings(), "Works out arithmetic.")


def soon(check: Callable[[], bool]) -> bool:
    """Within a second (R12)."""
    until = monotonic() + 1
    while not check() and monotonic() < until:
        sleep(0.02)
    return check()


def returns(ran) -> list[tuple[bool, str]]:
    return [(event.ok, event.reason) for event in ran.log.of_kind(events.ToolReturned)]


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


def test_a_delegate_answers_as_a_child_run_with_its_own_label(model: ScriptedModel):
    librarian = agent(2, "Librarian", model.spec("library"), description="Knows the handbook.")
    concierge = agent(1, "Concierge", model.spec(), roster=(edge(7, librarian, when_to_use="Rules."),))
    model.for_model("small").calls("ask_2", {"task": "How many days?"}).says("28 days.")
    model.for_model("library").says("The handbook says 28.")

    ran = run_plainly(world_of(concierge, librarian))

    assert ran.labels == ["Concierge", "Librarian"]
    started = ran.log.of_kind(events.DelegateStarted)[0]
    assert (started.of.agent, started.child.agent, started.task) == ("Concierge", "Librarian", "How many days?")
    assert ran.log.of_kind(events.DelegateFinished)[0].answer == "The handbook says 28."
    told = model.requests[0].messages[0]["content"]
    assert "Librarian (tool ask_2): Knows the handbook. Rules." in told
    assert model.requests[1].messages == [{"role": "user", "content": "How many days?"}]


def test_two_delegates_work_at_the_same_time_and_nothing_is_mixed_up(model: ScriptedModel):
    first, second = (agent(n, f"D{n}", model.spec(f"m{n}")) for n in (2, 3))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, first), edge(2, second)))
    model.for_model("small").calls_all(
        [("ask_2", {"task": "two"}), ("ask_3", {"task": "three"}), ("ask_2", {"task": "two"})]
    ).says("Done.")
    for n in (2, 3):
        model.for_model(f"m{n}").says(["answer ", f"of {n}"], delay=0.2, times=None)

    ran = run_plainly(world_of(boss, first, second))

    finished = ran.log.of_kind(events.DelegateFinished)
    labels = {event.child.run: event.child.agent for event in ran.log.of_kind(events.DelegateStarted)}
    assert sorted((labels[event.child], event.answer) for event in finished) == [
        ("D2", "answer of 2"),
        ("D2", "answer of 2"),
        ("D3", "answer of 3"),
    ]
    kinds = [
        type(event) for event in ran.log.events if isinstance(event, events.DelegateStarted | events.DelegateFinished)
    ]
    assert kinds == [events.DelegateStarted] * 3 + [events.DelegateFinished] * 3, "they ran one after the other"


def test_a_failing_delegate_is_soft(model: ScriptedModel):
    broken = agent(2, "Broken", model.spec("broken"))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, broken, on_failure="The desk is closed."),))
    model.for_model("small").calls("ask_2", {"task": "x"}).says("Nobody is there.")
    model.for_model("broken").fails("401", times=None)

    ran = run_plainly(world_of(boss, broken))

    assert ran.outcome.status == "completed"
    failed = ran.log.of_kind(events.DelegateFailed)[0]
    assert (failed.reason, failed.message) == ("failed", "Broken could not answer.")
    assert model.requests[-1].messages[-1]["content"] == "The desk is closed."


def test_a_slow_delegate_times_out_and_its_coordinator_goes_on(model: ScriptedModel):
    slow = agent(2, "Slow", model.spec("slow"))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, slow, limits=Limits(None, None, 0.3, None)),))
    model.for_model("small").calls("ask_2", {"task": "x"}).says("It took too long.")
    model.for_model("slow").says(["a "] * 50, delay=0.1)

    ran = run_plainly(world_of(boss, slow))

    assert ran.outcome.text == "It took too long."
    assert ran.log.of_kind(events.DelegateFailed)[0].reason == "timeout"


def test_a_cycle_in_the_rows_is_cut_on_the_call_path(model: ScriptedModel):
    ping = agent(1, "Ping", model.spec("ping"), roster=(edge(1, 2),))
    pong = agent(2, "Pong", model.spec("pong"), roster=(edge(2, 1),))
    for name, other in (("ping", "ask_2"), ("pong", "ask_1")):
        model.for_model(name).when(after_tool=True).says(f"{name} is done.")
        model.for_model(name).when(after_tool=False).calls(other, {"task": "your turn"}, times=None)

    ran = run_plainly(world_of(ping, pong))

    assert ran.outcome.text == "ping is done."
    assert (False, "cycle") in returns(ran)
    assert len(ran.log.of_kind(events.DelegateStarted)) == 1


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


def test_stopping_closes_everything_innermost_first(model: ScriptedModel):
    slow = agent(2, "Slow", model.spec("slow"))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, slow),))
    model.for_model("small").calls_all([("ask_2", {"task": "x"}), ("ask_2", {"task": "y"})])
    model.for_model("slow").says(["a "] * 100, delay=0.05, times=None)

    ran = run_plainly(
        world_of(boss, slow), cancel_when=lambda event: isinstance(event, events.MessageText) and event.of.depth == 1
    )

    assert ran.cancelled
    assert {event.reason for event in ran.log.of_kind(events.DelegateFailed)} == {"cancelled"}
    assert [event.status for event in ran.log.of_kind(events.RunFinished)] == ["cancelled"] * 3
    assert soon(lambda: model.open_streams == 0)


def test_the_fallback_is_asked_before_anything_was_said(model: ScriptedModel):
    model.for_model("first").fails("401", times=None)
    model.for_model("second").says("I am here.")
    spec = model.spec("first", fallback=model.spec("second"))

    ran = run_plainly(world_of(agent(1, "Concierge", spec)))

    assert ran.outcome.text == "I am here."
    (notice,) = ran.log.of_kind(events.Notice)
    assert notice.audience == "administrators"


def test_a_delegate_that_is_cut_short_writes_up_what_it_has(model: ScriptedModel):
    helper = agent(2, "Helper", model.spec("helper"), tools=(CALCULATOR,))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, helper, limits=Limits(None, None, 0.5, None)),))
    model.for_model("small").calls("ask_2", {"task": "x"}).says("Thanks.")
    model.for_model("helper").when(after_tool=False, tools=True).calls("calculator", {"expression": "20+22"})
    model.for_model("helper").when(after_tool=True).says(["slow "] * 50, delay=0.1)
    model.for_model("helper").when(tools=False).says("I had found 42.")

    ran = run_plainly(world_of(boss, helper))

    assert ran.log.of_kind(events.DelegateFailed)[0].reason == "timeout"
    read = model.requests[-1].messages[-1]["content"]
    assert read.startswith("Helper did not answer in time.")
    assert "I had found 42." in read
    assert read.endswith('Sources consulted:\n- Calculator({"expression": "20+22"})')
    assert "slow" not in read


def test_when_writing_up_fails_too_the_results_are_handed_back(model: ScriptedModel):
    helper = agent(2, "Helper", model.spec("helper"), tools=(CALCULATOR,))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, helper, on_failure="The helper is out."),))
    model.for_model("small").calls("ask_2", {"task": "x"}).says("Thanks.")
    model.for_model("helper").when(after_tool=False, tools=True).calls("calculator", {"expression": "20+22"})
    model.for_model("helper").fails("401", times=None)

    run_plainly(world_of(boss, helper))

    read = model.requests[-1].messages[-1]["content"]
    assert read.startswith("The helper is out.")
    assert "20+22 = 42" in read


def test_a_right_is_asked_again_before_each_further_step(model: ScriptedModel):
    asked = []
    model.calls("calculator", {"expression": "1+1"}, times=None)

    def may(right):
        asked.append(right)
        return right.tool is not None or len(asked) < 2

    ran = run_plainly(world_of(agent(1, "Analyst", model.spec(), tools=(CALCULATOR,))), may=may)

    assert (ran.outcome.status, ran.outcome.reason) == ("failed", "forbidden")
    assert len(model.requests) == 1
