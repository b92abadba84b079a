"""A coordinator and its delegates: labels, failures, stopping, handing back. Plain Python, real HTTP."""

import asyncio
from collections.abc import Callable
from time import monotonic, sleep
from uuid import uuid4

import httpx

from runtime import events
from runtime.events import Origin
from runtime.ports import Passage, Ports, Right, Turn
from runtime.run import run
from runtime.spec import Limits, MemorySpec
from tests.plain_run import CALCULATOR, ListLog, agent, check_order, edge, returns, run_plainly, world_of
from tests.scripted import ScriptedModel


def soon(check: Callable[[], bool]) -> bool:
    """Within a second (R12)."""
    until = monotonic() + 1
    while not check() and monotonic() < until:
        sleep(0.02)
    return check()


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


def test_when_writing_up_breaks_down_the_delegate_is_closed_all_the_same(model: ScriptedModel):
    helper = agent(2, "Helper", model.spec("helper"), tools=(CALCULATOR,))
    boss = agent(1, "Boss", model.spec(), roster=(edge(1, helper),))
    model.for_model("small").calls("ask_2", {"task": "x"}).says("Thanks.")
    model.for_model("helper").when(after_tool=False, tools=True).calls("calculator", {"expression": "20+22"})
    model.for_model("helper").fails("401", times=None)
    asked: list[Right] = []

    def may(right: Right) -> bool:
        """Asked for the delegate, its tool, its second step and its writing up."""
        asked.append(right)
        if len(asked) == 4:
            raise RuntimeError("the database was away for too long")
        return True

    ran = run_plainly(world_of(boss, helper), may=may)

    assert ran.outcome.status == "completed"
    assert [event.reason for event in ran.log.of_kind(events.DelegateFailed)] == ["failed"]
    assert "20+22 = 42" in model.requests[-1].messages[-1]["content"]


def test_time_limits_that_run_out_one_after_the_other_close_everything_once(model: ScriptedModel):
    """While a search is broken off, which takes its time, three limits cancel the delegate that waits for it."""
    memory = (MemorySpec(1, "search_notes", "Notes", "Notes."),)
    third = agent(3, "Third", model.spec("third"), memories=memory, limits=Limits(max_seconds=0.3))
    helper = agent(2, "Helper", model.spec("helper"), roster=(edge(2, third),), limits=Limits(max_seconds=0.4))
    boss = agent(1, "Boss", model.spec("boss"), roster=(edge(1, helper),), limits=Limits(max_seconds=0.5))
    model.for_model("boss").calls("ask_2", {"task": "x"})
    model.for_model("helper").calls("ask_3", {"task": "x"})
    model.for_model("third").calls_all([("search_notes", {"query": "slow"}), ("search_notes", {"query": "quick"})])
    log = ListLog()

    async def search(memory_id: int, query: str) -> list[Passage]:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.4 if query == "slow" else 0)
        return []

    async def anything(right: Right) -> bool:
        return True

    async def work() -> None:
        root = uuid4()
        async with httpx.AsyncClient(trust_env=False, verify=False) as http:
            ports = Ports(log=log, may_call=anything, search=search, http=http)
            await run(world_of(boss, helper, third), Origin(root, root, "Boss", "boss"), [Turn("user", "Go.")], ports)

    asyncio.run(work())

    check_order(log.events)
    assert log.of_kind(events.RunFinished)[-1].reason == "max_seconds"
