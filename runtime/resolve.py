"""Rows → one frozen RuntimeAgent for the actor who asks; the same function for every channel.

At most five statements in two round trips, whatever the size of the graph.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents_admin.actor import Actor
from runtime import rights, store
from runtime.assemble import Grouped, Reached, assemble
from runtime.errors import RunError
from runtime.ports import Right
from runtime.spec import MAX_DEPTH, RuntimeAgent
from runtime.store import Row

_REACH = """
WITH RECURSIVE reach(id, depth) AS (
    SELECT id, 0 FROM agents_admin_agent root WHERE root.{key} = %(root)s AND {startable} AND {alive}
    UNION
    SELECT d.delegate_id, reach.depth + 1
    FROM reach JOIN agents_admin_delegation d ON d.coordinator_id = reach.id AND d.enabled
    WHERE reach.depth < %(depth)s
)"""
_AGENTS = (
    _REACH
    + """
SELECT a.*, near.depth, {usable} AS usable, m.enabled AND p.enabled AS model_on,
       m.name AS model_name, m.model_id AS model_code, m.context_window, m.fallback_id,
       p.kind AS provider_kind, p.base_url, p.api_key, p.timeout_seconds, p.idle_seconds
FROM (SELECT id, min(depth) AS depth FROM reach GROUP BY id) AS near
JOIN agents_admin_agent a ON a.id = near.id
JOIN agents_admin_model m ON m.id = a.model_id
JOIN agents_admin_provider p ON p.id = m.provider_id
ORDER BY near.depth, a.id
"""
)
_FALLBACKS = """
WITH RECURSIVE chain AS (
    SELECT * FROM agents_admin_model WHERE id = ANY(%(fallbacks)s)
    UNION
    SELECT m.* FROM chain JOIN agents_admin_model m ON m.id = chain.fallback_id
)
SELECT m.id AS model_id, m.name AS model_name, m.model_id AS model_code, m.context_window, m.fallback_id,
       p.kind AS provider_kind, p.base_url, p.api_key, p.timeout_seconds, p.idle_seconds
FROM chain m JOIN agents_admin_provider p ON p.id = m.provider_id AND p.enabled
WHERE m.enabled
"""
_ROSTERS = """
SELECT * FROM agents_admin_delegation d WHERE d.coordinator_id = ANY(%(agents)s) AND d.enabled ORDER BY d."order", d.id
"""
_TOOLS = f"""
SELECT t.*, at.agent_id, at.approval AS own_approval, at.max_calls, {rights.usable("tool", "t")} AS usable,
       c.kind AS credential_kind, c.secret, c.header,
       ARRAY(SELECT o.origin FROM agents_admin_credentialorigin o WHERE o.credential_id = c.id) AS origins
FROM agents_admin_agenttool at
JOIN agents_admin_tool t ON t.id = at.tool_id AND t.enabled
LEFT JOIN agents_admin_credential c ON c.id = t.credential_id
WHERE at.agent_id = ANY(%(agents)s)
ORDER BY at."order", at.id
"""
_MEMORIES = f"""
SELECT m.*, am.agent_id, {rights.usable("memory", "m")} AS usable
FROM agents_admin_agentmemory am JOIN agents_admin_memory m ON m.id = am.memory_id AND m.enabled
WHERE am.agent_id = ANY(%(agents)s)
ORDER BY am."order", am.id
"""
_CARDS = f"""
SELECT a.id, a.slug, a.name, a.description, a.greeting, a.starters
FROM agents_admin_agent a
JOIN agents_admin_model m ON m.id = a.model_id AND m.enabled
JOIN agents_admin_provider p ON p.id = m.provider_id AND p.enabled
WHERE {rights.startable("a")} AND {rights.alive()}
ORDER BY EXISTS (SELECT FROM agents_admin_delegation d WHERE d.delegate_id = a.id AND d.enabled), a.name, a.id
"""
_MAY_CALL = f"""
SELECT {rights.alive()}
   AND (SELECT count(*) FROM agents_admin_agent a
        WHERE a.id = ANY(%(agents)s) AND a.enabled AND {rights.usable("agent", "a")}) = %(agent_count)s
   AND (SELECT count(*) FROM agents_admin_delegation d WHERE d.id = ANY(%(edges)s) AND d.enabled) = %(edge_count)s
   AND (%(tool)s::bigint IS NULL OR EXISTS (
        SELECT FROM agents_admin_tool t JOIN agents_admin_agenttool at ON at.tool_id = t.id AND at.agent_id = %(last)s
        WHERE t.id = %(tool)s AND t.enabled AND {rights.usable("tool", "t")}))
   AND (%(memory)s::bigint IS NULL OR EXISTS (
        SELECT FROM agents_admin_memory m
        JOIN agents_admin_agentmemory am ON am.memory_id = m.id AND am.agent_id = %(last)s
        WHERE m.id = %(memory)s AND m.enabled AND {rights.usable("memory", "m")})) AS allowed
