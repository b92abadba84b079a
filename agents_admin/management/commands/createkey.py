from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agents_admin.models import Agent, ApiKey
from agents_admin.text import clean


class Command(BaseCommand):
    help = "Makes an API key that acts for a user and prints it once, alone on the last line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="Who uses it, so that you recognise it.")
        parser.add_argument("--user", required=True, metavar="USERNAME")
        parser.add_argument(
            "--agent",
            action="extend",
            nargs="+",
            default=[],
            metavar="SLUG",
            help="Only these may be started with it; without it, all that the user may use.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = _active_user(clean(options["user"]))
        agents = _agents([clean(slug) for slug in options["agent"]])
        row = ApiKey(name=clean(options["name"]), user=user, limited=bool(agents))
        key = row.renew()
        try:
            row.full_clean()
        except ValidationError as error:
            raise CommandError(f"No key was made. The name is not accepted: {' '.join(error.messages)}") from None
        with transaction.atomic():
            row.save()
            row.agents.set(agents)
        what = ", ".join(agent.slug for agent in agents) or "every agent that the user may use"
        self.stdout.write(f"The key “{row.name}” acts for {user.username} and may start {what}. It is shown only now:")
        self.stdout.write(key)


def _active_user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"No key was made. There is no user “{username}”.")
    if not user.is_active:
        raise CommandError(f"No key was made. The user “{username}” is switched off, so the key would not work.")
    return user


def _agents(slugs: list[str]) -> list[Agent]:
    agents = list(Agent.objects.filter(slug__in=slugs))
    unknown = sorted(set(slugs) - {agent.slug for agent in agents})
    if unknown:
        raise CommandError(f"No key was made. There is no agent with the slug {', '.join(unknown)}.")
    return agents
