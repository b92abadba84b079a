"""The rows of the agents under test, made in a process of their own; then it resolves the agents that it is told.

Prints the API key; then, for each slug on standard input, resolves it and prints the slug.
"""

import asyncio
import os
import sys

import django
from django.core.management import call_command

django.setup()  # what follows defines rows

from agents_admin.actor import Actor  # noqa: E402
from agents_admin.models import Model, Provider  # noqa: E402
from runtime import runner  # noqa: E402
from runtime.resolve import resolve  # noqa: E402
from tests import world  # noqa: E402


def make() -> str:
    """One plain agent, a boss with two delegates, and the house of the tests, whose coordinator reaches four agents."""
    call_command("migrate", verbosity=0)
    house = world.house()
    provider = world.provider("bench", kind="openai", base_url=os.environ["MODEL_URL"], api_key="sk-bench")
    world.agent("Plain", model=world.model("bench", provider=provider, model_id="small"))
    names = ("Boss", "First", "Second")
    boss, first, second = (world.agent(name, model=_served(provider, name.lower())) for name in names)
    world.give(first, house.clock)
    for helper in (first, second):
        world.delegate(boss, helper)
    return world.api_key(house.linus)


def _served(provider: Provider, model_id: str) -> Model:
    return world.model(f"bench-{model_id}", provider=provider, model_id=model_id)


async def resolve_alone(slug: str, actor: Actor) -> None:
    try:
        await resolve(slug, actor)
    finally:
        await runner.stop()


if __name__ == "__main__":
    print(make(), flush=True)
    asking = Actor("api", user_id=world.linus().pk)
    for line in sys.stdin:
        asyncio.run(resolve_alone(line.strip(), asking))
        print(line.strip(), flush=True)
