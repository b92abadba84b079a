"""The widget as pages, frames and visitors meet it."""

import re
import time
from uuid import uuid4

import httpx
import pytest
from django.test import Client

from runtime.models import Run, Thread
from tests import world
from tests.web.api_client import QUESTION, scripted_agent, settle
from tests.web.widget_client import SHOP, Visitor, run_in, thread_in
from web.widget.token import Pass, issue

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "7d1a2c54-0000-4000-8000-000000000000"


def test_a_page_of_the_shop_is_told_how_the_button_looks(site, widget):
    answer = Visitor(site, widget.pk).page("GET", "look/")
    assert answer.json() == {"title": "Ask the shop", "theme": "auto", "accent": "#e11d48"}
    assert answer.headers["Access-Control-Allow-Origin"] == SHOP
    assert answer.headers["Vary"] == "Origin"
    assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://shop.example",
        "https://shop.example:444",
        "https://shop.example.evil.example",
        "https://SHOP.example",
        "null",
        "",
        "*",
    ],
)
def test_other_sites_are_refused_in_words(site, widget, origin):
    guest = Visitor(site, widget.pk, origin=origin)
    for method, path in (("GET", "look/"), ("POST", "token/"), ("POST", "forget/")):
        answer = guest.page(method, path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        assert "may not be shown on this site" in answer.json()["error"]["message"]
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_an_unknown_widget_is_refused_and_has_no_frame(site, house):
    guest = Visitor(site, uuid4())
    assert guest.page("POST", "token/").status_code == 403
    assert guest.http.get("").status_code == 404


def test_the_frame_may_be_shown_on_the_widgets_sites_alone(site, house):
    widget = world.widget(house.concierge, SHOP, "http://localhost:9000")
    answer = Visitor(site, widget.pk).http.get("")
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert re.search("frame-ancestors ([^;]*)", policy)[1] == f"http://localhost:9000 {SHOP}"
    assert "unsafe" not in policy
    assert "X-Frame-Options" not in answer.headers


def test_a_widget_that_is_switched_off_says_so(site, widget, visitor):
    widget.enabled = False
    widget.save()
    assert "switched off" in visitor.page("POST", "token/").json()["error"]["message"]
    assert "switched off" in visitor.http.get("").text
    refused = visitor.say(QUESTION)
    assert (refused.status_code, refused.headers["HX-Retarget"]) == (403, "#composer-problem")
    assert "switched off" in refused.text


def test_a_site_that_is_taken_off_is_out_at_once(widget, visitor):
    widget.origins.all().delete()
    refused = visitor.frame("GET", "conversation/")
    assert refused.status_code == 403
    assert "may not be shown on this site any more" in refused.text


def test_an_agent_that_visitors_can_not_use_is_said(house, visitor):
    house.concierge.audience = "signed-in"
    house.concierge.save()
    assert "answer at the moment" in visitor.frame("GET", "conversation/").text
    assert visitor.say(QUESTION).status_code == 404


def test_a_visitor_is_greeted_asks_and_finds_the_answer_again(house, visitor):
    house.concierge.starters = QUESTION
    house.concierge.save()
    welcome = visitor.frame("GET", "conversation/").text
    assert "Good day!" in welcome
    assert QUESTION in welcome
    stream = visitor.answer_to(QUESTION)
    assert stream.index("HR desk") < stream.index("Librarian") < stream.index("28 days")
    assert stream.endswith("event: end\ndata: end\n\n")
    later = visitor.frame("GET", "conversation/").text
    assert "28 days" in later
    assert "hx-sse:connect" not in later
    assert "Good day!" in visitor.frame("GET", "conversation/?new").text
    run = Run.objects.get(depth=0)
    assert (run.channel, run.widget_id, run.user_id) == ("widget", visitor.widget, None)


def test_no_cookie_is_set_and_a_session_counts_for_nothing(site, house, visitor):
    browser = Client()
    browser.force_login(house.ada)
    session = {"Cookie": f"roster_session={browser.cookies['roster_session'].value}"}
    for method, path in (("GET", "conversation/"), ("POST", "send/")):
        answer = visitor.http.request(method, path, headers=session, data={"agent": "concierge", "text": QUESTION})
        assert answer.status_code == 401
    visitor.answer_to(QUESTION)
    answers = [visitor.http.get(""), visitor.frame("GET", "conversation/"), visitor.page("GET", "look/")]
    answers += [visitor.page("POST", "token/"), httpx.get(f"{site}/widget.js", trust_env=False)]
    assert [answer.headers.get("Set-Cookie") for answer in answers] == [None] * 5
    assert not visitor.http.cookies


def test_only_this_widgets_own_fresh_token_counts(site, house, widget, visitor, monkeypatch):
    other = world.widget(house.analyst, SHOP)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 16 * 60)
    old = issue(Pass(widget.pk, SHOP, "somebody"))
    monkeypatch.undo()
    for token in ("", "x", old, Visitor(site, other.pk).arrive().token, world.api_key(house.ada)):
        visitor.token = token
        refused = visitor.frame("GET", "conversation/")
        assert refused.status_code == 401
        assert "expired" in refused.text
    visitor.token = old
    assert visitor.arrive().frame("GET", "conversation/").status_code == 200


