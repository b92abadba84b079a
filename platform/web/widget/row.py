"""The widget's row as visitors meet it: one statement, read at every request, so that a change holds at once."""

from dataclasses import dataclass
from uuid import UUID

from runtime import store

_WIDGET = """
SELECT w.id, coalesce(nullif(w.title, ''), a.name) AS title, w.greeting, w.theme, w.accent, w.enabled,
       w.visitor_per_hour, w.address_per_hour, w.total_per_day,
       ARRAY(SELECT o.origin FROM agents_admin_widgetorigin o WHERE o.widget_id = w.id ORDER BY o.origin) AS origins
FROM agents_admin_widget w JOIN agents_admin_agent a ON a.id = w.agent_id
WHERE w.id = %s
"""


@dataclass(frozen=True, slots=True)
class Widget:
    """`origins` are `scheme://host[:port]` as browsers write them; the quotas count messages."""

    id: UUID
    title: str
    greeting: str
    theme: str
    accent: str
    enabled: bool
    visitor_per_hour: int
    address_per_hour: int
    total_per_day: int
    origins: tuple[str, ...]


async def find(widget: UUID) -> Widget | None:
    """The widget, a disabled one too."""
    rows = await store.fetch(_WIDGET, (widget,))
    return Widget(**rows[0] | {"origins": tuple(rows[0]["origins"])}) if rows else None
