"""Looking into a memory, for the runs of this process (runtime.ports.SearchMemory)."""

from agents_admin.search_memory import SEARCH_SQL, parameters
from runtime import store
from runtime.ports import Passage


async def search(memory_id: int, query: str) -> list[Passage]:
    """The best passages first; empty when nothing is relevant."""
    rows = await store.fetch_patiently(SEARCH_SQL, parameters(memory_id, query))
    return [Passage(**row) for row in rows]
