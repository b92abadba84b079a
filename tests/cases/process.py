"""A web process of a test's own, beside the one that all tests share: with other settings, measured, stopped."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connections

from tests.conftest import CHECKOUT, _wait_for, free_port


@dataclass(frozen=True)
class Site:
    url: str
    pid: int

    def megabytes(self) -> float:
        """What the process holds in memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


def environ(user: str = "") -> dict[str, str]:
    """For a process on the test database, as the database's `user`."""
    entry = connections["default"].settings_dict
    return dict(os.environ) | {
        "DATABASE_URL": f"postgresql:///{entry['NAME']}?host={entry['HOST']}&user={user or entry['USER']}",
        "SECRET_KEY": settings.SECRET_KEY,
        "FIELD_ENCRYPTION_KEYS": ",".join(settings.FIELD_ENCRYPTION_KEYS),
        "ALLOWED_HOSTS": "127.0.0.1",
        "PUBLIC_URL": "http://127.0.0.1",
    }


@contextmanager
def own_site(folder: Path, user: str = "") -> Iterator[Site]:
    port, log = free_port(), folder / "site.log"
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--app-dir", "platform"]
    command += ["--port", str(port), "--lifespan", "on", "--no-access-log", "--log-level", "warning"]
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=CHECKOUT, env=environ(user), stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}", server, log)
            yield Site(f"http://127.0.0.1:{port}", server.pid)
        finally:
            server.terminate()
            server.wait(timeout=60)
