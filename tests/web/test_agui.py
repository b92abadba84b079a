"""The public stream of any run that could have happened obeys AG-UI 1.0 (docs/events.md)."""

import json
from time import process_time_ns
from uuid import UUID, uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import events
from runtime.events import Event, Logged, Origin, Status, View
from tests.agui_checker import complaints
from tests.generated_logs import MORNING, logs
from web.api.agui import AguiRenderer
from web.sse import RunHead

THREAD = uuid4()


def rendered(log: list[Logged]) -> list[tuple[int, dict]]:
    renderer = AguiRenderer(RunHead(log[0].event.of.run, THREAD))
    frames = [(logged.n, renderer.frames(logged)) for logged in log]
    return [(n, json.loads(frame)) for n, frame in frames if frame is not None]


def bodies(log: list[Logged]) -> list[dict]:
    return [frame for _, frame in rendered(log)]


def as_log(*happened: Event) -> list[Logged]:
    return [Logged(n, MORNING, event) for n, event in enumerate(happened, 1)]


@given(logs())
@settings(max_examples=300, deadline=None)
def test_every_run_gives_a_conformant_stream(log):
    assert complaints(bodies(log)) == []


@given(logs())
@settings(max_examples=100, deadline=None)
def test_a_frame_is_one_line_and_has_no_line_break_that_would_end_an_event(log):
    renderer = AguiRenderer(RunHead(log[0].event.of.run, THREAD))
    assert not any("\n" in frame or "\r" in frame for frame in map(renderer.frames, log) if frame)


