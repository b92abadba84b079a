"""A signed-in person at the chat page, over real HTTP."""

import re
import time
from types import TracebackType
from typing import Any, Self

import httpx
from django.contrib.auth.models import User
from django.test import Client

from agents_admin.models import Agent
from runtime.events import TERMINAL
from runtime.models import Run, Thread
from tests import world
from tests.dom import Node, parse
from tests.scripted import ScriptedModel

HTMX = {"HX-Request": "true"}


class Chat:
    """`with Chat(site, linus) as chat:`. Sends as htmx does unless told `htmx=False`."""

    def __init__(self, site: str, user: User | None) -> None:
        browser = Client()
        if user is not None:
            browser.force_login(user)
        cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
        self.http = httpx.Client(base_url=site, cookies=cookies, trust_env=False, timeout=20)
        self._token = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.http.close()

    def page(self, path: str = "/chat/") -> Node:
        """A whole page, its body."""
        answer = self.http.get(path)
        assert answer.status_code == 200, answer.text
        return parse(answer.text.split("<!doctype html>")[-1])

    def post(self, path: str, *, htmx: bool = True, token: str | None = None, **form: Any) -> httpx.Response:
        form = {"csrfmiddlewaretoken": self.token if token is None else token} | form
        return self.http.post(path, data=form, headers=HTMX if htmx else {})

    def send(self, text: str = "Hello", agent: str = "concierge", **form: Any) -> httpx.Response:
        return self.post("/chat/send/", agent=agent, text=text, **form)

    def say(self, text: str, agent: str = "concierge", thread: str = "") -> str:
        """Send, wait for the end of the answer; the thread's id."""
        sent = self.send(text, agent, thread=thread)
        assert sent.status_code == 200, sent.text
        self.http.get(stream_of(sent.text))
        until_stored()
        return thread or sent.headers["HX-Replace-Url"].split("/")[2]

    @property
    def token(self) -> str:
        if not self._token:
            found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.http.get("/chat/").text)
            self._token = found.group(1) if found else ""
        return self._token


def until_stored() -> None:
    """The end of an answer is on the stream a moment before it is in the rows."""
    for _ in range(200):
        if not Run.objects.exclude(status__in=TERMINAL).exists():
            return
        time.sleep(0.02)
    left = Run.objects.exclude(status__in=TERMINAL).values_list("agent_label", "status", "depth")
    raise AssertionError(f"Not ended: {list(left)}")


def stream_of(html: str) -> str:
    """The address of the stream that a turn goes on with."""
    found = re.search(r'hx-sse:connect="([^"]+)"', html)
    assert found is not None, html
    return found.group(1).replace("&amp;", "&")


def desk(model: ScriptedModel, **fields: object) -> Agent:
    """An agent whose words a test writes."""
    provider = world.provider("fake", kind="openai", base_url=model.base_url)
    return world.agent("Desk", model=world.model("small", provider=provider), **fields)


def a_thread(user: User, title: str) -> Thread:
    return Thread.objects.create(user=user, agent_label="Desk", agent_slug="desk", title=title, channel="chat")
