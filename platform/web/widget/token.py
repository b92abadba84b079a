"""The widget's bearer token: signed, and bound to a widget, the origin of the page it is on, and a visitor."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.core import signing

SALT = "web.widget.token"
LIFETIME = timedelta(minutes=15)
RENEWABLE = timedelta(days=30)
"""How long an expired token still says who a visitor was, so that they keep their conversation."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What a token says. `visitor` is a random name that we gave, never one from the page."""

    widget: UUID
    origin: str
    visitor: str


def new_visitor() -> str:
    return secrets.token_urlsafe(18)


def issue(for_: Pass) -> str:
    """Its first part is base64url JSON: the frame reads the origin there before it trusts a page."""
    return signing.dumps({"widget": str(for_.widget), "origin": for_.origin, "visitor": for_.visitor}, salt=SALT)


def read(token: str, age: timedelta = LIFETIME) -> Pass | None:
    """None for a token that is not ours or is older than `age`."""
    try:
        said = signing.loads(token, salt=SALT, max_age=age)
    except signing.BadSignature:
        return None
    return Pass(UUID(said["widget"]), said["origin"], said["visitor"])
