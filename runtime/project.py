"""What a batch of events changes: the log itself, and its projections Run, Message and ToolCall.

All statements of a batch are one transaction, sent as one pipeline: two round trips, whatever the number of runs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from runtime import event_data, events, store
from runtime.events import Logged, Origin

type Numbered = tuple[UUID, Logged]
type Statement = tuple[str, Sequence[object]]
type Values = list[tuple[object, ...]]

_OWN = """
SELECT r.id FROM runtime_run r JOIN unnest(%s::uuid[], %s::int[]) AS o(id, epoch) USING (id, epoch)
ORDER BY r.id FOR NO KEY UPDATE OF r
"""
"""The runs that are still this owner's. Locked, so that nobody takes one over before the batch is committed."""
_KEPT = """
SELECT r.id, coalesce(max(e.n), 0) AS n
FROM unnest(%s::uuid[], %s::int[]) AS o(id, epoch)
JOIN runtime_run r USING (id, epoch) LEFT JOIN runtime_event e ON e.root_id = r.id
GROUP BY r.id
"""
_INSERT_EVENTS = """
WITH written AS (
    INSERT INTO runtime_event (root_id, n, run_id, kind, data, at)
    SELECT * FROM unnest(%s::uuid[], %s::int[], %s::uuid[], %s::text[], %s::jsonb[], %s::timestamptz[])
    RETURNING root_id
)
SELECT pg_notify('roster_events', root_id::text) FROM (SELECT DISTINCT root_id FROM written) AS roots
"""
_INSERT_CHILDREN = """
INSERT INTO runtime_run (id, root_id, parent_id, parent_call, depth, thread_id, agent_id, agent_slug, agent_label, view,
                         channel, status, reason, error, detail, input, output, metadata, input_tokens, output_tokens,
                         omitted, idempotency_hash, cancel_requested, epoch, attempts, created_at, user_id, widget_id,
                         visitor)
SELECT c.id, root.id, c.parent, c.call, c.depth, root.thread_id, agent.id, c.slug, c.label, c.view,
       root.channel, 'queued', '', '', '', c.task, '', '{}', 0, 0, '[]', '', false, 0, 0, c.at,
       root.user_id, root.widget_id, root.visitor
FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[], %s::int[], %s::text[], %s::text[], %s::text[], %s::text[],
            %s::timestamptz[])
     AS c(id, root, parent, call, depth, slug, label, view, task, at)
JOIN runtime_run root ON root.id = c.root
LEFT JOIN agents_admin_agent agent ON agent.slug = c.slug
ON CONFLICT DO NOTHING
"""
_UPDATE_RUNS = """
UPDATE runtime_run r SET
    status = coalesce(u.status, r.status),
    started_at = coalesce(u.started_at, r.started_at),
    finished_at = coalesce(u.finished_at, r.finished_at),
    input_tokens = least(r.input_tokens + u.input_tokens, 2147483647),
    output_tokens = least(r.output_tokens + u.output_tokens, 2147483647),
    output = coalesce(u.output, r.output),
    reason = coalesce(u.reason, r.reason),
    error = coalesce(u.error, r.error),
    detail = coalesce(u.detail, r.detail),
    lease_until = CASE WHEN u.status = 'running' OR u.status IS NULL THEN r.lease_until END,
    owner_process = CASE WHEN u.paused THEN NULL ELSE r.owner_process END
FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[], %s::timestamptz[], %s::int8[], %s::int8[], %s::text[],
            %s::text[], %s::text[], %s::text[], %s::bool[])
     AS u(id, status, started_at, finished_at, input_tokens, output_tokens, output, reason, error, detail, paused)
WHERE r.id = u.id
"""
"""One new version of a row, whatever happened to it. The most tokens is what the columns hold: a model server may say
anything."""
_WAIT_FOR_DECISIONS = """
UPDATE runtime_toolcall SET state = 'unknown' WHERE id = ANY(%s::uuid[]) AND state = 'started' AND side_effect = 'acts'
"""
_SAY = """
INSERT INTO runtime_message (id, thread_id, run_id, role, text, complete, n, created_at)
SELECT said.id, run.thread_id, run.id, 'assistant', said.text, said.complete, said.n, said.at
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::bool[], %s::int[], %s::timestamptz[])
     AS said(id, run, text, complete, n, at)
JOIN runtime_run run ON run.id = said.run
ON CONFLICT DO NOTHING
"""
_TOUCH_THREADS = """
UPDATE runtime_thread SET updated_at = now()
WHERE id IN (SELECT thread_id FROM runtime_run WHERE id = ANY(%s::uuid[]))
"""
_START_CALLS = """
INSERT INTO runtime_toolcall (id, run_id, name, label, kind, side_effect, arguments, state, reason, content, n,
                              created_at)
SELECT c.id, c.run, c.name, c.label, c.kind, c.side_effect, c.arguments, 'started', '', '', c.n, c.at
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::int[],
            %s::timestamptz[])
     AS c(id, run, name, label, kind, side_effect, arguments, n, at)
ON CONFLICT DO NOTHING
"""
_END_CALLS = """
UPDATE runtime_toolcall
SET state = CASE WHEN side_effect = 'acts' AND e.reason IN ('timeout', 'unsure', 'cancelled')
            THEN 'unknown' ELSE e.state END,
    reason = e.reason, content = e.content, seconds = e.seconds
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::float8[]) AS e(id, state, reason, content, seconds)
WHERE runtime_toolcall.id = e.id
"""
_NAME_CHILDREN = """
UPDATE runtime_toolcall SET child_run = c.child FROM unnest(%s::uuid[], %s::uuid[]) AS c(id, child)
WHERE runtime_toolcall.id = c.id
"""
_ORDER = (
    _INSERT_CHILDREN,
    _INSERT_EVENTS,
    _UPDATE_RUNS,
    _START_CALLS,
    _NAME_CHILDREN,
    _END_CALLS,
    _SAY,
    _WAIT_FOR_DECISIONS,
    _TOUCH_THREADS,
)

