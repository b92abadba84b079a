"""Bundles while others make the same rows."""

import threading

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import post_save, pre_save

from agents_admin.models import Agent, Provider
from agents_admin.portable.problem import BundleError
from tests import world

pytestmark = pytest.mark.django_db(transaction=True)
BUNDLE = """
    roster: 1
    providers: [{slug: acme, name: Acme, kind: offline}]
    models: [{slug: small, name: Small, provider: acme, model_id: x}]
    agents:
      - {slug: concierge, name: Concierge, model: small, roster: [librarian]}
      - {slug: librarian, name: Librarian, model: small}
"""


def meanwhile(signal, model, act):
    """When the signal comes first, `act` runs in a thread of its own, which has a second before the rest goes on. The
    thread's end is waited for by calling what this returns, which gives what went wrong there."""
    problems = []

    def run():
        try:
            act()
        except Exception as error:  # noqa: BLE001 - told to the test
            problems.append(error)
        finally:
            connection.close()

    def then(**_):
        signal.disconnect(then, sender=model)
        thread.start()
        thread.join(timeout=1)

    def end():
        thread.join(timeout=30)
        return problems

    thread = threading.Thread(target=run)
    signal.connect(then, sender=model, weak=False)
    return end


def test_of_two_bundles_at_once_the_second_updates_what_the_first_made(load):
    end = meanwhile(post_save, Provider, lambda: load(BUNDLE))
    load(BUNDLE)
    assert end() == []
    assert Agent.objects.get(slug="concierge").roster.get().delegate.slug == "librarian"


def test_the_demo_is_filled_in_by_two_starts_at_once():
    end = meanwhile(post_save, Provider, lambda: call_command("demo"))
    call_command("demo")
    assert end() == []
    assert Agent.objects.count() == 4


def test_an_agent_that_somebody_saves_at_the_same_moment_is_said_in_words(load):
    model = world.model()
    end = meanwhile(pre_save, Agent, lambda: world.agent("Concierge", model=model))
    with pytest.raises(BundleError, match="at the same moment"):
        load(BUNDLE)
    assert end() == []
    assert not Provider.objects.filter(slug="acme").exists()
    assert load(BUNDLE).rows["agents"] == 2
