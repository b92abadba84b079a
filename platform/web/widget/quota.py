"""How much visitors may ask: counted in the database, so that it holds over processes and restarts.

Hours and days are those of the clock (UTC). An Origin can be forged and a visitor can be new at every message: the
address and the day are what holds then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from runtime import store
from runtime.errors import RunError
from web.widget.row import Widget

# One row per limit. Nothing is counted when any of them is reached; the second WHERE holds when two requests meet.
_TAKE = """
WITH limits AS (
    SELECT who, unit, most, date_trunc(unit, now(), 'UTC') AS slot
    FROM unnest(%(who)s::text[], %(unit)s::text[], %(most)s::int[]) AS l(who, unit, most)
), reached AS (
    SELECT l.who FROM limits l
    LEFT JOIN web_widgetuse u ON u.widget_id = %(widget)s AND u.slot = l.slot AND u.who = l.who
    WHERE coalesce(u.times, 0) >= l.most
), taken AS (
    INSERT INTO web_widgetuse AS u (widget_id, slot, who, times)
    SELECT %(widget)s, slot, who, 1 FROM limits WHERE NOT EXISTS (SELECT FROM reached)
    ON CONFLICT (widget_id, slot, who) DO UPDATE SET times = u.times + 1
    WHERE u.times < (SELECT most FROM limits l WHERE l.who = u.who)
    RETURNING who
), old AS (
    DELETE FROM web_widgetuse WHERE widget_id = %(widget)s AND slot < now() - interval '2 days'
)
SELECT who, extract(epoch FROM slot + ('1 ' || unit)::interval - now())::int AS seconds
FROM limits WHERE who NOT IN (SELECT who FROM taken)
AND (who IN (SELECT who FROM reached) OR NOT EXISTS (SELECT FROM reached))
ORDER BY seconds DESC
"""
_GIVE_BACK = """
UPDATE web_widgetuse u SET times = u.times - 1
FROM unnest(%(who)s::text[], %(unit)s::text[]) AS l(who, unit)
WHERE u.widget_id = %(widget)s AND u.who = l.who AND u.slot = date_trunc(l.unit, now(), 'UTC') AND u.times > 0
"""
_WORDS = {
    "v": "You have sent as many messages as this site allows in an hour.",
    "a": "As many messages as this site allows in an hour have come from your network.",
    "n": "Too many new conversations were begun from your network in this hour.",
    "all": "As many questions as this site allows in a day have been asked today.",
}


@dataclass(frozen=True, slots=True)
class Limit:
    who: str
    most: int
    unit: Literal["hour", "day"] = "hour"


class OverQuota(RunError):  # noqa: N818 - it says what it is
    """`seconds` until the next try can succeed."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__("quota", message)
        self.seconds = seconds


def of_message(widget: Widget, visitor: str, address: str) -> list[Limit]:
    """In an order that is the same for everybody, so that two requests never wait for each other."""
    return [
        Limit(f"v:{visitor}", widget.visitor_per_hour),
        Limit(f"a:{address}", widget.address_per_hour),
        Limit("all", widget.total_per_day, "day"),
    ]


def of_new_visitor(widget: Widget, address: str) -> list[Limit]:
    return [Limit(f"n:{address}", widget.address_per_hour)]


async def take(widget: Widget, limits: Sequence[Limit]) -> None:
    """Count one use against every limit. Raises OverQuota, and counts nothing, when one of them is reached."""
    refused = await store.fetch(_TAKE, _values(widget, limits) | {"most": [limit.most for limit in limits]})
    if refused:
        reason = _WORDS[refused[0]["who"].partition(":")[0]]
        seconds = max(1, refused[0]["seconds"])
        raise OverQuota(f"{reason} Try again in {_duration(seconds)}.", seconds)


async def give_back(widget: Widget, limits: Sequence[Limit]) -> None:
    """For a message that was refused for another reason."""
    await store.fetch(_GIVE_BACK, _values(widget, limits))


def address_of(request: HttpRequest) -> str:
    """A keyed hash of where a request comes from, so that no address is stored.

    The server resolves X-Forwarded-For, and only of proxies that it trusts. One household or host has a /64 of IPv6.
    """
    peer = request.META.get("REMOTE_ADDR") or ""
    return salted_hmac("web.widget.address", _network(peer), algorithm="sha256").hexdigest()


def _network(peer: str) -> str:
    try:
        address: IPv4Address | IPv6Address = ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


def _values(widget: Widget, limits: Sequence[Limit]) -> dict[str, object]:
    return {
        "widget": widget.id,
        "who": [limit.who for limit in limits],
        "unit": [limit.unit for limit in limits],
    }


def _duration(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    number, unit = (math.ceil(minutes / 60), "hour") if minutes > 90 else (minutes, "minute")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
