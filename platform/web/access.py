"""Who is calling: session or API key → Actor. Widget tokens have theirs beside their views."""

from django.http import HttpRequest

from agents_admin.actor import Actor
from agents_admin.models.access import hash_key
from runtime import store
from runtime.errors import RunError

# `used` notes the use once a minute; when another request is just doing so, it is skipped instead of waited for.
_KEY = """
WITH key AS (
    SELECT k.id, k.user_id, k.limited, (k.last_used_at < now() - interval '1 minute') IS NOT FALSE AS stale
    FROM agents_admin_apikey k JOIN auth_user u ON u.id = k.user_id
    WHERE k.digest = %s AND k.enabled AND u.is_active AND (k.expires_at IS NULL OR k.expires_at > now())
), due AS (
    SELECT k.id FROM agents_admin_apikey k JOIN key ON key.id = k.id WHERE key.stale FOR UPDATE OF k SKIP LOCKED
), used AS (
    UPDATE agents_admin_apikey SET last_used_at = now() WHERE id IN (SELECT id FROM due)
)
SELECT id, user_id, limited,
       ARRAY(SELECT a.agent_id FROM agents_admin_apikey_agents a WHERE a.apikey_id = key.id) AS agents
FROM key
"""


class NotSignedInError(Exception):
    """Nobody is signed in; `web.login.sign_in_first` shows the way."""


async def session_actor(request: HttpRequest) -> Actor:
    """The signed-in person of this request. Raises NotSignedInError."""
    user = await request.auser()
    if not user.is_authenticated or not user.is_active:
        raise NotSignedInError
    return Actor(channel="chat", user_id=user.pk)


async def key_actor(request: HttpRequest) -> Actor:
    """The API key in `Authorization: Bearer rk_…`; a session counts for nothing here. One statement.

    The key is looked up by its hash, so that the time taken says nothing about it. Raises RunError `unauthenticated`.
    """
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    found = await store.fetch(_KEY, (hash_key(key.strip()),)) if scheme.lower() == "bearer" else []
    if not found:
        raise RunError(
            "unauthenticated",
            "Send a valid API key in the header “Authorization: Bearer rk_…”: there is none, or it is unknown, "
            "switched off or expired.",
        )
    row = found[0]
    startable = frozenset(row["agents"]) if row["limited"] else None
    return Actor("api", user_id=row["user_id"], key_id=row["id"], startable=startable)
