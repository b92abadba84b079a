"""Roster under test: a throw-away Postgres, the rows of its agents, and what it asks of the database."""

import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from cryptography.fernet import Fernet

from config import postgres
from tests.bench.programs import cpu_of, cpu_of_children, running

ROSTER = "roster"
"""The name under which the process under test connects."""

_QUIET_SECONDS = 0.15
_STATEMENT = re.compile(r"^(\w+)\|LOG:  (?:statement|execute [^:]*):\s+(\S+)", re.MULTILINE)
_BRACKETS = {"BEGIN", "COMMIT"}


@dataclass(frozen=True, order=True)
class Statements:
    """`brackets` are BEGIN and COMMIT, which travel with what they enclose."""

    asked: int
    brackets: int


class Database:
    """An embedded server with fsync off. Applications are told apart by the name under which they connect."""

    def __init__(self, home: Path) -> None:
        self._sockets = postgres.socket_folder(home)
        self._log = home / "postgres" / "log"
        self._pid = int((home / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])
        self._secrets = {"SECRET_KEY": secrets.token_hex(32), "FIELD_ENCRYPTION_KEYS": Fernet.generate_key().decode()}
        self._own = psycopg.connect(self._url("bench"), autocommit=True)

    def environ(self, application: str) -> dict[str, str]:
        settings = {"DATABASE_URL": self._url(application), "ALLOWED_HOSTS": "127.0.0.1", "EGRESS_ALLOW": "127.0.0.1"}
        return self._secrets | settings | {"DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": "platform"}

    def cpu(self) -> float:
        """Seconds of the server and of its open connections."""
        return cpu_of(self._pid) + cpu_of_children(self._pid)

    def connections(self, application: str) -> int:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        return int(self._own.execute(sql, (application,)).fetchall()[0][0])

    @contextmanager
    def logging_statements(self) -> Iterator[None]:
        for setting in ("log_line_prefix = '%a|'", "log_parameter_max_length = 0", "log_statement = 'all'"):
            self._own.execute(f"ALTER SYSTEM SET {setting}")
        self._reload()
        yield
        self._own.execute("ALTER SYSTEM RESET ALL")
        self._reload()

    @contextmanager
    def counting(self, application: str) -> Iterator[list[Statements]]:
        """Gives a list that holds, afterwards, what the application asked meanwhile and until it fell silent."""
        since, found = self._log.stat().st_size, list[Statements]()
        yield found
        size = -1
        while size != (size := self._log.stat().st_size):
            time.sleep(_QUIET_SECONDS)
        with self._log.open() as log:
            log.seek(since)
            words = [word for name, word in _STATEMENT.findall(log.read()) if name == application]
        brackets = sum(word.rstrip(";") in _BRACKETS for word in words)
        found.append(Statements(len(words) - brackets, brackets))

    def close(self) -> None:
        self._own.close()

    def _reload(self) -> None:
        self._own.execute("SELECT pg_reload_conf()")
        time.sleep(0.3)

    def _url(self, application: str) -> str:
        return f"postgresql:///postgres?host={self._sockets}&user=roster&application_name={application}"


@contextmanager
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="roster-bench-") as folder:
        home = Path(folder)
        home.chmod(0o711)
        leave = postgres.attach(home, durable=False)
        try:
            found = Database(home)
            yield found
            found.close()
        finally:
            leave()


class Rows:
    """The process that made the rows; it resolves agents when told."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.api_key = self._line()

    def resolve(self, slug: str) -> None:
        self._stdin.write(f"{slug}\n")
        self._stdin.flush()
        self._line()

    def _line(self) -> str:
        line = self._stdout.readline().strip()
        if not line:
            raise SystemExit("The rows under test could not be made: see above.")
        return line


@contextmanager
def rows(of: Database, application: str, model_url: str) -> Iterator[Rows]:
    command = [sys.executable, "-m", "tests.bench.rows"]
    environ = of.environ(application) | {"MODEL_URL": model_url}
    with running(command, environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Rows(process)
