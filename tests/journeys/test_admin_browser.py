"""An administrator with a browser, and with a keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from agents_admin.models import Agent, Delegation, Tool
from tests import world
from tests.web.chat_client import until_stored

pytestmark = pytest.mark.django_db(transaction=True)


def sign_in(page: Page) -> None:
    page.goto("/admin/login/?next=/admin/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(world.PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()


def choose(page: Page, field: str, what: str) -> None:
    """Type into the search of an autocomplete field and take what it finds."""
    page.locator(f"#id_{field} + .select2").click()
    page.locator(".select2-search__field").last.fill(what)
    page.locator(".select2-results__option", has_text=what).first.click()


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#changelist")).to_be_visible()


@pytest.mark.parametrize("width", [400, 1200, 1280, 1281])
def test_the_sidebar_is_whole_or_behind_its_button(page, width):
    world.ada()
    page.set_viewport_size({"width": width, "height": 850})
    sign_in(page)
    wide = width >= 1120
    expect(page.locator("#nav-sidebar").get_by_text("Agents and who they ask")).to_be_visible(visible=wide)
    expect(page.locator("#nav-sidebar").get_by_role("link", name="Providers")).to_be_visible(visible=wide)
    expect(page.locator("#nav-sidebar").get_by_text("close")).to_be_hidden()
    expect(page.get_by_text("dock_to_right")).to_be_visible(visible=not 1120 <= width <= 1280)
    if not wide:
        page.get_by_text("dock_to_right").click()
        expect(page.locator("#nav-sidebar").get_by_role("link", name="Providers")).to_be_visible()
        page.locator("#nav-sidebar").get_by_text("close").click()
        expect(page.locator("#nav-sidebar").get_by_role("link", name="Providers")).to_be_hidden()


def test_ada_makes_a_tool(page):
    world.house()
    sign_in(page)
    page.goto("/admin/agents_admin/tool/add/")
    page.get_by_label("Name", exact=False).first.fill("Order status")
    expect(page.get_by_label("Time zone")).to_be_hidden()
    page.get_by_label("Kind").select_option(label="Clock")
    expect(page.get_by_label("Address")).to_be_hidden()
    page.get_by_label("Kind").select_option(label="Web request")
    page.get_by_label("Address").fill("https://shop.example/orders/{order_id}")
    page.get_by_label("Name, row 1").fill("order_id")
    page.get_by_label("Goes into, row 1").select_option("path")
    page.get_by_role("button", name="Add a row").press("Enter")
    page.keyboard.type("lang")
    page.get_by_role("button", name="Add a row").press("Enter")
    page.get_by_role("button", name="Remove this row").last.press("Enter")
    save(page)
    tool = Tool.objects.get(slug="order-status")
    assert tool.settings["parameters"] == [{"name": "order_id", "in": "path"}, {"name": "lang"}]


def test_ada_makes_an_agent_with_a_tool_that_delegates(page):
    house = world.house()
    sign_in(page)
    page.goto("/admin/agents_admin/agent/add/")
    page.locator("#id_name").press_sequentially("Shop helper")
    expect(page.locator("#id_slug")).to_have_value("shop-helper")
    page.get_by_role("button", name="Model and answers").press("Enter")
    choose(page, "model", "Small")
    page.get_by_role("button", name="Who may use it").press("Enter")
    expect(page.locator(".field-row", has=page.locator("#id_groups"))).to_be_hidden()
    page.locator("#tabs-items").get_by_text("Tools").click()
    page.locator("#agent_tools-group .add-row").get_by_text("Add another").click()
    choose(page, "agent_tools-0-tool", "Calculator")
    page.locator("#tabs-items").get_by_text("Roster").click()
    page.locator("#roster-group .add-row").get_by_text("Add another").click()
    choose(page, "roster-0-delegate", "HR desk")
    page.locator("#id_roster-0-when_to_use").fill("Questions about people.")
    save(page)
    agent = Agent.objects.get(slug="shop-helper")
    assert [row.tool for row in agent.agent_tools.all()] == [house.calculator]
    line = Delegation.objects.get(coordinator=agent)
    assert (line.delegate.name, line.when_to_use) == ("HR desk", "Questions about people.")

    page.goto(f"/admin/agents_admin/agent/{agent.pk}/change/")
    assert page.get_by_role("link", name="Talk to it").get_attribute("href").endswith(f"/{agent.pk}/talk/")


def test_ada_makes_a_tool_and_an_agent_that_delegates_and_talks_to_it(page):
    """Without a restart of anything."""
    world.house()
    sign_in(page)
    page.goto("/admin/agents_admin/tool/add/")
    page.locator("#id_name").press_sequentially("Sums")
    page.get_by_label("Kind").select_option(label="Calculator")
    page.locator("#id_description").fill("Works out arithmetic.")
    save(page)
    page.goto("/admin/agents_admin/agent/add/")
    page.locator("#id_name").press_sequentially("Shop helper")
    page.get_by_role("button", name="Model and answers").press("Enter")
    choose(page, "model", "Small")
    page.locator("#tabs-items").get_by_text("Tools").click()
    page.locator("#agent_tools-group .add-row").get_by_text("Add another").click()
    choose(page, "agent_tools-0-tool", "Sums")
    page.locator("#tabs-items").get_by_text("Roster").click()
    page.locator("#roster-group .add-row").get_by_text("Add another").click()
    choose(page, "roster-0-delegate", "HR desk")
    page.locator("#id_roster-0-when_to_use").fill("Questions about leave and people.")
    save(page)
    page.goto(f"/admin/agents_admin/agent/{Agent.objects.get(slug='shop-helper').pk}/change/")

    page.get_by_role("link", name="Talk to it").click()
    page.wait_for_url("**/chat/?agent=shop-helper")  # with its scripts: Enter sends
    asks(page, "How many days of annual leave do I get?", answer="28 days", asked="HR desk")
    asks(page, "What is 1,249 * 0.21?", answer="262.29", asked="Sums")
    until_stored()


def asks(page: Page, text: str, *, answer: str, asked: str) -> None:
    """On the chat page, and see whom or what the agent asked."""
    page.get_by_role("textbox", name="Message").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator(".reply > .flow > .message").last).to_contain_text(answer)
    expect(page.locator(".turn").last.locator(".card > summary > .label").first).to_have_text(asked)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_circle_is_shown_at_the_row_on_its_tab(page):
    house = world.house()
    sign_in(page)
    page.goto(f"/admin/agents_admin/agent/{house.librarian.pk}/change/#roster")
    page.locator("#roster-group .add-row").get_by_text("Add another").click()
    choose(page, "roster-0-delegate", "Concierge")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Librarian → Concierge → HR desk → Librarian")).to_be_visible()


def test_a_row_is_duplicated_and_a_provider_tested_by_dialog(page):
    house = world.house()
    sign_in(page)
    page.goto("/admin/agents_admin/agent/")
    page.get_by_role("button", name="What to do with this row").first.press("Enter")
    page.get_by_text("Duplicate", exact=True).first.click()
    page.get_by_role("button", name="Duplicate").click()
    expect(page.locator("#id_name")).to_have_value("Analyst (copy)")
    page.goto(f"/admin/agents_admin/provider/{house.provider.pk}/change/")
    page.get_by_text("Test connection").first.click()
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("there is nothing to test")).to_be_visible()
