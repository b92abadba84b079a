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
