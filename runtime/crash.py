"""Named points at which a process can be made to die, between every two commits. Only tests set CRASH_AT."""

import os
import signal

POINTS = (
    "run-stored",  # the message is accepted, no task works for it yet
    "events-unwritten",  # something happened that no commit holds
    "events-written",  # the commit is there, nobody was told
    "acts-committed",  # a call that acts is in the ledger, its work has not begun
    "acts-done",  # its work is done, the ledger does not know
    "stop-stored",  # somebody asked to stop a run, nobody stopped it yet
    "run-claimed",  # a dead process's run was taken over, its work has not begun
)


def point(name: str) -> None:
    """Die here, as by `kill -9`, when CRASH_AT names this point."""
    if os.environ.get("CRASH_AT") == name:
        os.kill(os.getpid(), signal.SIGKILL)
