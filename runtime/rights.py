"""Who may use what, as SQL: the one definition behind resolving, lists of agents and every call (security rule 1).

Rights are read where the rows are, at the moment they are needed: an Actor carries no rights that could grow old.
"""

from dataclasses import dataclass

from agents_admin.actor import Actor
from runtime.store import Row


@dataclass(frozen=True, slots=True)
class Who:
    """Where a statement has the actor: SQL expressions, the parameters of `parameters` unless said otherwise."""

    user: str = "%(user)s::int"
    key: str = "%(key)s::uuid"
    widget: str = "%(widget)s::uuid"


ASKING = Who()


def superuser(who: Who = ASKING) -> str:
    return f"EXISTS (SELECT FROM auth_user u WHERE u.id = {who.user} AND u.is_active AND u.is_superuser)"


def alive(who: Who = ASKING) -> str:
    """SQL: whether the actor itself still is: an active user, an enabled key that is valid, an enabled widget."""
    return f"""(CASE
    WHEN {who.widget} IS NOT NULL THEN EXISTS (
        SELECT FROM agents_admin_widget w WHERE w.id = {who.widget} AND w.enabled)
    WHEN {who.key} IS NOT NULL THEN EXISTS (
        SELECT FROM agents_admin_apikey k JOIN auth_user u ON u.id = k.user_id
        WHERE k.id = {who.key} AND k.user_id = {who.user} AND k.enabled AND u.is_active
          AND (k.expires_at IS NULL OR k.expires_at > now()))
    ELSE EXISTS (SELECT FROM auth_user u WHERE u.id = {who.user} AND u.is_active)
    END)"""


def usable(table: str, row: str, who: Who = ASKING) -> str:
    """SQL: whether the actor may use a row of `agent`, `tool` or `memory`, by its audience."""
    return f"""({row}.audience = 'everyone'
    OR ({row}.audience = 'signed-in' AND {who.user} IS NOT NULL)
    OR ({row}.audience = 'chosen' AND (
        EXISTS (SELECT FROM agents_admin_{table}_users c WHERE c.{table}_id = {row}.id AND c.user_id = {who.user})
        OR EXISTS (SELECT FROM agents_admin_{table}_groups c JOIN auth_user_groups g ON g.group_id = c.group_id
                   WHERE c.{table}_id = {row}.id AND g.user_id = {who.user})))
    OR {superuser(who)})"""


def enabled(row: str) -> str:
    """SQL: whether an agent works for this actor at all."""
    return f"({row}.enabled AND {usable('agent', row)})"


def startable(row: str) -> str:
    """SQL: whether the actor's own limits let it start an agent: hidden ones are for superusers at a terminal or in the
    admin, a key may be limited to some, a widget has one."""
    return f"""({enabled(row)}
    AND (NOT {row}.hidden OR (%(privileged)s AND {superuser()}))
    AND (%(startable)s::bigint[] IS NULL OR {row}.id = ANY(%(startable)s))
    AND (%(widget)s::uuid IS NULL OR EXISTS (
        SELECT FROM agents_admin_widget w WHERE w.id = %(widget)s AND w.enabled AND w.agent_id = {row}.id)))"""


def owned(row: str) -> str:
    """SQL: whether a thread or run is the actor's. The same rule as `models.OwnedQuerySet.for_actor`.

    A user's (an API key acts for its user, within its list of agents), or one visitor's of one widget.
    """
    return f"""(
    (%(widget)s::uuid IS NULL AND {row}.user_id = %(user)s::int
        AND (%(startable)s::bigint[] IS NULL OR {row}.agent_id = ANY(%(startable)s)))
    OR ({row}.widget_id = %(widget)s::uuid AND {row}.visitor = %(visitor)s AND {row}.visitor <> ''))"""


def parameters(actor: Actor) -> Row:
    """The values that the SQL of this module needs."""
    return {
        "user": actor.user_id,
        "key": actor.key_id,
        "widget": actor.widget_id,
        "visitor": actor.visitor,
        "privileged": actor.channel in {"terminal", "admin"},
        "startable": None if actor.startable is None else list(actor.startable),
    }
