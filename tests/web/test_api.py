"""The REST interface as a program meets it: keys, runs, threads, refusals in words."""

import httpx
import pytest

from tests import world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def house(site):
    return world.house()


@pytest.fixture
def api(site, house):
    """A client with a key of Linus."""
    return client(site, world.api_key(house.linus))


def client(site: str, key: str = "") -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=f"{site}/api/v1", headers=headers, timeout=60, trust_env=False)


def ask(api: httpx.Client, text: str = "How many days of annual leave do I get?", **body) -> httpx.Response:
    return api.post("/runs", json={"agent": "concierge", "input": text, "wait": 30} | body)


def test_a_key_lists_the_agents_it_may_start(api):
    answer = api.get("/agents")
    assert answer.status_code == 200, answer.text
    assert [agent["slug"] for agent in answer.json()["items"]] == ["analyst", "concierge", "hr-desk", "librarian"]


def test_a_run_that_ends_within_the_wait_is_answered_whole(api):
    answer = ask(api)
    assert answer.status_code == 200, answer.text
    run = answer.json()
    assert run["status"] == "completed"
    assert "28 days" in run["output"]
