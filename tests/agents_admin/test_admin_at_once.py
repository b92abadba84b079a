"""Two administrators at once: one wins, the other reads why, nothing is half written."""

import threading
import time
from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.db.models.signals import pre_delete, pre_save
from django.test import Client
from django.urls import reverse

from agents_admin.models import Agent, Credential, CredentialOrigin, Delegation, Memory, Provider
from agents_admin.models.delegation import lock_rosters
from tests import world
from tests.admin_page import change, fields, saved, submit, text

pytestmark = pytest.mark.django_db(transaction=True)


def opened(agent, delegate):
    """A browser that has the agent's page open, with one delegate more, and what it will post."""
    client = Client()
    client.force_login(world.ada(), "django.contrib.auth.backends.ModelBackend")
    url = reverse("admin:agents_admin_agent_change", args=[agent.pk])
    row = {"roster-TOTAL_FORMS": "1", "roster-0-delegate": delegate.pk, "roster-0-context": "task"}
    values = fields(client.get(url)) | row | {"roster-0-order": "0", "name": f"{agent.name} renamed", "_save": "Save"}
    return agent, client, url, values


def post(agent, client, url, values, answers):
    try:
        answers.append((agent, client.post(url, values)))
    finally:
        connection.close()


def test_of_two_who_close_a_circle_at_once_exactly_one_wins():
    upper, lower = world.agent("Upper"), world.agent("Lower")
    answers = []
    pages = [opened(upper, lower), opened(lower, upper)]
    threads = [threading.Thread(target=post, args=(*page, answers)) for page in pages]
    with transaction.atomic():
        lock_rosters()  # both have looked at the roster before either may write
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=1.5)
        assert answers == []
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(answer.status_code for _, answer in answers) == [200, 302]
    loser, page = next(pair for pair in answers if pair[1].status_code == 200)
    winner = lower if loser == upper else upper
    assert f"{loser.name} → {winner.name} renamed → {loser.name}" in text(page)
    assert Delegation.objects.count() == 1
    assert Agent.objects.get(pk=loser.pk).name == loser.name
    assert fields(page)["name"] == f"{loser.name} renamed"


@pytest.fixture
def meanwhile():
    """`meanwhile(signal, model, act)`: when the signal comes first, `act` runs on a connection of its own, and has a
    second before what sent the signal goes on. Ends when all of it has ended."""
    started = []

    def meanwhile(signal, model, act):
        def then(**_):
            signal.disconnect(then, sender=model)
            thread = threading.Thread(target=run)
            started.append(thread)
            thread.start()
            thread.join(timeout=1)

        def run():
            try:
                act()
            finally:
                connection.close()

        signal.connect(then, sender=model, weak=False)

    yield meanwhile
    for thread in started:
        thread.join(timeout=30)


def until(holds):
    """What waited for the lock of the first ends soon after it."""
    for _ in range(100):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("It never came to be.")


def browser():
    client = Client()
    client.force_login(world.ada(), "django.contrib.auth.backends.ModelBackend")
    return client


def test_a_key_that_was_replaced_meanwhile_stays_replaced(meanwhile):
    acme = world.provider("acme", kind="openai", base_url="https://llm.example/v1", api_key="old")
    meanwhile(pre_save, Provider, lambda: saved(submit(browser(), change(acme), api_key="new")))
    saved(submit(browser(), change(acme), name="Renamed"))
    until(lambda: Provider.objects.get().api_key == "new")
    assert Provider.objects.get().name == "Acme"


def test_two_copies_of_an_agent_at_once_are_two_agents(meanwhile):
    url = reverse("admin:agents_admin_agent_copy", args=[world.agent("Someone").pk])
    meanwhile(pre_save, Agent, lambda: browser().post(url, {"_form_submitted": "on"}))
    assert browser().post(url, {"_form_submitted": "on"}).status_code == 302
    until(lambda: Agent.objects.count() == 3)
    assert sorted(Agent.objects.values_list("slug", flat=True)) == ["someone", "someone-copy", "someone-copy-2"]


def test_an_agent_is_switched_while_it_is_deleted(meanwhile):
    url = reverse("admin:agents_admin_agent_switch", args=[world.agent("Someone").pk])
    meanwhile(pre_save, Agent, lambda: Agent.objects.all().delete())
    assert browser().post(url, {"_form_submitted": "on"}).status_code == 302
    until(lambda: not Agent.objects.exists())
    assert browser().post(url, {"_form_submitted": "on"}).status_code == 404


def test_a_document_that_comes_while_its_memory_is_deleted_goes_too(meanwhile):
    handbook = world.memory("Handbook", {"Leave": world.LEAVE})
    url = reverse("admin:agents_admin_memory_delete", args=[handbook.pk])
    meanwhile(pre_delete, Memory, lambda: world.document(handbook, "Travel", world.TRAVEL))
    assert browser().post(url, {"post": "yes"}).status_code == 302
    assert not Memory.objects.exists()


def test_of_several_memories_a_late_document_goes_too(meanwhile):
    handbook, rules = world.memory("Handbook"), world.memory("Rules")
    chosen = {"action": "delete_selected", "_selected_action": [handbook.pk, rules.pk], "post": "yes"}
    meanwhile(pre_delete, Memory, lambda: world.document(handbook, "Travel", world.TRAVEL))
    assert browser().post(reverse("admin:agents_admin_memory_changelist"), chosen).status_code == 302
    assert not Memory.objects.exists()
    assert LogEntry.objects.count() == 2


def test_a_provider_that_a_model_comes_to_need_is_kept_in_words(meanwhile):
    acme = world.provider("acme")
    url = reverse("admin:agents_admin_provider_delete", args=[acme.pk])
    meanwhile(pre_delete, Provider, lambda: world.model("large", provider=acme))
    page = browser().post(url, {"post": "yes"})
    assert page.status_code == 200
    assert "protected" in text(page)
    assert Provider.objects.exists()


def test_a_roster_that_is_too_deep_already_is_not_copied():
    chain = [world.agent(f"A{number}") for number in range(8)]
    Delegation.objects.bulk_create([Delegation(coordinator=a, delegate=b) for a, b in pairwise(chain)])
    url = reverse("admin:agents_admin_agent_copy", args=[chain[0].pk])
    page = browser().post(url, {"_form_submitted": "on"}, follow=True)
    assert "No copy was made. Delegation may go 5 levels deep" in text(page)
    assert Agent.objects.count() == 8


def test_a_line_that_somebody_else_deleted_does_not_hold_up_the_rest():
    house = world.house()
    client = browser()
    opened_before = fields(client.get(change(house.concierge)))
    house.analyst.delete()
    page = client.post(change(house.concierge), opened_before | {"name": "Renamed", "_save": "Save"}, follow=True)
    assert "was deleted by somebody else meanwhile" in text(page)
    house.concierge.refresh_from_db()
    assert house.concierge.name == "Renamed"
    assert house.concierge.roster.get().delegate == house.hr_desk


def test_a_place_that_somebody_else_took_away_from_a_credential_stays_away():
    shop = Credential.objects.create(name="Shop", slug="shop", secret="x")
    for origin in ("https://a.example", "https://b.example"):
        CredentialOrigin.objects.create(credential=shop, origin=origin)
    client = browser()
    opened_before = fields(client.get(change(shop)))
    shop.origins.first().delete()
    saved(client.post(change(shop), opened_before | {"name": "Renamed", "_save": "Save"}))
    assert [row.origin for row in shop.origins.all()] == ["https://b.example"]
