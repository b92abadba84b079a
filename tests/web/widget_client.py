"""Visitors of a widget, as their browsers speak to the server."""

import re
from dataclasses import dataclass, field
from uuid import UUID

import httpx

from tests.web.api_client import settle

SHOP = "https://shop.example"


@dataclass
class Visitor:
    """Somebody at an address, on a page of `origin`."""

    site: str
    widget: object
    origin: str = SHOP
    address: str = "203.0.113.7"
    token: str = ""
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"X-Forwarded-For": self.address}
        self.http = httpx.Client(base_url=f"{self.site}/widget/{self.widget}/", headers=headers, trust_env=False)

    def page(self, method: str, path: str, **fields: str) -> httpx.Response:
        """What the script on the page asks."""
        return self.http.request(method, path, headers={"Origin": self.origin}, data=fields or None)

    def arrive(self) -> "Visitor":
        answer = self.page("POST", "token/", token=self.token)
        assert answer.status_code == 200, answer.text
        self.token = answer.json()["token"]
        return self

    def frame(self, method: str, path: str, **fields: object) -> httpx.Response:
        """What the frame asks."""
        headers = {"Authorization": f"Bearer {self.token}".strip(), "HX-Request": "true"}
        return self.http.request(method, path, headers=headers, data=fields or None, timeout=20)

    def say(self, text: str, **fields: object) -> httpx.Response:
        return self.frame("POST", "send/", **({"agent": "concierge", "text": text} | fields))

    def answer_to(self, text: str, **fields: object) -> str:
        """The whole stream of the answer, when it is in the table too."""
        sent = self.say(text, **fields)
        assert sent.status_code == 200, sent.text
        stream = self.frame("GET", f"runs/{run_in(sent)}/stream/").text
        settle()
        return stream


def run_in(sent: httpx.Response) -> UUID:
    found = re.search(r'id="t-([0-9a-f-]{36})"', sent.text)
    assert found, sent.text
    return UUID(found[1])


def thread_in(sent: httpx.Response) -> UUID:
    found = re.search(r'name="thread" value="([0-9a-f-]{36})"', sent.text)
    assert found, sent.text
    return UUID(found[1])
