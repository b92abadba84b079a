"""What a person sees of delegates and their work; no database, no browser."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings

from runtime import events as e
from runtime.events import Event, Logged, Origin, View
from tests.generated_logs import logs
from tests.web.rendered import ASKED, CALL, CHILD_CALL, HR, MESSAGE, ROOT, THREAD, live, numbered, shown
from web.chat.render import ChatRenderer
from web.sse import RunHead

LIBRARIAN = Origin(
    run=uuid4(), root=ROOT.run, agent="Librarian", slug="librarian", parent=HR.run, parent_call=CHILD_CALL, depth=2
)


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


def test_a_failed_delegate_says_so_in_the_public_sentence() -> None:
    failed = e.DelegateFailed(ROOT, CALL, HR.run, "timeout", "HR desk took too long.", 60)
    words = shown(ASKED, e.DelegateStarted(ROOT, CALL, HR, "leave"), e.RunStarted(HR), failed)
    assert "took too long 1 min 0 s" in words
    assert "HR desk took too long." in words


@pytest.mark.parametrize(("view", "seen"), [("full", True), ("summary", True), ("none", False)])
def test_a_refused_call_shows_a_delegate_that_may_be_seen(view: View, seen: bool) -> None:
    called = replace(ASKED, view=view)
    words = shown(called, e.ToolReturned(ROOT, CALL, False, "The limit is used up.", "budget"))
    assert ("HR desk" in words, "limit of calls" in words) == (seen, seen)


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
