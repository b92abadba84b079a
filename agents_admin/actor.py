"""Who is asking: the one thing every permission check looks at. Immutable for a run."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

type Channel = Literal["chat", "api", "widget", "terminal", "admin"]


@dataclass(frozen=True, slots=True)
class Actor:
    """A user, an API key (which acts for its user) or a widget visitor, plus the channel they came through.

    `startable` limits which agents an API key may *start* (ids; None: all that its user may use); it says nothing about
    delegates. `agent_id` is a widget's one agent.
    """

    channel: Channel
    user_id: int | None = None
    superuser: bool = False
    group_ids: frozenset[int] = frozenset()
    key_id: UUID | None = None
    startable: frozenset[int] | None = None
    widget_id: UUID | None = None
    visitor: str = ""

    @property
    def signed_in(self) -> bool:
        """Whether rows for `signed-in` people are theirs to use: users and API keys, never widget visitors."""
        return self.user_id is not None

    def may_use(self, audience: "Audience") -> bool:
        """Whether a row with this audience is theirs to use. Superusers pass every check; staff do not."""
        match audience.kind:
            case _ if self.superuser:
                return True
            case "everyone":
                return True
            case "signed-in":
                return self.signed_in
            case "chosen":
                return self.signed_in and (
                    self.user_id in audience.user_ids or not self.group_ids.isdisjoint(audience.group_ids)
                )

    def may_start(self, agent_id: int) -> bool:
        """Whether this actor's own limits (a key's list, a widget's agent) let it start that agent."""
        return self.startable is None or agent_id in self.startable


@dataclass(frozen=True, slots=True)
class Audience:
    """Who may use a row; `user_ids` and `group_ids` count only with `chosen`."""

    kind: Literal["everyone", "signed-in", "chosen"]
    user_ids: frozenset[int] = frozenset()
    group_ids: frozenset[int] = frozenset()
