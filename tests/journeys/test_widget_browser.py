"""The widget in a browser: on a page of another site, under that site's policy, all third-party cookies blocked."""

import base64
import json
import time

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from runtime.models import Run, Thread
from tests import world
from tests.journeys.conftest import QUESTION
from tests.web.api_client import scripted_agent, settle
from tests.web.host_page import HostSite

pytestmark = pytest.mark.django_db(transaction=True)
EVERYTHING_BLOCKED = """
for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });
}
const refuse = () => { throw new Error("A cookie was used."); };
Object.defineProperty(Document.prototype, "cookie", { get: refuse, set: refuse });
"""


def chat(page: Page) -> FrameLocator:
    return page.frame_locator("iframe[title]")


def opened(page: Page, shop: HostSite) -> FrameLocator:
    page.goto(shop.origin)
    page.get_by_role("button", name="Open the chat").click()
    return chat(page)


def answer(frame: FrameLocator):
    return frame.locator(".reply > .flow > .message > .prose").last


def test_a_visitor_asks_and_sees_who_answered(page, shop, house):
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")
    expect(frame.locator(".card.delegate > summary > .label")).to_have_text(["HR desk", "Librarian"])
    page.goto(f"{shop.origin}/other")
    expect(answer(frame)).to_contain_text("28 days")
    assert page.context.cookies() == []
    settle()
    assert Run.objects.get(depth=0).channel == "widget"


