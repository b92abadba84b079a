"""What the fake model server sends for one turn of a script: HTTP/1.1 bytes of an OpenAI chat completion stream."""

import re
from collections.abc import Iterable

import orjson

type Json = dict[str, object]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
_TOKEN = re.compile(r"\S+\s*|\s+")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def plain(status: int, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def event(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def tokens(text: object) -> list[str]:
    """A list is taken as it is; a text is cut into words."""
    return [str(token) for token in text] if isinstance(text, list) else _TOKEN.findall(str(text or ""))


def delta(model: str, part: Json, finish: str | None = None) -> Json:
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "model": model,
        "choices": [{"index": 0, "delta": part, "finish_reason": finish}],
    }


def called(index: int, call: Json) -> Json:
    """The one delta that holds a whole tool call; arguments that are text go out as they are."""
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {
        "index": index,
        "id": str(call.get("id", f"call_{index}")),
        "type": "function",
        "function": {"name": call["name"], "arguments": text},
    }


def events(model: str, turn: Json) -> list[Json]:
    """The deltas of a turn (`reasoning`, `text`, `calls`), the finish reason and the usage."""
    calls = turn.get("calls") or []
    assert isinstance(calls, list)
    parts: list[Json] = [{"role": "assistant", "content": ""}]
    parts += [{"reasoning_content": token} for token in tokens(turn.get("reasoning"))]
    parts += [{"content": token} for token in tokens(turn.get("text"))]
    parts += [{"tool_calls": [called(index, call)]} for index, call in enumerate(calls)]
    finish = str(turn.get("finish") or ("tool_calls" if calls else "stop"))
    return [*(delta(model, part) for part in parts), delta(model, {}, finish), counted(model, turn)]


def counted(model: str, turn: Json) -> Json:
    usage = turn.get("usage") or {"prompt_tokens": 10, "completion_tokens": len(tokens(turn.get("text"))) or 1}
    return {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "model": model, "choices": [], "usage": usage}


def stream(values: Iterable[object]) -> list[bytes]:
    """Body chunks of a whole, healthy stream."""
    return [chunk(event(value)) for value in values] + [chunk(DONE), END]
