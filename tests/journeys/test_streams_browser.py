"""Streams of the chat page that break off, open late or are hidden, in a browser."""

import time

import pytest
from playwright.sync_api import Page, Route, expect

from tests.journeys.test_chat_browser import FIELD, answered, desk, enter, say
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_hidden_tab_comes_back_to_the_whole_answer(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says([f"word{number} " for number in range(40)], delay=0.05)
    enter(page)
    say(page, "Tell me")
    expect(page.locator(".message")).to_contain_text("word5")
    for hidden in ("true", "false"):
        page.evaluate(f"Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        time.sleep(0.6)
    answered(page)
    expect(page.locator(".message")).to_have_text("".join(f"word{number} " for number in range(40)).strip())


def test_a_stream_that_could_not_be_opened_is_opened_again(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("Here it is.")
    enter(page)
    page.route("**/stream/**", lambda route: route.abort(), times=1)
    say(page, "Hello")
    expect(page.locator("#composer-problem")).to_contain_text("can't be reached")
    answered(page)
    expect(page.locator(".message")).to_have_text("Here it is.")
    expect(page.locator("#composer-problem")).to_be_empty()
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports the request that failed


def test_a_stream_that_opens_late_leaves_what_is_said_about_something_else(page: Page, model: ScriptedModel) -> None:
    def late(route: Route) -> None:
        time.sleep(1.5)
        route.continue_()

    desk(model)
    model.says([f"word{number} " for number in range(60)], gate=6)
    enter(page)
    page.route("**/stream/**", late, times=1)
    page.evaluate(
        """() => setTimeout(() => {
        document.getElementById("composer-text").value = "And then?";
        document.getElementById("composer").requestSubmit();
        }, 1000)"""
    )
    say(page, "Tell me")
    expect(page.locator(".message")).to_contain_text("word5")
    expect(page.locator("#composer-problem")).to_contain_text("still being written")
    expect(page.locator(FIELD)).to_have_value("And then?")
    model.goes_on()
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports the request that was refused
