"""The doctor names the row, what is wrong and what to do; a healthy house has nothing to complain about."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from agents_admin.checks import findings
from agents_admin.models import Agent, ApiKey, Credential, CredentialOrigin, Delegation, Document, Model, Provider, Tool
from tests import world

pytestmark = pytest.mark.django_db


def doctor():
    out = StringIO()
    try:
        call_command("doctor", stdout=out)
    except SystemExit as ended:
        return ended.code, out.getvalue()
    return 0, out.getvalue()


def said():
    return [f"{finding.row}: {finding.problem}" for finding in findings()]


def test_a_healthy_house_has_no_problems():
    world.house()
    assert doctor() == (0, "No problems found.\n")


def test_an_empty_installation_is_told_how_to_begin():
    status, text = doctor()
    assert status == 1
    assert "People: there is no administrator.\n    Run: python manage.py createsuperuser" in text
    assert "Agents: there are none." in text
    assert text.endswith("Problems found: 2.\n")


def test_what_is_switched_off_is_named_with_who_needs_it():
    house = world.house()
    world.give(house.hr_desk, house.handbook)
    for row in (house.model, house.calculator, house.handbook, house.analyst):
        row.enabled = False
        row.save()
    text = said()
    assert "Agent “Concierge”: its model “Small” is switched off" in text
    assert "Agent “HR desk”: its memory “Employee handbook” is switched off" in text
    assert "Agent “Concierge”: its delegate “Analyst” is switched off" in text


def test_a_tool_that_can_not_work_is_named():
    house = world.house()
    shop = Credential.objects.create(name="Shop", slug="shop", secret="t")
    CredentialOrigin.objects.create(credential=shop, origin="https://shop.example")
    settings = {"url": "https://other.example/{id}", "parameters": [{"name": "id", "in": "path"}]}
    world.give(house.analyst, world.tool("http", name="Orders", settings=settings, credential=shop))
    Tool.objects.filter(slug="clock").update(settings={"colour": "red"})
    text = said()
    assert any("Tool “Orders”: its credential “Shop” may not be sent to https://other.example" in line for line in text)
    assert any(line.startswith("Tool “Clock”: colour: There is no setting “colour”") for line in text)


def test_a_secret_that_no_key_opens_is_named_and_not_shown(settings):
    house = world.house()
    Provider.objects.filter(pk=house.provider.pk).update(api_key="canary")
    settings.FIELD_ENCRYPTION_KEYS = ("WmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmY=",)
    assert said() == ["Provider “Offline”: its API key can't be decrypted"]


def test_a_provider_that_can_not_be_reached_is_named():
    house = world.house()
    Provider.objects.filter(pk=house.provider.pk).update(kind="openai", base_url="https://10.0.0.5/v1")
    [finding] = findings()
    assert finding.row == "Provider “Offline”"
    assert "private address (10.0.0.5)" in finding.problem


def test_memories_without_anything_to_find_and_documents_that_failed_are_named():
    house = world.house()
    Document.objects.all().delete()
    world.document(house.handbook, "Empty", " ")
    assert said() == [
        "Memory “Employee handbook”: there is no document in it that can be searched",
        "Document “Empty” in “Employee handbook”: There is no text in it.",
    ]


def test_a_circle_that_came_past_the_admin_is_named_once():
    house = world.house()
    Delegation.objects.bulk_create([Delegation(coordinator=house.librarian, delegate=house.concierge, when_to_use="x")])
    circles = [line for line in said() if "circle" in line]
    assert len(circles) == 1
    assert "Concierge → HR desk → Librarian → Concierge" in circles[0]


def test_audiences_widgets_and_keys_that_lead_nowhere_are_named():
    house = world.house()
    Agent.objects.filter(slug="analyst").update(audience="chosen")
    Agent.objects.filter(slug="concierge").update(audience="signed-in", hidden=True)
    world.widget(house.concierge).origins.all().delete()
    world.api_key(house.linus, world.agent("Gone", description="x"))
    Agent.objects.filter(slug="gone").delete()
    world.api_key(world.person("bob", is_active=False), name="Bob's")
    assert said() == [
        "Agent “Concierge”: it is hidden and on nobody's roster, so nobody can use it",
        "Agent “Analyst”: it is for chosen people, but nobody is chosen",
        "Widget “Concierge on our site”: its agent “Concierge” is hidden",
        "Widget “Concierge on our site”: its agent “Concierge” is not for everyone, and visitors don't sign in",
        "Widget “Concierge on our site”: no site may show it",
        "API key “linus's program”: the agents it was limited to are gone",
        "API key “Bob's”: its user bob is switched off",
    ]
    assert ApiKey.objects.count() == 2


def test_a_fallback_that_is_switched_off_and_a_delegate_nobody_describes_are_named():
    house = world.house()
    Model.objects.filter(pk=house.model.pk).update(fallback=world.model("spare", enabled=False))
    world.delegate(house.analyst, world.agent("Quiet"))
    assert said() == [
        "Model “Small”: its fallback “Spare” is switched off",
        "Agent “Analyst”: nothing tells it when to ask its delegate “Quiet”",
    ]


def test_a_place_that_came_into_the_row_behind_the_admins_back_is_named():
    shop = Credential.objects.create(name="Shop", slug="shop", secret="x")
    CredentialOrigin.objects.create(credential=shop, origin="https://shop.example")
    world.tool("http", name="Order status", credential=shop, settings={"url": "https://shop.example/orders"})
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_admin_credentialorigin SET origin = 'no place'")
    assert any("Credential “Shop”: Only addresses that begin" in line for line in said())
