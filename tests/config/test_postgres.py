"""The embedded server: one for all, last one out stops it, killed ones are no obstacle."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from config import postgres
from config.env import CHECKOUT

ATTACH = "from pathlib import Path; from config import postgres; postgres.attach(Path({!r}), durable=False); "


@pytest.fixture(scope="module")
def data_dir():
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path: as root its parents are closed to Postgres
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def cluster(data_dir):
    return postgres.Cluster(data_dir, durable=False)


def another_process(data_dir, then):
    code = ATTACH.format(str(data_dir)) + then
    environ = os.environ | {"PYTHONPATH": str(CHECKOUT / "platform")}
    return subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True)


def select(data_dir, statement):
    with psycopg.connect(host=str(postgres.socket_folder(data_dir)), user="roster", dbname="postgres") as connection:
        return connection.execute(statement).fetchone()[0]


def test_it_has_the_extension_and_the_locale_that_the_product_needs(data_dir):
    leave = postgres.attach(data_dir, durable=False)
    assert select(data_dir, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    assert select(data_dir, "SELECT datlocprovider::text FROM pg_database WHERE datname = 'postgres'") == "b"
    assert select(data_dir, "SHOW listen_addresses") == ""
    leave()


def test_the_last_one_out_stops_it_and_nobody_before(data_dir, cluster):
    leave = postgres.attach(data_dir, durable=False)
    other = another_process(data_dir, "print('in', flush=True); import time; time.sleep(60)")
    assert other.stdout.readline() == "in\n"
    leave()
    assert cluster.ready()
    other.kill()
    other.wait()
    postgres.attach(data_dir, durable=False)()
    assert not cluster.ready()


def test_a_server_left_running_by_a_killed_process_is_attached_to(data_dir, cluster):
    other = another_process(data_dir, "print('in', flush=True); import time; time.sleep(60)")
    assert other.stdout.readline() == "in\n"
    started = select(data_dir, "SELECT pg_postmaster_start_time()::text")
    other.kill()
    other.wait()
    leave = postgres.attach(data_dir, durable=False)
    assert select(data_dir, "SELECT pg_postmaster_start_time()::text") == started
    leave()
    assert not cluster.ready()


def test_a_killed_server_starts_again_although_its_number_was_taken(data_dir, cluster):
    leave = postgres.attach(data_dir, durable=False)
    select(data_dir, "SELECT 1")
    pid_file = cluster.data / "postmaster.pid"
    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
    time.sleep(0.2)
    pid_file.write_text(pid_file.read_text().replace(pid_file.read_text().splitlines()[0], str(os.getpid()), 1))
    leave_again = postgres.attach(data_dir, durable=False)
    assert select(data_dir, "SELECT 1") == 1
    leave()
    leave_again()


def test_two_first_starts_at_once_make_one_server():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        both = [another_process(folder, "print('in', flush=True)") for _ in range(2)]
        assert [process.wait(timeout=60) for process in both] == [0, 0]
        assert not postgres.Cluster(Path(folder), durable=False).ready()


def test_a_long_path_gets_a_short_folder_for_its_socket(tmp_path):
    deep = tmp_path / ("x" * 100)
    assert len(str(postgres.socket_folder(deep) / ".s.PGSQL.5432")) <= 103
    assert postgres.socket_folder(deep) != postgres.socket_folder(tmp_path / ("y" * 100))
