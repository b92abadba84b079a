"""A model's answer put together from what its server streams, whatever liberties the server takes."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import uuid4

import orjson
from haystack.dataclasses import ChatMessage, ToolCall

from agents_admin.text import BadJson, clean, read_json
from runtime.engine import faults
from runtime.ports import estimated_tokens

type Json = Mapping[str, object]

_EMPTY: Json = {}
_MOST_TOKENS = 2**31 - 1


@dataclass(slots=True)
class _Call:
    """A tool call as far as it has arrived. `provider_id` only tells calls apart here; the id people see is ours."""

    index: object
    provider_id: str
    name: str = ""
    arguments: str = ""

    def add(self, name: str, arguments: str) -> None:
        if name.startswith(self.name):
            self.name = name
        elif name and not self.arguments:
            self.name += name
        self.arguments += arguments

    def is_followed_by(self, provider_id: str, name: str, arguments: str) -> bool:
        """Whether a fragment filed under this call can't be a part of it: servers repeat indexes and ids."""
        if not name or not self.name:
            return False
        other_id = bool(provider_id and self.provider_id and provider_id != self.provider_id)
        if self._is_whole():
            return other_id or bool(arguments)
        return other_id and not self.arguments

    def made(self) -> ToolCall:
        name, raw = clean(self.name).strip(), clean(self.arguments)
        try:
            arguments = read_json(raw) if raw.strip() else {}
        except BadJson:
            arguments = None
        if isinstance(arguments, dict):
            return ToolCall(name, arguments, id=str(uuid4()))
        return ToolCall(name, {}, id=str(uuid4()), extra={"unreadable": raw})

    def _is_whole(self) -> bool:
        if not self.arguments.rstrip().endswith("}"):
            return False
        try:
            orjson.loads(self.arguments)
        except ValueError:
            return False
        return True


class Reply:
    """What has arrived of one answer. `complete`: the server said in some way that this was all."""

    def __init__(self) -> None:
        self.complete = False
        self.model = ""
        self._texts: list[str] = []
        self._reasonings: list[str] = []
        self._taken = (0, 0)
        self._calls: list[_Call] = []
        self._finish = ""
        self._usage: Json = _EMPTY

    @property
    def has_text(self) -> bool:
        return bool(self._texts)

    @property
    def has_news(self) -> bool:
        """Whether something can be taken."""
        return self._taken != (len(self._reasonings), len(self._texts))

    @property
    def has_begun(self) -> bool:
        return bool(self._texts or self._reasonings or self._calls)

    def add(self, payload: bytes) -> None:
        """Read one event of the stream. Raises ModelError when it reports a failure or can't be read."""
        if payload == b"[DONE]":
            self.complete = True
            return
        event = _object(_parsed(payload))
        if error := event.get("error"):
            raise faults.reported(error)
        self.model = self.model or _text(event.get("model"))
        choices = event.get("choices")
        if isinstance(choices, list) and choices:
            self._add_choice(_object(choices[0]))
        if usage := event.get("usage"):
            self._usage = _object(usage)
            # The count alone, after the last choice, is the end; some servers add one to every part.
            self.complete = self.complete or not choices

    def take(self) -> tuple[str, str]:
        """The reasoning and the text that arrived since the last time."""
        taken_reasonings, taken_texts = self._taken
        self._taken = (len(self._reasonings), len(self._texts))
        return "".join(self._reasonings[taken_reasonings:]), "".join(self._texts[taken_texts:])

    def message(self, asked_chars: int, model_id: str) -> ChatMessage:
        """The whole answer. `asked_chars` is the request's length, for an estimate when the server counted nothing."""
        text, reasoning = "".join(self._texts), "".join(self._reasonings)
        calls = [call.made() for call in self._calls]
        answered_chars = len(text) + len(reasoning) + sum(len(call.arguments) for call in self._calls)
        meta = {
            "model": clean(self.model) or model_id,
            "finish_reason": self._finish or ("tool_calls" if calls else "stop"),
            **_usage(self._usage, asked_chars, answered_chars),
        }
        return ChatMessage.from_assistant(text, meta=meta, tool_calls=calls, reasoning=reasoning or None)

    def _add_choice(self, choice: Json) -> None:
        delta = _object(choice.get("delta") or choice.get("message"))
        if text := _text(delta.get("content")) or _text(delta.get("refusal")):
            self._texts.append(clean(text))
        if thought := _text(delta.get("reasoning_content")) or _text(delta.get("reasoning")):
            self._reasonings.append(clean(thought))
        if fragments := delta.get("tool_calls"):
            for fragment in fragments if isinstance(fragments, list) else [fragments]:
                self._add_fragment(_object(fragment))
        if finish := _text(choice.get("finish_reason")):
            self._finish = {"function_call": "tool_calls"}.get(finish, clean(finish)[:40])
            self.complete = True

    def _add_fragment(self, fragment: Json) -> None:
        function = _object(fragment.get("function"))
        provider_id, name = _text(fragment.get("id")), _text(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        if not (provider_id or name or arguments):
            return
        call = self._filed_under(fragment.get("index"), provider_id)
        if call is None or call.is_followed_by(provider_id, name, arguments):
            call = _Call(fragment.get("index"), provider_id)
            self._calls.append(call)
        call.add(name, arguments)

    def _filed_under(self, index: object, provider_id: str) -> _Call | None:
        """The newest call a fragment may belong to: by its index, else by its id, else the last one."""
        if index is not None:
            return next((call for call in reversed(self._calls) if call.index == index), None)
        if provider_id:
            return next((call for call in reversed(self._calls) if call.provider_id == provider_id), None)
        return self._calls[-1] if self._calls else None


def _parsed(payload: bytes) -> object:
    try:
        return orjson.loads(payload)
    except ValueError:
        pass
    try:
        # orjson refuses broken UTF-8 and lone surrogates; the text is cleaned later.
        return json.loads(payload.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise faults.unreadable(f"A part of the answer is not JSON ({len(payload)} bytes).") from None


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else _EMPTY


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_parts(value))
    return ""


def _parts(parts: Iterable[object]) -> Iterable[str]:
    for part in parts:
        text = _object(part).get("text")
        if isinstance(text, str):
            yield text


def _arguments(value: object) -> str:
    """Arguments as text, also when the server sends them as JSON instead of as a string of JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)


def _usage(said: Json, asked_chars: int, answered_chars: int) -> dict[str, object]:
    asked, answered = said.get("prompt_tokens"), said.get("completion_tokens")
    if _is_count(asked) and asked and _is_count(answered) and (answered or not answered_chars):
        return {"usage": {"prompt_tokens": asked, "completion_tokens": answered}}
    estimate = {"prompt_tokens": estimated_tokens(asked_chars), "completion_tokens": estimated_tokens(answered_chars)}
    return {"usage": estimate, "usage_estimated": True}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
