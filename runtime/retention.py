"""What becomes of finished runs with time: their logs are collapsed, then dropped; runs go when the settings say so.

In batches of runs, each one statement and short; several workers may do it at once.
"""

from time import monotonic

from django.conf import settings

from runtime import store

BATCH = 50
PATIENCE_SECONDS = 10.0
"""How long one call tidies up: the rest is for the next minute."""

# Parameters: how long after the end, and how many runs. Runs that wait for a person have no end.
_OLD = """
WITH old AS (
    SELECT id FROM runtime_run
    WHERE depth = 0 AND log_state IN ({states}) AND finished_at < now() - %s * interval '1 {unit}'
    LIMIT %s FOR UPDATE SKIP LOCKED
)"""
_COLLAPSE = f"""{_OLD.format(states="'whole'", unit="hour")}, texts AS (
    SELECT e.root_id, e.kind, e.data ->> 'message' AS message, min(e.n) AS first, max(e.n) AS last, count(*) AS pieces,
           string_agg(e.data ->> 'text', '' ORDER BY e.n) AS text
    FROM runtime_event e JOIN old ON e.root_id = old.id
    WHERE e.kind IN ('MessageText', 'ReasoningText')
    GROUP BY e.root_id, e.kind, e.data ->> 'message'
), whole AS (
    UPDATE runtime_event e SET data = jsonb_build_object('message', t.message, 'text', t.text, 'first', t.first)
    FROM texts t WHERE e.root_id = t.root_id AND e.n = t.last AND t.pieces > 1
), pieces AS (
    DELETE FROM runtime_event e USING texts t
    WHERE e.root_id = t.root_id AND e.kind = t.kind AND e.data ->> 'message' = t.message AND e.n < t.last
)
UPDATE runtime_run r SET log_state = 'collapsed' FROM old WHERE r.id = old.id RETURNING r.id
"""
_DROP_LOGS = f"""{_OLD.format(states="'whole', 'collapsed'", unit="day")}, events AS (
    DELETE FROM runtime_event e USING old WHERE e.root_id = old.id
)
UPDATE runtime_run r SET log_state = 'gone' FROM old WHERE r.id = old.id RETURNING r.id
"""
_DROP_RUNS = f"""{_OLD.format(states="'whole', 'collapsed', 'gone'", unit="day")}, tree AS (
    SELECT r.id FROM runtime_run r JOIN old ON r.root_id = old.id
), events AS (
    DELETE FROM runtime_event e USING old WHERE e.root_id = old.id
), calls AS (
    DELETE FROM runtime_toolcall c USING tree WHERE c.run_id = tree.id
), messages AS (
    DELETE FROM runtime_message m USING tree WHERE m.run_id = tree.id
)
DELETE FROM runtime_run r USING tree WHERE r.id = tree.id RETURNING r.id, r.root_id, r.thread_id
"""
_DROP_EMPTY_THREADS = """
DELETE FROM runtime_thread t WHERE t.id = ANY(%s::uuid[])
AND NOT EXISTS (SELECT FROM runtime_run r WHERE r.thread_id = t.id)
AND NOT EXISTS (SELECT FROM runtime_message m WHERE m.thread_id = t.id)
"""


async def tidy() -> None:
    """Do what the settings say, for PATIENCE_SECONDS at most. A setting of 0: never."""
    until = monotonic() + PATIENCE_SECONDS
    if settings.RUNS_KEEP_DAYS:
        while monotonic() < until and await _drop_runs():
            pass
    if settings.EVENTS_KEEP_DAYS:
        await _each_batch(_DROP_LOGS, settings.EVENTS_KEEP_DAYS, until)
    if settings.EVENTS_COLLAPSE_HOURS:
        await _each_batch(_COLLAPSE, settings.EVENTS_COLLAPSE_HOURS, until)


async def _each_batch(statement: str, age: int, until: float) -> None:
    while monotonic() < until and len(await store.fetch(statement, (age, BATCH))) == BATCH:
        pass


async def _drop_runs() -> bool:
    """One batch of runs with everything of theirs; whether there may be more."""
    dropped = await store.fetch(_DROP_RUNS, (settings.RUNS_KEEP_DAYS, BATCH))
    await store.fetch(_DROP_EMPTY_THREADS, (list({row["thread_id"] for row in dropped}),))
    return len({row["root_id"] for row in dropped}) == BATCH
