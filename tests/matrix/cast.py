"""Who asks in the matrix, and whose rows there are: each owner's hold a word that nobody else may ever read."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import httpx
from django.contrib.auth.models import User
from django.test import Client

from agents_admin.actor import Actor
from agents_admin.models import Widget
from runtime.models import Run, Thread, ToolCall
from tests import world
from tests.loop import ask
from tests.web.widget_client import SHOP
from web.routes import Who
from web.widget.token import Pass, issue


@dataclass(frozen=True)
class Asker:
    """One way to call. `owns` names the owner of the rows it may see; `kind` is what its credentials count as."""

    name: str
    kind: Who | None
    owns: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    widget: UUID | None = None
    limited: bool = False


@dataclass(frozen=True)
class Rows:
    """A thread, the root run in it, finished and with its log, and a call of it. `secret` stands there alone."""

    owner: str
    thread: UUID
    run: UUID
    call: UUID
    secret: str
    widget: UUID | None = None


def session(user: User, *, protected: bool = True) -> dict[str, str]:
    """The headers of a signed-in browser; `protected`: with the token against forged requests."""
    browser = Client()
    browser.force_login(user)
    token = "a1b2c3d4" * 4
    cookies = f"roster_session={browser.cookies['roster_session'].value}; roster_csrf={token}"
    return {"Cookie": cookies} | ({"X-CSRFToken": token} if protected else {})


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def visitor(widget: Widget, name: str) -> dict[str, str]:
    return bearer(issue(Pass(widget.pk, SHOP, name))) | {"Origin": SHOP}


def askers(house: world.House, shop: Widget, other: Widget) -> list[Asker]:
    key = world.api_key
    return [
        Asker("nobody", None),
        Asker("Linus", Who.SIGNED_IN, "linus", session(house.linus)),
        Asker("Maya", Who.SIGNED_IN, "maya", session(house.maya)),
        Asker("Ada", Who.SIGNED_IN, "ada", session(house.ada)),
        Asker("Grace", Who.SIGNED_IN, "grace", session(house.grace)),
        Asker("Linus' key", Who.API_KEY, "linus", bearer(key(house.linus))),
        Asker("Maya's key", Who.API_KEY, "maya", bearer(key(house.maya))),
        Asker("Ada's key", Who.API_KEY, "ada", bearer(key(house.ada))),
        Asker("Linus' key for Analyst", Who.API_KEY, "linus", bearer(key(house.linus, house.analyst)), limited=True),
        Asker("Linus' disabled key", None, "", bearer(key(house.linus, enabled=False))),
        Asker("a visitor", Who.WIDGET_VISITOR, "visitor", visitor(shop, "visitor"), shop.pk),
        Asker("another visitor", Who.WIDGET_VISITOR, "stranger", visitor(shop, "stranger"), shop.pk),
        Asker("a visitor of another widget", Who.WIDGET_VISITOR, "passer-by", visitor(other, "visitor"), other.pk),
    ]


def rows(house: world.House, shop: Widget) -> list[Rows]:
    """Linus's, Maya's, a visitor's, and some that belong to nobody."""
    owners = {
        "linus": world.actor_of(house.linus),
        "maya": world.actor_of(house.maya),
        "visitor": Actor("widget", widget_id=shop.pk, visitor="visitor"),
    }
    made = [_made(owner, actor) for owner, actor in owners.items()]
    lost = _made("nobody", owners["maya"])
    Thread.objects.filter(pk=lost.thread).update(user=None)
    Run.objects.filter(root=lost.run).update(user=None)
    return [*made, lost]


def _made(owner: str, actor: Actor) -> Rows:
    """Asked of Concierge, so that there are delegates' runs too."""
    secret = f"s{secrets.token_hex(8)}"
    log = ask(actor, "concierge", f"How many days of annual leave do I get? {secret}")
    run = Run.objects.get(pk=log[0].event.of.root)
    call = ToolCall.objects.filter(run=run).first()
    assert call is not None
    return Rows(owner, run.thread_id, run.pk, call.pk, secret, actor.widget_id)


def missing(like: Rows) -> Rows:
    return Rows("nobody", uuid4(), uuid4(), uuid4(), like.secret, like.widget)


def client(site: str) -> httpx.Client:
    return httpx.Client(base_url=site, timeout=20, trust_env=False, headers={"Accept": "*/*"})
