"""Events → patches of the chat page. The live stream and a page that is loaded later use the same ones.

A slot's name says what it holds: `f-<run>` what a run says and does, in order; `m-<message>` a message; `q-<message>`
reasoning; `cs-`, `ca-`, `cr-<call>` a call's state, what was asked and what came back; `d-<call>` the question whether
it happened; `s-<run>` sources; `o-<run>` how the run ended; `x-<run>` its stream; `a-<run>` its Stop button.
"""

import html
import json
from typing import Any, Protocol, assert_never
from uuid import UUID

from django.template.loader import render_to_string

from runtime import events as e
from web.bidi import contained
from web.chat import words
from web.chat.decisions import Decisions
from web.chat.patches import Patch, for_htmx
from web.markdown import to_html

UNDECIDED = "Nobody decided whether this happened."
LONGEST_SHOWN = 4_000
"""Characters of a tool's arguments or result on the page."""


class Head(Protocol):
    """The root run whose log is rendered."""

    @property
    def run(self) -> UUID: ...

    @property
    def thread(self) -> UUID: ...


class ChatRenderer:
    """Made once per reader and given the whole log from its first event: what a call is called and whether a delegate's
    work is shown was said earlier in the log. `decides`: the reader may decide about calls that act."""

    def __init__(self, run: Head, *, decides: bool = False) -> None:
        self._head = run
        self._decisions = Decisions(run.run, decides=decides)
        self._shown: set[UUID] = {run.run}
        self._calls: dict[UUID, e.ToolCalled] = {}
        self._arguments: dict[UUID, str] = {}
        self._delegates: dict[UUID, e.DelegateStarted] = {}
        self._said: dict[UUID, str] = {}
        self._sources: set[tuple[str, str, int]] = set()
        self._paused = False

    @property
    def end(self) -> str:
        """Tells hx-sse to close; after a pause it connects again, and waits for what follows the decision."""
        return "" if self._paused else "event: end\ndata: end\n\n"

    def frames(self, logged: e.Logged) -> str | None:
        """The out-of-band HTML of one event; None when the page doesn't change."""
        event = logged.event
        if type(event) is e.MessageText:  # the hot path: nearly every event is one
            return _piece(event) if event.of.run in self._shown else None
        return for_htmx(self.patches(event)) or None

    def patches(self, event: e.Event) -> list[Patch]:
        """What changes on the page, in order. Nothing of a hidden delegate, nothing for administrators."""
        return self._patches(event) if event.of.run in self._shown else []

    def _patches(self, event: e.Event) -> list[Patch]:  # noqa: C901, PLR0911, PLR0912 - one line per event
        match event:
            case e.RunStarted():
                return [self._announce(f"{event.of.agent} is answering.")] if event.of.depth == 0 else []
            case e.RunFinished():
                return self._run_finished(event) if event.of.depth == 0 else []
            case e.MessageStarted():
                return [self._in_flow(event.of, "message", message=event.message)]
            case e.MessageText():
                return [Patch(f"m-{event.message}", _escaped(event.text), append=not event.first)]
            case e.MessageFinished():
                return self._message_finished(event)
            case e.ReasoningStarted():
                return [self._in_flow(event.of, "reasoning", message=event.message)]
            case e.ReasoningText():
                return [Patch(f"q-{event.message}", _escaped(event.text), append=not event.first)]
            case e.ToolCalled():
                return self._tool_called(event)
            case e.ToolArguments():
                return self._tool_arguments(event)
            case e.ToolReturned():
                return self._tool_returned(event)
            case e.DelegateStarted():
                return self._delegate_started(event)
            case e.DelegateFinished():
                return self._delegate_finished(event)
            case e.DelegateFailed():
                return self._delegate_failed(event)
            case e.SourceCited():
                return self._source_cited(event)
            case e.Notice():
                return [self._in_flow(event.of, "notice", text=event.text)] if event.audience == "everyone" else []
            case e.RunPaused():
                return self._run_paused(event) if event.of.depth == 0 else []
            case e.RunResumed():
                return self._run_resumed() if event.of.depth == 0 else []
            case e.ApprovalAsked():
                return self._approval_asked(event)
            case e.ApprovalDecided():
                return self._decisions.decided(event)
            case e.ReasoningFinished() | e.ToolReady() | e.Usage():
                return []
            case _:
                assert_never(event)

    def _run_finished(self, event: e.RunFinished) -> list[Patch]:
        sentence = words.outcome(event)
        retry = event.status in {"failed", "cancelled"} and event.reason != "forbidden"
        ended = _render("outcome", status=event.status, sentence=sentence, run=event.of.run, retry=retry)
        return [
            Patch(f"o-{event.of.run}", ended),
            Patch(f"a-{event.of.run}", _idle(self._head.thread)),
            self._announce(sentence or f"{event.of.agent} has finished."),
            Patch(f"x-{event.of.run}", ""),
        ]

    def _message_finished(self, event: e.MessageFinished) -> list[Patch]:
        self._said[event.of.run] = event.text
        said = _render("said", text=to_html(event.text), complete=event.complete)
        return [Patch(f"m-{event.message}", said)]

    def _tool_called(self, event: e.ToolCalled) -> list[Patch]:
        self._calls[event.call] = event
        if event.kind == "delegate":
            return []  # whether it may be seen is said when it starts
        return [self._card(event), self._announce(f"{event.of.agent} uses {event.label}.")]

    def _tool_arguments(self, event: e.ToolArguments) -> list[Patch]:
        call = self._calls.get(event.call)
        if call is None or call.kind == "delegate":
            return []
        asked = _arguments(event.text)
        if not asked:
            return []
        self._arguments[event.call] = _render("asked", **asked)
        return [Patch(f"ca-{event.call}", self._arguments[event.call])]

    def _run_paused(self, event: e.RunPaused) -> list[Patch]:
        self._paused = True
        return [self._decisions.paused(), self._announce(f"{event.of.agent} waits for a decision.")]

    def _run_resumed(self) -> list[Patch]:
        self._paused = False
        return [self._decisions.resumed()]

    def _approval_asked(self, event: e.ApprovalAsked) -> list[Patch]:
        call = self._calls.get(event.call)
        return self._decisions.asked(call, self._arguments.get(event.call, "")) if call else []

    def _tool_returned(self, event: e.ToolReturned) -> list[Patch]:
        call = self._calls.pop(event.call, None)
        self._arguments.pop(event.call, None)
        if call is None or event.call in self._delegates:
            return []
        state = _state(event.ok, event.seconds, words.REFUSED.get(event.reason, "failed"))
        result = _render("returned", ok=event.ok, text=_cut(self._content(event)))
        if call.kind == "delegate":  # refused before it started
            refused = [self._card(call, state=state, returned=result), self._announce(f"{call.label} was refused.")]
            return [] if call.view == "none" else refused
        shown = [Patch(f"cs-{event.call}", state), Patch(f"cr-{event.call}", result)]
        return [*shown, *self._decisions.over(event.call)]

    def _content(self, event: e.ToolReturned) -> str:
        if event.reason == "unknown":  # the model is told the names of its tools then, hidden delegates' among them
            return "The agent asked for a tool that it does not have."
        return UNDECIDED if event.call in self._decisions and not event.ok else event.content

    def _delegate_started(self, event: e.DelegateStarted) -> list[Patch]:
        call = self._calls.get(event.call)
        if event.child.view == "none" or call is None:
            self._calls.pop(event.call, None)
            return []
        self._delegates[event.call] = event
        if event.child.view == "full":
            self._shown.add(event.child.run)
            inside = {"flow": event.child.run, "asked": _render("asked", text=_cut(event.task))}
        else:
            inside = {}
        news = f"{event.of.agent} asks {event.child.agent}."
        return [self._card(call, label=event.child.agent, **inside), self._announce(news)]

    def _delegate_finished(self, event: e.DelegateFinished) -> list[Patch]:
        started = self._delegates.get(event.call)
        if started is None:
            return []
        state = Patch(f"cs-{event.call}", _state(True, event.seconds))
        patches = [state, self._announce(f"{started.child.agent} has answered.")]
        if event.answer.strip() != self._said.get(event.child, "").strip():
            said = _render("said", text=to_html(event.answer), complete=True)
            patches.append(Patch(f"cr-{event.call}", said))
        return patches

    def _delegate_failed(self, event: e.DelegateFailed) -> list[Patch]:
        started = self._delegates.get(event.call)
        if started is None:
            return []
        return [
            Patch(f"cs-{event.call}", _state(False, event.seconds, words.REFUSED[event.reason])),
            Patch(f"cr-{event.call}", _render("returned", ok=False, text=event.message)),
            self._announce(f"{started.child.agent} could not answer."),
        ]

    def _source_cited(self, event: e.SourceCited) -> list[Patch]:
        source = (event.memory, event.document, event.passage)
        if source in self._sources:
            return []
        self._sources.add(source)
        return [Patch(f"s-{self._head.run}", _render("source", source=event), append=True)]

    def _card(self, call: e.ToolCalled, **inside: Any) -> Patch:
        """`inside` is what the card's slots hold from the start: htmx finds all targets of a frame before it changes
        the page."""
        kind = call.kind if call.kind in {"delegate", "memory"} else "tool"
        card = {"call": call.call, "kind": kind, "label": call.label, "by": call.of.agent, "state": _running()}
        return self._in_flow(call.of, "card", **card | inside)

    def _in_flow(self, of: e.Origin, template: str, **context: Any) -> Patch:
        return Patch(f"f-{of.run}", _render(template, **context), append=True)

    def _announce(self, sentence: str) -> Patch:
        """For people who listen: starts, steps and ends, never the words of an answer."""
        return Patch("announcer", _escaped(sentence))


