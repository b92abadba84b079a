"""Start, stop, await and follow runs: the one way in for chat, widget, API and terminal."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID, uuid4

from psycopg.errors import ForeignKeyViolation, UniqueViolation
from psycopg.types.json import Jsonb

from agents_admin.actor import Actor
from agents_admin.text import clean
from runtime import crash, rights, store
from runtime.errors import RunError
from runtime.events import WAITING, Logged, Origin, ends, pauses
from runtime.hub import CANCEL, rung
from runtime.past_turns import conversation
from runtime.ports import Ports, Turn
from runtime.record import Log
from runtime.resolve import may_call, resolve
from runtime.retold import load_log
from runtime.run import run
from runtime.runner import LEASE_SECONDS, runner
from runtime.search import search
from runtime.spec import RuntimeAgent
from runtime.store import Row
from runtime.takeover import take_over

MAX_INPUT_CHARS = 100_000
HEARTBEAT_SECONDS = 5.0

_THREAD = f"""
SELECT t.agent_id, (
    SELECT r.status FROM runtime_run r WHERE r.thread_id = t.id AND r.depth = 0
    AND r.status IN ('queued', 'running', 'waiting_approval', 'needs_review')) AS open
FROM runtime_thread t WHERE t.id = %(thread)s AND {rights.owned("t")}
"""
_REPEATED = "SELECT id, thread_id, idempotency_hash FROM runtime_run WHERE user_id = %s AND idempotency_key = %s"
_BEGIN = """
WITH thread AS (
    INSERT INTO runtime_thread (id, agent_id, agent_slug, agent_label, title, channel, user_id, widget_id, visitor)
    SELECT %(thread)s, %(agent)s, %(slug)s, %(label)s, %(title)s, %(channel)s, %(user)s, %(widget)s, %(visitor)s
    WHERE %(new)s
), begun AS (
    INSERT INTO runtime_run (id, root_id, depth, thread_id, agent_id, agent_slug, agent_label, view, channel,
        api_key_id, status, reason, error, detail, input, output, metadata, input_tokens, output_tokens, omitted,
        idempotency_key, idempotency_hash, epoch, attempts, owner_process, lease_until, cancel_requested, user_id,
        widget_id, visitor)
    VALUES (%(run)s, %(run)s, 0, %(thread)s, %(agent)s, %(slug)s, %(label)s, %(view)s, %(channel)s, %(key)s,
        'queued', '', '', '', %(text)s, '', %(metadata)s, 0, 0, %(omitted)s, %(idempotency_key)s,
        %(idempotency_hash)s, 0, 1, %(process)s, now() + make_interval(secs => %(lease)s), false, %(user)s, %(widget)s,
        %(visitor)s)
)
INSERT INTO runtime_message (id, thread_id, run_id, role, text, complete, n)
VALUES (%(message)s, %(thread)s, %(run)s, 'user', %(text)s, true, 0)
"""
# A run that waits for a person is nobody's: it is left to be claimed, and ended by who claims it.
_CANCEL = f"""
WITH mine AS (
    SELECT r.id, r.status IN ('waiting_approval', 'needs_review') AS waits FROM runtime_run r
    WHERE r.id = %(run)s AND r.depth = 0 AND {rights.owned("r")} FOR UPDATE
), stopped AS (
    UPDATE runtime_run r SET cancel_requested = true,
        status = CASE WHEN waits THEN 'running' ELSE r.status END,
        lease_until = CASE WHEN waits THEN now() - interval '1 second' ELSE r.lease_until END
    FROM mine WHERE r.id = mine.id
    RETURNING r.id, waits
)
SELECT waits, pg_notify('{CANCEL}', id::text) FROM stopped
"""
_OWNED = f"SELECT r.thread_id FROM runtime_run r WHERE r.id = %(run)s AND r.depth = 0 AND {rights.owned('r')}"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of an agent (its slug). `thread` None: a new one.

    `run`: under which id it is stored. The same id again is the same request, sent once more.
    """

    agent: str
    text: str
    thread: UUID | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    idempotency_key: str | None = None
    idempotency_hash: str = ""
    run: UUID | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """`created` is false when an earlier request with the same idempotency key or run id had started the run."""

    run: UUID
    thread: UUID
    created: bool = True


