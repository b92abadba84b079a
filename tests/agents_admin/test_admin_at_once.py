"""Two administrators at once: one wins, the other reads why, nothing is half written."""

import threading

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from agents_admin.models import Agent, Delegation
from agents_admin.models.delegation import lock_rosters
from tests import world
from tests.admin_page import fields, text

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
