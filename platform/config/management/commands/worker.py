import os
from typing import Any

from django.core.management.base import BaseCommand
from django_q.cluster import Cluster

from config.family import die_with_parent
from runtime import tasks


class Worker(Cluster):
    """Tells its shifts first when it has to end, also while it starts: the queue waits for the work under way, and a
    shift lasts a minute."""

    def start(self) -> int:
        pid: int = super().start()
        if tasks.STOPPING.is_set():  # said so early that there was nothing to stop
            self.stop()
        return pid

    def sig_handler(self, signum: int, frame: Any) -> None:
        tasks.STOPPING.set()
        if self.sentinel is not None:
            super().sig_handler(signum, frame)


class Command(BaseCommand):
    help = "Runs the background worker (started by `up`)."

    def handle(self, *args: Any, **options: Any) -> None:
        os.register_at_fork(after_in_child=die_with_parent)  # its children would outlive a killed parent
        Worker().start()
