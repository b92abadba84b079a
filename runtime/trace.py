"""One root run as the tree that happened, read from its rows, for the admin."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from runtime.models import Event, Message, Run, ToolCall


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said about a call that may have happened; `by` is a username, empty where the log doesn't say."""

    by: str
    again: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """What a run did at place `n` of the log: it said a text, noted something or made a call."""

    n: int
    said: str = ""
    complete: bool = True
    notice: str = ""
    private: bool = False
    call: ToolCall | None = None
    child: "Branch | None" = None
    decisions: Sequence[Decision] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A run and what it did, in order; a delegate's run hangs below the call that started it."""

    run: Run
    steps: list[Step] = field(default_factory=list)

    @property
    def duration(self) -> timedelta | None:
        return duration(self.run)


def duration(run: Run) -> timedelta | None:
    return run.finished_at - run.started_at if run.started_at and run.finished_at else None


def tree(root: Run) -> Branch | None:
    """Three queries, whatever the size of the tree; one more when the log is gone, which held what delegates said.

    None when the run was deleted meanwhile.
    """
    steps: dict[UUID, list[Step]] = defaultdict(list)
    decided: dict[UUID, list[Decision]] = defaultdict(list)
    for event in Event.objects.filter(root_id=root.pk, kind__in=("MessageFinished", "Notice", "ApprovalDecided")):
        if event.kind == "ApprovalDecided":
            decided[UUID(event.data["call"])].append(_decision(event))
        else:
            steps[event.run_id].append(_step_of(event))
    # After the events: a log that was dropped meanwhile was read, or says so.
    branches = {run.pk: Branch(run) for run in Run.objects.filter(root_id=root.pk).select_related("agent")}
    if root.pk not in branches:
        return None
    if branches[root.pk].run.log_state == "gone" and not steps:
        for said in Message.objects.filter(run_id=root.pk, role="assistant"):
            steps[root.pk].append(Step(said.n, said=said.text, complete=said.complete))
    for call in ToolCall.objects.filter(run__root_id=root.pk):
        child = branches.get(call.child_run or call.pk)
        steps[call.run_id].append(Step(call.n, call=call, child=child, decisions=decided[call.pk]))
    for pk, branch in branches.items():
        branch.steps.extend(sorted(steps[pk], key=lambda step: step.n))
    return branches[root.pk]


def _step_of(event: Event) -> Step:
    if event.kind == "Notice":
        return Step(event.n, notice=event.data.get("text", ""), private=event.data.get("audience") == "administrators")
    return Step(event.n, said=event.data.get("text", ""), complete=event.data.get("complete", True))


def _decision(event: Event) -> Decision:
    return Decision(event.data.get("by", ""), event.data["approved"], event.at)
