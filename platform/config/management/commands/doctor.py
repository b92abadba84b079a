import sys
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents_admin.checks import Finding, findings


class Command(BaseCommand):
    help = "Says what is wrong with the configuration and what to do. The exit status is 1 when something is."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        found = list(database_findings()) or [*server_findings(), *findings()]
        for finding in found:
            self.stdout.write(f"{finding.row}: {finding.problem.rstrip('.')}.\n    {finding.fix}")
        if found:
            self.stdout.write(f"\nProblems found: {len(found)}.")
            sys.exit(1)
        self.stdout.write("No problems found.")


def database_findings() -> Iterator[Finding]:
    """While the tables are not as the code expects them, nothing else can be looked at."""
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        apps = ", ".join(sorted({migration.app_label for migration, _ in pending}))
        yield Finding("Database", f"it is not up to date ({apps})", "Run: python manage.py migrate")


def server_findings() -> Iterator[Finding]:
    if not User.objects.filter(is_superuser=True, is_active=True).exists():
        yield Finding("People", "there is no administrator", "Run: python manage.py createsuperuser")
    if settings.DEBUG:
        yield Finding("Settings", "DEBUG shows the inside of errors to everybody", "Switch DEBUG off.")
    if settings.ENV.production and not settings.PUBLIC_URL.startswith("https:"):
        problem = f"people sign in over plain http at {settings.PUBLIC_URL}"
        yield Finding("Settings", problem, "Serve it over https and say so in PUBLIC_URL.")