async def start(actor: Actor, request: Request) -> Started:
    """Accept a message: the run is stored before this returns, and goes on whatever becomes of the caller.

    Raises RunError: `not_found` (agent, thread), `invalid` (input, thread of another agent), `run_in_progress`,
    `idempotency_conflict`, `unavailable`.
    """
    text = _checked_text(request.text)
    repeated = await _repeated(actor, request) if request.idempotency_key else None
    if repeated:
        return repeated
    try:
        world = await resolve(request.agent, actor)
        turns = [*await _conversation(actor, request, world), Turn("user", text)]
        # A caller who leaves in the middle of this would leave a run behind that nobody works for.
        return await asyncio.shield(_accept(actor, request, world, turns))
    except RunError as refused:  # what is in the way may be this very request, stored meanwhile
        repeated = await _repeated(actor, request) if refused.code == "run_in_progress" else None
        if repeated is None:
            raise
        return repeated


async def _accept(actor: Actor, request: Request, world: RuntimeAgent, turns: list[Turn]) -> Started:
    run_id, thread = request.run or uuid4(), request.thread or uuid4()
    values = _begin_values(actor, request, world, turns[-1].text) | {"run": run_id, "thread": thread}
    try:
        await store.fetch(_BEGIN, values)
    except UniqueViolation as error:
        if error.diag.constraint_name == "run_one_open_per_thread":
            raise _in_progress() from None
        repeated = await _repeated(actor, request)
        if repeated is None and request.run is not None:  # somebody else's
            return await _accept(actor, replace(request, run=None), world, turns)
        if repeated is None:
            raise
        return repeated
    except ForeignKeyViolation:
        raise RunError("not_found", "The agent or the conversation was deleted just now.") from None
    crash.point("run-stored")
    _launch(actor, world, run_id, turns)
    return Started(run_id, thread)


async def cancel(actor: Actor, run_id: UUID) -> None:
    """Ask a run to stop, wherever it runs; stopping a finished run does nothing. Raises RunError `not_found`."""
    values = rights.parameters(actor) | {"run": run_id}
    stopped = await store.fetch(_CANCEL, values)
    if not stopped:
        raise RunError("not_found", "There is no such run.")
    crash.point("stop-stored")
    runner().cancel(run_id)
    if stopped[0]["waits"]:
        await take_over(runner())


async def wait(run_id: UUID, seconds: float) -> bool:
    """Whether the run has ended within so many seconds, and its rows say so; one that waits for a person has not."""
    async for batch in follow(run_id, seconds=seconds):
        if batch and (ends(batch[-1].event) or pauses(batch[-1].event)):
            return ends(batch[-1].event)
    return False


async def follow(root: UUID, after: int = 0, *, seconds: float | None = None) -> AsyncGenerator[list[Logged]]:
    """The events of a run above `after`, as they come; ends after the terminal one, or after so many seconds.

    An empty batch comes at least every HEARTBEAT_SECONDS, so that the reader can look after its own connection.
    """
    loop = asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    log: Log | None = None
    with runner().hub.watch(root) as bell:
        while True:
            bell.clear()
            # The log of a run that ended here is let go of, but says the same as its rows.
            log = runner().log(root) or (log if log and log.ended and not log.lost else None)
            batch = log.since(after) if log else await load_log(root, after)
            after = batch[-1].n if batch else after
            yield batch
            if batch and ends(batch[-1].event):
                return
            pause = HEARTBEAT_SECONDS if until is None else min(HEARTBEAT_SECONDS, until - loop.time())
            if pause <= 0:
                return
            await (log.changed(after, pause) if log else rung(bell, pause))


