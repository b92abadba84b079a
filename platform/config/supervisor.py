"""Runs the web process and the worker as one: they end together, and a dead worker comes back."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from config.env import CHECKOUT
from config.family import die_with_parent

PATIENCE = 45.0
"""Seconds between asking a process to end and ending it: its runs may finish calls that act (`runtime.runner`)."""
LONGEST_BACKOFF = 30.0


class Supervisor:
    def __init__(self, web: Sequence[str], worker: Sequence[str]) -> None:
        self.web_command = web
        self.worker_command = worker
        self.stopping = False
        self.backoff = 1.0

    def run(self, on_start: Callable[[], bool]) -> int:
        """Until the web process ends or a signal comes; returns the exit status.

        `on_start` is asked again and again until it says True, to announce that the web answers.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        self.web = start(self.web_command)
        self.worker = start(self.worker_command)
        self.worker_started = time.monotonic()
        try:
            return self._watch(on_start)
        finally:
            end([self.web, self.worker], PATIENCE)

    def _stop(self, number: int, frame: object) -> None:
        self.stopping = True

    def _watch(self, on_start: Callable[[], bool]) -> int:
        announced = False
        while not self.stopping:
            status = self.web.poll()
            if status is not None and not self.stopping:
                print("The web process ended, so everything ends.", file=sys.stderr)
                return abs(status) or 1
            self._revive_worker()
            announced = announced or on_start()
            time.sleep(0.1)
        return 0

    def _revive_worker(self) -> None:
        if self.worker.poll() is None:
            return
        lived = time.monotonic() - self.worker_started
        if lived < self.backoff:
            return
        print("The background worker ended; starting it again.", file=sys.stderr)
        self.backoff = 1.0 if lived > 2 * LONGEST_BACKOFF else min(self.backoff * 2, LONGEST_BACKOFF)
        self.worker = start(self.worker_command)
        self.worker_started = time.monotonic()


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=CHECKOUT, preexec_fn=die_with_parent)  # noqa: PLW1509 - no threads here


def end(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
