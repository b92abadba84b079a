"""What a person sees of a run, live and after a reload; no database, no browser."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import events as e
from runtime.events import Event, Logged, Origin, View
from runtime.models import Run
from tests.dom import Node, parse
from tests.generated_logs import logs
from web.chat.render import ChatRenderer
from web.chat.turns import turn
from web.sse import RunHead

THREAD = uuid4()
CALL, CHILD_CALL, MESSAGE = uuid4(), uuid4(), uuid4()
ROOT = Origin(run=(_root := uuid4()), root=_root, agent="Concierge", slug="concierge")
HR = Origin(run=uuid4(), root=_root, agent="HR desk", slug="hr", parent=_root, parent_call=CALL, depth=1)
LIBRARIAN = Origin(
    run=uuid4(), root=_root, agent="Librarian", slug="librarian", parent=HR.run, parent_call=CHILD_CALL, depth=2
)
ASKED = e.ToolCalled(ROOT, CALL, "ask_hr", "HR desk", "delegate")


class Places:
    send = "/send"
    decides = True

    def stream(self, run: UUID, after: int) -> str:
        return f"/stream/{run}?after={after}"

    def stop(self, run: UUID) -> str:
        return f"/stop/{run}"


def numbered(*happened: Event) -> list[Logged]:
    return [Logged(n, datetime.now(UTC), event) for n, event in enumerate(happened, 1)]


def root_row(of: Origin, status: str = "running") -> Run:
    return Run(
        id=of.run, root_id=of.run, thread_id=THREAD, agent_label=of.agent, input="<b>How many days?</b>", status=status
    )


def stored(log: list[Logged], status: str = "running") -> Node:
    """The turn as a page that is loaded now has it."""
    return parse(turn(root_row(log[0].event.of, status), log, Places()).html)


def live(log: list[Logged], after: int = 0) -> Node:
    """The turn of a page that was loaded after so many events and has streamed the rest."""
    page = parse(turn(root_row(log[0].event.of), log[:after], Places()).html)
    renderer = ChatRenderer(RunHead(log[0].event.of.run, THREAD), decides=True)
    for logged in log:
        frame = renderer.frames(logged)
        if frame and logged.n > after:
            page.apply(streamed(frame))
    return page


def streamed(frame: str) -> str:
    """A frame after its way through the lines of an event stream, which know no CR."""
    return frame.replace("\r\n", "\n").replace("\r", "\n")


def shown(*happened: Event) -> str:
    """The words on the live page."""
    return " ".join(live(numbered(e.RunStarted(ROOT), *happened)).text.split())


def delegated(view: View, *work: Event) -> list[Event]:
    child = replace(HR, view=view)
    return [
        ASKED,
        e.ToolArguments(ROOT, CALL, '{"task": "the days of leave"}'),
        e.DelegateStarted(ROOT, CALL, child, "the days of leave"),
        e.RunStarted(child),
        *work,
        e.RunFinished(child, "completed"),
        e.DelegateFinished(ROOT, CALL, child.run, "It is 28 days.", 1.24),
        e.ToolReturned(ROOT, CALL, True, "It is 28 days.\nSources consulted: search(leave)", "", 1.25),
    ]


def searched(view: View = "full") -> list[Event]:
    """HR desk asks Librarian, who searches."""
    librarian = replace(LIBRARIAN, view=view)
    hidden_call = uuid4()
    return [
        e.ToolCalled(HR, CHILD_CALL, "ask_librarian", "Librarian", "delegate"),
        e.DelegateStarted(HR, CHILD_CALL, librarian, "look up leave"),
        e.RunStarted(librarian),
        e.ToolCalled(librarian, hidden_call, "search", "Employee handbook", "memory"),
        e.ToolArguments(librarian, hidden_call, '{"query": "annual leave"}'),
        e.SourceCited(librarian, hidden_call, "Employee handbook", "Leave", 2),
        e.ToolReturned(librarian, hidden_call, True, "Every employee has 28 days.", "", 0.1),
        e.MessageStarted(librarian, MESSAGE),
        e.MessageFinished(librarian, MESSAGE, "The handbook says **28 days**."),
        e.RunFinished(librarian, "completed"),
        e.DelegateFinished(HR, CHILD_CALL, librarian.run, "The handbook says **28 days**.", 0.4),
        e.ToolReturned(HR, CHILD_CALL, True, "The handbook says 28 days.", "", 0.4),
    ]


@settings(max_examples=60, deadline=None)
@given(logs(), st.data())
def test_live_page_and_reloaded_page_are_the_same(log: list[Logged], data: st.DataObject) -> None:
    """R9: from the first event, and from a reload anywhere in the middle."""
    status = log[-1].event.status  # type: ignore[union-attr]
    page = stored(log, status).html
    assert live(log).html == page
    assert live(log, after=data.draw(st.integers(0, len(log)))).html == page


@settings(max_examples=40, deadline=None)
@given(logs())
def test_pieces_of_text_are_not_needed_once_a_run_has_ended(log: list[Logged]) -> None:
    status = log[-1].event.status  # type: ignore[union-attr]
    whole = [logged for logged in log if not isinstance(logged.event, e.MessageText)]
    assert stored(whole, status).html == stored(log, status).html


@settings(max_examples=40, deadline=None)
@given(logs())
def test_nothing_of_a_hidden_delegate_is_on_the_wire(log: list[Logged]) -> None:
    starts = [logged.event for logged in log if isinstance(logged.event, e.DelegateStarted)]
    hidden = {start.child.run for start in starts if start.child.view == "none"}
    closed = {start.child.run for start in starts if start.child.view != "full"}
    parents = {start.child.run: start.of.run for start in starts}
    renderer = ChatRenderer(RunHead(log[0].event.of.run, THREAD), decides=True)
    for logged in log:
        frame = renderer.frames(logged)
        announced = logged.event.child.run if isinstance(logged.event, e.DelegateStarted) else None
        if announced in hidden or closed.intersection(_path(logged.event.of.run, parents)):
            assert frame is None
        if frame:
            assert not any(str(run) in frame for run in hidden)


def _path(run: UUID, parents: dict[UUID, UUID]) -> list[UUID]:
    return [run, *_path(parents[run], parents)] if run in parents else [run]


def test_a_delegates_card_holds_its_own_delegates_card() -> None:
    page = live(numbered(e.RunStarted(ROOT), *delegated("full", *searched())))
    outer = page.by_id(f"c-{CALL}")
    assert outer is not None
    inner = outer.by_id(f"c-{CHILD_CALL}")
    assert inner is not None
    assert "Employee handbook" in inner.text
    assert "asked by HR desk" in inner.text
    assert "1.2 s" in outer.text


def test_a_summary_shows_label_state_duration_and_answer_only() -> None:
    words = shown(*delegated("summary", *searched()))
    for word in ("HR desk", "done", "1.2 s", "It is 28 days."):
        assert word in words
    for word in ("Librarian", "handbook", "the days of leave", "Sources consulted"):
        assert word not in words


def test_a_hidden_delegate_leaves_no_trace() -> None:
    assert shown(*delegated("none", *searched())) == shown()


def test_a_hidden_delegate_of_a_visible_one_leaves_no_trace() -> None:
    words = shown(*delegated("full", *searched("none")))
    assert "HR desk" in words
    assert "Librarian" not in words
    assert "handbook" not in words


def test_sources_are_listed_once_each() -> None:
    page = live(numbered(e.RunStarted(ROOT), *delegated("full", *searched(), *searched())))
    sources = page.by_id(f"s-{ROOT.run}")
    assert sources is not None
    assert [" ".join(one.text.split()) for one in sources.all("li")] == ["Leave, passage 2 Employee handbook"]


def test_a_refused_delegation_is_a_failed_card() -> None:
    page = live(numbered(e.RunStarted(ROOT), ASKED, e.ToolReturned(ROOT, CALL, False, "It is on this path.", "cycle")))
    card = page.by_id(f"c-{CALL}")
    assert card is not None
    assert [one.text for one in card.all(css_class="failed")] == [
        "that agent is already on this path",
        "It is on this path.",
    ]


def test_an_unknown_tool_does_not_tell_the_names_of_the_known_ones() -> None:
    called = e.ToolCalled(ROOT, CALL, "nothing", "nothing", "unknown")
    words = shown(
        called, e.ToolReturned(ROOT, CALL, False, "There is no tool 'nothing'. Tools: ask_secret.", "unknown")
    )
    assert "there is no such tool" in words
    assert "ask_secret" not in words


def test_a_failed_delegate_says_so_in_the_public_sentence() -> None:
    failed = e.DelegateFailed(ROOT, CALL, HR.run, "timeout", "HR desk took too long.", 60)
    words = shown(ASKED, e.DelegateStarted(ROOT, CALL, HR, "leave"), e.RunStarted(HR), failed)
    assert "took too long 1 min 0 s" in words
    assert "HR desk took too long." in words


def test_administrators_notices_are_not_shown() -> None:
    assert "Payroll" not in shown(e.Notice(ROOT, "Payroll was left out.", "administrators"))
    assert "Closed on Friday" in shown(e.Notice(ROOT, "Closed on Friday."))


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (e.RunFinished(ROOT, "limited", "max_steps"), "limit of steps"),
        (e.RunFinished(ROOT, "limited", "max_seconds"), "time limit"),
        (e.RunFinished(ROOT, "cancelled"), "Stopped. What was written so far is kept."),
        (
            e.RunFinished(ROOT, "failed", "model", "The model is overloaded.", "429 rk-secret"),
            "The model is overloaded.",
        ),
    ],
)
def test_an_end_that_is_no_answer_is_said_in_words(finished: e.RunFinished, words: str) -> None:
    said = shown(e.MessageStarted(ROOT, MESSAGE), e.MessageFinished(ROOT, MESSAGE, "Well", False), finished)
    assert words in said
    assert "Well Cut short here." in said
    assert "429" not in said


def test_only_a_failed_run_offers_to_try_again() -> None:
    failed, done = (live(numbered(e.RunStarted(ROOT), e.RunFinished(ROOT, one))) for one in ("failed", "completed"))
    assert [one.attrs["value"] for one in failed.all("button", "retry")] == [str(ROOT.run)]
    assert done.all("button", "retry") == []


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "<!--slot x-->\r\n<!--end-->", '"><img src=x>', "🦉\u202eabc"]
)
def test_hostile_text_stays_text(text: str) -> None:
    happened: list[Event] = [
        e.RunStarted(ROOT),
        e.ToolCalled(ROOT, CALL, text, text, text),
        e.ToolArguments(ROOT, CALL, text),
        e.ToolReturned(ROOT, CALL, True, text),
        e.MessageStarted(ROOT, MESSAGE),
        e.MessageText(ROOT, MESSAGE, text),
    ]
    page = live(numbered(*happened))
    assert page.all("script") == page.all("img") == []
    message = page.by_id(f"m-{MESSAGE}")
    assert message is not None
    assert message.text == text
    loaded = stored(numbered(*happened)).by_id(f"f-{ROOT.run}")
    flow = page.by_id(f"f-{ROOT.run}")
    assert flow is not None
    assert loaded is not None
    assert flow.html == loaded.html


def test_a_run_whose_log_is_gone_ends_as_its_row_says() -> None:
    row = root_row(ROOT, "failed")
    row.error = "The server was restarted."
    page = parse(turn(row, (), Places()).html)
    assert "The server was restarted." in page.text
    assert "/stream/" not in page.html


def test_a_running_turn_streams_on_after_what_it_shows() -> None:
    page = stored(numbered(e.RunStarted(ROOT), ASKED))
    assert f"/stream/{ROOT.run}?after=2" in page.html


def test_a_piece_of_text_costs_little() -> None:
    """The budget is 50 µs; the best of some rounds, since the machine is shared."""
    renderer = ChatRenderer(RunHead(ROOT.run, THREAD))
    piece = Logged(2, datetime.now(UTC), e.MessageText(ROOT, MESSAGE, "twenty-eight days & <more> "))
    best = min(_seconds(lambda: renderer.frames(piece), 1000) for _ in range(5))
    assert best / 1000 < 50e-6


def _seconds(work: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - start


@pytest.mark.parametrize(("view", "seen"), [("full", True), ("summary", True), ("none", False)])
def test_a_refused_call_shows_a_delegate_that_may_be_seen(view: View, seen: bool) -> None:
    called = replace(ASKED, view=view)
    words = shown(called, e.ToolReturned(ROOT, CALL, False, "The limit is used up.", "budget"))
    assert ("HR desk" in words, "limit of calls" in words) == (seen, seen)


def test_a_stopped_answer_can_be_asked_for_again_and_a_forbidden_one_can_not() -> None:
    stopped = live(numbered(e.RunStarted(ROOT), e.RunFinished(ROOT, "cancelled")))
    revoked = live(numbered(e.RunStarted(ROOT), e.RunFinished(ROOT, "failed", "forbidden", "There is no such agent.")))
    assert len(stopped.all("button", "retry")) == 1
    assert revoked.all("button", "retry") == []
    assert "You may not use this agent any more" in revoked.text


def test_a_hidden_delegates_question_is_for_somebody_else() -> None:
    hidden, call = replace(HR, view="none"), uuid4()
    asked: list[Event] = [
        ASKED,
        e.DelegateStarted(ROOT, CALL, hidden, "order paper"),
        e.RunStarted(hidden),
        e.ToolCalled(hidden, call, "order", "Order paper", "http", "acts"),
        e.ApprovalAsked(hidden, call),
        e.RunPaused(hidden, "needs_review"),
        e.RunPaused(ROOT, "needs_review"),
    ]
    words = shown(*asked)
    assert "A person has to look at this before the answer goes on." in words
    assert "Order paper" not in words


def test_a_call_is_asked_about_again_when_it_was_lost_again() -> None:
    call = e.ToolCalled(ROOT, CALL, "order", "Order <b>paper</b>", "http", "acts")
    asked: list[Event] = [e.ApprovalAsked(ROOT, CALL), e.RunPaused(ROOT, "needs_review")]
    again: list[Event] = [e.ApprovalDecided(ROOT, CALL, approved=True), e.RunResumed(ROOT)]
    log = numbered(e.RunStarted(ROOT), call, *asked, *again, *asked)
    page = live(log)
    assert len(page.all(css_class="question")) == 1
    assert "Did “Order <b>paper</b>” happen?" in page.text
    assert page.all("b") == []
    flow, loaded = page.by_id(f"f-{ROOT.run}"), stored(log, "needs_review").by_id(f"f-{ROOT.run}")
    assert flow is not None
    assert loaded is not None
    assert flow.html == loaded.html
