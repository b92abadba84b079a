"""The chat page in a browser, as a person uses it: live, reloaded, by keyboard, on a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from agents_admin.models import Agent
from runtime.models import Message, Run, Thread
from tests import world
from tests.scripted import ScriptedModel
from tests.web.chat_client import until_stored
from tests.web.test_markdown import CARRIERS, PAYLOADS

pytestmark = pytest.mark.django_db(transaction=True)

SEND, STOP, FIELD = ".composer .send", ".composer .stop", "#composer-text"


def desk(model: ScriptedModel, name: str = "Desk", **fields: object) -> Agent:
    provider = world.provider("fake", kind="openai", base_url=model.base_url)
    slug = name.lower().replace(" ", "-")
    return world.agent(name, model=world.model(slug, provider=provider), **fields)


def enter(page: Page, agent: str = "desk") -> None:
    """Sign in as Linus and open a new conversation."""
    world.linus()
    page.goto("/login/?next=/chat/%3Fagent%3D" + agent)
    page.fill("[name=username]", "linus")
    page.fill("[name=password]", world.PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url(f"**/chat/?agent={agent}")


def say(page: Page, text: str) -> None:
    page.fill(FIELD, text)
    page.press(FIELD, "Enter")


def answered(page: Page, turns: int = 1) -> None:
    expect(page.locator(".turn")).to_have_count(turns)
    expect(page.locator(SEND)).to_be_visible()
    expect(page.locator(".working")).to_have_count(0)
    until_stored()


def turns(page: Page) -> str:
    """What the conversation holds, without what a person or a script opened, or what is under way."""
    html = page.inner_html("#turns")
    html = re.sub(r' (open|data-opened|data-htmx-powered)="[^"]*"| class="(htmx-request)?"', "", html)
    return re.sub(r">\s+<", "><", html).strip()


def test_a_delegated_answer_with_its_labels_live_and_after_a_reload(page: Page) -> None:
    house = world.house()
    Agent.objects.filter(pk=house.concierge.pk).update(starters="How many days of annual leave do I get?")
    enter(page, "concierge")
    page.click(".starter")
    expect(page.locator(".message", has_text="28 days").last).to_be_visible()
    answered(page)
    assert page.locator(".card > summary > .label:visible").all_inner_texts() == ["HR desk"]
    page.click(".card > summary")
    page.locator(".card .card > summary").first.click()
    expect(page.locator(".card .card .card .label")).to_have_text("Employee handbook")
    expect(page.locator(".sources li")).to_have_text(re.compile("Leave, passage 1"))
    live = turns(page)
    expect(page).to_have_url(re.compile(f"/chat/{Thread.objects.get().pk}/$"))
    page.reload()
    assert turns(page) == live
    page.go_back()
    expect(page).to_have_url(re.compile("/login/|/chat/"))


def test_a_reload_in_the_middle_loses_nothing_and_starts_nothing(page: Page, model: ScriptedModel) -> None:
    desk(model)
    words = [f"word{number} " for number in range(60)]
    model.says([*words, "\n\n**The end.**"], delay=0.05)
    enter(page)
    say(page, "Tell me a story")
    expect(page.locator(".message")).to_contain_text("word10")
    second = page.context.new_page()
    second.goto(page.url)
    page.reload()
    expect(page.locator(".message")).to_contain_text("word10")
    expect(page.locator(".message")).to_contain_text("word40")
    page.reload()
    expect(page.locator(".message")).to_contain_text("word40")
    for tab in (page, second):
        answered(tab)
        expect(tab.locator(".message strong")).to_have_text("The end.")
        shown = tab.locator(".message").inner_text().split()
        assert shown == Message.objects.get(role="assistant").text.replace("**", "").split()
    assert turns(page) == turns(second)
    assert Run.objects.count() == len(model.requests) == 1


def test_an_ended_stream_is_not_opened_again(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("Done.")
    enter(page)
    opened: list[str] = []
    page.on("request", lambda request: opened.append(request.url) if "/stream/" in request.url else None)
    say(page, "Hello")
    answered(page)
    page.wait_for_timeout(1500)
    assert len(opened) == 1
    page.reload()
    page.wait_for_timeout(300)
    assert len(opened) == 1


def test_keys_send_break_lines_and_stop(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("on and on " * 100, delay=0.05)
    enter(page)
    expect(page.locator(FIELD)).to_be_focused()
    page.keyboard.type("first line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("first line\nsecond line")
    expect(page.locator(FIELD)).to_have_value("")
    expect(page.locator(".message")).to_contain_text("on and on")
    page.keyboard.type("next thought")
    page.keyboard.press("Enter")  # nothing is sent while an answer is written
    page.keyboard.press("Escape")
    expect(page.locator(".outcome")).to_have_text("Stopped. What was written so far is kept.")
    expect(page.locator(".message")).to_contain_text("on and on")
    expect(page.locator("#announcer")).to_have_text("Stopped. What was written so far is kept.")
    expect(page.locator(FIELD)).to_have_value("next thought")
    assert Run.objects.count() == 1


def test_what_was_typed_survives_every_refusal(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("slow " * 60, gate=5)
    enter(page)
    problem = page.locator("#composer-problem")
    page.context.set_offline(True)
    say(page, "A thought")
    expect(problem).to_contain_text("can't be reached")
    expect(page.locator(FIELD)).to_have_value("A thought")
    page.context.set_offline(False)
    page.fill(FIELD, "x" * 100_001)
    page.press(FIELD, "Enter")
    expect(problem).to_contain_text("100,000 are allowed")
    assert len(page.input_value(FIELD)) == 100_001
    say(page, "Fine")
    expect(problem).to_be_empty()
    other = page.context.new_page()
    expect(page.locator(".message")).to_contain_text("slow")
    other.goto(page.url)
    other.fill(FIELD, "Me too")
    other.evaluate("document.getElementById('composer').requestSubmit()")
    expect(other.locator("#composer-problem")).to_contain_text("still being written")
    expect(other.locator(FIELD)).to_have_value("Me too")
    page.context.clear_cookies(name="roster_session")
    page.fill(FIELD, "Signed out")
    page.evaluate("document.getElementById('composer').requestSubmit()")
    expect(problem).to_contain_text("signed out")
    expect(page.locator(FIELD)).to_have_value("Signed out")
    model.goes_on()
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser reports each refused request


def test_a_failed_answer_is_tried_again(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.fails("401")
    model.says("Now it works.")
    enter(page)
    say(page, "What now?")
    page.click(".retry")
    answered(page, turns=2)
    expect(page.locator(".message").last).to_have_text("Now it works.")
    expect(page.locator(".retry:visible")).to_have_count(0)


def test_a_conversation_is_renamed_and_deleted(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says("Yes.")
    enter(page)
    say(page, "Is it open?")
    answered(page)
    page.click(".thread-menu > summary")
    page.fill(".thread input[name=title]", "Opening hours")
    page.press(".thread input[name=title]", "Enter")
    expect(page.locator(".thread-title")).to_have_text("Opening hours")
    page.click(".thread-menu > summary")
    page.click(".thread .danger")
    expect(page.locator("#confirm")).to_contain_text("Delete “Opening hours”")
    page.keyboard.press("Escape")
    assert Thread.objects.exists()
    page.click(".thread .danger")
    page.click("#confirm .danger")
    page.wait_for_url("**/chat/")
    assert not Thread.objects.exists()


def test_a_phone_shows_the_list_as_a_drawer(page: Page, model: ScriptedModel) -> None:
    desk(model)
    model.says(
        "| a | b |\n| - | - |\n" + "| " + "wide" * 30 + " | " + "wider" * 30 + " |\n\n```\n" + "x" * 400 + "\n```"
    )
    page.set_viewport_size({"width": 360, "height": 700})
    enter(page)
    say(page, "y" * 300)
    answered(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    expect(page.locator("#sidebar")).to_be_hidden()
    page.click(".menu")
    expect(page.locator(".thread-title")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#sidebar")).to_be_hidden()


def test_a_new_conversation_is_read_from_its_beginning_and_a_long_one_from_its_end(
    page: Page, model: ScriptedModel
) -> None:
    for number in range(6):
        desk(model, f"Desk {number}", description="Answers all sorts of questions about the house. " * 3)
    model.says("\n\n".join(f"Paragraph {number}." for number in range(60)) + "\n\nThe end.")
    page.set_viewport_size({"width": 360, "height": 700})
    enter(page, "desk-0")
    page.wait_for_timeout(300)
    expect(page.get_by_role("heading", name="Who would you like to ask?")).to_be_in_viewport()
    say(page, "Hello")
    answered(page)
    for _ in range(2):
        expect(page.get_by_text("The end.")).to_be_in_viewport()
        page.reload()


def test_nothing_that_a_model_writes_runs_or_loads_anything(page: Page, model: ScriptedModel, site: str) -> None:
    agent = desk(model, greeting=PAYLOADS[0], description=PAYLOADS[1], starters="\n".join(PAYLOADS[:3]))
    world.give(agent, world.tool("calculator", name="<img src=x onerror=alert(1)>", slug="calculator"))
    hostile = "\n\n".join([*PAYLOADS, *CARRIERS])
    model.calls("calculator", {"expression": hostile})
    model.says(hostile)
    elsewhere: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(site) else elsewhere.append(request.url))
    page.on("dialog", lambda dialog: elsewhere.append(dialog.message))
    enter(page)
    say(page, hostile)
    answered(page)
    page.reload()
    expect(page.locator(".message")).to_be_visible()
    page.wait_for_timeout(300)
    assert [one for one in elsewhere if not one.startswith("data:")] == []
    assert page.locator(".turns img, .turns script, .turns iframe, .turns svg").count() == 0
    assert page.title().startswith("<script>")


def test_a_live_region_says_the_steps_and_not_the_words(page: Page) -> None:
    world.house()
    enter(page, "concierge")
    page.evaluate(
        """() => {
        window.said = [];
        const region = document.getElementById("announcer");
        new MutationObserver(() => window.said.push(region.textContent)).observe(region, { childList: true });
        }"""
    )
    say(page, "How many days of annual leave do I get?")
    answered(page)
    said = [one for one in page.evaluate("window.said") if one]
    for sentence in ("Concierge asks HR desk.", "Librarian uses Employee handbook.", "HR desk has answered."):
        assert sentence in said
    assert said[-1] == "Concierge has finished."
    assert not any("28" in one for one in said)
