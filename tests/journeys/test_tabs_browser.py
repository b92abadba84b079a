"""The chat page when the world moves beside it: other tabs, lost answers, an ended session, a page that is left."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from runtime.models import Run
from tests import world
from tests.journeys.test_chat_browser import FIELD, SEND, STOP, answered, desk, enter, say
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)

HIDDEN = "Object.defineProperty(document, 'hidden', { value: true, configurable: true, writable: true });"


def look_away(page: Page) -> None:
    page.evaluate(HIDDEN + "document.dispatchEvent(new Event('visibilitychange'))")


def look_at(page: Page) -> None:
    page.evaluate("document.hidden = false; document.dispatchEvent(new Event('visibilitychange'))")


def test_a_tab_that_is_looked_at_while_it_sends_shows_its_turn_once(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("One.").says("Two.")
    enter(page)
    say(page, "first")
    answered(page)

    def looked_at_meanwhile(route: Route) -> None:
        answer = route.fetch()
        page.evaluate("window.dispatchEvent(new Event('focus'))")
        page.wait_for_timeout(500)
        route.fulfill(response=answer)

    page.route("**/chat/send/", looked_at_meanwhile, times=1)
    with page.expect_response("**/chat/send/"):
        say(page, "second")
    page.wait_for_timeout(300)
    answered(page, turns=2)
    expect(page.locator(".message").last).to_have_text("Two.")


def test_what_the_server_took_is_shown_when_its_answer_was_lost(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("One.").says("slow " * 40, gate=5)
    enter(page)
    say(page, "first")
    answered(page)
    page.route("**/chat/send/", lambda route: (route.fetch(), route.abort()), times=1)
    say(page, "second")
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(FIELD)).to_have_value("second")
    page.click(STOP)
    answered(page, turns=2)
    assert Run.objects.count() == 2
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports the request that failed


@pytest.mark.parametrize("then", ["first", "first, and more"])
def test_a_first_message_whose_answer_was_lost_is_sent_again(page: Page, model: ScriptedModel, then: str) -> None:
    desk(model)
    enter(page)
    page.route("**/chat/send/", lambda route: (route.fetch(), route.abort()), times=1)
    say(page, "first")
    expect(page.locator("#composer-problem")).to_contain_text("can't be reached")
    say(page, then)
    answered(page)
    same = then == "first"
    expect(page.locator(FIELD)).to_have_value("" if same else then)
    expect(page.locator("#composer-problem")).to_have_text("" if same else re.compile("This one is kept"))
    expect(page.locator(".thread[id]")).to_have_count(1)
    say(page, "second")
    answered(page, turns=2)
    assert [run.input for run in Run.objects.order_by("created_at")] == ["first", "second"]
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports the requests that failed


def test_the_end_of_an_answer_leaves_the_next_ones_stop_alone(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("slow " * 20, gate=5).says("slower " * 400, delay=0.1)
    enter(page)
    say(page, "first")
    expect(page.locator(".message")).to_contain_text("slow")
    look_away(page)
    other = page.context.new_page()
    other.goto(page.url)
    model.goes_on()
    answered(other)
    say(other, "second")
    expect(other.locator(STOP)).to_be_visible()
    look_at(page)
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".working")).to_have_count(1)
    expect(page.locator(STOP)).to_be_visible()
    page.click(STOP)
    for tab in (page, other):
        answered(tab, turns=2)


def test_who_signs_in_again_reads_on_and_goes_on(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says([f"word{number} " for number in range(30)], gate=6).says("Two.")
    enter(page)
    say(page, "first")
    expect(page.locator(".message")).to_contain_text("word5")
    page.context.clear_cookies(name="roster_session")
    look_away(page)
    look_at(page)
    expect(page.locator("#composer-problem")).to_contain_text("signed out")
    other = page.context.new_page()
    other.goto("/login/")
    other.fill("[name=username]", "linus")
    other.fill("[name=password]", world.PASSWORD)
    other.click("button[type=submit]")
    other.wait_for_url("**/chat/")
    model.goes_on()
    answered(page)
    expect(page.locator(".message")).to_contain_text("word29")
    say(page, "second")
    expect(page.locator("#composer-problem")).to_contain_text("session has changed")
    page.wait_for_timeout(500)
    page.press(FIELD, "Enter")
    answered(page, turns=2)
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports each refused request


def test_a_tab_that_was_never_looked_at_keeps_no_stream_open(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says([f"word{number} " for number in range(60)], gate=6)
    enter(page)
    say(page, "first")
    expect(page.locator(".message")).to_contain_text("word5")
    background = page.context.new_page()
    background.add_init_script(HIDDEN)
    streams: list[str] = []
    background.on("requestfailed", lambda one: streams.append("left") if "/stream/" in one.url else None)
    background.on("request", lambda one: streams.append("opened") if "/stream/" in one.url else None)
    background.goto(page.url)
    background.wait_for_timeout(700)
    assert streams == ["opened", "left"]
    model.goes_on()
    look_at(background)
    answered(background)
    expect(background.locator(".message")).to_contain_text("word59")


def test_the_back_button_shows_what_was_said_since(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("One.").says("Two.")
    enter(page)
    say(page, "first")
    answered(page)
    expect(page).to_have_url(re.compile("/chat/[0-9a-f-]{36}/"))
    page.reload()
    say(page, "second")
    answered(page, turns=2)
    page.click(".new")
    page.wait_for_url("**/chat/?agent=desk")
    page.go_back()
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(SEND)).to_be_visible()
