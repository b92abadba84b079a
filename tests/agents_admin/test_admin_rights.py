"""Staff who may only look: every page they may open, and nothing that their rights don't name."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents_admin.models import Credential
from tests import world
from tests.admin_page import change, text

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"
SECRET = "sk-canary-9f27c1"


@pytest.fixture
def looker(client):
    """Signs Grace in, who may do only what is named."""

    def looker(*rights: tuple[str, str, str]):
        named = [Permission.objects.get_by_natural_key(right, *model) for right, *model in rights]
        world.grace().user_permissions.set(named)
        client.force_login(world.grace(), BACKEND)
        return client

    return looker


def test_who_may_only_look_at_a_provider_never_sees_its_key(looker):
    provider = world.provider("acme", kind="openai", base_url="https://llm.example/v1", api_key=SECRET)
    page = text(looker(("view_provider", "agents_admin", "provider")).get(change(provider)))
    assert "https://llm.example/v1" in page
    assert SECRET not in page


def test_who_may_only_look_at_a_credential_never_sees_its_secret(looker):
    credential = Credential.objects.create(name="Shop", slug="shop", secret=SECRET)
    page = text(looker(("view_credential", "agents_admin", "credential")).get(change(credential)))
    assert "Shop" in page
    assert SECRET not in page


def test_nobody_sees_the_hash_of_a_password(looker):
    page = text(looker(("view_user", "auth", "user")).get(change(world.linus())))
    assert "linus@example.org" in page
    assert world.linus().password not in page
    client = looker(("view_user", "auth", "user"), ("change_user", "auth", "user"))
    assert world.ada().password not in text(client.get(change(world.ada())))


def test_passages_are_shown_to_those_who_may_view_documents(looker):
    handbook = world.memory("Handbook", {"Leave": world.LEAVE})
    search = reverse("admin:agents_admin_memory_try_search", args=[handbook.pk])
    memories, documents = ("view_memory", "agents_admin", "memory"), ("view_document", "agents_admin", "document")
    assert looker(memories).get(search, {"q": "annual leave"}).status_code == 403
    assert "Try a search" not in text(looker(memories).get(change(handbook)))
    assert "28 days" in text(looker(memories, documents).get(search, {"q": "annual leave"}))
    assert "Add a document" not in text(looker(memories, documents).get(change(handbook)))


def test_who_may_only_look_at_a_tool_reads_its_settings(looker):
    row = {"name": "order_id", "in": "path", "required": True}
    settings = {"url": "https://shop.example/orders/{order_id}", "parameters": [row]}
    order_status = world.tool("http", name="Order status", settings=settings)
    page = text(looker(("view_tool", "agents_admin", "tool")).get(change(order_status)))
    assert "Address: https://shop.example/orders/{order_id}" in page
    assert "Parameters: in path, name order_id, required yes" in page
