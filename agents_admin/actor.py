"""Who is asking: the one thing every permission check looks at. Immutable for a run."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

type Channel = Literal["chat", "api", "widget", "terminal", "admin"]


@dataclass(frozen=True, slots=True)
class Actor:
    """A user, an API key (which acts for its user) or a widget visitor, plus the channel they came through.

    Only an identity: what it may use is asked of the database each time, so that a right that was taken away is gone
    at the next call. `startable` limits which agents an API key may *start* (ids; None: all that its user may use); it
    says nothing about delegates.
    """

    channel: Channel
    user_id: int | None = None
    key_id: UUID | None = None
    startable: frozenset[int] | None = None
    widget_id: UUID | None = None
    visitor: str = ""
