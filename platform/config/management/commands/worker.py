import os
from typing import Any

from django_q.management.commands import qcluster

from config.family import die_with_parent


class Command(qcluster.Command):
    help = "Runs the background worker (started by `up`)."

    def handle(self, *args: Any, **options: Any) -> None:
        os.register_at_fork(after_in_child=die_with_parent)  # its children would outlive a killed parent
        super().handle(*args, **options)
