import errno
import socket
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command, get_commands
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django_q.models import Schedule

from config.env import CHECKOUT
from config.first_sign_in import first_administrator
from config.supervisor import Supervisor


class Command(BaseCommand):
    help = "Runs Roster: the web process and the background worker, until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="The address to listen on.")
        parser.add_argument(
            "--demo", action="store_true", help="First bring the database up to date and fill in the demo."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], settings.ENV.port
        check_port(host, port)
        if options["demo"]:
            self._prepare_demo()
        check_migrations()
        schedule_housekeeping()
        connection.close()
        supervisor = Supervisor(web_command(host, port), [sys.executable, "manage.py", "worker"])
        sys.exit(supervisor.run(lambda: self._announced(host, port)))

    def _prepare_demo(self) -> None:
        call_command("migrate", verbosity=0)
        sign_in = first_administrator(settings.DATA_DIR)
        if sign_in:
            self.stdout.write(f"Your first sign-in, kept in {sign_in}:\n{sign_in.read_text()}")
        if "demo" in get_commands():
            call_command("demo")

    def _announced(self, host: str, port: int) -> bool:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            if probe.connect_ex((host, port)):
                return False
        self.stdout.write(f"Roster is at {settings.PUBLIC_URL} (Ctrl-C stops it)")
        self.stdout.flush()
        return True


def web_command(host: str, port: int) -> list[str]:
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--app-dir", str(CHECKOUT / "platform")]
    command += ["--host", host, "--port", str(port), "--lifespan", "on", "--no-access-log", "--log-level", "warning"]
    return [*command, "--timeout-graceful-shutdown", "2"]  # a client that does not read holds nothing up


def check_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CommandError(
                    f"Port {port} is in use, perhaps by another Roster. "
                    f"Stop that, or choose another port: PORT={port + 1} make run"
                ) from None
            raise CommandError(f"{host}:{port} can't be listened on: {error.strerror}.") from None


def check_migrations() -> None:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        raise CommandError(
            f"The database is {len(pending)} migration(s) behind this version. Run: python manage.py migrate"
        )


def schedule_housekeeping() -> None:
    Schedule.objects.update_or_create(
        name="housekeeping",
        defaults={
            "func": "runtime.tasks.housekeeping",
            "schedule_type": Schedule.MINUTES,
            "minutes": 1,
            "repeats": -1,
        },
    )
