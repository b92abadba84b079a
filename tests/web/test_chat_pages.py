"""The chat page over HTTP: what people see, send and may not touch."""

import re
import uuid
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from runtime import execute
from runtime.models import Run, Thread
from tests import world
from tests.loop import running
from tests.scripted import ScriptedModel
from tests.web.chat_client import HTMX, Chat, a_thread, desk, stream_of, until_stored

pytestmark = pytest.mark.django_db(transaction=True)


def test_people_choose_among_the_agents_they_may_use(site: str) -> None:
    world.house()
    world.agent("Payroll", audience="chosen")
    world.agent("Ghost", hidden=True)
    with Chat(site, world.linus()) as chat:
        page = chat.page()
        names = [card.text.split("\n")[0] for card in page.all("strong")]
        assert names == ["Concierge", "Analyst", "HR desk", "Librarian"]  # the one that nobody delegates to first
        for slug in ("payroll", "ghost", "nobody", "\x00", "🦉"):
            assert chat.http.get("/chat/", params={"agent": slug}).status_code == 404


def test_an_agent_greets_and_offers_a_beginning(site: str) -> None:
    world.agent("Desk", greeting="Good morning.", starters="Where is <b>room 4</b>?\nWho is who?")
    with Chat(site, world.linus()) as chat:
        page = chat.page("/chat/?agent=desk")
        assert "Good morning." in page.text
        assert [one.text for one in page.all("button", "starter")] == ["Where is <b>room 4</b>?", "Who is who?"]
        sent = chat.send(text="half a thought", agent="desk", starter="Who is who?")
        assert sent.status_code == 200
        assert Run.objects.get().input == "Who is who?"
        until_stored()


def test_without_any_agent_the_page_says_so(site: str) -> None:
    with Chat(site, world.linus()) as chat:
        assert "There is no agent that you may use yet" in chat.page().text


