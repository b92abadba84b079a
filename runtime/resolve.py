"""Rows → one frozen RuntimeAgent for the actor who asks. The same function for every channel; four statements."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agents_admin.actor import Actor
from agents_admin.kinds import SettingsError, default_side_effect, parse
from agents_admin.models.fields import decrypt
from runtime import rights, store
from runtime.errors import RunError
from runtime.ports import Right
from runtime.spec import (
    MAX_DEPTH,
    AgentSpec,
    CredentialSpec,
    DelegationSpec,
    Limits,
    MemorySpec,
    ModelSpec,
    Omission,
    RuntimeAgent,
    Secret,
    ToolSpec,
)
from runtime.store import Row

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64

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
       m.name AS model_name, m.model_id AS model_code, m.context_window,
       p.kind AS provider_kind, p.base_url, p.api_key, p.timeout_seconds, p.idle_seconds
FROM (SELECT id, min(depth) AS depth FROM reach GROUP BY id) AS near
JOIN agents_admin_agent a ON a.id = near.id
JOIN agents_admin_model m ON m.id = a.model_id
JOIN agents_admin_provider p ON p.id = m.provider_id
ORDER BY near.depth, a.id
"""
)
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
    return bool((await store.fetch(_MAY_CALL, values))[0]["allowed"])


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
    return _assemble(
        agents,
        _by(await store.fetch(_ROSTERS, values), "coordinator_id") if len(agents) > 1 else {},
        _by(await store.fetch(_TOOLS, values), "agent_id"),
        _by(await store.fetch(_MEMORIES, values), "agent_id"),
    )


type Grouped = dict[int, list[Row]]


def _assemble(agents: Sequence[Row], rosters: Grouped, tools: Grouped, memories: Grouped) -> RuntimeAgent:
    rows = {row["id"]: row for row in agents}
    root = agents[0]["id"]
    omitted: dict[Omission, None] = {}
    specs: dict[int, AgentSpec] = {}
    waiting = [root]
    while waiting:
        row = rows[waiting.pop(0)]
        if row["id"] in specs:
            continue
        edges = [edge for edge in rosters.get(row["id"], ()) if _may_ask(row, edge, rows, omitted)]
        specs[row["id"]] = _agent(row, edges, rows, tools.get(row["id"], ()), memories.get(row["id"], ()), omitted)
        waiting += [edge["delegate_id"] for edge in edges]
    return RuntimeAgent(root, specs, tuple(omitted))


def _may_ask(row: Row, edge: Row, rows: dict[int, Row], omitted: dict[Omission, None]) -> bool:
    delegate = rows.get(edge["delegate_id"])
    if delegate is None:
        return False  # deeper than the limit
    reasons = (
        (delegate["enabled"], "it is switched off."),
        (delegate["usable"], "the person who asks may not use it."),
        (delegate["model_on"], "its model is switched off."),
    )
    why = next((words for fine, words in reasons if not fine), "")
    if why:
        omitted[Omission(row["name"], f"the delegate {delegate['name']}", why)] = None
    return not why


def _agent(
    row: Row, edges: Sequence[Row], rows: dict[int, Row], tools: Sequence[Row], memories: Sequence[Row],
    omitted: dict[Omission, None],
) -> AgentSpec:  # fmt: skip
    name = _Names()
    return AgentSpec(
        id=row["id"],
        slug=row["slug"],
        label=row["name"],
        model=_model(row),
        description=row["description"],
        instructions=row["instructions"],
        temperature=row["temperature"],
        max_output_tokens=row["max_output_tokens"],
        tools=tuple(filter(None, [_tool(row, tool, name, omitted) for tool in tools])),
        memories=tuple(filter(None, [_memory(row, memory, name, omitted) for memory in memories])),
        roster=tuple(_edge(edge, rows[edge["delegate_id"]], name) for edge in edges),
        limits=Limits(row["max_steps"], row["max_tool_calls"], row["max_seconds"], row["max_tokens"]),
        history_messages=row["history_messages"],
        view=row["delegate_view"],
    )


def _model(row: Row) -> ModelSpec:
    return ModelSpec(
        id=row["model_id"],
        label=row["model_name"],
        kind=row["provider_kind"],
        model_id=row["model_code"],
        base_url=row["base_url"],
        api_key=_secret(row["api_key"]),
        timeout_seconds=row["timeout_seconds"],
        idle_seconds=row["idle_seconds"],
        context_window=row["context_window"],
    )


def _tool(agent: Row, row: Row, name: Callable[[str, int], str], omitted: dict[Omission, None]) -> ToolSpec | None:
    if not row["usable"]:
        omitted[Omission(agent["name"], f"the tool {row['name']}", "the person who asks may not use it.")] = None
        return None
    try:
        settings = parse(row["kind"], row["settings"])
    except SettingsError as error:
        omitted[Omission(agent["name"], f"the tool {row['name']}", f"{error.field}: {error.message}")] = None
        return None
    return ToolSpec(
        id=row["id"],
        name=name(row["slug"], row["id"]),
        label=row["name"],
        kind=row["kind"],
        settings=settings,
        description=row["description"],
        side_effect=row["side_effect"] or default_side_effect(row["kind"], settings),
        approval=row["own_approval"] or row["approval"],
        timeout_seconds=row["timeout_seconds"],
        max_output_chars=row["max_output_chars"],
        max_calls=row["max_calls"],
        credential=_credential(row),
    )


def _credential(row: Row) -> CredentialSpec | None:
    if row["credential_id"] is None:
        return None
    return CredentialSpec(
        row["credential_id"], row["credential_kind"], _secret(row["secret"]), tuple(row["origins"]), row["header"]
    )


def _memory(agent: Row, row: Row, name: Callable[[str, int], str], omitted: dict[Omission, None]) -> MemorySpec | None:
    if not row["usable"]:
        omitted[Omission(agent["name"], f"the memory {row['name']}", "the person who asks may not use it.")] = None
        return None
    return MemorySpec(row["id"], name(f"search_{row['slug']}", row["id"]), row["name"], row["description"])


def _edge(row: Row, delegate: Row, name: Callable[[str, int], str]) -> DelegationSpec:
    return DelegationSpec(
        id=row["id"],
        delegate_id=row["delegate_id"],
        name=name(f"ask_{delegate['slug']}", row["id"]),
        when_to_use=row["when_to_use"],
        max_calls=row["max_calls"],
        limits=Limits(row["max_steps"], None, row["timeout_seconds"], row["max_tokens"]),
        on_failure=row["on_failure"],
        context=row["context"],
    )


class _Names:
    """Function names for one agent: safe for every provider, unique."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def __call__(self, wanted: str, row_id: int) -> str:
        safe = _UNSAFE.sub("_", wanted)[:_LONGEST_NAME]
        suffix = f"_{row_id}"
        while safe in self.taken:
            safe = safe[: _LONGEST_NAME - len(suffix)] + suffix
            suffix += "_"
        self.taken.add(safe)
        return safe


@lru_cache(maxsize=256)
def _secret(token: str) -> Secret:
    """Decrypting costs as much as a statement; a changed secret has another token."""
    return Secret(decrypt(token))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _by(rows: Sequence[Row], key: str) -> Grouped:
    grouped: Grouped = defaultdict(list)
    for row in rows:
        grouped[row[key]].append(row)
    return grouped