async def until_pause(root: UUID, seen: int = 0) -> AsyncGenerator[list[Logged]]:
    """The whole log, as it comes, up to the first pause above `seen`, or to the end. Batches as those of `follow`."""
    async with aclosing(follow(root)) as batches:
        async for batch in batches:
            pause = next((place for place, one in enumerate(batch, 1) if one.n > seen and pauses(one.event)), None)
            yield batch[:pause]
            if pause is not None:
                return


async def owned_thread(actor: Actor, run_id: UUID) -> UUID:
    """The thread of a root run that is the actor's. Raises RunError `not_found`: not theirs is not there."""
    rows = await store.fetch(_OWNED, rights.parameters(actor) | {"run": run_id})
    if not rows:
        raise RunError("not_found", "There is no such run.")
    return UUID(str(rows[0]["thread_id"]))


def _launch(actor: Actor, world: RuntimeAgent, run_id: UUID, turns: list[Turn]) -> None:
    here = runner()
    log = here.writer.open(run_id, 0)
    origin = Origin(run_id, run_id, world.root.label, world.root.slug, view=world.root.view)
    here.launch(run_id, run(world, origin, turns, _ports(actor, log)))


def _ports(actor: Actor, log: Log) -> Ports:
    return Ports(log=log, may_call=partial(may_call, actor), search=search, http=runner().http)


def _checked_text(raw: str) -> str:
    text = clean(raw)
    if not text.strip():
        raise RunError("invalid", "Write a message first.", "input")
    if len(text) > MAX_INPUT_CHARS:
        raise RunError(
            "invalid",
            f"The message has {len(text):,} characters; {MAX_INPUT_CHARS:,} are allowed. Shorten it.",
            "input",
        )
    return text


async def _repeated(actor: Actor, request: Request) -> Started | None:
    if request.run is not None:
        own = await store.fetch(_OWNED, rights.parameters(actor) | {"run": request.run})
        return Started(request.run, own[0]["thread_id"], created=False) if own else None
    if request.idempotency_key is None:
        return None
    rows = await store.fetch(_REPEATED, (actor.user_id, request.idempotency_key))
    if not rows:
        return None
    if rows[0]["idempotency_hash"] != request.idempotency_hash:
        raise RunError("idempotency_conflict", "This Idempotency-Key was used for another request. Use a new one.")
    return Started(rows[0]["id"], rows[0]["thread_id"], created=False)


async def _conversation(actor: Actor, request: Request, world: RuntimeAgent) -> list[Turn]:
    if request.thread is None:
        return []
    found = await store.fetch(_THREAD, rights.parameters(actor) | {"thread": request.thread})
    if not found:
        raise RunError("not_found", "There is no such thread.", "thread")
    if found[0]["agent_id"] != world.root_id:
        raise RunError("invalid", "This thread belongs to another agent.", "thread")
    if found[0]["open"]:
        raise _in_progress(found[0]["open"])
    return await conversation(request.thread, world.root.history_messages)


def _in_progress(status: str = "running") -> RunError:
    words = "An answer is still being written. Wait for it, or stop it first."
    if status in WAITING:
        words = "A step of the last answer waits for a person to decide about it. Decide first, or stop that answer."
    return RunError("run_in_progress", words, "thread")


def _begin_values(actor: Actor, request: Request, world: RuntimeAgent, text: str) -> Row:
    root = world.root
    return {
        "new": request.thread is None,
        "message": uuid4(),
        "agent": root.id,
        "slug": root.slug,
        "label": root.label,
        "view": root.view,
        "title": " ".join(text.split())[:80],
        "text": text,
        "channel": actor.channel,
        "user": actor.user_id,
        "key": actor.key_id,
        "widget": actor.widget_id,
        "visitor": actor.visitor,
        "metadata": Jsonb(dict(request.metadata)),
        "omitted": Jsonb([[one.agent, one.what, one.why] for one in world.omitted]),
        "idempotency_key": request.idempotency_key,
        "idempotency_hash": request.idempotency_hash,
        "process": runner().process,
        "lease": LEASE_SECONDS,
    }
