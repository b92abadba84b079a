"""Web processes that serve at once: forked from one that has imported config.asgi, which costs five seconds of CPU."""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path

import uvicorn

_nursery = multiprocessing.get_context("forkserver")


class Born:
    """A process of its own, as good to kill as any. With the face of `subprocess.Popen`."""

    def __init__(self, port: int, environ: Mapping[str, str], log: Path) -> None:
        _prepare(environ)
        self._process = _nursery.Process(target=_serve, args=(port, dict(environ), log))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"process {self.pid} has not ended"
        return self._process.exitcode


def _prepare(environ: Mapping[str, str]) -> None:
    """The settings are read when the nursery starts: all who come from it are on the same database."""
    _nursery.set_forkserver_preload(["tests.chaos.nursery", "config.asgi"])
    with _surroundings({**environ, "PYTHONPATH": os.pathsep.join(sys.path)}):  # what it preloads, it finds there
        forkserver.ensure_running()


@contextmanager
def _surroundings(environ: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _serve(port: int, environ: Mapping[str, str], log: Path) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environ)
    with log.open("a") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    uvicorn.run("config.asgi:application", port=port, lifespan="on", access_log=False, log_level="warning")
