"""Who may do what with which key: everything foreign is a 404, everything without a key a 401."""

from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from django.test import Client
from django.utils import timezone

from agents_admin.models import ApiKey
from runtime.models import Message, Run, Thread
from tests import world
from tests.web.api_client import QUESTION, ask, client

pytestmark = pytest.mark.django_db(transaction=True)


def addresses(run: str, thread: str) -> list[tuple[str, str, dict | None]]:
    return [
        ("GET", f"/runs/{run}", None),
        ("GET", f"/runs/{run}/events", None),
        ("POST", f"/runs/{run}/cancel", None),
        ("GET", f"/threads/{thread}", None),
        ("PATCH", f"/threads/{thread}", {"title": "Mine now"}),
        ("DELETE", f"/threads/{thread}", None),
        ("GET", f"/threads/{thread}/messages", None),
        ("POST", "/runs", {"agent": "concierge", "input": "Hello", "thread": thread}),
    ]


def everything() -> list[object]:
    return [list(model.objects.order_by("pk").values()) for model in (Run, Thread, Message)]


def test_what_belongs_to_somebody_else_is_not_there(site, house):
    run = ask(client(site, world.api_key(house.linus))).json()
    before = everything()
    stream = {"Accept": "text/event-stream"}
    for person in (house.maya, house.ada):
        other = client(site, world.api_key(person))
        for method, path, body in addresses(run["id"], run["thread"]):
            theirs = other.request(method, path, json=body)
            missing = other.request(method, path.replace(run["id"], str(uuid4())), json=body)
            assert (theirs.status_code, theirs.json()) == (404, missing.json()), (method, path)
        assert other.get(f"/runs/{run['id']}/events", headers=stream).status_code == 404
        assert other.get("/runs").json()["items"] == other.get("/threads").json()["items"] == []
        assert other.get("/runs", params={"thread": run["thread"]}).json()["items"] == []
    assert everything() == before


def test_without_a_valid_key_every_address_says_so(site, house):
    linus = house.linus
    expired = world.api_key(linus, expires_at=timezone.now() - timedelta(seconds=1))
    gone = world.person("gone", is_active=False)
    keys = ["", "rk_nothing", "nonsense", expired, world.api_key(linus, enabled=False), world.api_key(gone)]
    paths = [("GET", "/agents", None), ("GET", "/runs", None), ("GET", "/threads", None)]
    paths += [("POST", "/threads", {"agent": "concierge"}), *addresses(str(uuid4()), str(uuid4()))]
    for key in keys:
        api = client(site, key)
        for method, path, body in paths:
            answer = api.request(method, path, json=body)
            assert answer.status_code == 401, (key, method, path)
            assert answer.json()["error"]["code"] == "unauthenticated"
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert not Run.objects.exists()


def test_a_key_counts_only_as_a_bearer_token(site, house):
    key = world.api_key(house.linus)
    for headers in ({"Authorization": key}, {"Authorization": f"Basic {key}"}, {"X-API-Key": key}):
        assert httpx.get(f"{site}/api/v1/agents", headers=headers, trust_env=False).status_code == 401
    assert httpx.get(f"{site}/api/v1/agents", params={"key": key}, trust_env=False).status_code == 401
    assert httpx.get(f"{site}/api/v1/agents", headers={"Authorization": f"bearer {key}"}, trust_env=False).is_success


def test_a_session_opens_nothing_here(site, house):
    browser = Client()
    browser.force_login(house.linus)
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
    answer = httpx.post(
        f"{site}/api/v1/runs", json={"agent": "concierge", "input": QUESTION}, cookies=cookies, trust_env=False
    )
    assert answer.status_code == 401
    assert not Run.objects.exists()


def test_a_key_for_some_agents_starts_only_those_and_delegates_still_work(site, house):
    whole = client(site, world.api_key(house.linus))
    other = ask(whole, "What is 2 + 2?", agent="analyst").json()
    limited = client(site, world.api_key(house.linus, house.concierge))
    assert [agent["slug"] for agent in limited.get("/agents").json()["items"]] == ["concierge"]
    assert ask(limited, agent="analyst").status_code == 404
    assert limited.post("/threads", json={"agent": "analyst"}).status_code == 404
    assert "28 days" in ask(limited).json()["output"]
    assert limited.get(f"/runs/{other['id']}").status_code == 404
    assert [run["agent"] for run in limited.get("/runs").json()["items"]] == ["concierge"]


def test_a_key_whose_agents_were_deleted_starts_nothing(site, house):
    lonely = world.agent("Lonely")
    key = client(site, world.api_key(house.linus, lonely))
    lonely.delete()
    assert key.get("/agents").json()["items"] == []
    assert ask(key).status_code == 404


def test_agents_that_are_hidden_off_or_not_theirs_are_not_found(site, house):
    world.agent("Secret", hidden=True)
    world.agent("Off", enabled=False)
    world.agent("For Maya", audience="chosen").users.add(house.maya)
    linus, ada = (client(site, world.api_key(person)) for person in (house.linus, house.ada))
    for slug in ("secret", "off", "for-maya", "no-such-agent"):
        answer = ask(linus, agent=slug)
        assert (answer.status_code, answer.json()["error"]["field"]) == (404, "agent"), slug
    assert ask(ada, agent="secret").status_code == 404
    assert ask(client(site, world.api_key(house.maya)), agent="for-maya").status_code == 200


def test_the_last_use_of_a_key_is_noted_once_a_minute(site, house):
    api = client(site, world.api_key(house.linus))
    api.get("/agents")
    first = ApiKey.objects.get().last_used_at
    api.get("/agents")
    assert first is not None
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    api.get("/agents")
    assert ApiKey.objects.get().last_used_at > first


def test_a_key_that_is_switched_off_is_refused_at_the_next_request(site, house):
    api = client(site, world.api_key(house.linus))
    assert api.get("/agents").status_code == 200
    ApiKey.objects.update(enabled=False)
    assert api.get("/agents").status_code == 401
