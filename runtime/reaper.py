"""Runs whose process died: their logs are closed and they are failed, in words. Any living process may do it."""

import logging
from datetime import UTC, datetime
from uuid import UUID

from runtime import closing, project, store
from runtime.events import Logged, Origin
from runtime.store import Row

logger = logging.getLogger(__name__)

_EXPIRED = """
UPDATE runtime_run SET lease_until = now() + interval '60 seconds', owner_process = NULL
WHERE id IN (
    SELECT id FROM runtime_run WHERE depth = 0 AND status IN ('queued', 'running') AND lease_until < now()
    ORDER BY lease_until LIMIT 20 FOR UPDATE SKIP LOCKED
)
RETURNING id, agent_label, agent_slug, view
"""


async def reap() -> int:
    """Fail the runs whose lease has run out; gives their number. The lease is taken first: one process does it."""
    dead = await store.fetch(_EXPIRED)
    for row in dead:
        await _fail(row)
    return len(dead)


async def _fail(row: Row) -> None:
    root: UUID = row["id"]
    log = await store.load_log(root)
    said = [logged.event for logged in log]
    missing = (
        closing.closes(said) if said else closing.unstarted(Origin(root, root, row["agent_label"], row["agent_slug"]))
    )
    now = datetime.now(UTC)
    last = log[-1].n if log else 0
    await project.write([(root, Logged(last + place, now, event)) for place, event in enumerate(missing, 1)])
    logger.warning("Run %s was failed: its process had died", root)
