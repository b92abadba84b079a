"""Pages of a list, one after the other: a cursor is the place of a page's last row in the order of the list."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from runtime.errors import RunError

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Order:
    """Fields that together are unique, all ascending or all descending, each with what reads its text back."""

    fields: dict[str, Callable[[str], object]]
    descending: bool = True


def moment(text: str) -> datetime:
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError("no time zone")
    return read


NEWEST_CREATED = Order({"created_at": moment, "id": UUID})
NEWEST_UPDATED = Order({"updated_at": moment, "id": UUID})
AS_SAID = Order({"created_at": moment, "n": int, "id": UUID}, descending=False)


async def page[Row: Model](rows: QuerySet[Row], order: Order, cursor: str | None) -> tuple[list[Row], str | None]:
    """At most PAGE_SIZE rows and the cursor of the next page. Raises RunError `invalid` for a foreign cursor."""
    if cursor is not None:
        rows = rows.filter(_beyond(order, _read(order, cursor)))
    sign = "-" if order.descending else ""
    found = [row async for row in rows.order_by(*(sign + name for name in order.fields))[: PAGE_SIZE + 1]]
    more = len(found) > PAGE_SIZE
    return found[:PAGE_SIZE], _written(order, found[PAGE_SIZE - 1]) if more else None


def _beyond(order: Order, values: list[object]) -> Q:
    how = "lt" if order.descending else "gt"
    beyond, same = Q(), Q()
    for name, value in zip(order.fields, values, strict=True):
        beyond |= same & Q(**{f"{name}__{how}": value})
        same &= Q(**{name: value})
    return beyond


def _written(order: Order, row: Model) -> str:
    values = [getattr(row, name) for name in order.fields]
    texts = [value.isoformat() if isinstance(value, datetime) else str(value) for value in values]
    return base64.urlsafe_b64encode(json.dumps(texts).encode()).decode().rstrip("=")


def _read(order: Order, cursor: str) -> list[object]:
    try:
        texts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return [read(text) for read, text in zip(order.fields.values(), texts, strict=True)]
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error):
        raise RunError("invalid", "This is no cursor of this list. Start without one.", "cursor") from None
