"""The background worker that is told to end."""

import sys

from django.db import connection
from django_q.tasks import async_task

from runtime.tasks import SHIFT_LOCK
from tests.chaos.town import Process, Town
from tests.chaos.watching import until

STARTS_SLOWLY = """
import os, sys, time
sys.path.insert(0, "platform")
from config.house import open_house
open_house()
import django
django.setup()
from django_q import cluster
worker = os.getpid()
cluster.sleep = lambda seconds: time.sleep(8 if os.getpid() == worker else seconds)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "worker"])
"""
SHIFT_SECONDS = 55


def a_shift_is_under_way() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [SHIFT_LOCK])
        return cursor.fetchone() is not None


def test_it_ends_before_its_shift_does_also_while_it_starts(town: Town) -> None:
    worker = Process([sys.executable, "-c", STARTS_SLOWLY], town.environ, town.folder / "worker.log")
    town.processes.append(worker)
    async_task("runtime.tasks.housekeeping")
    worker.start()
    until(a_shift_is_under_way, 60, "no shift began")
    assert worker.running is not None
    worker.running.terminate()
    assert worker.ends(SHIFT_SECONDS / 2) == 0
