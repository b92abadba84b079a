"""The rows behind the chat page: conversations, and the turns of one, with few statements whatever their number."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from agents_admin.actor import Actor
from runtime import event_data
from runtime.events import TERMINAL, Logged, Origin
from runtime.models import Event, Message, Run, Thread, ToolCall
from runtime.retold import retold
from web.chat.turns import Places, Turn, turn

TURNS_SHOWN = 20
THREADS_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Threads:
    """Newest first. `before` is where the next page starts; None on the last one."""

    items: Sequence[Thread]
    before: datetime | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last turns of a thread. `before` is the first run shown when there are earlier ones."""

    thread: Thread
    turns: Sequence[Turn]
    before: UUID | None

    @property
    def open(self) -> UUID | None:
        """The run that goes on; there is one at most."""
        return next((turn.run for turn in self.turns if turn.open), None)


def threads(actor: Actor, before: datetime | None = None) -> Threads:
    rows = Thread.objects.for_actor(actor).filter(channel=actor.channel)
    if before is not None:
        rows = rows.filter(updated_at__lt=before)
    found = list(rows[: THREADS_SHOWN + 1])
    more = len(found) > THREADS_SHOWN
    found = found[:THREADS_SHOWN]
    return Threads(found, found[-1].updated_at if more else None)


def conversation(actor: Actor, thread: UUID, places: Places, before: UUID | None = None) -> Conversation | None:
    """None when there is no such thread of this actor."""
    row = Thread.objects.for_actor(actor).filter(pk=thread).first()
    if row is None:
        return None
    roots = Run.objects.for_actor(actor).filter(thread=row, depth=0).order_by("-created_at", "-pk")
    if before is not None:
        roots = roots.filter(created_at__lt=roots.filter(pk=before).values("created_at")[:1])
    found = list(roots[: TURNS_SHOWN + 1])
    more = len(found) > TURNS_SHOWN
    shown = found[:TURNS_SHOWN][::-1]
    return Conversation(row, _turns(shown, places), shown[0].pk if more else None)


def newer(actor: Actor, after: UUID, places: Places) -> Conversation | None:
    """What was said after the run `after` in its thread; None when that is nothing, or it is no run of this actor."""
    roots = Run.objects.for_actor(actor).filter(depth=0)
    seen = roots.filter(pk=after).select_related("thread").first()
    if seen is None:
        return None
    later = roots.filter(thread=seen.thread, created_at__gt=seen.created_at).order_by("created_at", "pk")
    turns = _turns(list(later[:TURNS_SHOWN]), places)
    return Conversation(seen.thread, turns, None) if turns else None


def _turns(roots: Sequence[Run], places: Places) -> list[Turn]:
    logs = _logs(roots)
    return [turn(root, logs[root.pk], places) for root in roots]


def _logs(roots: Sequence[Run]) -> dict[UUID, list[Logged]]:
    """The logs of root runs. Of finished ones the pieces of text are left out: the whole text is there too."""
    logs: dict[UUID, list[Logged]] = defaultdict(list)
    ended = [root.pk for root in roots if root.status in TERMINAL]
    rows = Event.objects.filter(root__in=[root.pk for root in roots])
    happened = list(rows.exclude(Q(kind="MessageText") & Q(root__in=ended)).order_by("root_id", "n"))
    # After the events: a delegate that starts in between has its row by then, a log that is dropped says so.
    runs = list(Run.objects.filter(root__in=[root.pk for root in roots]))
    origins = _origins(runs)
    for row in happened:
        if row.run_id in origins:  # else the conversation was deleted meanwhile
            child = origins.get(UUID(row.data["child"])) if row.kind == "DelegateStarted" else None
            event = event_data.load(row.kind, origins[row.run_id], row.data, child)
            logs[row.root_id].append(Logged(row.n, row.at, event))
    logs.update(_told_again([run.pk for run in runs if run.log_state == "gone"]))
    return logs


def _told_again(roots: Sequence[UUID]) -> dict[UUID, list[Logged]]:
    """The logs that were dropped, from the rows that stay."""
    if not roots:
        return {}
    runs = list(Run.objects.filter(root__in=roots).values())
    messages = list(Message.objects.filter(run__in=roots).values())
    calls = list(ToolCall.objects.filter(run__root__in=roots).values())
    return {run["id"]: retold(run["id"], runs, messages, calls) for run in runs if run["depth"] == 0}


def _origins(runs: Iterable[Run]) -> dict[UUID, Origin]:
    return {
        run.pk: Origin(
            run=run.pk,
            root=run.root_id,
            agent=run.agent_label,
            slug=run.agent_slug,
            parent=run.parent_id,
            parent_call=run.parent_call,
            depth=run.depth,
            view=run.view,  # type: ignore[arg-type]  # a text column
        )
        for run in runs
    }
