"""Rows → RuntimeAgent: rights at every hop, names, omissions, a constant number of statements."""

import pytest
from django.contrib.auth.models import User

from agents_admin.models import Agent, AgentTool, Delegation, Tool
from runtime import resolve, store
from runtime.errors import RunError
from runtime.ports import Right
from runtime.spec import RuntimeAgent
from tests import world
from tests.loop import running

pytestmark = pytest.mark.django_db(transaction=True)


def resolved(agent: str | int, user: User, **fields) -> RuntimeAgent:
    return running(lambda: resolve.resolve(agent, world.actor_of(user, **fields)))


def refused(agent: str, user: User, **fields) -> str:
    with pytest.raises(RunError) as refusal:
        resolved(agent, user, **fields)
    return refusal.value.code


def slugs(runtime_agent: RuntimeAgent) -> list[str]:
    return [one.slug for one in runtime_agent.agents.values()]


def test_everything_reachable_is_resolved_once():
    house = world.house()
    world.delegate(house.concierge, house.librarian)

    concierge = resolved("concierge", house.linus)

    assert slugs(concierge) == ["concierge", "hr-desk", "analyst", "librarian"]
    assert [edge.name for edge in concierge.root.roster] == ["ask_hr-desk", "ask_analyst", "ask_librarian"]
    assert [memory.name for memory in concierge.agents[house.librarian.pk].memories] == ["search_handbook"]
    assert concierge.omitted == ()


@pytest.mark.parametrize("extra", [0, 20])
def test_resolving_takes_two_round_trips_however_large_the_graph(monkeypatch, extra: int):
    house = world.house()
    for number in range(extra):
        world.delegate(house.analyst, world.agent(f"Helper {number}"))
    trips: list[int] = []
    fetch, fetch_together = store.fetch, store.fetch_together

    async def counted(sql, parameters=()):
        trips.append(1)
        return await fetch(sql, parameters)

    async def counted_together(statements, parameters):
        trips.append(len(statements))
        return await fetch_together(statements, parameters)

    monkeypatch.setattr(store, "fetch", counted)
    monkeypatch.setattr(store, "fetch_together", counted_together)
    assert len(resolved("concierge", house.linus).agents) == 4 + extra

    assert trips == [1, 3]


def test_a_delegate_that_the_person_may_not_use_is_left_out_and_named_for_administrators():
    house = world.house()
    Agent.objects.filter(slug="hr-desk").update(audience="chosen")

    concierge = resolved("concierge", house.linus)

    assert slugs(concierge) == ["concierge", "analyst"]
    (omission,) = concierge.omitted
    assert (omission.agent, omission.what) == ("Concierge", "the delegate HR desk")
    assert "hr-desk" in slugs(resolved("concierge", house.ada)), "superusers pass every audience check"
    assert "hr-desk" not in slugs(resolved("concierge", house.grace)), "staff do not"


def test_chosen_groups_and_people_may_use_what_is_chosen_for_them():
    house = world.house()
    house.hr_desk.audience = "chosen"
    house.hr_desk.save()
    house.hr_desk.groups.add(world.group("HR", house.maya))
    house.hr_desk.users.add(house.linus)

    assert "hr-desk" in slugs(resolved("concierge", house.maya))
    assert "hr-desk" in slugs(resolved("concierge", house.linus))
    assert "hr-desk" not in slugs(resolved("concierge", house.grace))


def test_tools_and_memories_are_checked_like_agents():
    house = world.house()
    Tool.objects.filter(slug="clock").update(audience="chosen")
    house.handbook.audience = "chosen"
    house.handbook.save()

    concierge = resolved("concierge", house.linus)

    assert [tool.name for tool in concierge.agents[house.analyst.pk].tools] == ["calculator"]
    assert concierge.agents[house.librarian.pk].memories == ()
    assert {omission.what for omission in concierge.omitted} == {"the tool Clock", "the memory Employee handbook"}


def test_signed_in_is_for_people_and_keys_and_not_for_visitors():
    house = world.house()
    widget = world.widget(house.concierge)
    Agent.objects.filter(slug="analyst").update(audience="signed-in")
    visitor = world.actor_of(house.linus, channel="widget", user_id=None, widget_id=widget.pk, visitor="v1")

    concierge = running(lambda: resolve.resolve("concierge", visitor))

    assert "analyst" not in slugs(concierge)
    assert "analyst" in slugs(resolved("concierge", house.linus))


