"""Cases 29, 30 and 31 of what users of such systems suffered (tests/cases/README.md)."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.db import connection

from runtime.models import Run
from tests import world
from tests.cases.process import environ, own_site
from tests.conftest import CHECKOUT
from tests.scripted import ScriptedModel
from tests.web.api_client import client, scripted_agent, settle

FEW_CONNECTIONS, STREAMS = 30, 100
COLD_MEGABYTES = 300
LONG = 50_000


@pytest.fixture
def poor_user(site: str) -> Iterator[str]:
    """A user of the database that has thirty connections and not one more."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE poor LOGIN CONNECTION LIMIT {FEW_CONNECTIONS}")
        cursor.execute("GRANT ALL ON SCHEMA public TO poor")
        cursor.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO poor")
        cursor.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO poor")
    yield "poor"
    with connection.cursor() as cursor:
        cursor.execute("DROP OWNED BY poor")
        cursor.execute("DROP ROLE poor")


@pytest.mark.django_db(transaction=True)
def test_case_29_a_hundred_slow_streams_finish_with_thirty_connections(
    poor_user: str, model: ScriptedModel, tmp_path: Path
) -> None:
    scripted_agent(model)
    model.says(["slow "] * 8, delay=0.5, times=None)
    key = world.api_key(world.linus())
    with own_site(tmp_path, poor_user) as own:
        with Counted() as most:
            texts = asyncio.run(streams(own.url, key))
        settle()
    assert texts == ["slow " * 8] * STREAMS
    assert most.connections <= FEW_CONNECTIONS, "the limit did not hold"
    assert most.connections < 20, "an open stream costs a connection"


class Counted:
    """The most connections of the poor user seen at once."""

    connections = 0

    def __enter__(self) -> "Counted":
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        with connection.cursor() as cursor:
            while not self._over.wait(0.2):
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'poor'")
                self.connections = max(self.connections, cursor.fetchone()[0])
        connection.close()


async def streams(site: str, key: str) -> list[str]:
    """What each of so many clients at once read of its own run."""
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=site, headers=headers, timeout=120, limits=limits, trust_env=False) as http:

        async def one(number: int) -> str:
            answer = await http.post("/api/v1/runs", json={"agent": "scribe", "input": f"Number {number}"})
            assert answer.status_code == 200, answer.text
            assert '"type":"RUN_FINISHED"' in answer.text.replace(" ", ""), answer.text[-300:]
            return "".join(part.split('"')[0] for part in answer.text.split('"delta":"')[1:])

        return list(await asyncio.gather(*(one(number) for number in range(STREAMS))))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("warm", "more"), [pytest.param(80, 120, id="short"), pytest.param(500, 5_000, id="long", marks=pytest.mark.long)]
)
def test_case_30_memory_is_flat_however_many_runs_there_were(
    site: str, model: ScriptedModel, tmp_path: Path, warm: int, more: int
) -> None:
    """Case 31 too: small at the start. What of events and runs is kept: tests/runtime/test_retention.py."""
    scripted_agent(model)
    model.says("x" * LONG, times=None)
    key = world.api_key(world.linus())
    with own_site(tmp_path) as own:
        assert own.megabytes() < COLD_MEGABYTES
        api = client(own.url, key)
        ask_often(api, warm)
        before = own.megabytes()
        ask_often(api, more)
        grown = own.megabytes() - before
        settle()
    assert Run.objects.filter(status="completed").count() == warm + more
    # Logs that were kept would be seen: each holds the words twice.
    assert grown < 10, f"{grown:.1f} MB more after {more} runs"


def ask_often(api: httpx.Client, times: int) -> None:
    for _ in range(times):
        answer = api.post("/runs", json={"agent": "scribe", "input": "y" * LONG, "wait": 30})
        assert answer.status_code == 200, answer.text


IMPORT = """
import socket, sys
def refused(*address): raise OSError(f"the network was used: {address}")
socket.getaddrinfo = socket.create_connection = refused
real = socket.socket.connect
socket.socket.connect = lambda self, to: real(self, to) if self.family == socket.AF_UNIX else refused(to)
sys.path[:0] = [".", "platform"]
import config.asgi
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.django_db(transaction=True)
def test_case_31_the_web_process_starts_small_and_without_the_network(site: str) -> None:
    """Its seconds are measured by `make bench`."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=CHECKOUT, env=environ(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) / 1_000 < COLD_MEGABYTES
