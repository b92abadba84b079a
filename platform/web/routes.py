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
    "chat/": Route(Who.SIGNED_IN, ("GET",)),
    "chat/send/": Route(Who.SIGNED_IN, ("POST",)),
    "chat/threads/": Route(Who.SIGNED_IN, ("GET",)),
    "chat/<uuid:thread>/": Route(Who.SIGNED_IN, ("GET",), "runtime.Thread"),
    "chat/<uuid:thread>/rename/": Route(Who.SIGNED_IN, ("POST",), "runtime.Thread"),
    "chat/<uuid:thread>/delete/": Route(Who.SIGNED_IN, ("POST",), "runtime.Thread"),
    "chat/runs/<uuid:run>/stream/": Route(Who.SIGNED_IN, ("GET",), "runtime.Run"),
    "chat/runs/<uuid:run>/stop/": Route(Who.SIGNED_IN, ("POST",), "runtime.Run"),
    "chat/runs/<uuid:run>/review/<uuid:call>/": Route(Who.SIGNED_IN, ("POST",), "runtime.Run"),
    "api/v1/": Route(Who.EVERYONE, ("GET",)),
    "api/v1/docs": Route(Who.EVERYONE, ("GET",)),
    "api/v1/openapi.json": Route(Who.EVERYONE, ("GET",)),
    "api/v1/agents": Route(Who.API_KEY, ("GET",)),
    "api/v1/runs": Route(Who.API_KEY, ("GET", "POST")),
    "api/v1/runs/<uuidstr:run_id>": Route(Who.API_KEY, ("GET",), "runtime.Run"),
    "api/v1/runs/<uuidstr:run_id>/cancel": Route(Who.API_KEY, ("POST",), "runtime.Run"),
    "api/v1/runs/<uuidstr:run_id>/events": Route(Who.API_KEY, ("GET",), "runtime.Run"),
    "api/v1/threads": Route(Who.API_KEY, ("GET", "POST")),
    "api/v1/threads/<uuidstr:thread_id>": Route(Who.API_KEY, ("GET", "PATCH", "DELETE"), "runtime.Thread"),
    "api/v1/threads/<uuidstr:thread_id>/messages": Route(Who.API_KEY, ("GET",), "runtime.Thread"),
    # Shown to pages of the widget's sites (look, token: by Origin) and to holders of a visitor's token.
    "widget.js": Route(Who.EVERYONE, ("GET",)),
    "widget/<uuid:widget>/": Route(Who.EVERYONE, ("GET",)),
    "widget/<uuid:widget>/look/": Route(Who.EVERYONE, ("GET",)),
    "widget/<uuid:widget>/token/": Route(Who.EVERYONE, ("POST",)),
    "widget/<uuid:widget>/forget/": Route(Who.WIDGET_VISITOR, ("POST",)),
    "widget/<uuid:widget>/conversation/": Route(Who.WIDGET_VISITOR, ("GET",)),
    "widget/<uuid:widget>/send/": Route(Who.WIDGET_VISITOR, ("POST",)),
    "widget/<uuid:widget>/runs/<uuid:run>/stream/": Route(Who.WIDGET_VISITOR, ("GET",), "runtime.Run"),
    "widget/<uuid:widget>/runs/<uuid:run>/stop/": Route(Who.WIDGET_VISITOR, ("POST",), "runtime.Run"),
    "admin/": Route(Who.STAFF, ("GET", "POST")),
}
