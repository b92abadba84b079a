"""A run as lines of a terminal: who does what, indented by depth. What models and tools say is untrusted text."""

import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import shorten, wrap
from typing import assert_never
from uuid import UUID

from runtime import events
from runtime.events import Event, Origin

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Escape sequences would move the cursor or write to the clipboard, and directional marks hide what a line says."""
_MARK = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_DETAIL = 160
_WIDEST = 110
_REASONS = {
    "max_steps": "it used all its steps",
    "max_seconds": "its time was up",
    "max_tokens": "its tokens were used up",
    "daily_budget": "the day's budget was used up",
}


def safe(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)


def width() -> int | None:
    """Columns to wrap at; None where nobody looks, so that a pipe gets lines as they are."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else None


@dataclass
class Terminal:
    """Writes one run. The root's text streams; a delegate's comes when it is whole, so that parallel ones don't mix."""

    write: Callable[[str], object]
    columns: int | None = None
    _tokens: int = 0
    _labels: dict[UUID, str] = field(default_factory=dict)
    _arguments: dict[UUID, str] = field(default_factory=dict)
    _delegated: dict[UUID, Origin] = field(default_factory=dict)
    _streaming: bool = False

    def show(self, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one case per event, proved by assert_never
        match event:
            case events.MessageText():
                if event.of.depth == 0:
                    self._stream(event.of, event.text)
            case events.MessageFinished():
                self._said(event)
            case events.ToolCalled():
                self._labels[event.call] = event.label
            case events.ToolArguments():
                self._arguments[event.call] = event.text
            case events.ToolReturned():
                self._returned(event)
            case events.DelegateStarted():
                self._delegated[event.call] = event.child
                self._line(event.of, f"asks {event.child.agent}: {_short(event.task)}")
            case events.DelegateFinished():
                self._line(self._delegated[event.call], f"is done, {_seconds(event.seconds)}")
            case events.DelegateFailed():
                outcome = f"failed ({event.reason}), {_seconds(event.seconds)}: {event.message}"
                self._line(self._delegated[event.call], outcome)
            case events.SourceCited():
                self._line(event.of, f"source: {event.document}, passage {event.passage} ({event.memory})")
            case events.Notice():
                self._line(event.of, f"note: {event.text}")
            case events.ApprovalAsked():
                self._line(event.of, f"waits for an approval of {self._labels.get(event.call, 'a call')}")
            case events.ApprovalDecided():
                self._line(event.of, "was approved" if event.approved else "was denied")
            case events.RunPaused():
                self._line(event.of, f"pauses: {event.reason}")
            case events.RunResumed():
                self._line(event.of, "goes on")
            case events.RunFinished():
                self._finished(event)
            case events.Usage():
                self._tokens += event.input_tokens + event.output_tokens
            case events.RunStarted() | events.MessageStarted() | events.ToolReady():
                pass
            case events.ReasoningStarted() | events.ReasoningText() | events.ReasoningFinished():
                pass
            case _:
                assert_never(event)

    def _said(self, event: events.MessageFinished) -> None:
        """The root's text is on the screen already; a delegate's comes now."""
        if event.of.depth and event.text.strip():
            self._line(event.of, event.text)
        self._break()
        if not event.complete:
            self._line(event.of, "(cut short)")

    def _returned(self, event: events.ToolReturned) -> None:
        label, arguments = self._labels.get(event.call, "a tool"), self._arguments.get(event.call, "")
        if event.call in self._delegated:
            return
        if event.ok:
            self._line(event.of, f"{label} {_short(arguments)}: ok, {_seconds(event.seconds)}")
            return
        outcome = f"{event.reason or 'failed'}, {_seconds(event.seconds)}: {_short(event.content)}"
        self._line(event.of, f"{label} {_short(arguments)}: failed, {outcome}")

    def _finished(self, event: events.RunFinished) -> None:
        if event.of.depth:
            return
        if event.status != "completed":
            why = event.error or _REASONS.get(event.reason, event.reason)
            self._line(event.of, f"{event.status}: {why}" if why else event.status)
        if event.detail:
            self._line(event.of, f"for administrators: {_short(event.detail)}")
        if self._tokens:
            self._line(event.of, f"{self._tokens:,} tokens")

    def _stream(self, of: Origin, text: str) -> None:
        if not self._streaming:
            self.write(_prefix(of))
            self._streaming = True
        self.write(safe(text).replace("\n", "\n" + " " * len(_prefix(of))))

    def _break(self) -> None:
        if self._streaming:
            self.write("\n")
            self._streaming = False

    def _line(self, of: Origin, text: str) -> None:
        self._break()
        prefix = _prefix(of)
        indent = " " * len(prefix)
        room = self.columns - len(prefix) if self.columns else 0
        lines = safe(text).strip().splitlines() or [""]
        if room >= 20:
            lines = [part for line in lines for part in wrap(line, room) or [""]]
        self.write(prefix + "\n".join([lines[0], *((indent + line).rstrip() for line in lines[1:])]) + "\n")


def _prefix(of: Origin) -> str:
    return f"{'  ' * of.depth}{safe(of.agent)} {_MARK} "


def _short(text: str) -> str:
    return shorten(safe(text), _DETAIL, placeholder=" …")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
