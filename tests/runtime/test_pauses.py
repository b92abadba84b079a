"""What a log says when a run waits for a person, and what its runs know of it afterwards: plain events."""

from datetime import timedelta
from uuid import UUID

from runtime import closing, events
from runtime.events import Event, Logged, Origin
from runtime.run import past
from tests.generated_logs import MORNING

ROOT = Origin(UUID(int=1), UUID(int=1), "Boss", "boss")
CLERK = Origin(UUID(int=2), UUID(int=1), "Clerk", "clerk", UUID(int=1), UUID(int=12), 1)
STAMP, BOOK, COUNT, ASK = (UUID(int=number) for number in (21, 22, 23, 12))


def called(of: Origin, call: UUID, *, acts: bool = False, begun: bool = True) -> list[Event]:
    effect = "acts" if acts else "read-only"
    said: list[Event] = [
        events.ToolCalled(of, call, "tool", "Tool", "clock", effect),
        events.ToolArguments(of, call, "{}"),
    ]
    return [*said, events.ToolReady(of, call)] if begun else said


def a_log() -> list[Event]:
    """Boss asks Clerk, who stamps; beside it a call that acts and one that does not have not begun."""
    asked = events.ToolCalled(ROOT, ASK, "ask_clerk", "Clerk", "delegate")
    return [
        events.RunStarted(ROOT),
        asked,
        events.ToolArguments(ROOT, ASK, "{}"),
        *called(ROOT, BOOK, acts=True, begun=False),
        *called(ROOT, COUNT, begun=False),
        events.ToolReady(ROOT, ASK),
        events.DelegateStarted(ROOT, ASK, CLERK, "Stamp."),
        events.RunStarted(CLERK),
        *called(CLERK, STAMP, acts=True),
    ]


def test_a_pause_leaves_nothing_half_said() -> None:
    said = closing.suspension(a_log(), ROOT, "needs_review")
    assert said == [
        events.ToolReady(ROOT, COUNT),
        events.ToolReady(ROOT, BOOK),
        events.ToolReturned(ROOT, BOOK, False, closing.NOT_MADE, "failed"),
        events.RunPaused(CLERK, "needs_review"),
        events.RunPaused(ROOT, "needs_review"),
    ]


def test_what_was_paused_is_resumed_before_it_is_closed() -> None:
    log = a_log()
    log += closing.suspension(log, ROOT, "needs_review")
    assert closing.paused(log) == [ROOT, CLERK]
    closed = closing.closes(log, closing.STOPPED)
    assert closed[:2] == [events.RunResumed(ROOT), events.RunResumed(CLERK)]
    assert closing.closes([*log, *closed], closing.STOPPED) == []


def at(hour: float, said: list[Event], after: list[Logged]) -> list[Logged]:
    n = after[-1].n if after else 0
    return [*after, *(Logged(n + place, MORNING + timedelta(hours=hour), event) for place, event in enumerate(said, 1))]


def test_no_time_limit_runs_while_a_person_makes_up_their_mind() -> None:
    log = at(0, a_log(), [])
    log = at(0.01, closing.suspension(a_log(), ROOT, "needs_review"), log)
    log = at(30, [events.ApprovalDecided(CLERK, STAMP, approved=True), events.RunResumed(ROOT)], log)
    assert past.fold(log)[ROOT.run].since == MORNING + timedelta(hours=29.99)


def test_what_a_person_said_holds_for_one_attempt() -> None:
    log = at(0, a_log(), [])
    assert past.uncertain(past.fold(log)) == [(CLERK, STAMP)]
    again = at(1, [events.ApprovalDecided(CLERK, STAMP, approved=True)], log)
    assert (past.uncertain(past.fold(again)), past.confirmed(past.fold(again))) == ([], [])
    happened = at(1, [events.ApprovalDecided(CLERK, STAMP, approved=False)], log)
    assert past.confirmed(past.fold(happened)) == [(CLERK, STAMP)]
    resumed = at(2, [events.RunResumed(ROOT), events.RunResumed(CLERK)], again)
    assert past.uncertain(past.fold(resumed)) == [(CLERK, STAMP)]
