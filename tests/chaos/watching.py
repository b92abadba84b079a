"""What a test looks at in the rows, and waits for."""

import time
from collections.abc import Callable

from runtime.events import TERMINAL
from runtime.models import Run

OPEN = ("queued", "running")
WAITS = "needs_review"


def over(run: Run) -> bool:
    """Whether the run has ended, or waits for a person."""
    run.refresh_from_db()
    return run.status in TERMINAL or run.status == WAITS


def nothing_open() -> bool:
    return not Run.objects.filter(depth=0, status__in=OPEN).exists()


def give_up_leases() -> None:
    """As if the time of the leases of dead processes had passed; tests of that time wait for it."""
    Run.objects.filter(depth=0, status__in=OPEN).update(lease_until="2020-01-01T00:00:00Z")


def until(true: Callable[[], bool], seconds: float, words: str) -> float:
    """Wait for it; how long that took."""
    since = time.monotonic()
    while not true():
        assert time.monotonic() - since < seconds, words
        time.sleep(0.1)
    return time.monotonic() - since
