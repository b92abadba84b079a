"""A turn of a conversation as HTML: what a person said, and what was done about it, from the log of the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from runtime.events import TERMINAL, Event, Logged, Origin, RunFinished, Status, ends
from runtime.models import Run
from web.chat.patches import Document, Patch, shown
from web.chat.render import ChatRenderer


class Places(Protocol):
    """Where the requests of a conversation go: the chat page and the widget have addresses of their own."""

    @property
    def send(self) -> str: ...

    @property
    def decides(self) -> bool: ...  # whether who reads here may decide about calls that act

    def stream(self, run: UUID, after: int) -> str: ...

    def stop(self, run: UUID) -> str: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """`open` while the run goes on: the HTML then holds the element that streams the rest."""

    run: UUID
    html: SafeString
    open: bool


@dataclass(frozen=True, slots=True)
class _Head:
    run: UUID
    thread: UUID


def turn(root: Run, log: Sequence[Logged], places: Places) -> Turn:
    """The turn of a root run; `log` holds its events so far, all of them or only what a later reader needs."""
    events = [logged.event for logged in log]
    if root.status in TERMINAL and not any(map(ends, events)):
        events.append(_ending(root))
    return _shown(root, events, places, after=log[-1].n if log else 0)


def begun(root: Run, places: Places) -> Turn:
    """The turn of a run that was started just now. It may have ended meanwhile: its stream says everything."""
    return _shown(root, (), places, after=0)


def _shown(root: Run, events: Sequence[Event], places: Places, after: int) -> Turn:
    context = {"run": root.pk, "said": root.input, "agent": root.agent_label}
    document = Document(render_to_string("chat/turn.html", context))
    renderer = ChatRenderer(_Head(root.pk, root.thread_id), decides=places.decides)
    for event in events:
        for patch in renderer.patches(event):
            document.apply(patch)
    is_open = not any(map(ends, events))
    if is_open:
        stream = render_to_string("chat/stream.html", {"stream": places.stream(root.pk, after)})
        document.apply(Patch(f"x-{root.pk}", stream))
    return Turn(root.pk, mark_safe(shown(str(document))), is_open)  # noqa: S308 - made of escaped templates


def _ending(root: Run) -> RunFinished:
    """For a run whose log is gone or broke off: how it ended is on its row."""
    of = Origin(run=root.pk, root=root.pk, agent=root.agent_label, slug=root.agent_slug)
    status: Status = root.status  # type: ignore[assignment]  # a text column
    return RunFinished(of, status, root.reason, root.error)
