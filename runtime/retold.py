"""A run whose log is gone, told again from the rows that outlive it: the same story without its pieces and notices.

What was said at the same time is told one after the other, and passages that were found are not named any more.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID, uuid5

from runtime import events, store
from runtime.events import TERMINAL, Event, FailReason, Logged, Origin, Status, View
from runtime.run.handoff import FAILURES

type Row = Mapping[str, Any]

_TREE = "SELECT * FROM runtime_run WHERE root_id = %s"
_SAID = "SELECT * FROM runtime_message WHERE run_id = %s"
_CALLED = "SELECT c.* FROM runtime_toolcall c JOIN runtime_run r ON r.id = c.run_id WHERE r.root_id = %s"


async def load_log(root: UUID, after: int = 0) -> list[Logged]:
    """The log of a root run above `after`; told again, from its first event, when it is gone."""
    log = await store.load_log(root, after)
    return log if log or after else await _told_again(root)


async def _told_again(root: UUID) -> list[Logged]:
    runs = await store.fetch(_TREE, (root,))
    if not any(row["id"] == root and row["log_state"] == "gone" for row in runs):
        return []
    return retold(root, runs, await store.fetch(_SAID, (root,)), await store.fetch(_CALLED, (root,)))


def retold(root: UUID, runs: Iterable[Row], messages: Iterable[Row], calls: Iterable[Row]) -> list[Logged]:
    """The log of a finished tree, numbered from 1: from the rows of its runs, the root's messages and all calls."""
    told = _Teller(runs, messages, calls)
    at = told.runs[root]["created_at"]
    return [Logged(n, at, event) for n, event in enumerate(told.run(told.runs[root]), 1)]


class _Teller:
    def __init__(self, runs: Iterable[Row], messages: Iterable[Row], calls: Iterable[Row]) -> None:
        self.runs: dict[UUID, Row] = {row["id"]: row for row in runs}
        self._steps: dict[UUID, list[Row]] = defaultdict(list)
        for row in (*(said for said in messages if said["role"] == "assistant"), *calls):
            self._steps[row["run_id"]].append(row)

    def run(self, row: Row) -> list[Event]:
        of = store.origin_of(row)
        said: list[Event] = [events.RunStarted(of)]
        for step in sorted(self._steps[of.run], key=lambda step: int(step["n"])):
            said += self._call(of, step) if "kind" in step else _message(of, step["id"], step["text"], step["complete"])
        if of.depth and row["output"]:  # only the root's messages have rows
            said += _message(of, uuid5(of.run, "output"), row["output"], row["status"] == "completed")
        if row["input_tokens"] or row["output_tokens"]:
            said.append(events.Usage(of, "", row["input_tokens"], row["output_tokens"]))
        status = row["status"] if row["status"] in TERMINAL else "failed"
        return [*said, events.RunFinished(of, cast(Status, status), row["reason"], row["error"], row["detail"])]

    def _call(self, of: Origin, row: Row) -> Sequence[Event]:
        call, ok, seconds = row["id"], row["state"] == "done", row["seconds"] or 0.0
        reason = "" if ok else row["reason"] or "failed"
        return [
            events.ToolCalled(of, call, row["name"], row["label"], row["kind"], row["side_effect"], self._view(row)),
            events.ToolArguments(of, call, row["arguments"]),
            events.ToolReady(of, call),
            *(self._delegate(of, row, seconds) if row["child_run"] in self.runs else ()),
            events.ToolReturned(of, call, ok, row["content"], reason, seconds),
        ]

    def _view(self, row: Row) -> View:
        """Whether people may know of a delegate that never started is not on a row: then they don't."""
        child = self.runs.get(row["child_run"])
        return cast(View, child["view"]) if child else "none" if row["kind"] == "delegate" else "full"

    def _delegate(self, of: Origin, row: Row, seconds: float) -> Sequence[Event]:
        call, run = row["id"], self.runs[row["child_run"]]
        child = store.origin_of(run)
        end: Event = events.DelegateFinished(of, call, child.run, run["output"], seconds)
        if row["state"] != "done":
            reason = cast(FailReason, row["reason"] if row["reason"] in FAILURES else "failed")
            end = events.DelegateFailed(of, call, child.run, reason, f"{child.agent} {FAILURES[reason]}", seconds)
        return [events.DelegateStarted(of, call, child, run["input"]), *self.run(run), end]


def _message(of: Origin, message: UUID, text: str, complete: bool) -> list[Event]:
    return [
        events.MessageStarted(of, message),
        events.MessageText(of, message, text),
        events.MessageFinished(of, message, text, complete),
    ]
