"""Agents in the admin: their tools, their roster, copies and switches."""

from itertools import pairwise

import pytest
from django.urls import reverse

from agents_admin.models import Agent, Delegation
from tests import world
from tests.admin_page import add, change, fields, refused, saved, submit, text

pytestmark = pytest.mark.django_db


def roster(*delegates, **more: str) -> dict[str, str]:
    rows = {"roster-TOTAL_FORMS": str(len(delegates)), "roster-INITIAL_FORMS": "0"}
    for number, delegate in enumerate(delegates):
        rows |= {f"roster-{number}-delegate": str(delegate.pk), f"roster-{number}-context": "task"}
        rows |= {f"roster-{number}-enabled": "on", f"roster-{number}-order": str(number)}
    return rows | more


def test_an_agent_is_made_with_tools_and_a_roster(ada):
    house = world.house()
    tools = {"agent_tools-TOTAL_FORMS": "1", "agent_tools-0-tool": str(house.clock.pk), "agent_tools-0-order": "0"}
    typed = {"name": "Porter", "slug": "porter", "model": house.model.pk} | tools | roster(house.hr_desk, house.analyst)
    saved(submit(ada, add("agent"), **typed))
    porter = Agent.objects.get(slug="porter")
    assert [row.tool for row in porter.agent_tools.all()] == [house.clock]
    assert [row.delegate for row in porter.roster.all()] == [house.hr_desk, house.analyst]


def test_a_circle_is_refused_at_the_row_with_its_path(ada):
    house = world.house()
    page = submit(ada, change(house.librarian), name="Renamed", **roster(house.concierge))
    assert "Librarian → Concierge → HR desk → Librarian" in refused(page)
    house.librarian.refresh_from_db()
    assert house.librarian.name == "Librarian"
    assert fields(page)["name"] == "Renamed"


def test_a_new_agent_above_a_path_of_five_is_refused_when_it_is_saved(ada):
    chain = [world.agent(f"A{number}") for number in range(6)]
    for upper, lower in pairwise(chain):
        world.delegate(upper, lower)
    model = world.model()
    typed = {"name": "Top", "slug": "top", "model": model.pk} | roster(world.agent("Free"), chain[0])
    page = submit(ada, add("agent"), **typed)
    assert "Top → A0 → A1 → A2 → A3 → A4 → A5" in refused(page)
    assert not Agent.objects.filter(slug="top").exists()
    assert page.context["inline_admin_formsets"][2].formset.forms[1].errors


def test_a_copy_has_the_same_tools_memories_and_roster_and_is_off(ada):
    house = world.house()
    url = reverse("admin:agents_admin_agent_copy", args=[house.concierge.pk])
    assert ada.get(url).status_code == 200
    assert Agent.objects.count() == 4
    ada.post(url, {"_form_submitted": "on"})
    copy = Agent.objects.get(slug="concierge-copy")
    assert not copy.enabled
    assert [row.delegate for row in copy.roster.all()] == [row.delegate for row in house.concierge.roster.all()]


def test_an_agent_is_switched_by_a_post_alone(ada):
    house = world.house()
    url = reverse("admin:agents_admin_agent_switch", args=[house.analyst.pk])
    ada.get(url)
    house.analyst.refresh_from_db()
    assert house.analyst.enabled
    ada.post(url, {"_form_submitted": "on"})
    house.analyst.refresh_from_db()
    assert not house.analyst.enabled


def test_deleting_an_agent_says_what_goes_with_it(ada):
    house = world.house()
    page = text(ada.get(reverse("admin:agents_admin_agent_delete", args=[house.analyst.pk])))
    assert "Concierge → Analyst" in page
    assert Delegation.objects.filter(delegate=house.analyst).exists()


def test_a_roster_of_a_hundred_agents_is_saved(ada):
    top, model = world.agent("Top"), world.model()
    crowd = Agent.objects.bulk_create(Agent(name=f"A{n}", slug=f"a{n}", model=model) for n in range(100))
    limits = ("max_calls", "timeout_seconds", "max_steps", "max_tokens", "when_to_use", "on_failure")
    empty = {f"roster-{number}-{limit}": "" for number in range(100) for limit in limits}
    saved(submit(ada, change(top), **roster(*crowd) | empty))
    assert top.roster.count() == 100
