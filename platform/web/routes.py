"""Who may use which address. A test walks the URLconf and refuses an address that is not in this table."""

from dataclasses import dataclass
from enum import Enum


class Who(Enum):
    EVERYONE = "everyone"
    SIGNED_IN = "signed-in people"
    API_KEY = "holders of an API key"
    WIDGET_VISITOR = "visitors with a widget's token"
    STAFF = "staff, by their permissions"


@dataclass(frozen=True, slots=True)
class Route:
    """`owner_of` is the "app.Model" whose row the address names: for everybody but its owner that row is a 404."""

    who: Who
    verbs: tuple[str, ...]
    owner_of: str = ""


# The pattern as the URLconf spells it, all prefixes joined. Everything under admin/ is one entry.
ROUTES: dict[str, Route] = {
    "": Route(Who.EVERYONE, ("GET",)),
    "login/": Route(Who.EVERYONE, ("GET", "POST")),
    "logout/": Route(Who.EVERYONE, ("POST",)),
    "healthz": Route(Who.EVERYONE, ("GET",)),
    "readyz": Route(Who.EVERYONE, ("GET",)),
    "admin/": Route(Who.STAFF, ("GET", "POST")),
}
