"""Looking something up in a memory: the answer names document and passage, so that it can be quoted and cited."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from agents_admin.text import clean
from runtime.ports import NOTHING_FOUND, Call, Passage, Ports, Source, ToolResult
from runtime.spec import MemorySpec

_MAX_QUERY = 2_000
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "The question, or the words to look for."}},
    "required": ["query"],
    "additionalProperties": False,
}


def build_search(memory: MemorySpec, ports: Ports) -> tuple[Mapping[str, object], Call]:
    """One parameter, `query`. What is found comes best first; finding nothing is an answer, not a failure."""

    async def call(arguments: Mapping[str, object], call_id: UUID) -> ToolResult:
        query = clean(str(arguments["query"])).strip()[:_MAX_QUERY]
        if not query:
            return ToolResult("Say in `query` what to look for.", False, "invalid")
        passages = await ports.search(memory.id, query)
        if not passages:
            return ToolResult(f"{NOTHING_FOUND} about this in {memory.label}.")
        return ToolResult(_told(memory.label, passages), sources=_sources(passages))

    return _SCHEMA, call


def _told(label: str, passages: Sequence[Passage]) -> str:
    return "\n\n".join([f"Found in {label}:", *(_quoted(place, found) for place, found in enumerate(passages, 1))])


def _quoted(place: int, found: Passage) -> str:
    under = f" (under: {clean(found.heading)})" if found.heading else ""
    return f'[{place}] {clean(found.document)}, passage {found.number}: "{clean(found.text).strip()}"{under}'


def _sources(passages: Sequence[Passage]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(Source(found.memory, found.document, found.number) for found in passages))