@given(logs(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_reader_who_resumes_anywhere_gets_exactly_what_is_missing(log, data):
    n = data.draw(st.integers(0, len(log)))
    whole = rendered(log)
    seen_before = rendered(log[:n]) if n else []
    assert [frame for frame in rendered(log) if frame[0] > n] == whole[len(seen_before) :]
    assert whole[: len(seen_before)] == seen_before


@given(logs())
@settings(max_examples=100, deadline=None)
def test_the_text_on_the_stream_is_the_text_of_the_root(log):
    said = "".join(
        item.event.text for item in log if isinstance(item.event, events.MessageText) and not item.event.of.depth
    )
    assert "".join(frame["delta"] for frame in bodies(log) if frame["type"] == "TEXT_MESSAGE_CONTENT") == said


@given(logs())
@settings(max_examples=200, deadline=None)
def test_nothing_of_a_delegate_that_is_not_shown_is_on_the_stream(log):
    hidden: set[str] = set()
    steps_of: set[str] = set()
    for item in log:
        if isinstance(item.event, events.DelegateStarted):
            child, coordinator = item.event.child, str(item.event.of.run)
            under_full = item.event.of.depth == 0 or coordinator in steps_of
            if under_full and child.view == "full":
                steps_of.add(str(child.run))
            elif not under_full or child.view == "none":
                hidden.add(str(child.run))
    text = json.dumps(bodies(log))
    assert [run for run in hidden if run in text] == []
    assert {frame["subagentRunId"] for frame in bodies(log) if frame["type"] == "CUSTOM"} <= steps_of


def concierge() -> Origin:
    root = UUID(int=1)
    return Origin(root, root, "Concierge", "concierge")


def under(of: Origin, number: int, agent: str, view: View = "full") -> Origin:
    return Origin(UUID(int=number), of.root, agent, agent.lower(), of.run, UUID(int=number + 100), of.depth + 1, view)


def asked(of: Origin, child: Origin, *work: Event) -> list[Event]:
    call = child.parent_call
    assert call is not None
    return [
        events.ToolCalled(of, call, f"ask_{child.slug}", child.agent, "delegate"),
        events.ToolArguments(of, call, '{"task": "Leave?"}'),
        events.ToolReady(of, call),
        events.DelegateStarted(of, call, child, "Leave?"),
        events.RunStarted(child),
        *work,
        events.RunFinished(child, "completed"),
        events.DelegateFinished(of, call, child.run, "28 days", 1.2),
        events.ToolReturned(of, call, True, "28 days", "", 1.2),
    ]


def nested() -> list[Logged]:
    root, librarian_call = concierge(), UUID(int=500)
    hr = under(root, 2, "HR desk")
    librarian = under(hr, 3, "Librarian")
    search: list[Event] = [
        events.ToolCalled(librarian, librarian_call, "search_handbook", "Employee handbook", "memory"),
        events.ToolArguments(librarian, librarian_call, '{"query": "leave"}'),
        events.ToolReady(librarian, librarian_call),
        events.ToolReturned(librarian, librarian_call, False, "", "timeout", 3.0),
    ]
    said = asked(root, hr, *asked(hr, librarian, *search))
    return as_log(events.RunStarted(root), *said, events.RunFinished(root, "completed"))


def test_delegates_are_sub_agents_with_their_names_nested_ones_under_their_coordinator():
    started = [frame for frame in bodies(nested()) if frame["type"] == "SUBAGENT_STARTED"]
    hr, librarian = str(UUID(int=2)), str(UUID(int=3))
    assert started == [
        {"type": "SUBAGENT_STARTED", "subagentRunId": hr, "name": "HR desk", "parentToolCallId": str(UUID(int=102))},
        {"type": "SUBAGENT_STARTED", "subagentRunId": librarian, "name": "Librarian", "parentSubagentRunId": hr},
    ]


def test_a_delegates_own_calls_are_steps_with_one_readable_line():
    steps = [frame["value"] for frame in bodies(nested()) if frame["type"] == "CUSTOM"]
    assert [(step["agent"], step["phase"], step["status"]) for step in steps] == [
        ("HR desk", "call", "HR desk asks Librarian"),
        ("Librarian", "call", "Librarian looks into Employee handbook"),
        ("Librarian", "result", "Employee handbook failed (timeout)"),
        ("HR desk", "result", "Librarian answered"),
    ]
    assert steps[0]["tool"] == {"toolCallId": str(UUID(int=103)), "name": "ask_librarian"}
    assert steps[2]["tool"] == {"toolCallId": str(UUID(int=500)), "name": "search_handbook", "ok": False}


def end_of(status: Status, reason="", error="") -> dict:
    root = concierge()
    spent = events.Usage(root, "small", 7, 5)
    return bodies(as_log(events.RunStarted(root), spent, events.RunFinished(root, status, reason, error, "secret")))[-1]


def test_each_way_to_end_has_its_frame():
    ids = {"threadId": str(THREAD), "runId": str(UUID(int=1))}
    usage = {"usage": [{"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}]}
    success = {"type": "RUN_FINISHED", "outcome": {"type": "success"}} | ids | usage
    assert end_of("completed") == success
    assert end_of("limited", "max_steps") == success | {"result": {"status": "limited", "reason": "max_steps"}}
    assert end_of("cancelled") == success | {"outcome": {"type": "cancelled"}}
    assert end_of("failed", error="The model is away.") == {
        "type": "RUN_ERROR",
        "message": "The model is away.",
        "code": "failed",
        **usage,
    }


def test_a_notice_for_administrators_and_prose_of_delegates_never_show():
    root = concierge()
    hr, message = under(root, 2, "HR desk"), UUID(int=9)
    secret: list[Event] = [
        events.MessageStarted(hr, message),
        events.MessageText(hr, message, "hush"),
        events.MessageFinished(hr, message, "hush"),
        events.Notice(hr, "hush", "administrators"),
        events.ReasoningStarted(hr, message),
        events.ReasoningText(hr, message, "hush"),
        events.ReasoningFinished(hr, message),
    ]
    log = as_log(events.RunStarted(root), *asked(root, hr, *secret), events.Notice(root, "hush", "administrators"))
    assert "hush" not in json.dumps(bodies(log))


def test_a_text_event_costs_less_than_30_microseconds():
    renderer, of, message = AguiRenderer(RunHead(UUID(int=1), THREAD)), concierge(), UUID(int=9)
    log = [
        Logged(n, MORNING, events.MessageText(of, message, "forty characters of text, as they come, "))
        for n in range(2000)
    ]
    before = process_time_ns()
    for logged in log:
        renderer.frames(logged)
    assert (process_time_ns() - before) / len(log) < 30_000


def test_a_frame_is_one_line_for_readers_too_who_split_as_unicode_does():
    text = "a\u2028b\u2029c\x85d\x0be"
    of = Origin(run := uuid4(), run, "Desk", "desk")
    log = as_log(
        events.RunStarted(of),
        events.MessageStarted(of, message := uuid4()),
        events.MessageText(of, message, text),
        events.Notice(of, text),
        events.ToolCalled(of, call := uuid4(), text, text, "calculator"),
        events.ToolReturned(of, call, True, text),
    )
    renderer = AguiRenderer(RunHead(run, THREAD))
    frames = [frame for frame in map(renderer.frames, log) if frame]
    assert [frame for frame in frames if len(frame.splitlines()) > 1] == []
    assert bodies(log)[2]["delta"] == text
