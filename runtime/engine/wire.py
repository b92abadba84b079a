"""Conversations and tools as the OpenAI chat protocol writes them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import orjson
from haystack.dataclasses import ChatMessage, ChatRole, ToolCall, ToolCallResult
from haystack.tools.tool import Tool

_OURS = frozenset({"model", "messages", "stream", "stream_options", "tools"})
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NEW_LIMIT_HOSTS = re.compile(r"https://(?:api\.openai\.com|[\w-]+\.openai\.azure\.com)(?:[:/]|$)", re.IGNORECASE)


def request_body(
    model_id: str, messages: Iterable[ChatMessage], tools: Sequence[Tool], settings: Mapping[str, object]
) -> dict[str, object]:
    """A streaming request. `settings` (temperature, max_tokens and whatever else) can't replace what is set here."""
    body: dict[str, object] = {
        "model": model_id,
        "messages": [entry for message in messages for entry in _entries(message)],
        "stream": True,
        # The only way to hear the usage, and only streams have it: so every request streams.
        "stream_options": {"include_usage": True},
    }
    if tools:
        body["tools"] = [_declared(tool) for tool in tools]
    body.update((key, value) for key, value in settings.items() if value is not None and key not in _OURS)
    return body


def use_new_limit(body: dict[str, object], base_url: str) -> None:
    """Rename `max_tokens` to `max_completion_tokens` where the old name is refused for newer models.

    Most other servers know the old name only; `adapt` helps where this guess is wrong.
    """
    if _NEW_LIMIT_HOSTS.match(base_url):
        _rename(body, "max_tokens", "max_completion_tokens")


def adapt(body: dict[str, object], complaint: str) -> bool:
    """Rename or drop the one optional field that a server complains about; false when that is not the trouble."""
    if "stream_options" in complaint and "stream_options" in body:
        del body["stream_options"]
        return True
    if "max_completion_tokens" in complaint or "max_tokens" in complaint:
        return _rename(body, "max_tokens", "max_completion_tokens") or _rename(
            body, "max_completion_tokens", "max_tokens"
        )
    return False


def dump(body: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        # Whole numbers above 64 bits, which a model may well have written into its arguments.
        return json.dumps(body).encode()


def _rename(body: dict[str, object], old: str, new: str) -> bool:
    if old not in body or new in body:
        return False
    body[new] = body.pop(old)
    return True


def _declared(tool: Tool) -> dict[str, object]:
    parameters = {"type": "object", "properties": {}, **tool.parameters}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _entries(message: ChatMessage) -> Iterable[dict[str, object]]:
    if message.role is ChatRole.TOOL:
        for result in message.tool_call_results:
            yield {"role": "tool", "tool_call_id": result.origin.id or "", "content": _result_text(result)}
        return
    entry: dict[str, object] = {"role": message.role.value, "content": "\n".join(message.texts)}
    if calls := message.tool_calls:
        entry["tool_calls"] = [_called(call) for call in calls]
    yield entry


def _called(call: ToolCall) -> dict[str, object]:
    # Servers refuse a whole conversation for one name with an odd character or arguments that are no JSON object, so a
    # call that could not be read is sent back with a safe name and without arguments.
    name = _NOT_IN_NAMES.sub("_", call.tool_name)[:64] or "unnamed"
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id or "", "type": "function", "function": {"name": name, "arguments": arguments}}


def _result_text(result: ToolCallResult) -> str:
    if isinstance(result.result, str):
        return result.result
    return "\n".join(part.text for part in result.result if hasattr(part, "text"))
