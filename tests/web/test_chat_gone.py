"""The chat page and the interface when the log of a run was dropped: the conversation stays, told from its rows."""

import pytest

from runtime import retention
from runtime.models import Event, Run
from tests import world
from tests.agui_checker import complaints
from tests.dom import Node
from tests.loop import running
from tests.web.api_client import QUESTION, client
from tests.web.chat_client import Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def forget(settings):
    """Drop the logs of all runs there are, as after a long time."""
    settings.EVENTS_KEEP_DAYS, settings.RUNS_KEEP_DAYS = 1, 0

    def drop() -> None:
        Run.objects.update(finished_at="2020-01-01T00:00:00Z")
        running(retention.tidy)
        assert not Event.objects.exists()

    return drop


def shown(page: Node) -> dict[str, list[str]]:
    return {name: [one.text for one in page.all(css_class=name)] for name in ("said", "label", "outcome", "message")}


def test_the_page_shows_what_was_said_by_whom(site: str, forget) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        thread = chat.say(QUESTION)
        before = shown(chat.page(f"/chat/{thread}/"))
        assert before["label"] == ["HR desk", "Librarian", "Employee handbook"]
        forget()
        page = chat.page(f"/chat/{thread}/")
        assert shown(page) == before
        assert "hx-sse:connect" not in page.html


def test_a_hidden_delegate_stays_hidden(site: str, forget) -> None:
    house = world.house()
    type(house.hr_desk).objects.filter(pk=house.hr_desk.pk).update(delegate_view="none")
    with Chat(site, world.linus()) as chat:
        thread = chat.say(QUESTION)
        forget()
        page = chat.page(f"/chat/{thread}/")
        assert "28 days" in page.text
        assert page.all(css_class="label") == []


def test_the_interface_still_tells_the_run(site: str, forget) -> None:
    house = world.house()
    api = client(site, world.api_key(house.linus))
    run = api.post("/runs", json={"agent": "concierge", "input": QUESTION, "wait": 30}).json()
    forget()
    listed = [{name: value for name, value in event.items() if name != "id"} for event in _events(api, run["id"])]
    assert complaints(listed) == []
    assert "28 days" in "".join(event["delta"] for event in listed if event["type"] == "TEXT_MESSAGE_CONTENT")
    with api.stream("GET", f"/runs/{run['id']}/events", headers={"Accept": "text/event-stream"}) as stream:
        assert "RUN_FINISHED" in "".join(stream.iter_text())


def _events(api, run: str):
    return api.get(f"/runs/{run}/events").json()["events"]
