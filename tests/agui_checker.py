"""Says what is wrong with an AG-UI stream: by the rules that clients verify, and by those that they forget."""

from ag_ui.core import Event
from pydantic import BaseModel, TypeAdapter

TERMINAL = {"RUN_FINISHED", "RUN_ERROR"}
_EVENT: TypeAdapter[BaseModel] = TypeAdapter(Event)
_SPANS = {"TEXT_MESSAGE": "messageId", "TOOL_CALL": "toolCallId", "REASONING_MESSAGE": "messageId"}


def complaints(frames: list[dict]) -> list[str]:
    """Every broken rule of a whole stream, in words; empty when it is conformant."""
    stream = Stream()
    for frame in frames:
        stream.read(frame)
    stream.end()
    return stream.wrong


class Stream:
    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.open: dict[tuple[str, str], str | None] = {}
        self.seen_calls: set[str] = set()
        self.answered: set[str] = set()
        self.messages: set[str] = set()
        self.subagents: set[str] = set()
        self.count = 0
        self.terminal = ""
        self.run = ""
        self.pauses = False
        self.continues = False

    def say(self, frame: dict, what: str) -> None:
        self.wrong.append(f"frame {self.count} {frame.get('type')}: {what}")

    def read(self, frame: dict) -> None:
        self.count += 1
        self._shape(frame)
        kind = frame["type"]
        if self.terminal:
            self._after_the_end(frame)
        if self.count == 1 and kind != "RUN_STARTED":
            self.say(frame, "the first event is not RUN_STARTED")
        span, _, part = kind.rpartition("_")
        if span in _SPANS:
            self._span(frame, span, part)
        elif kind.startswith("SUBAGENT_"):
            self._subagent(frame, part)
        elif kind in TERMINAL:
            self._terminal(frame)
        elif kind == "RUN_STARTED":
            self._started(frame)
        owner = frame.get("subagentRunId")
        if owner and not kind.startswith("SUBAGENT_") and ("SUBAGENT", owner) not in self.open:
            self.say(frame, f"belongs to the sub-agent {owner}, which is not open")

    def end(self) -> None:
        if not self.terminal:
            self.wrong.append("the stream just ends")

    def _started(self, frame: dict) -> None:
        if not frame.get("protocolVersion"):
            self.say(frame, "declares no protocolVersion")
        self.run = frame["runId"]
        self.continues = "parentRunId" in frame

    def _after_the_end(self, frame: dict) -> None:
        """Only another public run, after one that was interrupted: it may answer calls of that one."""
        if not self.pauses:
            self.say(frame, "comes after the terminal event")
        elif frame["type"] != "RUN_STARTED" or frame.get("parentRunId") != self.run or frame["runId"] == self.run:
            self.say(frame, "does not continue the run that was interrupted")
        self.terminal, self.pauses = "", False
        self.subagents = set()

    def _shape(self, frame: dict) -> None:
        self._extra(frame, _EVENT.validate_python(frame))
        for path, value in _walk(frame):
            if value is None:
                self.say(frame, f"{path} is null")
            if "_" in path.rpartition(".")[2]:
                self.say(frame, f"{path} is not camelCase")

    def _extra(self, frame: dict, model: BaseModel) -> None:
        if model.model_extra:
            self.say(frame, f"unknown fields {sorted(model.model_extra)}")

    def _span(self, frame: dict, span: str, part: str) -> None:
        this = (span, frame[_SPANS[span]])
        if part == "RESULT":
            self._result(frame)
        elif part == "START":
            self._opened(frame, *this)
        elif this not in self.open:
            self.say(frame, f"{this[1]} is not open")
        elif frame.get("subagentRunId") not in (None, self.open[this]):
            self.say(frame, "has another owner than its opener")
        if part == "END":
            self.open.pop(this, None)

    def _opened(self, frame: dict, span: str, this: str) -> None:
        if (span, this) in self.open:
            self.say(frame, "is open already")
        if this in self.messages | self.seen_calls:
            self.say(frame, "uses an id again")
        self.open[span, this] = frame.get("subagentRunId")
        (self.seen_calls if span == "TOOL_CALL" else self.messages).add(this)

    def _result(self, frame: dict) -> None:
        call = frame["toolCallId"]
        unseen = call not in self.seen_calls and not self.continues
        if unseen or ("TOOL_CALL", call) in self.open:
            self.say(frame, "answers a call that was not made, or not ended")
        if call in self.answered:
            self.say(frame, "answers a call again")
        if frame["messageId"] in self.messages | self.seen_calls:
            self.say(frame, "uses a message id again")
        self.answered.add(call)
        self.messages.add(frame["messageId"])

    def _subagent(self, frame: dict, part: str) -> None:
        this = frame["subagentRunId"]
        if part != "STARTED":
            if self.open.pop(("SUBAGENT", this), False) is False:
                self.say(frame, "is not open")
            return
        if this in self.subagents:
            self.say(frame, "was started before")
        if frame.get("parentSubagentRunId", this) not in self.subagents | {this}:
            self.say(frame, "has a parent that was not started")
        if "parentToolCallId" in frame and frame["parentToolCallId"] not in self.seen_calls:
            self.say(frame, "names a call that was not on the stream")
        self.subagents.add(this)
        self.open["SUBAGENT", this] = None

    def _terminal(self, frame: dict) -> None:
        self.terminal = frame["type"]
        if self.terminal != "RUN_FINISHED":
            return
        if frame["runId"] != self.run:
            self.say(frame, "ends another run than the one that started")
        for span, one in self.open:
            self.say(frame, f"{span} {one} is still open")
        outcome = frame.get("outcome", {})
        self.pauses = outcome.get("type") == "interrupt"
        for call in self.seen_calls - self.answered if not self.pauses else ():
            self.say(frame, f"TOOL_CALL {call} has no result")
        self._interrupts(frame, outcome.get("interrupts", []))

    def _interrupts(self, frame: dict, interrupts: list[dict]) -> None:
        ids = {one["id"] for one in interrupts}
        if (self.pauses and not ids) or len(ids) < len(interrupts):
            self.say(frame, "has no interrupt, or one twice")
        for one in interrupts:
            if "toolCallId" in one and one["toolCallId"] not in self.seen_calls - self.answered:
                self.say(frame, f"asks about {one['toolCallId']}, which is no open call")


def _walk(value: object, path: str = "") -> list[tuple[str, object]]:
    match value:
        case dict():
            return [
                item
                for key, inner in value.items()
                for item in [(f"{path}.{key}", inner), *_walk(inner, f"{path}.{key}")]
            ]
        case list():
            return [item for inner in value for item in [(f"{path}[]", inner), *_walk(inner, f"{path}[]")]]
        case _:
            return []
