"""The processes of a benchmark: started and ended by number, looked at through /proc (so it runs on Linux only)."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from config.family import die_with_parent
from tests.bench import CHECKOUT

PROC = Path("/proc")
TICK = 1 / os.sysconf("SC_CLK_TCK")
PATIENCE = 60.0  # seconds for a process to start, on a busy machine


@dataclass(frozen=True)
class Program:
    """A running process that serves on loopback."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu(self) -> float:
        """Seconds that all its threads have spent, in user and in kernel."""
        return cpu_of(self.pid)

    def threads(self) -> int:
        return int(self._status("Threads"))

    def megabytes(self) -> float:
        """Resident memory."""
        return int(self._status("VmRSS").removesuffix("kB")) / 1024

    def _status(self, name: str) -> str:
        lines = (PROC / str(self.pid) / "status").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"{name}:")).split(":")[1].strip()


def cpu_of(pid: int) -> float:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK


def cpu_of_children(pid: int) -> float:
    """Of the living ones."""
    pids = (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    return sum(cpu_of(int(child)) for child in pids)


@contextmanager
def model_server() -> Iterator[Program]:
    with running([sys.executable, "-m", "tests.bench.model"], {}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Program(process.pid, int(process.stdout.readline()))


@contextmanager
def uvicorn(application: str, port: int, environ: Mapping[str, str]) -> Iterator[Program]:
    """One process with the settings of `manage.py up`, the loop and the parser named."""
    command = [sys.executable, "-m", "uvicorn", application, "--app-dir", "platform", "--port", str(port)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    command += ["--timeout-graceful-shutdown", "1"]
    with running(command, environ) as process:
        yield Program(process.pid, port)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(program: Program, address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            httpx.get(program.url + address, timeout=5, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"Nothing answered at {program.url}{address} within {PATIENCE:.0f} seconds.")


@contextmanager
def running(
    command: Sequence[str], environ: Mapping[str, str], *, stdin: int | None = None, stdout: int | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """A child that ends with this block, and with this process at the latest."""
    # Proxies of the environment are for the network, not for loopback.
    surroundings = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    process = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=surroundings | dict(environ),
        stdin=stdin,
        stdout=stdout,
        text=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads yet
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()
