"""A person decides about a call that acts and may or may not have acted: “it happened”, or “do it again”."""

from typing import Literal
from uuid import UUID

from agents_admin.actor import Actor
from runtime import events, rights, store
from runtime.errors import RunError
from runtime.project import Statement
from runtime.run import past
from runtime.runner import runner
from runtime.takeover import append, take_over

type Decision = Literal["happened", "again"]
DECISIONS: dict[str, Decision] = {"happened": "happened", "again": "again"}
"""By what a form sends."""
UNSAID = "Say whether it happened or is to be done again."

_TAKE = f"""
UPDATE runtime_run r SET epoch = epoch + 1
WHERE r.id = %(run)s AND r.depth = 0 AND r.status = 'needs_review' AND ({rights.owned("r")} OR %(anybodys)s)
RETURNING *, (SELECT u.username FROM auth_user u WHERE u.id = %(user)s::int) AS decider
"""
_THERE = f"SELECT 1 FROM runtime_run r WHERE r.id = %(run)s AND r.depth = 0 AND ({rights.owned('r')} OR %(anybodys)s)"
_DECIDED = "UPDATE runtime_toolcall SET state = %s WHERE id = %s AND state = 'unknown'"
_GO_ON = """
UPDATE runtime_run SET status = 'running', attempts = attempts - 1, lease_until = now() - interval '1 second'
WHERE id = %s AND status = 'needs_review' AND epoch = %s
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
    taken = await store.fetch(_TAKE, values)
    if not taken:
        there = await store.fetch(_THERE, values)
        raise _decided() if there else RunError("not_found", "There is no such run.")
    row = taken[0]
    log = await store.load_log(run)
    waiting = {key: of for of, key in past.uncertain(past.fold(log))}
    if call not in waiting:
        raise _decided()
    of = waiting.pop(call)
    then: list[Statement] = [(_DECIDED, ("done" if decision == "happened" else "started", call))]
    if not waiting:
        then.append((_GO_ON, (row["id"], row["epoch"])))
    decided = events.ApprovalDecided(of, call, approved=decision == "again", by=row["decider"])
    if not await append(row, log, [decided], then):
        raise _decided()
    if not waiting:
        await take_over(runner())


def _decided() -> RunError:
    return RunError("decided", "This step waits for no decision any more: it was decided, or stopped.")
