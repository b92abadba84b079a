"""What was said in a thread, as its agent's model reads it again: messages, and handoffs as the pairs they were."""

from collections.abc import Sequence
from uuid import UUID

from agents_admin.text import BadJson, read_json
from runtime import store
from runtime.ports import PastCall, Turn
from runtime.store import Row

HANDOFF_CHARS = 4_000
"""How much of what a delegate handed back is shown again."""

_CONVERSATION = """
SELECT * FROM (
    SELECT m.role, m.text, m.created_at, m.n, m.run_id, ARRAY(
        SELECT jsonb_build_object('id', c.id, 'name', c.name, 'arguments', c.arguments, 'ok', c.state = 'done',
                                  'content', left(c.content, %(handoff)s))
        FROM runtime_toolcall c
        WHERE m.role = 'user' AND c.run_id = m.run_id AND c.kind = 'delegate' AND c.state IN ('done', 'failed')
        ORDER BY c.n
    ) AS handoffs
    FROM runtime_message m
    WHERE m.thread_id = %(thread)s AND m.complete AND m.text <> '' AND m.created_at < %(before)s
    ORDER BY m.created_at DESC, m.n DESC LIMIT %(limit)s
) AS latest ORDER BY created_at, n
"""


async def conversation(thread: UUID, messages: int) -> list[Turn]:
    """The last so many messages of a thread. Only handoffs are replayed: a delegate's own calls are its own."""
    return await _turns(thread, messages, "infinity")


async def conversation_before(run: Row, messages: int) -> list[Turn]:
    """The same for a run that goes on: what was said before its own message."""
    return await _turns(run["thread_id"], messages, run["created_at"])


async def _turns(thread: UUID, messages: int, before: object) -> list[Turn]:
    values = {"thread": thread, "limit": messages, "before": before, "handoff": HANDOFF_CHARS}
    return [turn for row in await store.fetch(_CONVERSATION, values) for turn in _with_handoffs(row)]


def _with_handoffs(row: Row) -> Sequence[Turn]:
    """A person's message, then the pairs of what was handed over to answer it."""
    turns = [Turn(row["role"], row["text"])]
    for handoff in row["handoffs"]:
        call = PastCall(handoff["id"], handoff["name"], _arguments(handoff["arguments"]))
        turns += [Turn("assistant", "", (call,)), Turn("tool", handoff["content"], (call,), handoff["ok"])]
    return turns


def _arguments(text: str) -> dict[str, object]:
    try:
        value = read_json(text)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}
