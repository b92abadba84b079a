"""Deciding about a call, and tabs that follow each other, in a browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from agents_admin.models import Agent
from runtime.models import Run, Thread
from tests import waiting
from tests.journeys.test_chat_browser import FIELD, STOP, answered, desk, enter, say, turns
from tests.scripted import ScriptedModel
from tests.web.chat_client import until_stored

pytestmark = pytest.mark.django_db(transaction=True)


def opened(page: Page, agent: Agent) -> Run:
    """Linus looks at an answer whose process dies now."""
    run = waiting.broken_off(agent)
    enter(page, agent.slug)
    page.goto(f"/chat/{run.thread_id}/")
    expect(page.locator(".card")).to_be_visible()
    waiting.lose(run)
    return run


def test_what_happened_is_decided_once_and_every_tab_follows(page: Page, model: ScriptedModel) -> None:
    run = opened(page, waiting.clerk(model))
    other = page.context.new_page()
    other.goto(page.url)
    for tab in (page, other):
        expect(tab.locator(".question")).to_contain_text("Did “Order paper” happen?")
        expect(tab.locator(".outcome.waits")).to_contain_text("waits until you have decided about Order paper")
        expect(tab.locator(".working")).to_have_count(0)
        expect(tab.locator(STOP)).to_be_visible()
    live, loaded = (re.sub(r"after=\d+", "", turns(tab)) for tab in (page, other))
    assert live == loaded
    page.get_by_role("button", name="It happened").press("Enter")
    for tab in (page, other):
        expect(tab.locator(".message").last).to_have_text("Ordered.")
        expect(tab.locator(".question")).to_have_count(0)
        answered(tab)
    assert turns(page) == turns(other)
    page.reload()
    assert turns(page) == turns(other)
    assert (Run.objects.get().pk, len(model.requests)) == (run.pk, 1)


def test_a_decision_that_comes_too_late_is_told(page: Page, model: ScriptedModel) -> None:
    run = opened(page, waiting.clerk(model))
    expect(page.get_by_role("button", name="Do it again")).to_be_visible()
    page.fill(FIELD, "And ink, please.")
    page.evaluate("document.getElementById('composer').requestSubmit()")
    problem = page.locator("#composer-problem")
    expect(problem).to_contain_text("waits for a person to decide")
    expect(problem.get_by_role("link")).to_have_attribute("href", f"#o-{run.pk}")
    page.route("**/stream/**", lambda route: route.abort())
    page.evaluate("document.querySelector('[hx-sse\\\\:connect]').remove()")  # this tab hears nothing any more
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Do it again").click()
    until_stored()
    page.get_by_role("button", name="It happened").click()
    expect(problem).to_contain_text("waits for no decision any more")
    expect(page.locator(FIELD)).to_have_value("And ink, please.")
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports each refused request


def test_stop_ends_what_waits(page: Page, model: ScriptedModel) -> None:
    opened(page, waiting.clerk(model))
    expect(page.locator(".question")).to_be_visible()
    page.click(STOP)
    expect(page.locator(".outcome")).to_have_text("Stopped. What was written so far is kept.")
    expect(page.locator(".question")).to_have_count(0)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_a_tab_that_is_looked_at_again_has_the_turns_of_the_other(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("One.")
    model.says("Two " * 20, gate=5)
    enter(page)
    say(page, "first")
    answered(page)
    other = page.context.new_page()
    other.goto(page.url)
    say(page, "second")
    expect(page.locator(".message").last).to_contain_text("Two")
    for _ in range(2):
        other.evaluate("window.dispatchEvent(new Event('focus'))")
        expect(other.locator(".message").last).to_contain_text("Two")
        expect(other.locator(STOP)).to_be_visible()
    model.goes_on()
    for tab in (page, other):
        answered(tab, turns=2)
    assert turns(page) == turns(other)


def test_a_conversation_is_called_by_its_title_at_once(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("Yes.")
    enter(page)
    say(page, "Is it open?")
    answered(page)
    expect(page.locator("#title")).to_have_text("Is it open?")
    page.click(".thread-menu > summary")
    page.fill(".thread input[name=title]", "Opening hours")
    page.press(".thread input[name=title]", "Enter")
    expect(page.locator("#title")).to_have_text("Opening hours")
    expect(page).to_have_title("Opening hours · Roster")
    assert Thread.objects.get().title == "Opening hours"
