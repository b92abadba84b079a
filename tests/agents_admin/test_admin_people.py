"""Keys and rights: a key is shown once, nobody gives themselves more than they have."""

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from agents_admin.models import ApiKey
from agents_admin.models.access import hash_key
from tests import world
from tests.admin_page import add, change, submit, text

pytestmark = pytest.mark.django_db


def test_a_key_is_shown_once_and_stored_as_a_hash(ada):
    page = submit(ada, add("apikey"), name="Reports", user=world.linus().pk)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    key, row = page.context["key"], ApiKey.objects.get()
    assert key in text(page)
    assert (row.digest, row.user) == (hash_key(key), world.linus())
    assert key not in text(ada.get(change(row)))
    assert key not in str(LogEntry.objects.values()) + str(dict(ada.session)) + str(ada.cookies)


def test_staff_make_keys_for_themselves_only_and_see_no_others(grace):
    world.api_key(world.linus())
    assert "linus" not in text(grace.get(reverse("admin:agents_admin_apikey_changelist")))
    page = grace.post(add("apikey"), {"name": "Mine", "user": world.ada().pk, "enabled": "on"})
    assert page.status_code == 200
    assert ApiKey.objects.get(name="Mine").user == grace.user
    foreign = ApiKey.objects.exclude(name="Mine").get()
    assert grace.get(change(foreign)).status_code == 302
    assert grace.post(change(foreign), {"name": "Taken"}).status_code == 302
    assert not ApiKey.objects.filter(name="Taken").exists()


def test_staff_cannot_give_themselves_rights(grace):
    rights = {"is_superuser": "on", "is_staff": "on", "username": "grace"}
    assert grace.post(change(grace.user), rights).status_code == 403
    grace.post(change(world.linus()), rights | {"username": "linus"})
    assert not world.linus().is_superuser
    password = reverse("admin:auth_user_password_change", args=[world.ada().pk])
    assert grace.post(password, {"password1": "x" * 20, "password2": "x" * 20}).status_code == 403
    assert grace.get(reverse("admin:auth_group_add")).status_code == 403


def test_staff_without_rights_find_nothing(client):
    house = world.house()
    client.force_login(house.grace, "django.contrib.auth.backends.ModelBackend")
    for model in ("agent", "provider", "tool", "apikey"):
        assert client.get(reverse(f"admin:agents_admin_{model}_changelist")).status_code == 403
    assert client.post(reverse("admin:agents_admin_agent_switch", args=[house.analyst.pk])).status_code == 403


def test_of_a_password_only_that_it_is_set_is_shown(ada):
    page = text(ada.get(change(world.linus())))
    assert "<span>Set</span>" in page
    assert "pbkdf2" not in page
    nobody = world.person("nobody", password="!")
    assert "<span>None</span>" in text(ada.get(change(nobody)))
