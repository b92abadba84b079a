"""The widget in a browser when something breaks off: the page, the network, the token, a response."""

from itertools import count

import pytest
from playwright.sync_api import Page, Route, expect

from runtime.models import Run
from tests import world
from tests.journeys.conftest import QUESTION
from tests.journeys.test_widget_browser import answer, opened
from tests.web.api_client import scripted_agent

pytestmark = pytest.mark.django_db(transaction=True)


def lose_the_response_to(page: Page, message: int) -> None:
    """Of the message with this number. Said before the frame is opened: later the first might still get through."""
    sent = count(1)

    def lost(route: Route) -> None:
        if next(sent) == message:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/send/", lost)


def test_a_page_that_is_reloaded_in_the_middle_of_an_answer_loses_nothing(page, shop, house, model):
    scribe = scripted_agent(model, audience="everyone")
    shop.show(world.widget(scribe, shop.origin).pk)
    model.says(["One ", "two ", "three ", "four"], gate=1)
    frame = opened(page, shop)
    frame.get_by_role("textbox").fill("Count")
    frame.get_by_role("textbox").press("Enter")
    expect(frame.locator(".message")).to_contain_text("One")
    streams = []
    page.on("request", lambda request: streams.append(request.url) if "/stream/" in request.url else None)
    page.reload()
    expect(frame.locator(".message")).to_contain_text("One")
    model.goes_on()
    expect(answer(frame)).to_have_text("One two three four")
    assert len(streams) == 1
    expect(frame.get_by_role("button", name="Send")).to_be_visible()
    assert Run.objects.count() == 1


def test_an_answer_goes_on_when_the_token_expired_while_the_network_was_gone(page, shop, house, model):
    scribe = scripted_agent(model, audience="everyone")
    shop.show(world.widget(scribe, shop.origin).pk)
    model.says(["One ", "two ", "three ", "four"], gate=1)
    frame = opened(page, shop)
    frame.get_by_role("textbox").fill("Count")
    frame.get_by_role("textbox").press("Enter")
    expect(frame.locator(".message")).to_contain_text("One")
    for where in page.frames:
        where.evaluate("(late => { Date.now = () => late; })(Date.now() + 16 * 60 * 1000)")
    page.context.set_offline(True)
    for hidden in ("true", "false"):  # as a computer that sleeps and wakes up before its network does
        page.frames[-1].evaluate(
            f"Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        page.wait_for_timeout(1000)
    page.context.set_offline(False)
    model.goes_on()
    expect(answer(frame)).to_have_text("One two three four")
    expect(frame.get_by_role("button", name="Send")).to_be_visible()
    page.complaints.clear()


def test_a_network_that_is_gone_is_said_and_comes_back(page, shop, house):
    frame = opened(page, shop)
    frame.get_by_role("textbox").fill(QUESTION)
    page.context.set_offline(True)
    frame.get_by_role("textbox").press("Enter")
    expect(frame.get_by_role("alert")).to_contain_text("can't be reached")
    page.context.set_offline(False)
    frame.get_by_role("textbox").press("Enter")
    expect(answer(frame)).to_contain_text("28 days")
    assert all("ERR_INTERNET_DISCONNECTED" in said or "Failed to fetch" in said for said in page.complaints)
    page.complaints.clear()


def test_what_the_server_took_is_shown_when_its_answer_was_lost(page, shop, house):
    lose_the_response_to(page, 2)
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")
    expect(frame.get_by_role("button", name="Send")).to_be_visible()
    frame.get_by_role("textbox").fill("What is 2 + 2?")
    frame.get_by_role("textbox").press("Enter")
    expect(frame.locator(".turn")).to_have_count(2)
    expect(answer(frame)).to_contain_text("4")
    assert "Failed to load resource: net::ERR_FAILED" in page.complaints
    page.complaints.clear()


def test_a_first_message_whose_answer_was_lost_is_sent_again(page, shop, house):
    lose_the_response_to(page, 1)
    frame = opened(page, shop)
    frame.get_by_role("textbox").fill(QUESTION)
    frame.get_by_role("textbox").press("Enter")
    expect(frame.get_by_role("alert")).to_contain_text("can't be reached")
    frame.get_by_role("textbox").press("Enter")
    expect(answer(frame)).to_contain_text("28 days")
    expect(frame.locator(".turn")).to_have_count(1)
    assert Run.objects.filter(depth=0).count() == 1
    page.complaints.clear()
