"""Secrets at rest: unreadable in the database, rotated keys still open them, a lost key destroys nothing."""

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from agents_admin.models import Provider
from tests import world

pytestmark = pytest.mark.django_db


def stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT api_key FROM agents_admin_provider")
        return str(cursor.fetchone()[0])


def test_a_secret_is_not_in_the_database_as_text():
    world.provider(api_key="sk-canary")

    assert "canary" not in stored()
    assert Provider.objects.get().api_key == "sk-canary"


def test_an_older_key_still_opens_what_it_closed(settings):
    world.provider(api_key="sk-canary")
    settings.FIELD_ENCRYPTION_KEYS = (Fernet.generate_key().decode(), *settings.FIELD_ENCRYPTION_KEYS)

    assert Provider.objects.get().api_key == "sk-canary"


def test_saving_a_row_whose_key_is_lost_keeps_the_token(settings):
    world.provider(api_key="sk-canary")
    token, keys = stored(), settings.FIELD_ENCRYPTION_KEYS
    settings.FIELD_ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)

    row = Provider.objects.get()
    assert row.api_key == ""
    row.name = "Renamed"
    row.save()

    assert stored() == token
    settings.FIELD_ENCRYPTION_KEYS = keys
    assert Provider.objects.get().api_key == "sk-canary"