def test_a_renewed_token_keeps_the_conversation_and_one_from_elsewhere_does_not(site, house, visitor):
    visitor.answer_to(QUESTION)
    assert "28 days" in visitor.arrive().frame("GET", "conversation/").text
    elsewhere = world.widget(house.concierge, SHOP, "https://other.example", name="Another")
    for guest in (Visitor(site, elsewhere.pk, token=visitor.token), Visitor(site, visitor.widget, token="forged")):
        assert "28 days" not in guest.arrive().frame("GET", "conversation/").text


def test_what_belongs_to_another_visitor_is_not_there(visitor, stranger):
    sent = visitor.say(QUESTION)
    run, thread = run_in(sent), thread_in(sent)
    for method, path in (
        ("GET", f"runs/{run}/stream/"),
        ("POST", f"runs/{run}/stop/"),
        ("GET", f"conversation/?thread={thread}"),
        ("GET", f"conversation/?before={run}"),
    ):
        assert stranger.frame(method, path).status_code == 404, path
        assert visitor.frame(method, path).status_code in {200, 204}, path
    assert stranger.say("And mine?", thread=thread).status_code == 404
    assert stranger.frame("POST", "send/", retry=run).status_code == 404
    assert "annual leave" not in stranger.frame("GET", "conversation/").text
    assert Run.objects.filter(depth=0).count() == 1


def test_a_widget_starts_its_own_agent_alone(visitor):
    refused = visitor.say("What is 2 + 2?", agent="analyst")
    assert refused.status_code == 404
    assert "no such agent" in refused.text


def test_a_conversation_goes_on_and_earlier_ones_can_be_found(visitor):
    sent = visitor.say(QUESTION)
    settle()
    visitor.answer_to("And how do I book a train?", thread=thread_in(sent))
    assert Thread.objects.count() == 1
    empty = visitor.frame("GET", "conversation/?new").text
    assert f"?thread={thread_in(sent)}" in empty
    assert "second class" in visitor.frame("GET", f"conversation/?thread={thread_in(sent)}").text


def test_forgetting_leaves_nothing_of_this_visitor_and_all_of_others(visitor, stranger):
    visitor.answer_to(QUESTION)
    stranger.answer_to(QUESTION)
    assert visitor.page("POST", "forget/", token=visitor.token).status_code == 200
    assert "28 days" not in visitor.frame("GET", "conversation/").text
    assert "28 days" in stranger.frame("GET", "conversation/").text
    assert Thread.objects.count() == 1


def test_forgetting_stops_what_is_being_answered(site, house, model):
    scribe = scripted_agent(model, audience="everyone")
    visitor = Visitor(site, world.widget(scribe, SHOP).pk).arrive()
    model.says(["One ", "two ", "three"], gate=1)
    assert visitor.say("Count", agent="scribe").status_code == 200
    assert visitor.page("POST", "forget/", token=visitor.token).status_code == 200
    assert not Run.objects.exists()


def test_a_token_of_somebody_else_forgets_nobody(site, house, visitor):
    visitor.answer_to(QUESTION)
    for token in ("", "x", issue(Pass(uuid4(), SHOP, "x")), issue(Pass(visitor.widget, "https://evil.example", "x"))):
        assert visitor.page("POST", "forget/", token=token).status_code == 401
    assert Thread.objects.count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "\x00\ud800", "thread": "\x00"},
        {"text": "x" * 200_000},
        {"agent": "\x00"},
        {"retry": "nonsense"},
        {"retry": str(uuid4())},
        {"thread": str(uuid4())},
    ],
)
def test_hostile_posts_are_answered_in_words(visitor, fields):
    body = "&".join(
        f"{name}={_quoted(value)}" for name, value in ({"agent": "concierge", "text": "x"} | fields).items()
    )
    headers = {"Authorization": f"Bearer {visitor.token}", "Content-Type": "application/x-www-form-urlencoded"}
    answer = visitor.http.post("send/", headers=headers, content=body)
    assert answer.status_code in {404, 422}
    assert answer.headers["HX-Retarget"] == "#composer-problem"
    assert len(answer.text) > 20


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode(errors="surrogatepass"))


@pytest.mark.parametrize("query", ["thread=x", "before=x", "thread=%00", f"thread={UNKNOWN}", f"before={UNKNOWN}"])
def test_a_conversation_that_is_not_there_is_said(visitor, query):
    answer = visitor.frame("GET", f"conversation/?{query}")
    assert answer.status_code == 404
    assert "does not exist any more" in answer.text


def test_nothing_changes_by_looking(visitor):
    assert [visitor.frame("GET", path).status_code for path in ("send/", f"runs/{uuid4()}/stop/")] == [405, 405]
    assert [visitor.page("GET", path).status_code for path in ("token/", "forget/")] == [405, 405]
