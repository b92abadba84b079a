"""The list of conversations and long ones, over HTTP: renamed, deleted, page by page."""

import re
import uuid

import pytest

from agents_admin.models import Agent
from runtime.models import Run, Thread
from tests import world
from tests.scripted import ScriptedModel
from tests.web.chat_client import HTMX, Chat, a_thread, desk, stream_of, until_stored
from web.chat import history
from web.chat.places import PLACES

pytestmark = pytest.mark.django_db(transaction=True)


def a_run(thread: Thread, text: str, **fields: object) -> Run:
    key = uuid.uuid4()
    values = {"status": "completed", "agent_label": "Desk", "agent_slug": "desk", "channel": "chat"} | fields
    return Run.objects.create(id=key, root_id=key, thread=thread, user=thread.user, input=text, **values)


def test_a_conversation_is_renamed_in_place(site: str) -> None:
    linus = world.linus()
    thread = a_thread(linus, "Holidays")
    with Chat(site, linus) as chat:
        renamed = chat.post(f"/chat/{thread.pk}/rename/", title="  Leave \x00\n in  May <b> ")
        assert renamed.status_code == 200
        assert "Leave \ufffd in May &lt;b&gt;" in renamed.text
        assert Thread.objects.get().title == "Leave \ufffd in May <b>"
        long = chat.post(f"/chat/{thread.pk}/rename/", title="x" * 201)
        assert long.status_code == 422
        assert "at most 200 characters; this one has 201" in long.text
        assert "x" * 201 in long.text
        empty = chat.post(f"/chat/{thread.pk}/rename/", title=" ")
        assert (empty.status_code, "needs a title" in empty.text) == (422, True)


def test_a_new_title_stands_above_the_conversation_at_once(site: str) -> None:
    linus = world.linus()
    thread = a_thread(linus, "Old")
    with Chat(site, linus) as chat:
        here = chat.post(f"/chat/{thread.pk}/rename/", title="Paper & <ink>", current="yes").text
        assert '<div hx-swap-oob="innerHTML:#title">Paper &amp; &lt;ink&gt;</div>' in here
        assert "#title" not in chat.post(f"/chat/{thread.pk}/rename/", title="Paper").text


def test_a_deleted_conversation_is_gone_with_its_runs(site: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        thread = chat.say("What is 2 + 2?")
        deleted = chat.post(f"/chat/{thread}/delete/", current="yes")
        assert deleted.headers["HX-Redirect"] == "/chat/"
        assert not Run.objects.exists()
        assert chat.http.get(f"/chat/{thread}/").status_code == 404


def test_a_conversation_that_vanishes_while_it_is_answered_holds_up_nobody(site: str, model: ScriptedModel) -> None:
    desk(model)
    model.says("slow " * 10, delay=0.05)
    model.says("Quick.")
    with Chat(site, world.linus()) as chat:
        sent = chat.send("first", "desk")
        Thread.objects.all().delete()
        chat.say("second", "desk")
        assert Run.objects.get().output
        assert chat.http.get(stream_of(sent.text)).status_code == 404


def test_conversations_come_page_by_page(site: str) -> None:
    linus = world.linus()
    for number in range(history.THREADS_SHOWN + 5):
        a_thread(linus, f"Number {number}")
    a_thread(world.maya(), "Not yours")
    with Chat(site, linus) as chat:
        first = chat.page()
        (more,) = [link for link in first.all("a") if link.text == "Show more"]
        rest = chat.http.get(more.attrs["hx-get"]).text
        titles = [one.text for one in first.all(css_class="thread-title")] + re.findall(
            "Number [0-9]+(?=</span>)", rest
        )
        assert titles == [f"Number {number}" for number in reversed(range(history.THREADS_SHOWN + 5))]
        for odd in ("", "yesterday", "2026-13-45T99:99", "2026-01-01"):
            assert chat.http.get("/chat/threads/", params={"before": odd}).status_code == 200


def test_a_long_conversation_begins_with_its_end(site: str) -> None:
    linus = world.linus()
    thread = a_thread(linus, "Long")
    for number in range(history.TURNS_SHOWN + 3):
        a_run(thread, f"Question {number}.")
    with Chat(site, linus) as chat:
        page = chat.page(f"/chat/{thread.pk}/")
        said = [one.text for one in page.all(css_class="said")]
        assert said == [f"You: Question {number}." for number in range(3, history.TURNS_SHOWN + 3)]
        (earlier,) = page.all("a", "earlier")
        older = chat.http.get(f"/chat/{thread.pk}/{earlier.attrs['hx-get']}", headers=HTMX).text
        assert re.findall("Question [0-9]+", older) == ["Question 0", "Question 1", "Question 2"]
        assert "can't be asked any more" in page.text


@pytest.mark.parametrize("turns", [1, 8])
def test_a_conversation_costs_four_statements(turns: int, django_assert_num_queries) -> None:
    linus = world.linus()
    thread = a_thread(linus, "Any")
    for number in range(turns):
        a_run(thread, f"Question {number}.")
    with django_assert_num_queries(4):
        history.conversation(world.actor_of(linus), thread.pk, PLACES)


def test_a_conversation_stays_with_its_agent_when_that_gets_another_address(site: str) -> None:
    house = world.house()
    with Chat(site, world.linus()) as chat:
        thread = chat.say("What is 2 + 2?")
        run = Run.objects.get(depth=0).pk
        Agent.objects.filter(pk=house.concierge.pk).update(slug="porter")
        world.agent("Usurper", slug="concierge")
        (field,) = [one for one in chat.page(f"/chat/{thread}/").all("input") if one.attrs["name"] == "agent"]
        assert field.attrs["value"] == "porter"
        chat.say("And 3 + 3?", "porter", thread)
        assert chat.send("", "porter", thread=thread, retry=run).status_code == 200
        until_stored()
    assert Run.objects.filter(depth=0, agent_slug="porter").count() == 2
