"""A person decides about a call that acts and may or may not have acted: “it happened”, or “do it again”."""

from typing import Literal
from uuid import UUID

from agents_admin.actor import Actor
from runtime import events, rights, store
from runtime.errors import RunError
from runtime.project import Statement
from runtime.run import past
from runtime.runner import runner
from runtime.store import Row
from runtime.takeover import append, take_over

type Decision = Literal["happened", "again"]
DECISIONS: dict[str, Decision] = {"happened": "happened", "again": "again"}
"""By what a form sends."""
UNSAID = "Say whether it happened or is to be done again."

_WAITS = f"""
SELECT r.*, (SELECT u.username FROM auth_user u WHERE u.id = %(user)s::int) AS decider FROM runtime_run r
WHERE r.id = %(run)s AND r.depth = 0 AND r.status = 'needs_review' AND ({rights.owned("r")} OR %(anybodys)s)
"""
_THERE = f"SELECT 1 FROM runtime_run r WHERE r.id = %(run)s AND r.depth = 0 AND ({rights.owned('r')} OR %(anybodys)s)"
_DECIDED = "UPDATE runtime_toolcall SET state = %s WHERE id = %s AND state = 'unknown'"
_NEXT = "UPDATE runtime_run SET epoch = epoch + 1 WHERE id = %s"
"""Whoever decided at once about the same state of things has to look again."""
_GO_ON = """
UPDATE runtime_run SET status = 'running', attempts = attempts - 1, lease_until = now() - interval '1 second'
WHERE id = %s AND status = 'needs_review'
"""


async def review(actor: Actor, run: UUID, call: UUID, decision: Decision, *, anybodys: bool = False) -> None:
    """Decide about one call; with the last one decided the run goes on at once.

    Raises RunError: `not_found` when the run isn't the actor's, `decided` when it doesn't wait for this decision (any
    more): of two people who decide at once only one does; `forbidden` for visitors of a widget. `anybodys` is for
    administrators, whose right the admin has checked.
    """
    if actor.widget_id is not None:
        raise RunError("forbidden", "A person who works here has to decide about this.")
    values = rights.parameters(actor) | {"run": run, "anybodys": anybodys}
    while (left := await _noted(call, decision, values)) is None:
        # Somebody else decided meanwhile, and may have found the run locked by this try when it was to go on.
        await take_over(runner())
    if not left:
        await take_over(runner())


async def _noted(call: UUID, decision: Decision, values: Row) -> int | None:
    """How many steps still wait; None when the run was changed since it was read, and nothing was noted."""
    found = await store.fetch(_WAITS, values)
    if not found:
        there = await store.fetch(_THERE, values)
        raise _decided() if there else RunError("not_found", "There is no such run.")
    row = found[0]
    log = await store.load_log(row["id"])
    waiting = {key: of for of, key in past.uncertain(past.fold(log))}
    if call not in waiting:
        raise _decided()
    of = waiting.pop(call)
    then: list[Statement] = [(_NEXT, (row["id"],)), (_DECIDED, ("done" if decision == "happened" else "started", call))]
    if not waiting:
        then.append((_GO_ON, (row["id"],)))
    decided = events.ApprovalDecided(of, call, approved=decision == "again", by=row["decider"])
    return len(waiting) if await append(row, log, [decided], then) else None


def _decided() -> RunError:
    return RunError("decided", "This step waits for no decision any more: it was decided, or stopped.")
