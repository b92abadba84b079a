import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents_admin.portable.applying import apply
from agents_admin.portable.problem import BundleError


class Command(BaseCommand):
    help = "Makes and updates providers, models, tools, memories and agents from a bundle (a YAML file)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.yaml")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            applied = apply(options["file"], os.environ)
        except BundleError as error:
            raise CommandError(f"Nothing was applied.\n{error}") from None
        counts = ", ".join(f"{section}: {number}" for section, number in applied.rows.items())
        self.stdout.write(f"Applied {options['file']}: {counts or 'it names no rows'}.")