def _state(ok: bool, seconds: float, reason: str = "") -> str:
    css = "done" if ok else "failed"
    return _render("state", css=css, said="done" if ok else reason, took=words.duration(seconds))


def _running() -> str:
    return _render("state", css="running", said="working")


def _idle(thread: UUID) -> str:
    return render_to_string("chat/composer_idle.html", {"thread": thread})


def _render(template: str, **context: Any) -> str:
    return contained(render_to_string(f"chat/events/{template}.html", context))


def _piece(event: e.MessageText) -> str:
    how = "innerHTML" if event.first else "beforeend"  # the reader may have some of what was put together since
    return f'<div hx-swap-oob="{how}:#m-{event.message}">{_escaped(event.text)}</div>'


def _escaped(text: str) -> str:
    return html.escape(contained(text)).replace("\r", "&#13;")


def _arguments(text: str) -> dict[str, Any]:
    """What a call was asked, for the template `asked`: named values when they are a JSON object, else the text."""
    try:
        values = json.loads(text)
    except ValueError:
        return {"text": _cut(text)}
    if not isinstance(values, dict):
        return {"text": _cut(text)}
    return {"values": [(name, _cut(_said(value))) for name, value in values.items()]} if values else {}


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    left = len(text) - LONGEST_SHOWN
    return text if left <= 0 else f"{text[:LONGEST_SHOWN]}\n… {left:,} more characters"
