"""A message whose answer got lost on the way is sent once more: it is found again, in the chat and in the widget."""

import asyncio
import re
from uuid import UUID, uuid4

import httpx
import pytest

from agents_admin.models import Agent
from runtime import execute
from runtime.execute import Request
from runtime.models import Message, Run, Thread
from tests import world
from tests.loop import running
from tests.scripted import ScriptedModel
from tests.web.chat_client import Chat, desk, until_stored
from tests.web.widget_client import run_in
from web.models import WidgetUse

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent(model: ScriptedModel) -> Agent:
    return desk(model)


def key_of(page: httpx.Response) -> str:
    (key,) = re.findall(r'name="key" id="composer-key" value="([0-9a-f-]{36})"', page.text)
    return str(key)


def test_a_page_gives_each_message_a_key_of_its_own(site: str, agent: Agent) -> None:
    with Chat(site, world.linus()) as chat:
        first = key_of(chat.http.get("/chat/"))
        sent = chat.send("Hello", "desk", key=first)
        until_stored()
    assert 'hx-swap-oob="true"' in sent.text
    assert key_of(sent) != first
    assert Run.objects.get().pk == UUID(first)


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("slow", [False, True])
def test_the_same_message_under_the_same_key_is_the_same_run(
    site: str, agent: Agent, model: ScriptedModel, in_thread: bool, slow: bool
) -> None:
    with Chat(site, world.linus()) as chat:
        thread = chat.say("Before", "desk") if in_thread else ""
        model.says("word " * 10, delay=0.1 if slow else 0)
        key = str(uuid4())
        lost = chat.send("Hello", "desk", key=key, thread=thread)
        if not slow:
            until_stored()
        again = chat.send("Hello", "desk", key=key, thread=thread)
        assert (lost.status_code, again.status_code) == (200, 200)
        assert run_in(lost) == run_in(again) == UUID(key)
        assert again.headers.get("HX-Replace-Url") == lost.headers.get("HX-Replace-Url")
        until_stored()
    assert Thread.objects.count() == 1
    assert Message.objects.filter(role="user", text="Hello").count() == 1


def test_another_text_under_the_same_key_is_kept(site: str, agent: Agent) -> None:
    with Chat(site, world.linus()) as chat:
        key = key_of(chat.http.get("/chat/"))
        lost = chat.send("Hello", "desk", key=key)
        again = chat.send("Hello, and goodbye", "desk", key=key)
        until_stored()
    assert again.status_code == 409
    assert again.headers["HX-Reswap"] == "beforeend"
    assert again.headers["HX-Replace-Url"] == lost.headers["HX-Replace-Url"]
    assert run_in(again) == run_in(lost)
    assert again.text.count("This one is kept") == 1
    assert '<details class="thread-menu">' in again.text
    assert key_of(again) != key
    assert Run.objects.count() == 1


def test_another_text_under_the_same_key_is_kept_without_scripts_too(site: str, agent: Agent) -> None:
    with Chat(site, world.linus()) as chat:
        key = key_of(chat.http.get("/chat/"))
        chat.send("Hello", "desk", key=key, htmx=False)
        again = chat.send("Hello, and goodbye", "desk", key=key, htmx=False)
        until_stored()
    assert again.status_code == 409
    assert "This one is kept" in again.text
    assert re.search(r"<textarea[^>]*>Hello, and goodbye</textarea>", again.text)
    assert Run.objects.count() == 1


def test_a_key_of_somebody_else_finds_nothing_of_theirs(site: str, agent: Agent) -> None:
    key = str(uuid4())
    with Chat(site, world.linus()) as chat:
        chat.send("My secret", "desk", key=key)
        until_stored()
    with Chat(site, world.maya()) as chat:
        sent = chat.send("Hello", "desk", key=key)
        until_stored()
    assert sent.status_code == 200
    assert run_in(sent) != UUID(key)
    assert "secret" not in sent.text
    assert Run.objects.count() == 2


@pytest.mark.parametrize("key", ["", "x", "\ud800", "0" * 5_000])
def test_a_key_that_is_none_costs_nothing(site: str, agent: Agent, key: str) -> None:
    with Chat(site, world.linus()) as chat:
        sent = chat.send("Hello", "desk", key=key.encode("utf-8", "surrogatepass"))
        until_stored()
    assert sent.status_code == 200


def test_the_same_message_at_once_is_one_run(agent: Agent) -> None:
    actor, request = world.actor_of(world.linus()), Request("desk", "Hello", run=uuid4())

    async def at_once() -> list[execute.Started]:
        return await asyncio.gather(*(execute.start(actor, request) for _ in range(5)))

    started = running(at_once)
    assert {one.run for one in started} == {request.run}
    assert [one.created for one in started].count(True) == 1
    assert Thread.objects.count() == 1


def test_a_visitors_message_that_is_sent_once_more_counts_once(site, visitor) -> None:
    key = key_of(visitor.frame("GET", "conversation/"))
    sent = [visitor.say("Hello", key=key), visitor.say("Hello", key=key)]
    other = visitor.say("Goodbye", key=key)
    until_stored()
    assert [answer.status_code for answer in (*sent, other)] == [200, 200, 409]
    assert {run_in(answer) for answer in (*sent, other)} == {UUID(key)}
    assert "This one is kept" in other.text
    assert set(WidgetUse.objects.exclude(who__startswith="n:").values_list("times", flat=True)) == {1}
