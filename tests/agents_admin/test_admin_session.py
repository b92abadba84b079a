"""A session that ends while a form is filled in."""

import pytest

from agents_admin.models import Provider
from tests import world
from tests.admin_page import add, change, text

pytestmark = pytest.mark.django_db
TYPED = "Line one\r\n“Line two” & <b>three</b>"


def signing_in(username: str, password: str = world.PASSWORD) -> dict[str, str]:
    return {"sign-in-username": username, "sign-in-password": password}


def form(agent) -> dict[str, str]:
    tables = {f"{part}-{count}_FORMS": "0" for part in ("agent_tools", "agent_memories", "roster") for count in COUNTS}
    limits = {"max_steps": "6", "max_seconds": "300", "history_messages": "20", "delegate_view": "full"}
    named = {"name": "Renamed", "slug": agent.slug, "model": agent.model_id, "audience": "signed-in"}
    return tables | limits | named | {"instructions": TYPED, "_save": "Save"}


COUNTS = ("TOTAL", "INITIAL")


def test_what_was_typed_is_saved_when_the_person_signs_in_again(client):
    agent = world.agent("Someone")
    world.ada()
    page = client.post(change(agent), form(agent))
    assert page.status_code == 403
    assert "what you typed is saved" in text(page)
    kept = dict(page.context["typed"])
    assert kept == {name: str(value) for name, value in form(agent).items()}
    wrong = client.post(change(agent), kept | signing_in("ada", "wrong"))
    assert dict(wrong.context["typed"]) == kept
    assert "wrong" not in str(wrong.context["typed"])
    assert client.post(change(agent), kept | signing_in("ada")).status_code == 302
    agent.refresh_from_db()
    assert (agent.name, agent.instructions) == ("Renamed", TYPED)
    assert client.get(change(agent)).status_code == 200


def test_signing_in_there_gives_no_more_rights_than_elsewhere(client):
    agent = world.agent("Someone")
    world.grace(), world.linus()
    assert client.post(change(agent), form(agent) | signing_in("linus")).status_code == 403
    assert client.get("/admin/").status_code == 302
    assert client.post(change(agent), form(agent) | signing_in("grace")).status_code == 403
    agent.refresh_from_db()
    assert agent.name == "Someone"


def test_a_secret_is_not_kept_and_that_is_said(client):
    typed = {"name": "Acme", "slug": "acme", "kind": "openai", "api_key": "sk-canary", "_save": "Save"}
    page = client.post(add("provider"), typed, follow=True)
    assert "Your session had ended, so nothing was saved." in text(page)
    assert "sk-canary" not in text(page)
    assert not Provider.objects.exists()
