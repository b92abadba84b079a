import os
import signal
from types import FrameType
from typing import Any

from django_q.management.commands import qcluster

from config.family import die_with_parent
from runtime import tasks


class Command(qcluster.Command):
    help = "Runs the background worker (started by `up`)."

    def handle(self, *args: Any, **options: Any) -> None:
        os.register_at_fork(after_in_child=die_with_parent)  # its children would outlive a killed parent
        super().handle(*args, **options)
        for number in (signal.SIGTERM, signal.SIGINT):
            _end_shifts_before(number)


def _end_shifts_before(number: int) -> None:
    """The queue waits for the work under way before it ends, and a shift lasts a minute."""
    queues_own = signal.getsignal(number)

    def stop(received: int, frame: FrameType | None) -> None:
        tasks.STOPPING.set()
        if callable(queues_own):
            queues_own(received, frame)

    signal.signal(number, stop)
