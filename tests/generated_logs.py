"""Logs of runs that could have happened: nested delegates working in parallel, refusals, aborts anywhere."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st

from runtime import closing, events
from runtime.events import Event, FailReason, Logged, Origin, Status, View

MORNING = datetime(2026, 3, 2, 9, tzinfo=UTC)
NAMES = ["Concierge", "HR desk", "Librarian", "Analyst", "Zoë <b>& Söhne</b>"]
REFUSALS = ["unknown", "invalid", "cycle", "depth", "forbidden", "budget", "refused"]
TEXTS = st.text(max_size=12) | st.sampled_from(["", '"}\n\ndata: {"', "\u2028", "🦉", "مرحبا", "\r\n", "<script>"])


@st.composite
def logs(draw: st.DrawFn) -> list[Logged]:
    """The whole log of one root run, numbered from 1."""
    root = _new(draw)
    of = Origin(run=root, root=root, agent=draw(st.sampled_from(NAMES)), slug="root", view=draw(_views))
    happened = _run(draw, of, depth=0)
    match draw(st.sampled_from(["whole", "aborted", "taken over", "paused"])):
        case "aborted":
            happened = _aborted(draw, happened)
        case "taken over":
            happened = _taken_over(draw, happened)
        case "paused":
            happened = _paused(draw, happened)
    return [Logged(n, MORNING + timedelta(seconds=n), event) for n, event in enumerate(happened, 1)]


_views: st.SearchStrategy[View] = st.sampled_from(["full", "summary", "none"])
_ends: st.SearchStrategy[tuple[Status, str]] = st.sampled_from(
    [("completed", ""), ("limited", "max_steps"), ("failed", "")]
)
_reasons: st.SearchStrategy[FailReason] = st.sampled_from(["timeout", "budget", "forbidden", "failed", "cancelled"])


_endings = st.sampled_from([closing.STOPPED, closing.DIED])


def _new(draw: st.DrawFn) -> UUID:
    return draw(st.uuids(version=4))


def _run(draw: st.DrawFn, of: Origin, depth: int) -> list[Event]:
    said: list[Event] = [events.RunStarted(of)]
    for _ in range(draw(st.integers(0, 2))):
        said += _step(draw, of, depth)
    status, reason = draw(_ends)
    return [*said, events.RunFinished(of, status, reason, error="It broke." if status == "failed" else "")]


def _step(draw: st.DrawFn, of: Origin, depth: int) -> list[Event]:
    said: list[Event] = []
    if draw(st.booleans()):
        said += _spoken(draw, of, events.ReasoningStarted, events.ReasoningText, events.ReasoningFinished)
    if draw(st.booleans()):
        said += _message(draw, of)
    said.append(events.Usage(of, "small", draw(st.integers(0, 99)), draw(st.integers(0, 99))))
    calls = [_new(draw) for _ in range(draw(st.integers(0, 3 - depth if depth < 3 else 0)))]
    work = [_call(draw, of, call, depth) for call in calls]
    for announced, _ in work:
        said += announced
    return said + _interleaved(draw, [done for _, done in work])


def _spoken(draw: st.DrawFn, of: Origin, start: type, text: type, finish: type) -> list[Event]:
    message = _new(draw)
    pieces = [text(of, message, delta) for delta in draw(st.lists(TEXTS, max_size=3))]
    return [start(of, message), *pieces, finish(of, message)]


def _message(draw: st.DrawFn, of: Origin) -> list[Event]:
    message = _new(draw)
    pieces = draw(st.lists(TEXTS, max_size=3))
    said = [events.MessageText(of, message, piece) for piece in pieces]
    return [events.MessageStarted(of, message), *said, events.MessageFinished(of, message, "".join(pieces))]


def _call(draw: st.DrawFn, of: Origin, call: UUID, depth: int) -> tuple[list[Event], list[Event]]:
    kind = draw(st.sampled_from(["delegate", "memory", "calculator"]))
    name = draw(st.sampled_from(NAMES))
    announced: list[Event] = [
        events.ToolCalled(of, call, f"ask_{depth}", f"{name}\nand more", kind),
        events.ToolArguments(of, call, '{"task": "…"}'),
        events.ToolReady(of, call),
    ]
    if draw(st.booleans()) and kind == "delegate":
        return announced, _delegated(
            draw,
            of,
            call,
            Origin(
                run=_new(draw),
                root=of.root,
                agent=name,
                slug="delegate",
                parent=of.run,
                parent_call=call,
                depth=depth + 1,
                view=draw(_views),
            ),
        )
    ok = draw(st.booleans())
    cited = [events.SourceCited(of, call, "Employee handbook", "Leave", 1)] if ok and kind == "memory" else []
    reason = "" if ok else draw(st.sampled_from(REFUSALS))
    return announced, [*cited, events.ToolReturned(of, call, ok, draw(TEXTS), reason, 0.2)]


def _delegated(draw: st.DrawFn, of: Origin, call: UUID, child: Origin) -> list[Event]:
    work = _run(draw, child, child.depth)
    if draw(st.booleans()):
        reason = draw(_reasons)
        end: Event = events.DelegateFailed(of, call, child.run, reason, f"{child.agent} did not answer.", 0.5)
        back = events.ToolReturned(of, call, False, "No answer.", reason, 0.5)
    else:
        end = events.DelegateFinished(of, call, child.run, draw(TEXTS), 0.5)
        back = events.ToolReturned(of, call, True, "An answer.", "", 0.5)
    return [events.DelegateStarted(of, call, child, "the task"), *work, end, back]


def _interleaved(draw: st.DrawFn, lines: list[list[Event]]) -> list[Event]:
    """Calls of one turn work in parallel."""
    lines = [line for line in lines if line]
    happened: list[Event] = []
    while lines:
        line = lines[draw(st.integers(0, len(lines) - 1))] if len(lines) > 1 else lines[0]
        happened.append(line.pop(0))
        lines = [line for line in lines if line]
    return happened


def _cut(draw: st.DrawFn, happened: list[Event]) -> list[Event]:
    """The log up to anywhere, as a stop or a crash leaves it."""
    cut = draw(st.integers(1, len(happened) - 1))
    while isinstance(happened[cut], events.ToolArguments):
        cut += 1  # a call and its arguments are recorded at once
    return happened[:cut]


def _taken_over(draw: st.DrawFn, happened: list[Event]) -> list[Event]:
    """Another process went on, and found nothing left to do but to end it."""
    kept = _cut(draw, happened)
    root = kept[0].of
    kept += [*closing.interruption(kept), events.RunResumed(root), events.Notice(root, "It goes on.")]
    return kept + closing.closes(kept, draw(_endings))


def _paused(draw: st.DrawFn, happened: list[Event]) -> list[Event]:
    """Some open calls wait for a person, who decides or stops the run."""
    kept = _cut(draw, happened)
    waiting = [event for event in _left_open(kept) if isinstance(event, events.ToolCalled) and draw(st.booleans())]
    said = list(kept)
    for call in waiting:
        ready = events.ToolReady(call.of, call.call)
        said += [] if ready in kept else [ready]
    said += [events.ApprovalAsked(call.of, call.call) for call in waiting]
    said += closing.suspension(said, kept[0].of, draw(st.sampled_from(["needs_review", "approval"])))
    if draw(st.booleans()):
        said += [events.ApprovalDecided(call.of, call.call, approved=draw(st.booleans())) for call in waiting]
    return said + closing.closes(said, draw(_endings))


def _aborted(draw: st.DrawFn, happened: list[Event]) -> list[Event]:
    """The log cut, then closed innermost first."""
    status = draw(st.sampled_from(["cancelled", "failed", "limited"]))
    kept = _cut(draw, happened)
    kept += [
        events.ToolReady(event.of, event.call)
        for event in _left_open(kept)
        if isinstance(event, events.ToolCalled) and events.ToolReady(event.of, event.call) not in kept
    ]
    return kept + [_closing(event, status) for event in reversed(_left_open(kept))]


def _left_open(happened: list[Event]) -> list[Event]:
    opened: dict[tuple[str, UUID], Event] = {}
    for event in happened:
        kind = type(event).__name__
        thing = kind.removesuffix("Started").removesuffix("Finished").removesuffix("Failed")
        thing = "Tool" if isinstance(event, events.ToolCalled | events.ToolReturned) else thing
        if kind.endswith("Started") or kind == "ToolCalled":
            opened[thing, _id(event)] = event
        elif kind.endswith(("Finished", "Failed", "Returned")):
            del opened[thing, _id(event)]
    return list(opened.values())


def _id(event: Event) -> UUID:
    match event:
        case events.RunStarted() | events.RunFinished():
            return event.of.run
        case events.DelegateStarted():
            return event.child.run
        case events.DelegateFinished() | events.DelegateFailed():
            return event.child
        case events.ToolCalled() | events.ToolReturned():
            return event.call
        case _:
            return event.message  # type: ignore[union-attr]


def _closing(event: Event, status: str) -> Event:
    match event:
        case events.MessageStarted():
            return events.MessageFinished(event.of, event.message, "cut", complete=False)
        case events.ReasoningStarted():
            return events.ReasoningFinished(event.of, event.message)
        case events.ToolCalled():
            return events.ToolReturned(event.of, event.call, False, "The call was stopped.", "cancelled")
        case events.DelegateStarted():
            return events.DelegateFailed(event.of, event.call, event.child.run, "cancelled", "It was stopped.")
        case _:
            return events.RunFinished(event.of, status, error="It broke." if status == "failed" else "")  # type: ignore[arg-type]
