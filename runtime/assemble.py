"""The rows that were reached → specs: what the actor may not use left out and named, names safe and unique."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agents_admin.encryption import decrypt
from agents_admin.kinds import SettingsError, default_side_effect, parse
from runtime.spec import (
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

type Grouped = Mapping[int, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Reached:
    """The rows along the rosters, the root's agent first; the others grouped by the agent that has them."""

    agents: Sequence[Row]
    models: Mapping[int, Row]
    rosters: Grouped
    tools: Grouped
    memories: Grouped


def assemble(reached: Reached) -> RuntimeAgent:
    """From the root along the rosters, so that what hangs on a delegate that was left out is left out too."""
    rows = {row["id"]: row for row in reached.agents}
    root = reached.agents[0]["id"]
    omitted: dict[Omission, None] = {}
    specs: dict[int, AgentSpec] = {}
    waiting = [root]
    while waiting:
        row = rows[waiting.pop(0)]
        if row["id"] in specs:
            continue
        edges = [edge for edge in reached.rosters.get(row["id"], ()) if _may_ask(row, edge, rows, omitted)]
        specs[row["id"]] = _agent(reached, row, [(edge, rows[edge["delegate_id"]]) for edge in edges], omitted)
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


def _agent(reached: Reached, row: Row, edges: Sequence[tuple[Row, Row]], omitted: dict[Omission, None]) -> AgentSpec:
    name = _Names()
    tools, memories = reached.tools.get(row["id"], ()), reached.memories.get(row["id"], ())
    return AgentSpec(
        id=row["id"],
        slug=row["slug"],
        label=row["name"],
        model=_model(row, reached.models, ()),
        description=row["description"],
        instructions=row["instructions"],
        temperature=row["temperature"],
        max_output_tokens=row["max_output_tokens"],
        tools=tuple(filter(None, [_tool(row, tool, name, omitted) for tool in tools])),
        memories=tuple(filter(None, [_memory(row, memory, name, omitted) for memory in memories])),
        roster=tuple(_edge(edge, delegate, name) for edge, delegate in edges),
        limits=Limits(row["max_steps"], row["max_tool_calls"], row["max_seconds"], row["max_tokens"]),
        history_messages=row["history_messages"],
        view=row["delegate_view"],
    )


def _model(row: Row, models: Mapping[int, Row], above: tuple[int, ...]) -> ModelSpec:
    """With its fallbacks; a circle of them is walked once."""
    seen = (*above, row["model_id"])
    fallback = models.get(row["fallback_id"]) if row["fallback_id"] not in seen else None
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
        fallback=_model(fallback, models, seen) if fallback else None,
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
