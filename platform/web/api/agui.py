"""Event → AG-UI 1.0: what the world outside reads. docs/events.md says it for the people who read the stream.

A renderer is a fold over the log from its first event: the frames after event n are the same whoever was watching when.
"""

from uuid import UUID

import orjson
from ag_ui.core import PROTOCOL_VERSION

from runtime import events
from runtime.events import Event, Logged, Origin, View
from web.api.snapshot import Snapshot
from web.sse import RunHead

type Frame = dict[str, object]

_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})
WAITS = "A person has to decide about a step before this goes on."
QUESTIONS = {
    "needs_review": "nobody knows whether “{}” was done before the server stopped. It happened, or do it again?",
    "approval": "may “{}” be done?",
}


class AguiRenderer:
    """`frames` takes every event of one log in order, from 1, and gives the JSON of at most one AG-UI event each."""

    end = ""

    def __init__(self, run: RunHead) -> None:
        self._head = run
        self._run_id = str(run.run)
        self._views: dict[UUID, View] = {run.run: "full"}
        self._waiting = False
        # Only who comes back can have seen a part of a text that was put together since.
        self._snapshot = Snapshot() if run.after else None
        self._asked: dict[UUID, events.ApprovalAsked] = {}
        self._calls: dict[UUID, events.ToolCalled] = {}
        self._input_tokens = 0
        self._output_tokens = 0

    def frames(self, logged: Logged) -> str | None:
        event = logged.event
        if self._snapshot is not None:
            self._snapshot.keep(event)
            if self._missed_pieces(event):
                frame: Frame = {"type": "MESSAGES_SNAPSHOT", "messages": self._snapshot.messages}
                return _json(frame)
        if isinstance(event, events.MessageText):
            return None if event.of.depth else _text(event)
        return self._frame(event, logged.n)

    def _missed_pieces(self, event: Event) -> bool:
        """Whether the reader has seen a part of what was put together since."""
        if not isinstance(event, events.MessageText | events.ReasoningText) or event.of.depth:
            return False
        return 0 < event.first <= self._head.after

    def _frame(self, event: Event, n: int) -> str | None:
        self._keep(event)
        frame: Frame | None
        match event:
            case events.RunPaused() | events.RunResumed():
                frame = self._interruption(event, n)
            case _:
                frame = self._of_delegate(event) if event.of.depth else self._of_root(event)
        return None if frame is None else _json(frame)

    def _keep(self, event: Event) -> None:
        match event:
            case events.Usage():
                self._input_tokens += event.input_tokens
                self._output_tokens += event.output_tokens
            case events.ToolCalled():
                self._calls[event.call] = event
            case events.ApprovalAsked():
                self._asked[event.call] = event

    def _of_root(self, event: Event) -> Frame | None:
        match event:
            case events.RunStarted():
                return self._run("RUN_STARTED") | {"protocolVersion": PROTOCOL_VERSION}
            case events.RunFinished():
                return self._run_ended(event)
            case _:
                return _message(event) or _call(event) or self._delegation(event)

    def _of_delegate(self, event: Event) -> Frame | None:
        return self._delegation(event) or (self._step(event) if self._views[event.of.run] == "full" else None)

    def _delegation(self, event: Event) -> Frame | None:
        match event:
            case events.DelegateStarted():
                return self._delegate_started(event)
            case events.DelegateFinished() | events.DelegateFailed() if self._views[event.child] != "none":
                return _delegate_ended(event)
            case _:
                return None

    def _run(self, kind: str) -> Frame:
        return {"type": kind, "threadId": self._head.thread, "runId": self._run_id}

    def _interruption(self, event: events.RunPaused | events.RunResumed, n: int) -> Frame | None:
        """A pause ends a public run, what follows it is another one. A process that took over shows nothing."""
        if event.of.depth:
            return self._set_aside(event) if self._views.get(event.of.run, "none") != "none" else None
        match event:
            case events.RunPaused():
                self._waiting = True
                outcome: Frame = {"type": "interrupt", "interrupts": self._interrupts(event)}
                return self._run("RUN_FINISHED") | {"outcome": outcome} | self._usage()
            case events.RunResumed() if self._waiting:
                parent, self._run_id, self._waiting = self._run_id, f"{self._head.run}-{n}", False
                self._asked, self._input_tokens, self._output_tokens = {}, 0, 0
                return self._run("RUN_STARTED") | {"protocolVersion": PROTOCOL_VERSION, "parentRunId": parent}
            case _:
                return None

    def _set_aside(self, event: events.RunPaused | events.RunResumed) -> Frame:
        """A delegate ends with its public run; the next one starts it again, under the same id."""
        frame: Frame = {"subagentRunId": event.of.run}
        if isinstance(event, events.RunPaused):
            return {"type": "SUBAGENT_FINISHED"} | frame | {"outcome": {"type": "suspended"}}
        nested = {"parentSubagentRunId": event.of.parent} if event.of.depth > 1 else {}
        return {"type": "SUBAGENT_STARTED"} | frame | {"name": event.of.agent} | nested

    def _interrupts(self, event: events.RunPaused) -> list[Frame]:
        if not self._asked:
            return [{"id": self._run_id, "reason": event.reason, "message": WAITS}]
        return [self._interrupt(asked, event.reason) for asked in self._asked.values()]

    def _interrupt(self, asked: events.ApprovalAsked, reason: str) -> Frame:
        """What a delegate that is not shown wants to do is named to nobody."""
        frame: Frame = {"id": asked.call, "reason": reason}
        if self._views.get(asked.of.run) != "full":
            return frame | {"message": WAITS}
        label = _line(self._calls[asked.call].label)
        words = {"message": f"{asked.of.agent} waits: {QUESTIONS[reason].format(label)}"}
        return frame | words | ({"subagentRunId": asked.of.run} if asked.of.depth else {"toolCallId": asked.call})

    def _delegate_started(self, event: events.DelegateStarted) -> Frame | None:
        """Under a delegate that is shown in summary or not at all, nothing shows."""
        view = event.child.view if self._views[event.of.run] == "full" else "none"
        self._views[event.child.run] = view
        if view == "none":
            return None
        frame = {"type": "SUBAGENT_STARTED", "subagentRunId": event.child.run, "name": event.child.agent}
        # A nested delegate's call was a step, never a TOOL_CALL_START that could be named here.
        nested = {"parentSubagentRunId": event.of.run} if event.of.depth else {"parentToolCallId": event.call}
        return frame | nested

    def _step(self, event: Event) -> Frame | None:
        match event:
            case events.ToolCalled():
                return _custom_step(event.of, "call", _doing(event), {"toolCallId": event.call, "name": event.name})
            case events.ToolReturned():
                called = self._calls[event.call]
                tool = {"toolCallId": event.call, "name": called.name, "ok": event.ok}
                return _custom_step(event.of, "result", _done(called, event), tool)
            case _:
                return None

    def _run_ended(self, event: events.RunFinished) -> Frame:
        usage = self._usage()
        match event.status:
            case "failed":
                message = event.error or "The run failed."
                return {"type": "RUN_ERROR", "message": message, "code": event.reason or "failed"} | usage
            case "limited":
                result: Frame = {"result": {"status": event.status, "reason": event.reason}}
                return self._run("RUN_FINISHED") | {"outcome": {"type": "success"}} | result | usage
            case "cancelled":
                return self._run("RUN_FINISHED") | {"outcome": {"type": "cancelled"}} | usage
            case _:
                return self._run("RUN_FINISHED") | {"outcome": {"type": "success"}} | usage

    def _usage(self) -> Frame:
        total = self._input_tokens + self._output_tokens
        spent = {"inputTokens": self._input_tokens, "outputTokens": self._output_tokens, "totalTokens": total}
        return {"usage": [spent]} if total else {}


