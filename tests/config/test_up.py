"""`manage.py up`: one command starts everything, and its end is the end of everything."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest

from config import postgres
from config.env import CHECKOUT
from tests.conftest import free_port


class House:
    """One installation in a folder of its own; `up` starts it."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.port = free_port()
        self.environ = os.environ | {"DATA_DIR": str(data_dir), "PORT": str(self.port)}

    def up(self, *options):
        command = [sys.executable, "manage.py", "up", *options]
        return subprocess.Popen(
            command, cwd=CHECKOUT, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def say(self, process):
        return process.communicate(timeout=30)[0]

    def read_until(self, process, words):
        lines = []
        for line in process.stdout:
            lines.append(line)
            if words in line:
                return "".join(lines)
        raise AssertionError("".join(lines))

    def processes(self):
        """Process ids of everything that runs with this data folder, the database left out."""
        return [int(process.name) for process in Path("/proc").glob("[0-9]*") if self._is_ours(process)]

    def _is_ours(self, process):
        try:
            line = (process / "cmdline").read_bytes()
            ours = f"DATA_DIR={self.data_dir}".encode() in (process / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return ours and (b"uvicorn" in line or b"manage.py" in line)

    def all_gone(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.processes():
                return True
            time.sleep(0.1)
        return False


@pytest.fixture(scope="module")
def house():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        leave = postgres.attach(Path(folder), durable=False)  # keeps the fast server between the tests
        yield House(Path(folder))
        leave()


def test_it_refuses_a_database_that_is_behind_in_words(house):
    process = house.up()
    said = house.say(process)
    assert process.returncode == 1
    assert "python manage.py migrate" in said
    assert "Traceback" not in said


def test_the_demo_start_tells_the_first_sign_in_once_and_ctrl_c_ends_everything(house):
    process = house.up("--demo")
    said = house.read_until(process, "Roster is at")
    password = re.search(r"password: +(\S+)", said).group(1)
    kept = house.data_dir / "first-sign-in.txt"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with httpx.Client(base_url=f"http://127.0.0.1:{house.port}", trust_env=False) as client:
        page = client.get("/login/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page).group(1)
        form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token}
        assert client.post("/login/", data=form).headers["location"] == "/chat/"
        assert client.get("/readyz").json() == {"database": True, "worker": True, "hub": True}
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    assert house.all_gone(1)


def test_it_starts_again_after_everything_was_killed_and_children_follow_a_killed_parent(house):
    process = house.up("--demo")
    assert "password" not in house.read_until(process, "Roster is at")
    for number in house.processes():
        os.kill(number, signal.SIGKILL)
    process.wait(timeout=10)
    process = house.up()
    house.read_until(process, "Roster is at")
    time.sleep(1)  # the worker's own children are there
    assert len(house.processes()) > 4
    process.kill()
    process.wait()
    assert house.all_gone(15)


def test_a_killed_worker_comes_back_and_a_killed_web_process_ends_everything(house):
    process = house.up()
    house.read_until(process, "Roster is at")

    def one(words):
        for number in house.processes():
            line = Path(f"/proc/{number}/cmdline").read_bytes()
            parent = int(Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[1])
            if words in line and parent == process.pid:
                return number
        return None

    os.kill(one(b"worker"), signal.SIGKILL)
    house.read_until(process, "The background worker ended")
    time.sleep(0.5)
    assert one(b"worker")
    os.kill(one(b"uvicorn"), signal.SIGKILL)
    assert process.wait(timeout=20) != 0
    assert house.all_gone(1)


def test_a_port_in_use_is_said_with_a_way_out(house):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", house.port))
        taken.listen()
        process = house.up()
        said = house.say(process)
    assert process.returncode == 1
    assert f"Port {house.port} is in use" in said
    assert f"PORT={house.port + 1}" in said