def test_a_widget_starts_its_one_agent_only():
    house = world.house()
    widget = world.widget(house.concierge)
    visitor = world.actor_of(house.linus, channel="widget", user_id=None, widget_id=widget.pk, visitor="v1")

    with pytest.raises(RunError):
        running(lambda: resolve.resolve("analyst", visitor))
    assert [card.slug for card in running(lambda: resolve.agents_for(visitor))] == ["concierge"]


def test_a_key_is_limited_in_what_it_starts_not_in_the_delegates():
    house = world.house()
    world.api_key(house.linus, house.concierge)
    key = house.linus.api_keys.get()
    fields = {"channel": "api", "key_id": key.pk, "startable": frozenset({house.concierge.pk})}

    assert "librarian" in slugs(resolved("concierge", house.linus, **fields))
    assert refused("librarian", house.linus, **fields) == "not_found"


@pytest.mark.parametrize("change", [{"enabled": False}, {"hidden": True}, {"audience": "chosen"}])
def test_what_may_not_be_started_is_not_there(change: dict[str, object]):
    house = world.house()
    Agent.objects.filter(slug="concierge").update(**change)

    assert refused("concierge", house.linus) == "not_found"
    assert "concierge" not in [card.slug for card in running(lambda: resolve.agents_for(world.actor_of(house.linus)))]


def test_hidden_agents_are_started_by_superusers_at_the_terminal_and_still_delegated_to():
    house = world.house()
    Agent.objects.filter(slug="librarian").update(hidden=True)

    assert refused("librarian", house.ada) == "not_found"
    assert refused("librarian", house.linus, channel="terminal") == "not_found"
    assert slugs(resolved("librarian", house.ada, channel="terminal")) == ["librarian"]
    assert "librarian" in slugs(resolved("concierge", house.linus))


def test_somebody_who_was_switched_off_resolves_nothing():
    house = world.house()
    User.objects.filter(username="linus").update(is_active=False)

    assert refused("concierge", house.linus) == "not_found"


def test_a_model_that_is_off_is_said_for_the_root_and_leaves_a_delegate_out():
    house = world.house()
    house.analyst.model = world.model("other")
    house.analyst.save()
    type(house.model).objects.filter(slug="other").update(enabled=False)

    assert refused("analyst", house.linus) == "unavailable"
    assert "analyst" not in slugs(resolved("concierge", house.linus))


def test_names_that_collide_get_a_suffix():
    house = world.house()
    world.give(house.librarian, world.tool("clock", name="Odd", slug="search_handbook"))

    librarian = resolved("librarian", house.linus)

    assert librarian.root.tools[0].name == "search_handbook"
    assert librarian.root.memories[0].name == f"search_handbook_{house.handbook.pk}"


def test_settings_that_do_not_fit_leave_the_tool_out_with_the_reason():
    house = world.house()
    Tool.objects.filter(slug="clock").update(settings={"timezone": "Mars/Olympus"})

    (omission,) = resolved("analyst", house.linus).omitted

    assert omission.what == "the tool Clock"
    assert omission.why.startswith("timezone:")


def test_rows_that_go_round_in_a_circle_are_representable():
    house = world.house()
    Delegation.objects.bulk_create([Delegation(coordinator=house.librarian, delegate=house.concierge)])

    concierge = resolved("concierge", house.linus)

    assert concierge.agents[house.librarian.pk].roster[0].delegate_id == house.concierge.pk


def test_a_right_is_asked_again_when_the_call_is_made():
    house = world.house()
    line = house.hr_desk.delegated_by.get()
    path = Right((house.concierge.pk, house.hr_desk.pk), (line.pk,))
    calculator = Right((house.analyst.pk,), tool=house.calculator.pk)
    may = lambda right: running(lambda: resolve.may_call(world.actor_of(house.linus), right))  # noqa: E731

    assert may(path)
    assert may(calculator)
    Delegation.objects.filter(pk=line.pk).update(enabled=False)
    AgentTool.objects.filter(agent=house.analyst, tool=house.calculator).delete()
    assert not may(path)
    assert not may(calculator)


def test_a_model_comes_with_its_fallbacks_those_that_are_on():
    house = world.house()
    third = world.model("third")
    second = world.model("second", fallback=third)
    type(third).objects.filter(slug="third").update(fallback=second)  # a circle
    type(house.model).objects.filter(pk=house.model.pk).update(fallback=second)

    model = resolved("analyst", house.linus).root.model

    assert (model.model_id, model.fallback.model_id, model.fallback.fallback.model_id) == ("small", "second", "third")
    assert model.fallback.fallback.fallback is None
    type(third).objects.filter(slug="third").update(enabled=False)
    assert resolved("analyst", house.linus).root.model.fallback.fallback is None