def test_a_first_message_makes_a_conversation(site: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        sent = chat.send("How many days of annual leave do I get?")
        thread = Thread.objects.get()
        assert sent.headers["HX-Replace-Url"] == f"/chat/{thread.pk}/"
        assert f'id="thread-{thread.pk}"' in sent.text
        assert f"<title>{thread.title} · Roster</title>" in sent.text
        stream = chat.http.get(stream_of(sent.text))
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in stream.headers["cache-control"]
        assert stream.text.endswith("event: end\ndata: end\n\n")
        until_stored()
        page = chat.page(f"/chat/{thread.pk}/")
        assert "28 days" in page.text
        assert [label.text for label in page.all(css_class="label")] == ["HR desk", "Librarian", "Employee handbook"]
        assert "hx-sse:connect" not in page.html


def test_a_browser_without_scripts_is_led_to_the_conversation(site: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        sent = chat.post("/chat/send/", htmx=False, agent="concierge", text="Hello")
        assert sent.status_code == 302
        assert sent.headers["location"] == f"/chat/{Thread.objects.get().pk}/"
        refused = chat.post("/chat/send/", htmx=False, agent="concierge", text=" \n ")
        assert refused.status_code == 422
        assert "Write a message first" in refused.text
        kept = chat.post("/chat/send/", htmx=False, agent="concierge", text="x" * 100_001)
        assert "x" * 100_001 in kept.text
        until_stored()


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"text": ""}, 422, "Write a message first"),
        ({"text": " \n\t"}, 422, "Write a message first"),
        ({"text": "\x00" * 3 + "x" * 100_001}, 422, "100,000 are allowed"),
        ({"text": "hi", "agent": "nobody"}, 404, "no such agent"),
        ({"text": "hi", "agent": "\x00\ud800".encode("utf-8", "surrogatepass")}, 404, "no such agent"),
        ({"text": "hi", "thread": "4711"}, 404, "does not exist, or it is not yours"),
        ({"text": "hi", "thread": str(uuid.uuid4())}, 404, "no such thread"),
        ({"text": "hi", "retry": "4711"}, 404, "does not exist, or it is not yours"),
    ],
)
def test_what_cannot_be_sent_is_answered_in_words(site: str, form: dict[str, Any], status: int, words: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        refused = chat.post("/chat/send/", **({"agent": "concierge"} | form))
        assert (refused.status_code, words in refused.text) == (status, True), refused.text
        assert refused.headers["HX-Reswap"] == "innerHTML"
        assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("a\x00b", "a\ufffdb"),
        ("line one\r\nline two", "line one\nline two"),
        ("<script>alert(1)</script> {{ 7*7 }} {name}", "<script>alert(1)</script> {{ 7*7 }} {name}"),
        ("🦉 مرحبا \u202eabc", "🦉 مرحبا \u202eabc"),
    ],
)
def test_hostile_text_is_kept_as_text(site: str, typed: str, stored: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        sent = chat.send(typed)
        assert sent.status_code == 200
        assert Run.objects.get(depth=0).input == stored
        assert "<script>alert" not in sent.text
        page = chat.page(sent.headers["HX-Replace-Url"])
        assert any(said.text == f"You: {stored}" for said in page.all(css_class="said"))
        until_stored()


def test_a_body_beyond_all_limits_is_refused_without_an_error(site: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        assert chat.send("🦉" * 1_000_000).status_code in {400, 413}


def test_a_second_message_waits_for_the_first(site: str, model: ScriptedModel) -> None:
    desk(model)
    model.says("slow " * 40, gate=1)
    with Chat(site, world.linus()) as chat:
        sent = chat.send("first", "desk")
        thread = str(Thread.objects.get().pk)
        again = chat.send("second", "desk", thread=thread)
        assert again.status_code == 409
        assert "still being written" in again.text
        run = Run.objects.get()
        page = chat.page(f"/chat/{thread}/")
        assert [one.attrs["hx-post"] for one in page.all("button", "stop")] == [f"/chat/runs/{run.pk}/stop/"]
        deleted = chat.post(f"/chat/{thread}/delete/")
        assert (deleted.status_code, "Stop it first" in deleted.text) == (409, True)
        assert chat.post(f"/chat/runs/{run.pk}/stop/").status_code == 204
        assert "Stopped. What was written so far is kept." in chat.http.get(stream_of(sent.text)).text
        assert chat.post(f"/chat/runs/{run.pk}/stop/").status_code == 204


def test_a_failed_answer_can_be_asked_for_again(site: str, model: ScriptedModel) -> None:
    desk(model)
    model.fails("500", times=None)
    with Chat(site, world.linus()) as chat:
        thread = chat.say("What now?", "desk")
        page = chat.page(f"/chat/{thread}/")
        (retry,) = page.all("button", "retry")
        chat.post("/chat/send/", agent="desk", text="", thread=thread, retry=retry.attrs["value"])
        assert list(Run.objects.values_list("input", flat=True)) == ["What now?", "What now?"]


def test_a_reader_gets_what_comes_after_what_it_has(site: str) -> None:
    world.house()
    with Chat(site, world.linus()) as chat:
        sent = chat.send("What is 1,249 * 0.21?")
        address = stream_of(sent.text)
        whole = chat.http.get(address).text
        numbers = [int(number) for number in re.findall(r"^id: (\d+)$", whole, re.MULTILINE)]
        assert numbers == sorted(set(numbers))
        middle = numbers[len(numbers) // 2]
        rest = chat.http.get(address, headers={"Last-Event-ID": str(middle)}).text
        assert whole.endswith(rest)
        assert re.findall(r"^id: (\d+)$", rest, re.MULTILINE)[0] == str(next(n for n in numbers if n > middle))
        for after in ("", "-1", "abc", "9" * 400, "\x00"):
            assert chat.http.get(address.split("?")[0], params={"after": after}).text == whole


def test_staff_find_the_admin_from_every_page(site: str) -> None:
    for person, found in ((world.linus(), []), (world.grace(), ["/admin/"])):
        with Chat(site, person) as chat:
            for path in ("/chat/", f"/chat/{a_thread(person, 'Paper').pk}/"):
                links = chat.page(path).all("a")
                assert [link.attrs["href"] for link in links if "admin" in link.attrs["href"]] == found
            refused = chat.post("/chat/send/", htmx=False, text="Hello", agent="nobody")
            assert ('href="/admin/"' in refused.text) == bool(found)


def test_what_is_somebody_elses_is_not_there(site: str) -> None:
    world.house()
    with Chat(site, world.maya()) as chat:
        theirs = chat.say("My salary")
    run = Run.objects.get(depth=0)
    child = Run.objects.filter(depth=1).first()
    missing = uuid.uuid4()
    with Chat(site, world.ada()) as chat:
        for thread, root in ((theirs, run.pk), (missing, missing)):
            answers = [
                chat.http.get(f"/chat/{thread}/"),
                chat.http.get(f"/chat/runs/{root}/stream/"),
                chat.post(f"/chat/runs/{root}/stop/"),
                chat.post(f"/chat/{thread}/rename/", title="Mine now"),
                chat.post(f"/chat/{thread}/rename/", title=""),
                chat.post(f"/chat/{thread}/delete/"),
                chat.send("me too", thread=thread),
                chat.post("/chat/send/", agent="concierge", retry=root),
                chat.post("/chat/send/", htmx=False, agent="concierge", thread=thread, text="x"),
            ]
            assert [answer.status_code for answer in answers] == [404] * len(answers)
            assert all("salary" not in answer.text for answer in answers)
    if child:
        with Chat(site, world.maya()) as chat:
            assert chat.http.get(f"/chat/runs/{child.pk}/stream/").status_code == 404
    assert Thread.objects.get().title == "My salary"
    assert Run.objects.filter(depth=0).count() == 1


def test_nobody_gets_in_without_signing_in(site: str) -> None:
    with Chat(site, None) as chat:
        assert chat.http.get("/chat/").headers["location"].startswith("/login/")
        assert chat.http.get(f"/chat/runs/{uuid.uuid4()}/stream/", headers=HTMX).status_code == 401


def test_only_posts_with_their_token_change_anything(site: str) -> None:
    linus = world.linus()
    thread = a_thread(linus, "Holidays")
    changes = (
        "/chat/send/",
        f"/chat/{thread.pk}/rename/",
        f"/chat/{thread.pk}/delete/",
        f"/chat/runs/{thread.pk}/stop/",
    )
    with Chat(site, linus) as chat:
        for address in changes:
            assert chat.http.get(address).status_code == 405
            assert chat.post(address, token="x" * 64).status_code == 403
    assert Thread.objects.get().title == "Holidays"


def test_an_answer_that_is_there_at_once_is_shown(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model was so fast that the run had ended before the page of its turn was made."""
    desk(model)
    model.says("Done already.")
    start = execute.start

    async def start_and_end(*given: Any) -> execute.Started:
        started = await start(*given)
        assert await execute.wait(started.run, 10)
        return started

    async def send() -> str:
        person = AsyncClient()
        await person.aforce_login(await sync_to_async(world.linus)())
        form = {"agent": "desk", "text": "Hello"}
        return (await person.post("/chat/send/", form, headers=HTMX)).content.decode()

    monkeypatch.setattr(execute, "start", start_and_end)
    assert stream_of(running(send)).endswith("?after=0")
