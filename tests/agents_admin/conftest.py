"""Browsers of people who may use the admin."""

import pytest
from django.contrib.auth.models import Permission

from tests import world

BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def ada(client):
    client.force_login(world.ada(), BACKEND)
    return client


@pytest.fixture
def grace(client):
    """Staff with every right on the rows, but not a superuser."""
    user = world.grace()
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label__in=("agents_admin", "auth", "runtime"))
    )
    client.force_login(user, BACKEND)
    client.user = user
    return client
