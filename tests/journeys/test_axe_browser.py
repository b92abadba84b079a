"""Case 35: nothing serious that axe finds on the pages where people spend their time."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import waiting, world
from tests.journeys.test_admin_browser import sign_in
from tests.journeys.test_chat_browser import answered, desk, enter, say
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)

AXE = (Path(__file__).parents[1] / "vendor" / "axe.min.js").read_text()

ANSWER = """# Four

It is [four](https://example.org).

```
2+2
```

| a | b |
| - | - |
| 1 | 2 |

"""


def faults(page: Page) -> list[str]:
    """What is serious or critical, with the first elements that it is about."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    grave = [one for one in found if one["impact"] in {"serious", "critical"}]
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in grave]


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_the_chat_from_start_to_end(page: Page, model: ScriptedModel, look: str) -> None:
    page.emulate_media(color_scheme="dark" if look == "dark" else "light")
    if look == "phone":
        page.set_viewport_size({"width": 360, "height": 700})
    agent = desk(model, greeting="Good morning.", starters="Who is who?")
    world.give(agent, world.tool("calculator"))
    model.calls("calculator", {"expression": "2+2"})
    model.says([ANSWER, *["more "] * 60], delay=0.05)
    enter(page)
    assert faults(page) == []
    say(page, "What is 2+2?")
    expect(page.locator(".message")).to_contain_text("more")
    assert faults(page) == []
    answered(page)
    for summary in page.locator(".card > summary").all():
        summary.click()
    assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_staff_go_to_the_admin_from_a_phone(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two
    world.ada()
    page.set_viewport_size({"width": 360, "height": 700})
    sign_in(page)
    page.goto("/chat/")
    page.click(".menu")
    link = page.get_by_role("link", name="Admin")
    expect(link).to_be_in_viewport()
    assert faults(page) == []
    link.click()
    page.wait_for_url("**/admin/")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_question_what_happened(page: Page, model: ScriptedModel, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two
    run = waiting.waiting(waiting.clerk(model))
    enter(page, "clerk")
    page.goto(f"/chat/{run.thread_id}/")
    expect(page.locator(".question")).to_be_visible()
    assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_of_an_agent_and_a_run(page: Page, model: ScriptedModel, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two
    house, run = world.house(), waiting.waiting(waiting.clerk(model))
    sign_in(page)
    assert faults(page) == []
    for address in (f"agents_admin/agent/{house.concierge.pk}", f"runtime/run/{run.pk}"):
        page.goto(f"/admin/{address}/change/")
        expect(page.locator("#content")).to_be_visible()
        assert faults(page) == []