def test_it_works_without_any_storage_for_as_long_as_the_page_stays(page, shop, house):
    page.add_init_script(EVERYTHING_BLOCKED)
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")
    frame.get_by_role("link", name="New conversation").click()
    frame.get_by_text("Earlier conversations").click()
    frame.get_by_role("link", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")


def test_the_keyboard_opens_writes_and_closes_it(page, shop, house):
    page.goto(shop.origin)
    button = page.get_by_role("button", name="Open the chat: Ask the shop")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.press("Enter")
    field = chat(page).get_by_role("textbox")
    expect(field).to_be_focused()
    expect(page.locator("iframe[title]")).to_be_focused()
    page.keyboard.type("What is 1,249 * 0.21?")
    expect(field).to_have_value("What is 1,249 * 0.21?")
    page.keyboard.press("Enter")
    expect(answer(chat(page))).to_contain_text("262.29")
    expect(chat(page).get_by_role("button", name="Send")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Ask the shop")).to_be_hidden()
    expect(button).to_be_focused()
    button.press("Enter")
    expect(field).to_be_focused()


def test_forgetting_leaves_nothing_behind(page, shop, house):
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")
    frame.get_by_role("button", name="Forget my conversations").click()
    frame.get_by_role("button", name="Delete").click()
    expect(frame.get_by_role("button", name=QUESTION)).to_be_visible()
    expect(frame.locator(".turn")).to_have_count(0)
    assert not Thread.objects.exists()


def test_a_site_that_signs_somebody_out_takes_their_conversation_along(page, shop, house):
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")
    page.evaluate("document.dispatchEvent(new Event('roster:forget'))")
    expect(frame.locator(".turn")).to_have_count(0)
    page.reload()
    expect(frame.get_by_role("button", name=QUESTION)).to_be_visible()
    assert not Thread.objects.exists()


def test_a_token_that_expired_is_renewed_without_a_word(page, shop, house):
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")
    expect(frame.get_by_role("button", name="Send")).to_be_visible()
    for where in page.frames:
        where.evaluate("(late => { Date.now = () => late; })(Date.now() + 16 * 60 * 1000)")
    with page.expect_request("**/token/") as renewal:
        frame.get_by_role("textbox").fill("What is 2 + 2?")
        frame.get_by_role("textbox").press("Enter")
    assert "token=" in renewal.value.post_data
    expect(answer(frame)).to_contain_text("4")
    assert Thread.objects.count() == 1


def test_what_the_server_refuses_is_said_and_the_text_is_kept(page, shop, house):
    widget = house.concierge.widgets.get()
    widget.visitor_per_hour = 0
    widget.save()
    frame = opened(page, shop)
    frame.get_by_role("textbox").fill("Is anybody there?")
    frame.get_by_role("textbox").press("Enter")
    expect(frame.get_by_role("alert")).to_contain_text("Try again in")
    expect(frame.get_by_role("textbox")).to_have_value("Is anybody there?")
    page.complaints.remove("Failed to load resource: the server responded with a status of 429 (Too Many Requests)")


def test_nothing_can_be_pressed_before_the_chat_can_answer(page, shop, house):
    page.route("**/vendor/htmx.min.js", lambda route: (time.sleep(1), route.continue_()))
    frame = opened(page, shop)
    frame.get_by_role("button", name=QUESTION).click()
    expect(answer(frame)).to_contain_text("28 days")


def test_a_site_that_is_not_on_the_list_shows_nothing(page, shop, house):
    widget = world.widget(house.concierge, "https://elsewhere.example", name="Elsewhere")
    with page.expect_console_message(lambda said: said.type == "warning") as hint:
        page.goto(shop.show(widget.pk))
    assert f"does not name {shop.origin} as one of its sites" in hint.value.text
    assert page.locator("roster-widget").count() == 0
    assert any("blocked by CORS policy" in said for said in page.complaints)
    page.complaints.clear()


def test_a_site_that_is_not_on_the_list_can_not_frame_it_either(page, shop, site, house):
    widget = world.widget(house.concierge, "https://elsewhere.example", title="Elsewhere")
    page.goto(shop.show(""))
    frame = "address => document.body.append(Object.assign(document.createElement('iframe'), { src: address }))"
    with page.expect_console_message(lambda said: "frame-ancestors" in said.text):
        page.evaluate(frame, f"{site}/widget/{widget.pk}/")
    assert "Elsewhere" not in page.frames[-1].content()
    page.complaints.clear()


def test_a_widget_that_is_switched_off_is_a_hint_for_developers_alone(page, shop, house):
    house.concierge.widgets.update(enabled=False)
    with page.expect_console_message(lambda said: "This widget is switched off" in said.text):
        page.goto(shop.origin)
    assert page.locator("roster-widget").count() == 0
    page.complaints.clear()


def test_a_widget_that_is_switched_off_in_the_middle_of_an_answer_says_so(page, shop, house, model):
    widget = world.widget(scripted_agent(model, audience="everyone"), shop.origin)
    shop.show(widget.pk)
    model.says(["One "] * 100, delay=0.1)
    frame = opened(page, shop)
    frame.get_by_role("textbox").fill("Count")
    frame.get_by_role("textbox").press("Enter")
    expect(frame.locator(".message")).to_contain_text("One")
    type(widget).objects.update(enabled=False)
    expect(frame.get_by_role("alert")).to_contain_text("does not exist any more")
    page.complaints.clear()


def test_an_agent_that_visitors_may_not_use_any_more_is_said(page, shop, house):
    type(house.concierge).objects.filter(pk=house.concierge.pk).update(audience="signed-in")
    frame = opened(page, shop)
    expect(frame.get_by_text("answer at the moment")).to_be_visible()


def test_it_fills_a_phone_and_keeps_to_the_chosen_theme(page, shop, house):
    house.concierge.widgets.update(theme="dark", accent="#ffee00")
    page.set_viewport_size({"width": 390, "height": 780})
    frame = opened(page, shop)
    expect(frame.get_by_role("textbox")).to_be_visible()
    box = page.locator("iframe").bounding_box()
    assert (box["width"], box["height"]) == (390, 780)
    assert frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") == "rgb(28, 28, 35)"
    frame.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Open the chat")).to_be_focused()


def test_two_tabs_that_are_opened_at_once_are_one_visitor(page, shop, house):
    other = page.context.new_page()
    visitors = set()
    for tab in (page, other):
        tab.route("**/token/", lambda route: (time.sleep(0.3), route.continue_()))
        tab.on("request", lambda request: visitors.add(_visitor(request.headers.get("authorization", ":"))))
        tab.goto(shop.origin)
        expect(tab.get_by_role("button", name="Open the chat")).to_be_visible()
    for tab in (page, other):
        tab.evaluate("document.querySelector('roster-widget').shadowRoot.querySelector('button').click()")
    for tab in (page, other):
        expect(chat(tab).get_by_role("button", name=QUESTION)).to_be_visible()
    visitors.discard("")
    assert len(visitors) == 1


def _visitor(authorization):
    said = authorization.removeprefix("Bearer ").split(":")[0]
    return json.loads(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)))["visitor"] if said else ""
