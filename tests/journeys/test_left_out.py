"""A person who may use the coordinator but not its delegate: an answer without it, and not a word about it."""

import pytest

from agents_admin.models import Agent
from runtime.models import Event, Run
from tests import world
from tests.matrix.cast import client as site_client
from tests.matrix.cast import session
from tests.web.api_client import QUESTION, ask, client, settle
from tests.web.chat_client import Chat, stream_of
from tests.web.widget_client import Visitor

pytestmark = pytest.mark.django_db(transaction=True)

UNSPOKEN = ("HR desk", "hr-desk", "hr_desk", "Librarian", "works without", "may not use it")


def test_nothing_about_a_delegate_that_was_left_out_reaches_the_person_and_an_administrator_sees_it(site: str) -> None:
    house = world.house()
    Agent.objects.filter(slug="hr-desk").update(audience="chosen")
    Agent.objects.filter(slug="librarian").update(audience="chosen")
    api = client(site, world.api_key(house.linus))
    visitor = Visitor(site, world.widget(house.concierge).pk).arrive()
    seen: dict[str, str] = {}

    with Chat(site, house.linus) as chat:
        seen["start page"] = chat.http.get("/chat/").text
        sent = chat.send(QUESTION)
        seen["sent"] = sent.text
        seen["chat stream"] = chat.http.get(stream_of(sent.text)).text
        settle()
        seen["chat page"] = chat.http.get(sent.headers["HX-Replace-Url"]).text
    run = ask(api).json()
    stream = {"Accept": "text/event-stream"}
    for path in ("/agents", "/runs", f"/runs/{run['id']}", f"/runs/{run['id']}/events"):
        seen[path] = api.get(path).text
    seen["public stream"] = api.get(f"/runs/{run['id']}/events", headers=stream).text
    seen["messages"] = api.get(f"/threads/{run['thread']}/messages").text
    seen["widget stream"] = visitor.answer_to(QUESTION)
    seen["widget page"] = visitor.frame("GET", "conversation/").text

    assert {where: [words for words in UNSPOKEN if words in text] for where, text in seen.items()} == {
        where: [] for where in seen
    }
    assert all(run.status == "completed" and run.output for run in Run.objects.filter(depth=0))
    assert Run.objects.filter(depth=0).count() == 3
    with site_client(site) as browser:
        for root in Run.objects.filter(depth=0):
            page = browser.get(f"/admin/runtime/run/{root.pk}/change/", headers=session(house.ada)).text
            assert "Concierge works without the delegate HR desk" in page
            assert Event.objects.filter(root=root, kind="Notice").count() == 1


def test_the_model_is_not_told_of_a_delegate_that_was_left_out(site: str, model) -> None:
    house = world.house()
    served = world.provider("scripted", kind="openai", base_url=model.base_url)
    Agent.objects.filter(slug="concierge").update(model=world.model("boss", provider=served))
    Agent.objects.filter(slug="hr-desk").update(audience="chosen")
    model.says("I can't say.")

    ask(client(site, world.api_key(house.linus)))

    (request,) = model.requests
    assert request.tools == ["ask_analyst"]
    assert [words for words in UNSPOKEN if words in str(request.body)] == []
