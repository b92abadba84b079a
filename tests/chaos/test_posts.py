"""R1: the web process is killed again and again while people write; what it acknowledged is there exactly once."""

import asyncio
import random
from collections import Counter

import pytest

from runtime.models import Message, Run
from tests.chaos.figures import figure
from tests.chaos.program import http, post
from tests.chaos.town import Town, Web
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

WRITERS = 4
DICE = random.Random(4711)


@pytest.mark.parametrize(
    ("posts", "kills"),
    [pytest.param(60, 3, id="short"), pytest.param(1_000, 50, id="long", marks=pytest.mark.long)],
)
def test_what_was_acknowledged_is_there_exactly_once(town: Town, model: ScriptedModel, key: str, posts, kills):
    scripted_agent(model, "Echo", audience="everyone")
    web = town.web().answers()

    taken, again = asyncio.run(written_under_fire(web, key, posts, kills))

    said = Counter(Message.objects.filter(role="user").values_list("text", flat=True))
    assert said == Counter(f"message-{number}" for number in range(posts))
    of_run = {str(run): text for run, text in Run.objects.values_list("pk", "input")}
    assert {text: of_run.get(run) for text, run in taken.items()} == {text: text for text in said}
    figure("R1", f"{posts} posts, {kills} kills, {again} sent again: each acknowledged message once, none lost")


async def written_under_fire(web: Web, key: str, posts: int, kills: int) -> tuple[dict[str, str], int]:
    """Message → its run, as acknowledged; how often one was sent again."""
    waiting = [f"message-{number}" for number in range(posts)]
    taken: dict[str, str] = {}
    sent = 0

    async def write() -> None:
        nonlocal sent
        while waiting:
            text = waiting.pop()
            taken[text], times = await post(client, [web.url], "echo", text)
            sent += times

    async with http(key) as client:
        writers = [asyncio.create_task(write()) for _ in range(WRITERS)]
        for kill in range(kills):
            while len(taken) < posts * kill // kills:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            await asyncio.sleep(DICE.uniform(0, 0.1))
            web.kill()
            web.start()
            await asyncio.to_thread(web.answers)
        await asyncio.gather(*writers)
    return taken, sent - posts
