"""The chat page when the world moves beside it: other tabs, lost answers, an ended session, a page that is left."""

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.test_chat_browser import STOP, answered, desk, enter, say
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)

HIDDEN = "Object.defineProperty(document, 'hidden', { value: true, configurable: true, writable: true });"


def look_away(page: Page) -> None:
    page.evaluate(HIDDEN + "document.dispatchEvent(new Event('visibilitychange'))")


def look_at(page: Page) -> None:
    page.evaluate("document.hidden = false; document.dispatchEvent(new Event('visibilitychange'))")


def test_the_end_of_an_answer_leaves_the_next_ones_stop_alone(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("slow " * 20, delay=0.05).says("slower " * 60, delay=0.1)
    enter(page)
    say(page, "first")
    expect(page.locator(".message")).to_contain_text("slow")
    look_away(page)
    other = page.context.new_page()
    other.goto(page.url)
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
