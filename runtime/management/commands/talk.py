import asyncio
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from agents_admin.actor import Actor
from runtime import execute, runner
from runtime.errors import RunError
from runtime.events import RunFinished, ends
from runtime.management.terminal import Terminal, width

_ANSWERED = {"completed", "limited"}


class Command(BaseCommand):
    help = "Talks to an agent in the terminal. The exit status is 0 when it answered."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", metavar="AGENT", help="The agent's slug.")
        parser.add_argument("text")
        parser.add_argument("--as", dest="username", metavar="USERNAME", help="Who asks; else the first superuser.")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = Actor(channel="terminal", user_id=_user(options["username"]).pk)
        request = execute.Request(agent=options["agent"], text=options["text"])
        try:
            status = asyncio.run(self._talk(actor, request))
        except RunError as error:
            raise CommandError(error.message) from None
        except KeyboardInterrupt:
            raise CommandError("Stopped.", returncode=130) from None
        except BrokenPipeError:  # whoever read our output has gone, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        if status not in _ANSWERED:
            sys.exit(1)

    async def _talk(self, actor: Actor, request: execute.Request) -> str:
        """The run's final status. When this ends early, the runner stops the run and closes its log."""
        terminal = Terminal(self._print, width())
        try:
            runner.runner().start()
            started = await execute.start(actor, request)
            async for batch in execute.until_pause(started.run):
                for logged in batch:
                    terminal.show(logged.event)
                    if isinstance(logged.event, RunFinished) and ends(logged.event):
                        return logged.event.status
            return "failed"
        finally:
            await runner.stop()

    def _print(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def _user(username: str | None) -> User:
    if username is None:
        user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
        if user is None:
            raise CommandError("There is no administrator yet. Make one: python manage.py createsuperuser")
        return user
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user “{username}”.")
    if not user.is_active:
        raise CommandError(f"The user “{username}” is switched off.")
    return user
