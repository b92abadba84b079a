"""R6: whatever a model server does, the person reads a specific sentence, keeps what was said, and may ask again."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from agents_admin.models import Provider
from runtime.engine import faults
from runtime.models import Message
from tests import world
from tests.chaos.figures import figure
from tests.chaos.program import http
from tests.model_faults import FAULTS
from tests.runtime.test_openai_wire import PASSING, REFUSALS
from tests.scripted import API_KEY, ScriptedModel
from tests.web.api_client import settle

SHORT = (
    "401 404 429 502 retry-after-absurd quota too-long reset hang cut-after-token hang-after-token "
    "ended-after-token cut-inside-utf8 html-200 not-json error-after-token empty-body huge-garbage "
    "arguments-malformed no-done wrong-usage split-bytes"
)
PARTIAL = {
    "cut-after-token": "One ",
    "closed-after-token": "One ",
    "ended-after-token": "One ",
    "hang-after-token": "One ",
    "no-finish-no-done": "One two three.",
    "cut-inside-utf8": "Gr",
    "not-json": "Half ",
    "error-after-token": "Half ",
}
"""What was said before it went wrong."""
SENTENCES = {words for name, words in vars(faults).items() if name.isupper() and isinstance(words, str)}
EXACTLY = REFUSALS | PASSING
EMPTY = "The model gave no answer. Please ask again."

type Run = dict[str, Any]


@pytest.mark.parametrize(
    "names", [pytest.param(SHORT.split(), id="short"), pytest.param(list(FAULTS), id="long", marks=pytest.mark.long)]
)
def test_a_fault_of_the_model_server_is_said_in_words_and_asking_again_works(
    site, transactional_db, model: ScriptedModel, key: str, names
):
    for name in names:
        faulty_agent(model, name)

    first = asyncio.run(asked(site, key, dict.fromkeys(names)))
    for name, run in first.items():
        assert run["status"] in {"completed", "limited", "failed"}, (name, run)
        if run["status"] == "failed":
            told_in_words(name, run)
    failed = {name for name, run in first.items() if run["status"] == "failed"}
    assert failed >= set(names) & {*EXACTLY, *PARTIAL}

    Provider.objects.update(base_url=f"{model.server}/s/{uuid4().hex}/v1")
    again = asyncio.run(asked(site, key, {name: run["thread"] for name, run in first.items()}))
    assert {(run["status"], run["output"]) for run in again.values()} == {("completed", "Echo: Please help.")}
    settle()
    figure("R6", f"{len(names)} faults: {len(failed)} failed in words, the others answered; asking again always worked")


def told_in_words(name: str, run: Run) -> None:
    assert run["error"] in ({EXACTLY[name]} if name in EXACTLY else SENTENCES | {EMPTY}), (name, run["error"])
    said = Message.objects.filter(run=run["id"], role="assistant")
    if name in PARTIAL:
        assert [(message.text, message.complete) for message in said] == [(PARTIAL[name], False)]
        assert run["output"] == PARTIAL[name]
    else:
        assert not said.filter(complete=False).exclude(text="").exists() or name.startswith("huge"), name


def faulty_agent(model: ScriptedModel, fault: str) -> None:
    """An agent of its own for each fault. Who hangs is waited for for seconds only; twenty megabytes take longer."""
    total, idle = (8, 4) if fault.startswith(("hang", "drips")) else (45, 30)
    script = ScriptedModel(model.server, uuid4().hex, {})
    script.fails(fault, times=None)
    provider = world.provider(
        fault, kind="openai", base_url=script.base_url, api_key=API_KEY, timeout_seconds=total, idle_seconds=idle
    )
    world.agent(fault, model=world.model(fault, provider=provider), audience="everyone", max_steps=3)


async def asked(site: str, key: str, threads: dict[str, str | None]) -> dict[str, Run]:
    """One message to each agent, in its thread or a new one; what became of each."""
    places = asyncio.Semaphore(12)

    async def ask(agent: str, thread: str | None) -> Run:
        body = {"agent": agent, "input": "Please help.", "wait": 50} | ({"thread": thread} if thread else {})
        async with places:
            answer = await client.post(f"{site}/api/v1/runs", json=body, timeout=60)
        assert answer.status_code == 200, (agent, answer.text)
        return dict(answer.json())

    async with http(key) as client:
        runs = await asyncio.gather(*(ask(agent, thread) for agent, thread in threads.items()))
    return dict(zip(threads, runs, strict=True))