def _json(value: object) -> str:
    """On one line, also for readers who split lines as Unicode does (Python's `splitlines`)."""
    text = orjson.dumps(value).decode()
    return text if text.isascii() else text.translate(_LINE_ENDS)


def _text(event: events.MessageText) -> str:
    """The one frame there are hundreds of, so it is put together by hand."""
    delta = _json(event.text)
    return f'{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{event.message}","delta":{delta}}}'


def _message(event: Event) -> Frame | None:
    match event:
        case events.MessageStarted():
            return {"type": "TEXT_MESSAGE_START", "messageId": event.message, "role": "assistant"}
        case events.MessageFinished():
            return {"type": "TEXT_MESSAGE_END", "messageId": event.message}
        case events.ReasoningStarted():
            return {"type": "REASONING_MESSAGE_START", "messageId": event.message, "role": "reasoning"}
        case events.ReasoningText():
            return {"type": "REASONING_MESSAGE_CONTENT", "messageId": event.message, "delta": event.text}
        case events.ReasoningFinished():
            return {"type": "REASONING_MESSAGE_END", "messageId": event.message}
        case _:
            return None


def _call(event: Event) -> Frame | None:
    match event:
        case events.ToolCalled():
            return {"type": "TOOL_CALL_START", "toolCallId": event.call, "toolCallName": event.name}
        case events.ToolArguments():
            return {"type": "TOOL_CALL_ARGS", "toolCallId": event.call, "delta": event.text}
        case events.ToolReady():
            return {"type": "TOOL_CALL_END", "toolCallId": event.call}
        case events.ToolReturned():
            # Clients name the message of a call after the call, so its result needs an id of its own.
            ids = {"messageId": f"{event.call}-result", "toolCallId": event.call}
            return {"type": "TOOL_CALL_RESULT"} | ids | {"content": event.content, "role": "tool"}
        case _:
            return None


def _delegate_ended(event: events.DelegateFinished | events.DelegateFailed) -> Frame:
    match event:
        case events.DelegateFinished():
            return {"type": "SUBAGENT_FINISHED", "subagentRunId": event.child}
        case events.DelegateFailed():
            frame = {"type": "SUBAGENT_ERROR", "subagentRunId": event.child}
            return frame | {"message": event.message, "code": event.reason}


def _custom_step(of: Origin, phase: str, status: str, tool: Frame) -> Frame:
    value = {"subagentRunId": of.run, "agent": of.agent, "phase": phase, "status": status, "tool": tool}
    return {"type": "CUSTOM", "name": "roster.step", "value": value, "subagentRunId": of.run}


def _doing(called: events.ToolCalled) -> str:
    verb = {"delegate": "asks", "memory": "looks into"}.get(called.kind, "uses")
    return f"{called.of.agent} {verb} {_line(called.label)}"


def _done(called: events.ToolCalled, returned: events.ToolReturned) -> str:
    return f"{_line(called.label)} answered" if returned.ok else f"{_line(called.label)} failed ({returned.reason})"


def _line(text: str) -> str:
    """On one line: the label of a tool that does not exist is what the model made up."""
    return " ".join(text.split())
