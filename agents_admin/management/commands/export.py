from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents_admin.portable.exporting import UnknownAgentError, export
from agents_admin.text import clean


class Command(BaseCommand):
    help = "Writes a bundle to standard output: these agents with all they need, or everything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agents", nargs="*", metavar="AGENT", help="The slug of an agent.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(export([clean(slug) for slug in options["agents"]]), ending="")
        except UnknownAgentError as error:
            raise CommandError(str(error)) from None
