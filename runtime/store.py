"""The psycopg pool of the hot paths and the SQL that we write by hand for what happened.

The pool sees committed rows only; tests of runs need real transactions. One pool per event loop, at most 8 connections.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import orjson
from django.db import connections
from psycopg import AsyncConnection, InterfaceError, OperationalError
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool

from runtime import event_data
from runtime.events import Logged, Origin

POOL_SIZE = 8
WAIT_SECONDS = 10.0
"""How long a request waits for a connection before it says that the database is away."""
RECONNECT_SECONDS = 5.0
"""How long the pool tries to connect before it waits for the next request; its pauses double."""
AWAY = (OperationalError, InterfaceError)
PATIENCE_SECONDS = 120.0
"""How long a run waits for a database that is away, before it fails."""
RETRY_SECONDS = (0.1, 0.5, 1.0, 2.0)
type Row = dict[str, Any]
type Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()

set_json_dumps(lambda value: orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
set_json_loads(orjson.loads)


def connection_parameters() -> dict[str, Any]:
    """How to reach the database that Django uses, for a connection of our own (no Django cursors, no ORM pool)."""
    parameters = dict(connections["default"].get_connection_params())
    for name in ("cursor_factory", "context", "prepare_threshold", "server_side_binding", "pool", "assume_role"):
        parameters.pop(name, None)
    return parameters


async def pool() -> Pool:
    """This event loop's pool, opened on first use."""
    loop = asyncio.get_running_loop()
    found = _pools.get(loop)
    if found is None:
        found = _pools[loop] = AsyncConnectionPool(
            kwargs=connection_parameters() | {"autocommit": True, "row_factory": dict_row},
            min_size=1,
            max_size=POOL_SIZE,
            timeout=WAIT_SECONDS,
            reconnect_timeout=RECONNECT_SECONDS,
            open=False,
            check=None,
        )
        await found.open()
    return found


async def drop_broken() -> None:
    """After the database was away: replace the connections that broke meanwhile."""
    # Shielded: the pool takes a cancellation for a broken connection, and goes on.
    await asyncio.shield((await pool()).check())


async def close() -> None:
    """Close this loop's pool, if it has one."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.close()


@asynccontextmanager
async def connection() -> AsyncIterator[AsyncConnection[DictRow]]:
    async with (await pool()).connection() as found:
        try:
            yield found
        except asyncio.CancelledError:
            # One that stays in pipeline mode would take statements and answer with nothing.
            state = found.pgconn
            if state.pipeline_status != PipelineStatus.OFF or state.transaction_status != TransactionStatus.IDLE:
                await found.close()
            raise


async def fetch(sql: str, parameters: Sequence[object] | Row = ()) -> list[Row]:
    """The rows of one statement, committed by itself."""
    async with connection() as found:
        cursor = await found.execute(sql, parameters)
        return await cursor.fetchall() if cursor.description else []


async def fetch_patiently(sql: str, parameters: Row) -> list[Row]:
    """The same for a statement that only reads, inside a run: it outlasts a restart of the database."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_SECONDS
    for failures in count():
        try:
            return await fetch(sql, parameters)
        except AWAY:
            if loop.time() > until:
                raise
        await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
    raise AssertionError("count() does not end")


async def fetch_together(statements: Sequence[str], parameters: Row) -> list[list[Row]]:
    """The rows of several statements, sent in one round trip."""
    async with connection() as found, found.pipeline():
        cursors = [await found.execute(sql, parameters) for sql in statements]
        return [await cursor.fetchall() for cursor in cursors]


_LOG = """
SELECT e.n, e.at, e.kind, e.data,
       r.id, r.root_id, r.agent_label, r.agent_slug, r.parent_id, r.parent_call, r.depth, r.view,
       c.id AS c_id, c.agent_label AS c_label, c.agent_slug AS c_slug, c.parent_call AS c_call, c.depth AS c_depth,
       c.view AS c_view
FROM runtime_event e
JOIN runtime_run r ON r.id = e.run_id
LEFT JOIN runtime_run c ON e.kind = 'DelegateStarted' AND c.id = (e.data ->> 'child')::uuid
WHERE e.root_id = %s AND e.n > %s
ORDER BY e.n
LIMIT %s
"""


async def load_log(root: UUID, after: int = 0, limit: int | None = None) -> list[Logged]:
    """The events of a root run with a number greater than `after`, from the table."""
    return logged_from(await fetch(_LOG, (root, after, limit)))


def logged_from(rows: Sequence[Row]) -> list[Logged]:
    origins: dict[UUID, Origin] = {}
    return [_logged(row, origins) for row in rows]


def _logged(row: Row, origins: dict[UUID, Origin]) -> Logged:
    of = origins.get(row["id"])
    if of is None:
        of = origins[row["id"]] = origin_of(row)
    child = _child_origin(row, of) if row["c_id"] else None
    return Logged(row["n"], row["at"], event_data.load(row["kind"], of, row["data"], child))


def origin_of(row: Mapping[str, Any]) -> Origin:
    """What events say of the run whose row this is."""
    return Origin(
        run=row["id"],
        root=row["root_id"],
        agent=row["agent_label"],
        slug=row["agent_slug"],
        parent=row["parent_id"],
        parent_call=row["parent_call"],
        depth=row["depth"],
        view=row["view"],
    )


def _child_origin(row: Row, parent: Origin) -> Origin:
    return Origin(
        run=row["c_id"],
        root=parent.root,
        agent=row["c_label"],
        slug=row["c_slug"],
        parent=parent.run,
        parent_call=row["c_call"],
        depth=row["c_depth"],
        view=row["c_view"],
    )
