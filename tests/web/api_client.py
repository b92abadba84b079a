"""A program that uses the REST interface, in tests."""

import time
from typing import Any

import httpx

from agents_admin.models import Agent
from runtime.events import TERMINAL
from runtime.models import Run
from tests import world
from tests.scripted import API_KEY, ScriptedModel

QUESTION = "How many days of annual leave do I get?"


def client(site: str, key: str = "") -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=f"{site}/api/v1", headers=headers, timeout=60, trust_env=False)


def ask(api: httpx.Client, text: str = QUESTION, *, key: str = "", **body: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return api.post("/runs", json={"agent": "concierge", "input": text, "wait": 30} | body, headers=headers)


def until_over(api: httpx.Client, run: str) -> dict[str, Any]:
    for _ in range(300):
        found: dict[str, Any] = api.get(f"/runs/{run}").json()
        if found["finished_at"]:
            return found
        time.sleep(0.05)
    raise AssertionError(f"The run is still {found['status']}.")


def scripted_agent(model: ScriptedModel, name: str = "Scribe", **fields: Any) -> Agent:
    """An agent whose model is the test's own script."""
    provider = world.provider(name.lower(), kind="openai", base_url=model.base_url, api_key=API_KEY)
    return world.agent(name, model=world.model(name.lower(), provider=provider), **fields)


def settle() -> None:
    """Wait until no run is open: emptying the tables while one is written would end in a deadlock."""
    for _ in range(200):
        if not Run.objects.exclude(status__in=TERMINAL).exists():
            return
        time.sleep(0.05)
    raise AssertionError("A run is still open: the test has to stop it.")
