"""Browsers of people who may use the admin, and bundles to apply."""

import textwrap

import pytest
from django.contrib.auth.models import Group, Permission

from agents_admin.portable.applying import apply
from agents_admin.portable.problem import BundleError
from tests import world
from tests.agents_admin.shop_bundle import ENVIRON

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


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "leave.md").write_text(world.LEAVE)
    Group.objects.create(name="Staff")
    world.maya()
    return tmp_path


@pytest.fixture
def load(folder):
    """Applies a text as a bundle of its own."""

    def load(text, **environ):
        path = folder / "bundle.yaml"
        path.write_text(textwrap.dedent(text))
        return apply(path, ENVIRON | environ)

    return load


@pytest.fixture
def complaint(load, folder):
    """What a bundle that can't be applied says, its path left out."""

    def complaint(text):
        with pytest.raises(BundleError) as caught:
            load(text)
        return str(caught.value).replace(f"{folder}/", "")

    return complaint
