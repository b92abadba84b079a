"""Whatever happens inside a run, its log is whole: every open has one close, and one terminal event comes last.

Hypothesis writes the models' scripts, faults included, and chooses when the run is stopped, or its process dies and
another one goes on. The log, the loop and the engine are the real ones, the models are served over HTTP.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_admin.kinds import CalculatorSettings, ClockSettings
from runtime import closing, events, takeover
from runtime.events import Event, Logged, Origin
from runtime.ports import Ports, Turn
from runtime.record import Log
from runtime.run import past, run
from runtime.spec import Limits, RuntimeAgent, ToolSpec
from tests.agui_checker import complaints
from tests.plain_run import agent, check_order, edge, found_nothing, world_of
from tests.scripted import ScriptedModel
from web.api.agui import AguiRenderer
from web.sse import RunHead

CALCULATOR = ToolSpec(1, "calculator", "Calculator", "calculator", CalculatorSettings(), "Works out arithmetic.")
STAMP = ToolSpec(2, "stamp", "Stamp", "clock", ClockSettings(), "Stamps.", side_effect="acts")
FAULTS = [
    *("401", "cut-after-token", "not-json", "empty-body", "no-ids", "same-ids", "text-and-call", "error-after-token")
]
CALLS = [
    ("calculator", {"expression": "6*7"}),
    ("calculator", {"expression": "1/0"}),
    ("calculator", "{broken"),
    ("stamp", {}),
    ("ask_2", {"task": "Count."}),
    ("ask_3", {"task": "Count."}),
    ("nonsense", {}),
]


@dataclass(frozen=True)
class Interruption:
    """When so many events are committed, and some turns of the loop later, the run is stopped or its process dies.

    `then`: what a person says about calls that may have acted, or how the run is ended by the next process. `delay`:
    seconds from an event to its commit.
    """

    kind: str
    committed: int
    turns: int
    then: str
    delay: float = 0.002


ENDINGS = {"stopped": closing.STOPPED, "given up": closing.DIED}


async def anything(right: object) -> bool:
    return True


async def work(world: RuntimeAgent, origin: Origin, before: list[Logged], until: Interruption | None) -> list[Logged]:
    """What one process does of a run: goes on after `before`, until it is interrupted; what it has committed then."""
    loop = asyncio.get_running_loop()

    def save() -> None:
        loop.call_later(until.delay if until else 0.0, lambda: log.mark_saved(len(log.events) - log.saved))

    log = Log(origin.root, 0, save, save, before)
    for event in takeover.resumption(origin, before):
        log.record(event)
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        ports = Ports(log=log, may_call=anything, search=found_nothing, http=http)
        going = run(world, origin, [Turn("user", "Please help.")], ports, past.fold(log.events))
        task = asyncio.create_task(going)
        if until is None:
            await task
            return log.events
        while log.saved < until.committed and not task.done():  # noqa: ASYNC110 - turns of the loop are what is counted
            await asyncio.sleep(0)
        for _ in range(until.turns):
            await asyncio.sleep(0)
        committed = log.events[: log.saved]
        if until.kind == "dies":
            log.freeze()
        task.cancel()
        await asyncio.wait([task])
        return committed if until.kind == "dies" else log.events


def lived_through(world: RuntimeAgent, interruptions: Sequence[Interruption]) -> list[Logged]:
    """The log of a run that is interrupted so often, and then left alone."""
    root = uuid4()
    origin = Origin(root, root, world.root.label, world.root.slug)
    log: list[Logged] = []
    for interruption in (*interruptions, None):
        log = asyncio.run(work(world, origin, log, interruption))
        if interruption is not None and not over(log):
            log = taken_up(origin, log, interruption.then)
        if over(log):
            return log
    raise AssertionError("A run that nobody interrupts ends.")


def over(log: list[Logged]) -> bool:
    return bool(log) and events.ends(log[-1].event)


def taken_up(origin: Origin, log: list[Logged], then: str) -> list[Logged]:
    """As in `takeover` and `review`: calls that may have acted wait for a person, who decides or stops the run."""
    asked = past.uncertain(past.fold(log))
    if asked:
        questions = [events.ApprovalAsked(of, call) for of, call in asked]
        log = more(log, [*questions, *closing.suspension(said(log), origin, "needs_review")])
    if then in ENDINGS:
        log = log or more([], [events.RunStarted(origin)])
        return more(log, closing.closes(said(log), ENDINGS[then]))
    return more(log, [events.ApprovalDecided(of, call, approved=then == "again") for of, call in asked])


def said(log: list[Logged]) -> list[Event]:
    return [logged.event for logged in log]


def more(log: list[Logged], happened: list[Event]) -> list[Logged]:
    last = log[-1].n if log else 0
    return [*log, *(Logged(n, datetime.now(UTC), event) for n, event in enumerate(happened, last + 1))]


turns_of_a_model = st.lists(
    st.one_of(
        st.builds(lambda n: {"text": [f"word{i} " for i in range(n)], "delay": 0.001}, st.integers(0, 5)),
        st.builds(
            lambda calls, text: {"text": text, "calls": [{"name": name, "arguments": of} for name, of in calls]},
            st.lists(st.sampled_from(CALLS), min_size=1, max_size=3),
            st.sampled_from(["", "Let me see. "]),
        ),
        st.builds(lambda fault: {"text": "One two three.", "fault": fault}, st.sampled_from(FAULTS)),
    ),
    max_size=4,
)
interruptions = st.lists(
    st.builds(
        Interruption,
        kind=st.sampled_from(["dies", "dies", "stopped"]),
        committed=st.integers(0, 40),
        turns=st.integers(0, 50),
        then=st.sampled_from(["again", "happened", "again", "happened", "stopped", "given up"]),
        delay=st.sampled_from([0.0, 0.002]),
    ),
    max_size=3,
)


def company(model: ScriptedModel) -> RuntimeAgent:
    tools = (CALCULATOR, STAMP)
    limits = Limits(max_steps=5, max_tool_calls=6, max_seconds=10)
    third = agent(3, "Third", model.spec("third"), tools=tools, limits=limits)
    helper = agent(2, "Helper", model.spec("helper"), tools=tools, limits=limits, roster=(edge(3, third),))
    roster = (edge(1, helper), edge(2, third))
    boss = agent(1, "Boss", model.spec("boss"), tools=tools, limits=limits, roster=roster)
    return world_of(boss, helper, third)


def check(log: list[Logged]) -> None:
    check_order(said(log))
    numbers = [logged.n for logged in log]
    assert numbers == sorted(set(numbers))
    renderer = AguiRenderer(RunHead(log[0].event.of.root, UUID(int=1)))
    frames = [json.loads(frame) for frame in map(renderer.frames, log) if frame is not None]
    assert complaints(frames) == []


def whatever_happens(model_server: str, examples: int) -> Callable[[], None]:
    @given(st.fixed_dictionaries(dict.fromkeys(("boss", "helper", "third"), turns_of_a_model)), interruptions)
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    def holds(scripts: dict[str, list[dict]], interrupted: list[Interruption]) -> None:
        model = ScriptedModel(model_server, uuid4().hex, {})
        for name, turns in scripts.items():
            for turn in turns:
                model.for_model(name).answers(turn)
        check(lived_through(company(model), interrupted))

    return holds


def test_every_open_has_one_close_and_the_one_terminal_event_comes_last(model_server: str) -> None:
    whatever_happens(model_server, 60)()


@pytest.mark.long
def test_it_holds_for_many_more_runs(model_server: str) -> None:
    whatever_happens(model_server, 3_000)()


def die_in_acts(model_server: str, moments: Sequence[Interruption]) -> None:
    """Acts in parallel on three levels, and a process that dies at each of these moments in a run of its own."""
    model = ScriptedModel(model_server, uuid4().hex, {})
    calls = [("stamp", {}), ("ask_2", {"task": "Stamp."}), ("ask_3", {"task": "Stamp."}), ("calculator", {})]
    model.for_model("boss").when(after_tool=False).calls_all(calls, times=None)
    model.for_model("helper").when(after_tool=False).calls_all([calls[0], calls[2]], times=None)
    model.for_model("third").when(after_tool=False).calls("stamp", {}, times=None)
    model.when(after_tool=True).says("Done.", times=None)
    paused: set[int] = set()
    for moment in moments:
        log = lived_through(company(model), [moment])
        check(log)
        paused |= {event.of.depth for event in said(log) if isinstance(event, events.RunPaused)}
    assert {0, 1} <= paused


ANSWERS = ["again", "happened", "stopped", "given up"]


def test_a_process_may_die_in_the_middle_of_acts(model_server: str) -> None:
    die_in_acts(model_server, [Interruption("dies", n, 0, ANSWERS[n % 4], (n // 4 % 2) / 500) for n in range(8, 56)])


@pytest.mark.long
@pytest.mark.parametrize("delay", [0.0, 0.002])
@pytest.mark.parametrize("then", ANSWERS)
def test_a_process_may_die_at_any_moment_of_acts(model_server: str, then: str, delay: float) -> None:
    die_in_acts(model_server, [Interruption("dies", n, turns, then, delay) for n in range(60) for turns in (0, 5)])
