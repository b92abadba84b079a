"""Test connection: what an administrator reads about a provider that works, or doesn't."""

import asyncio
import json
import threading
from collections.abc import Callable
from functools import partial
from queue import Queue

import pytest
from django.urls import reverse

from agents_admin.provider_check import check_provider
from tests import world
from tests.loopback import Server, answer, serving

pytestmark = pytest.mark.django_db
MODELS = json.dumps({"data": [{"id": "small"}, {"id": "large"}]}).encode()


@pytest.fixture
def server():
    """A loopback server in a thread of its own, as `check_provider` waits for its answer."""
    begun: Queue[tuple[Server, Callable[[], object]]] = Queue()

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        async with serving() as made:
            begun.put((made, partial(loop.call_soon_threadsafe, over.set)))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    made, end = begun.get(timeout=10)
    yield made
    end()
    thread.join()


def acme(server, **fields):
    address = f"http://127.0.0.1:{server.port}/v1"
    return world.provider("acme", **({"kind": "openai", "base_url": address, "api_key": "sk-secret"} | fields))


def test_a_working_provider_says_how_many_models_it_has(server):
    server.answers["/v1/models"] = answer(MODELS)
    finding = check_provider(acme(server))
    assert finding.ok
    assert finding.words == "The provider can be reached and accepts the key. It lists 2 models."
    assert "Authorization: Bearer sk-secret" in server.requests[0]


def test_a_model_that_the_provider_does_not_list_is_named(server):
    server.answers["/v1/models"] = answer(MODELS)
    provider = acme(server)
    world.model("gpt-5-mini", provider=provider)
    finding = check_provider(provider)
    assert not finding.ok
    assert "Not among them: gpt-5-mini." in finding.words


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("401 Unauthorized", "doesn't accept the key"),
        ("404 Not Found", "often it ends in /v1"),
        ("429 Too Many", "too many requests"),
        ("503 Busy", "a problem of its own (status 503)"),
        ("302 Found", "unexpected answer"),
        ("200 OK", "not a list of models"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(server, status, words):
    server.answers["/v1/models"] = answer(b"<html>", status=status)
    finding = check_provider(acme(server))
    assert not finding.ok
    assert words in finding.words


def test_a_provider_without_a_key_is_told_that_one_is_needed(server):
    server.answers["/v1/models"] = answer(b"", status="401 Unauthorized")
    assert "asks for a key" in check_provider(acme(server, api_key="")).words


def test_a_server_that_is_not_there_is_said_in_words():
    provider = world.provider("acme", kind="openai", base_url="http://127.0.0.1:1/v1")
    assert "can't be reached" in check_provider(provider).words


def test_a_private_address_is_refused_in_words():
    provider = world.provider("acme", kind="openai", base_url="https://10.0.0.5/v1")
    assert "a private address" in check_provider(provider).words


def test_a_key_that_no_header_can_hold_is_said_in_words(server):
    assert "characters that no key has" in check_provider(acme(server, api_key="schlüssel\n")).words


def test_the_offline_provider_needs_nothing():
    assert check_provider(world.provider()).ok


def test_the_button_tests_on_a_post_by_those_who_may_change_providers(client, server):
    server.answers["/v1/models"] = answer(MODELS)
    url = reverse("admin:agents_admin_provider_test_connection", args=[acme(server).pk])
    client.force_login(world.ada(), "django.contrib.auth.backends.ModelBackend")
    assert "Asks the saved address" in client.get(url).content.decode()
    assert server.requests == []
    answered = client.post(url, {"_form_submitted": "on"}).content.decode()
    assert "It lists 2 models." in answered
    assert "sk-secret" not in answered
    client.force_login(world.grace(), "django.contrib.auth.backends.ModelBackend")
    assert client.post(url, {"_form_submitted": "on"}).status_code == 403
