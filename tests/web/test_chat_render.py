"""What a person sees of a run, live and after a reload; no database, no browser."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import events as e
from runtime.events import Event, Logged
from tests.dom import parse
from tests.generated_logs import logs
from tests.web.rendered import (
    ASKED,
    CALL,
    MESSAGE,
    ROOT,
    THREAD,
    Places,
    live,
    numbered,
    root_row,
    shown,
    stored,
)
from web.chat.render import ChatRenderer
from web.chat.turns import turn
from web.sse import RunHead


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


def test_an_unknown_tool_does_not_tell_the_names_of_the_known_ones() -> None:
    called = e.ToolCalled(ROOT, CALL, "nothing", "nothing", "unknown")
    words = shown(
        called, e.ToolReturned(ROOT, CALL, False, "There is no tool 'nothing'. Tools: ask_secret.", "unknown")
    )
    assert "there is no such tool" in words
    assert "ask_secret" not in words


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
    "text", ["<script>alert(1)</script>", "<!--slot x-->\r\n<!--end-->", '"><img src=x>', "🦉\u200fabc"]
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


def test_a_stopped_answer_can_be_asked_for_again_and_a_forbidden_one_can_not() -> None:
    stopped = live(numbered(e.RunStarted(ROOT), e.RunFinished(ROOT, "cancelled")))
    revoked = live(numbered(e.RunStarted(ROOT), e.RunFinished(ROOT, "failed", "forbidden", "There is no such agent.")))
    assert len(stopped.all("button", "retry")) == 1
    assert revoked.all("button", "retry") == []
    assert "You may not use this agent any more" in revoked.text


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


@pytest.mark.parametrize(
    ("started", "said", "finished"),
    [
        (e.MessageStarted, e.MessageText, e.MessageFinished(ROOT, MESSAGE, "One. Two.")),
        (e.ReasoningStarted, e.ReasoningText, e.ReasoningFinished(ROOT, MESSAGE)),
    ],
)
def test_who_comes_back_after_texts_were_put_together_reads_them_once(
    started: Callable[..., Event], said: Callable[..., Event], finished: Event
) -> None:
    begun = [e.RunStarted(ROOT), started(ROOT, MESSAGE)]
    before = numbered(*begun, said(ROOT, MESSAGE, "One. "), said(ROOT, MESSAGE, "Two."), finished)
    since = [*before[:2], Logged(4, before[3].at, said(ROOT, MESSAGE, "One. Two.", first=3)), before[4]]
    page = parse(turn(root_row(ROOT), before[:3], Places()).html)
    renderer = ChatRenderer(RunHead(ROOT.run, THREAD))
    for logged in since:
        frame = renderer.frames(logged)
        if frame and logged.n > 3:
            page.apply(frame)
            assert page.text.count("One. ") == 1


def test_the_words_of_models_and_tools_turn_nothing_round() -> None:
    label = "\u202eAsk\u2067"
    called = e.ToolCalled(ROOT, CALL, "x", label, "unknown")
    words = shown(
        called,
        e.ToolArguments(ROOT, CALL, '{"\u202ea": "\u202eb"}'),
        e.ToolReturned(ROOT, CALL, True, "\u202ec"),
        e.MessageStarted(ROOT, MESSAGE),
        e.MessageText(ROOT, MESSAGE, "\u202ed"),
        e.Notice(ROOT, "\u202ee"),
    )
    assert "Ask" in words
    assert {sign for sign in words if sign in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"} == set()