_WAITING = {"needs_review": "needs_review", "approval": "waiting_approval"}
"""The status of a run by the reason why it is paused."""


@dataclass(slots=True)
class RunChange:
    """What becomes of the row of a run, in the order of `_UPDATE_RUNS`; None leaves a column as it is."""

    status: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    output: str | None = None
    reason: str | None = None
    error: str | None = None
    detail: str | None = None
    paused: bool = False

    def finish(self, event: events.RunFinished, at: datetime) -> None:
        self.status, self.reason, self.error, self.detail = event.status, event.reason, event.error, event.detail
        self.finished_at = at


@dataclass(slots=True)
class Changes:
    """The rows of each statement, in the order in which the statements must run."""

    rows: dict[str, Values] = field(default_factory=lambda: defaultdict(list))
    runs: dict[UUID, RunChange] = field(default_factory=lambda: defaultdict(RunChange))
    arguments: dict[UUID, str] = field(default_factory=dict)

    def add(self, root: UUID, logged: Logged) -> None:
        event = logged.event
        self.rows[_INSERT_EVENTS].append(
            (root, logged.n, event.of.run, type(event).__name__, Jsonb(event_data.dump(event)), logged.at)
        )
        self._project(logged, event.of)

    def _project(self, logged: Logged, of: Origin) -> None:
        match logged.event:
            case events.RunStarted():
                self.runs[of.run].status, self.runs[of.run].started_at = "running", logged.at
            case events.RunFinished() as finished:
                self.runs[of.run].finish(finished, logged.at)
                if of.depth == 0:
                    self.rows[_TOUCH_THREADS].append((of.run,))
            case events.RunPaused(reason=reason) if of.depth == 0:
                self.runs[of.run].status, self.runs[of.run].paused = _WAITING[reason], True
            case events.MessageFinished(message=message, text=text, complete=complete):
                self.runs[of.run].output = text
                if of.depth == 0:
                    self.rows[_SAY].append((message, of.run, text, complete, logged.n, logged.at))
            case events.Usage(input_tokens=sent, output_tokens=got):
                self.runs[of.run].input_tokens += sent
                self.runs[of.run].output_tokens += got
            case _:
                self._project_call(logged, of)

    def _project_call(self, logged: Logged, of: Origin) -> None:
        match logged.event:
            case events.ToolArguments(call=call, text=text):
                self.arguments[call] = text
            case events.ToolCalled(call=call, name=name, label=label, kind=kind, side_effect=effect):
                self.rows[_START_CALLS].append((call, of.run, name, label, kind, effect, "", logged.n, logged.at))
            case events.DelegateStarted(call=call, child=child, task=task):
                self.rows[_INSERT_CHILDREN].append(
                    (
                        child.run,
                        of.root,
                        of.run,
                        call,
                        child.depth,
                        child.slug,
                        child.agent,
                        child.view,
                        task,
                        logged.at,
                    )
                )
                self.rows[_NAME_CHILDREN].append((call, child.run))
            case events.ApprovalAsked(call=call):
                self.rows[_WAIT_FOR_DECISIONS].append((call,))
            case events.ToolReturned(call=call, ok=ok, reason=reason, content=content, seconds=seconds):
                state = "done" if ok else "failed"
                self.rows[_END_CALLS].append((call, state, reason, content, seconds))

    def statements(self) -> list[tuple[str, list[list[object]]]]:
        """Each statement with its columns as arrays."""
        self.rows[_UPDATE_RUNS] = [(run, *astuple(change)) for run, change in self.runs.items()]
        self.rows[_START_CALLS] = [
            (*row[:6], self.arguments.pop(row[0], ""), *row[7:])  # type: ignore[call-overload]
            for row in self.rows[_START_CALLS]
        ]
        return [
            (sql, [list(column) for column in zip(*self.rows[sql], strict=True)]) for sql in _ORDER if self.rows[sql]
        ]


async def kept(epochs: Mapping[UUID, int]) -> dict[UUID, int]:
    """The number of the last event that the database has of each run that is still owned under its epoch."""
    return {row["id"]: row["n"] for row in await store.fetch(_KEPT, (list(epochs), list(epochs.values())))}


async def write(epochs: Mapping[UUID, int], batch: Sequence[Numbered], then: Sequence[Statement] = ()) -> set[UUID]:
    """Commit these events and what they change; gives the runs that are still owned under their `epochs`.

    Nothing is written for the others: another process has taken them over. `then` belongs to the same commit.
    """
    # BEGIN goes with the question, COMMIT with the answers: two round trips.
    async with store.connection() as connection, connection.pipeline(), connection.transaction():
        cursor = await connection.execute(_OWN, (list(epochs), list(epochs.values())))
        owned = {row["id"] for row in await cursor.fetchall()}
        changes = Changes()
        for root, logged in batch:
            if root in owned:
                changes.add(root, logged)
        for sql, values in [*changes.statements(), *(then if owned else ())]:
            await connection.execute(sql, values)
    return owned
