"""Real processes on one database, which a test may kill and start again."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.chaos.nursery import Born
from tests.conftest import CHECKOUT, free_port

START_SECONDS = 180
"""A process that starts shares two cores with everything else that a test does."""


class Process:
    """A program that is started, killed and started again with the same command line."""

    def __init__(self, command: list[str], environ: dict[str, str], log: Path) -> None:
        self.command, self.environ, self.log = command, environ, log
        self.running: subprocess.Popen[bytes] | Born | None = None

    def start(self, **changes: str) -> None:
        self.running = self.started(self.environ | changes)

    def started(self, environ: dict[str, str]) -> subprocess.Popen[bytes] | Born:
        with self.log.open("a") as log:
            return subprocess.Popen(
                self.command, cwd=CHECKOUT, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def status(self) -> int | None:
        """None while it runs."""
        return self.running.poll() if self.running else 0

    def kill(self) -> None:
        """With the processes that it started, at once."""
        if self.running is not None and self.running.poll() is None:
            os.killpg(self.running.pid, signal.SIGKILL)
            self.running.wait(60)

    def stop(self) -> None:
        """As a restart does it."""
        if self.running is not None and self.running.poll() is None:
            self.running.terminate()
            self.running.wait(60)

    def ends(self, seconds: float) -> int:
        """Its exit status, when it ends by itself."""
        assert self.running is not None
        return self.running.wait(seconds)


class Web(Process):
    """config.asgi under uvicorn, at `url` also after it was started again."""

    def __init__(self, environ: dict[str, str], folder: Path, workers: int) -> None:
        port = self.port = free_port()
        self.workers = workers
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--app-dir", "platform"]
        command += ["--port", str(port), "--lifespan", "on", "--no-access-log", "--log-level", "warning"]
        command += ["--workers", str(workers)]
        super().__init__(command, environ | {"PUBLIC_URL": self.url}, folder / f"web-{port}.log")

    def started(self, environ: dict[str, str]) -> subprocess.Popen[bytes] | Born:
        """By uvicorn's own command only where it has workers to look after."""
        return super().started(environ) if self.workers > 1 else Born(self.port, environ, self.log)

    def answers(self) -> "Web":
        """Wait until it does."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.status is None:
            try:
                httpx.get(f"{self.url}/healthz", timeout=2, trust_env=False).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.05)
            else:
                return self
        raise AssertionError(f"The web process did not start:\n{self.log.read_text()[-4000:]}")


@dataclass
class Town:
    """Everything that a test started; `close` ends it."""

    environ: dict[str, str]
    folder: Path
    processes: list[Process] = field(default_factory=list)

    def web(self, *, workers: int = 1, **changes: str) -> Web:
        """A web process that is starting; `answers()` waits for it."""
        web = Web(self.environ, self.folder, workers)
        self.processes.append(web)
        web.start(**changes)
        return web

    def worker(self) -> Process:
        log = self.folder / f"worker-{len(self.processes)}.log"
        worker = Process([sys.executable, "manage.py", "worker"], self.environ, log)
        self.processes.append(worker)
        worker.start()
        return worker

    def logs(self) -> str:
        return "\n".join(process.log.read_text() for process in self.processes)

    def close(self) -> None:
        for process in self.processes:
            process.kill()


def environ_of(database_url: str, secret_key: str, field_keys: str) -> dict[str, str]:
    """What a process needs to know to serve a database."""
    return dict(os.environ) | {
        "DATABASE_URL": database_url,
        "SECRET_KEY": secret_key,
        "FIELD_ENCRYPTION_KEYS": field_keys,
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "EGRESS_ALLOW": "127.0.0.1",
    }
