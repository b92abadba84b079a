"""A person decides about a call that acts and may or may not have acted: “it happened”, or “do it again”."""

from typing import Literal
from uuid import UUID

from agents_admin.actor import Actor
from runtime import events, rights, store
from runtime.errors import RunError
from runtime.events import Event
from runtime.run import past
from runtime.runner import runner
from runtime.store import Row
from runtime.takeover import append, take_over

type Decision = Literal["happened", "again"]

CONFIRMED = "A person confirmed that this was done."

_TAKE = f"""
UPDATE runtime_run r SET epoch = epoch + 1
WHERE r.id = %(run)s AND r.depth = 0 AND r.status = 'needs_review' AND ({rights.owned("r")} OR %(anybodys)s)
RETURNING *
"""
_DECIDED = "UPDATE runtime_toolcall SET state = %s WHERE id = %s AND state = 'unknown'"
_GO_ON = """
UPDATE runtime_run SET status = 'running', attempts = attempts - 1, lease_until = now() - interval '1 second'
WHERE id = %s AND status = 'needs_review' AND epoch = %s
"""


async def review(actor: Actor, run: UUID, call: UUID, decision: Decision, *, anybodys: bool = False) -> None:
    """Decide about one call; with the last one decided the run goes on at once.

    Raises RunError `not_found` when the run isn't the actor's or doesn't wait for this decision: a second one about
    the same call changes nothing. `anybodys` is for administrators, whose right the admin has checked.
    """
    taken = await store.fetch(_TAKE, rights.parameters(actor) | {"run": run, "anybodys": anybodys})
    if not taken:
        raise RunError("not_found", "There is no such run, or it waits for nobody.")
    row = taken[0]
    log = await store.load_log(run)
    waiting = {key: of for of, key in past.uncertain(past.fold(log))}
    if call not in waiting:
        raise RunError("not_found", "This call waits for no decision.")
    of = waiting.pop(call)
    decided: Event = events.ApprovalDecided(of, call, approved=True)
    if decision == "happened":
        decided = events.ToolReturned(of, call, ok=True, content=CONFIRMED)
    await append(row, log, [decided])
    await store.fetch(_DECIDED, ("done" if decision == "happened" else "started", call))
    if not waiting:
        await _go_on(row)


async def _go_on(row: Row) -> None:
    await store.fetch(_GO_ON, (row["id"], row["epoch"]))
    await take_over(runner())
