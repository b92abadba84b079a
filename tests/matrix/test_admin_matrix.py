"""Every address of the admin, asked by those who may not, and by those who may only look."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import models
from django.urls import URLPattern, URLResolver

from agents_admin.models import Credential
from tests import world
from tests.matrix.cast import Asker, askers, client, rows, session
from tests.matrix.ledger import ledger

pytestmark = pytest.mark.django_db(transaction=True)

FOR_ALL_STAFF = {"", "password_change/", "password_change/done/", "jsi18n/", "autocomplete/", "search/"}
OUTSIDE = {"login/", "logout/"}


def addresses(patterns: list[Any], prefix: str = "") -> Iterator[str]:
    for entry in patterns:
        address = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry.url_patterns, address)
        elif isinstance(entry, URLPattern) and "(?P" not in address:
            yield address


def paths() -> list[str]:
    """With the id of a row that is there wherever the address has one."""
    found = []
    for address in addresses(admin.site.urls[0]):
        row = next((row for prefix, row in a_row_of_each().items() if address.startswith(prefix)), None)
        if row is not None or "<" not in address:
            found.append(re.sub(r"<\w+:\w+>", str(row.pk if row else ""), address))
    return found


def a_row_of_each() -> dict[str, models.Model | None]:
    return {
        f"{model._meta.app_label}/{model._meta.model_name}/": model._default_manager.first()
        for model in admin.site._registry
    }


@pytest.fixture
def http(site: str) -> Iterator[httpx.Client]:
    with client(site) as opened:
        yield opened


@pytest.fixture
def house(site: str) -> world.House:
    house = world.house()
    Credential.objects.create(name="Shop", slug="shop", secret="x")
    world.group("Staff", house.grace)
    return house


def refused_as(who: Asker, path: str) -> set[int]:
    if who.name != "Grace":
        return {302, 403}
    # Django leads staff on from the address of a row, and back to the start from one that is not there for them.
    return {200, 302, 403, 404, 405} if path in FOR_ALL_STAFF else {302, 403, 405}


def test_nobody_but_staff_gets_in_and_staff_without_permissions_sees_nothing(http, house) -> None:
    shop = world.widget(house.concierge)
    everybody = askers(house, shop, world.widget(house.analyst, name="Another"))
    rows(house, shop)
    where, before = [path for path in paths() if path not in OUTSIDE], ledger()
    for who in everybody:
        if who.name not in {"nobody", "Linus", "Linus' key", "a visitor", "Grace"}:
            continue
        for path in where:
            for verb in ("GET", "POST", "DELETE"):
                answer = http.request(verb, f"/admin/{path}", headers=who.headers)
                assert answer.status_code in refused_as(who, path), (who.name, verb, path, answer.status_code)
                if answer.status_code == 302:
                    assert "/login/" in answer.headers["Location"] or who.name == "Grace", (who.name, path)
    assert ledger() == before


def test_who_may_look_changes_nothing(http, house) -> None:
    """With every view permission there is, and whatever is posted."""
    rows(house, world.widget(house.concierge))
    house.grace.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    headers, before = session(house.grace), ledger()
    seen = 0
    for path in paths():
        if path in OUTSIDE | FOR_ALL_STAFF:
            continue
        seen += http.get(f"/admin/{path}", headers=headers).status_code == 200
        for fields in ({}, {"name": "Mine", "_save": "Save", "action": "delete_selected", "post": "yes"}):
            answer = http.post(f"/admin/{path}", headers=headers, data=fields)
            assert answer.status_code in {200, 302, 403, 404, 405}, (path, answer.status_code)
    assert ledger() == before
    assert seen > 20


def test_looking_changes_nothing_for_the_superuser_either(http, house) -> None:
    rows(house, world.widget(house.concierge))
    headers, before = session(house.ada), ledger()
    for path in paths():
        if path not in OUTSIDE:
            answer = http.get(f"/admin/{path}", headers=headers)
            assert answer.status_code < 500, path
    assert ledger() == before