"""
_STREAM = rights.Who("s.user_id", "s.key_id", "s.widget_id")
_LOST = f"""
SELECT s.number
FROM unnest(%(numbers)s::int[], %(runs)s::uuid[], %(users)s::int[], %(keys)s::uuid[], %(widgets)s::uuid[])
     AS s(number, run_id, user_id, key_id, widget_id)
WHERE NOT ({rights.alive(_STREAM)} AND EXISTS (
    SELECT FROM runtime_run r JOIN agents_admin_agent a ON a.id = r.agent_id
    WHERE r.id = s.run_id AND a.enabled AND {rights.usable("agent", "a", _STREAM)}))
"""


@dataclass(frozen=True, slots=True)
class AgentCard:
    """An agent as people choose it."""

    id: int
    slug: str
    name: str
    description: str
    greeting: str
    starters: tuple[str, ...]


async def agents_for(actor: Actor) -> list[AgentCard]:
    """The agents this actor may start: first those that nobody delegates to, where a conversation begins; by name."""
    rows = await store.fetch(_CARDS, rights.parameters(actor))
    return [
        AgentCard(
            row["id"], row["slug"], row["name"], row["description"], row["greeting"], tuple(_lines(row["starters"]))
        )
        for row in rows
    ]


async def may_call(actor: Actor, right: Right) -> bool:
    """Whether every row on the path is still enabled and usable by the actor, and the actor itself still is."""
    values = rights.parameters(actor) | {
        "agents": list(right.agents),
        "agent_count": len(set(right.agents)),
        "last": right.agents[-1],
        "edges": list(right.delegations),
        "edge_count": len(set(right.delegations)),
        "tool": right.tool,
        "memory": right.memory,
    }
    return bool((await store.fetch_patiently(_MAY_CALL, values))[0]["allowed"])


async def lost(streams: Mapping[int, Mapping[str, object]]) -> list[int]:
    """Which of these open streams (`run`, `user`, `key`, `widget`) their readers may not read any more."""
    if not streams:
        return []
    values = {f"{name}s": [stream[name] for stream in streams.values()] for name in ("run", "user", "key", "widget")}
    return [row["number"] for row in await store.fetch(_LOST, values | {"numbers": list(streams)})]


async def resolve(agent: str | int, actor: Actor, *, started: bool = False) -> RuntimeAgent:
    """The agent (slug or id) and everything reachable from it that this actor may use.

    `started`: for a run that was started before; what only limits starting (hidden, a key's list) is not asked again.
    Raises RunError: `not_found` (missing, disabled, hidden or not theirs), `unavailable` (its model is off).
    """
    key = "id" if isinstance(agent, int) else "slug"
    sql = _AGENTS.format(
        key=key,
        startable=rights.enabled("root") if started else rights.startable("root"),
        alive=rights.alive(),
        usable=rights.usable("agent", "a"),
    )
    values = rights.parameters(actor) | {"root": agent, "depth": MAX_DEPTH}
    agents = await store.fetch(sql, values)
    if not agents:
        raise RunError("not_found", "There is no such agent, or you may not use it.", "agent")
    if not agents[0]["model_on"]:
        raise RunError("unavailable", f"{agents[0]['name']} can't answer: its model is switched off.", "agent")
    values["agents"] = [row["id"] for row in agents]
    values["fallbacks"] = [row["fallback_id"] for row in agents if row["fallback_id"]]
    wanted = {
        _TOOLS: True,
        _MEMORIES: True,
        _ROSTERS: len(agents) > 1,
        _FALLBACKS: bool(values["fallbacks"]),
    }
    asked = [sql for sql, needed in wanted.items() if needed]
    rows = dict(zip(asked, await store.fetch_together(asked, values), strict=True))
    return assemble(
        Reached(
            agents=agents,
            models={row["model_id"]: row for row in rows.get(_FALLBACKS, ())},
            rosters=_by(rows.get(_ROSTERS, ()), "coordinator_id"),
            tools=_by(rows[_TOOLS], "agent_id"),
            memories=_by(rows[_MEMORIES], "agent_id"),
        )
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _by(rows: Sequence[Row], key: str) -> Grouped:
    grouped: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row[key]].append(row)
    return grouped
