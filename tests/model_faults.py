"""What can go wrong at a model server, by name. A fault turns a turn into steps: bytes, seconds to wait, or an end."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import orjson

from tests.model_answers import (
    DONE,
    END,
    HEAD,
    Json,
    called,
    chunk,
    counted,
    delta,
    event,
    events,
    plain,
    stream,
    tokens,
)

type Step = bytes | float | Literal["abort", "close", "hang", "gate"]
type Fault = Callable[[str, Json], Iterable[Step]]

HTML = b"<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body>nginx</body></html>\n"
MEGABYTE = 1024 * 1024


def refusal(status: int, message: str = "It went wrong.", code: str = "", **headers: str) -> Fault:
    body = orjson.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code or None}})
    return lambda model, turn: [plain(status, body, **headers)]


def page(status: int) -> Fault:
    return lambda model, turn: [plain(status, HTML, "text/html")]


def body(make: Callable[[str, Json], Iterable[bytes]]) -> Fault:
    """A stream whose body chunks are made by hand and that ends as HTTP wants it."""
    return lambda model, turn: [HEAD, *(chunk(part) for part in make(model, turn)), END]


def cut(after: int, how: Literal["abort", "close", "hang"]) -> Fault:
    """The stream, given up after so many deltas."""
    return lambda model, turn: [HEAD, *stream(events(model, turn))[:after], how]


def values(make: Callable[[str, Json], Iterable[object]]) -> Fault:
    return body(lambda model, turn: [*(event(value) for value in make(model, turn)), DONE])


def fragments(*parts: Json) -> Fault:
    """Fragments of tool calls as a server sends them, one a delta; the turn's own text comes first."""

    def make(model: str, turn: Json) -> Iterator[object]:
        yield from (delta(model, {"content": token}) for token in tokens(turn.get("text")))
        yield from (delta(model, {"tool_calls": [part]}) for part in parts)
        yield delta(model, {}, "tool_calls")

    return values(make)


def fragment(index: int | None, call_id: str | None, name: str | None, arguments: object) -> Json:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    part: Json = {"type": "function", "function": function}
    return part | {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}


def _joined(model: str, turn: Json) -> bytes:
    return b"".join(event(value) for value in events(model, turn)) + DONE


def _bytewise(model: str, turn: Json) -> Iterator[bytes]:
    whole = b"".join(b"data: " + orjson.dumps(value) + b"\n\n" for value in events(model, turn)) + DONE
    return (whole[place : place + 1] for place in range(len(whole)))


def _inside_utf8(model: str, turn: Json) -> Iterator[bytes]:
    yield event(delta(model, {"content": "Gr"}))
    yield 'data: {"choices": [{"delta": {"content": "\N{LATIN SMALL LETTER U WITH DIAERESIS}'.encode()[:-1]


def _completion(model: str, turn: Json) -> Json:
    message: Json = {"role": "assistant", "content": "".join(tokens(turn.get("text")))}
    calls = turn.get("calls") or []
    assert isinstance(calls, list)
    if calls:
        message["tool_calls"] = [called(index, call) for index, call in enumerate(calls)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"object": "chat.completion", "model": model, "choices": [choice], "usage": counted(model, turn)["usage"]}


def _without_finish(model: str, turn: Json) -> Iterator[bytes]:
    yield from (event(value) for value in events(model, turn)[:-2])


def _dripping(model: str, turn: Json) -> Iterator[Step]:
    yield HEAD
    while True:
        yield chunk(b": still here\n\n")
        yield 0.05


def _text_and_call(model: str, turn: Json) -> Iterator[object]:
    calls = turn.get("calls") or [{"name": "look_up", "arguments": {}}]
    assert isinstance(calls, list)
    yield delta(model, {"content": "Let me see. ", "tool_calls": [called(0, calls[0])]})
    yield delta(model, {}, "tool_calls")


def _adding_finish(model: str, turn: Json, *parts: Json) -> Iterator[object]:
    yield from (delta(model, part) for part in parts)
    yield delta(model, {}, "stop")


FAULTS: dict[str, Fault] = {
    # Refused with a status
    "400": refusal(400, "Unsupported value."),
    "401": refusal(401, "Incorrect API key provided.", "invalid_api_key"),
    "402": refusal(402, "Insufficient Balance"),
    "403": refusal(403, "Project does not have access."),
    "404": refusal(404, "The model `small` does not exist.", "model_not_found"),
    "408": refusal(408),
    "409": refusal(409),
    "413": refusal(413),
    "422": refusal(422),
    "429": refusal(429, "Rate limit reached.", "rate_limit_exceeded"),
    "500": refusal(500),
    "502": page(502),
    "503": refusal(503, "The engine is currently overloaded."),
    "529": refusal(529, "Overloaded"),
    "html-404": page(404),
    "html-200": page(200),
    "retry-after-short": refusal(429, retry_after="0.05"),
    "retry-after-absurd": refusal(429, retry_after="86400"),
    "quota": refusal(429, "You exceeded your current quota.", "insufficient_quota"),
    "too-long": refusal(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
    "filtered": refusal(400, "The response was filtered.", "content_filter"),
    "redirect": lambda model, turn: [plain(302, b"", location="/elsewhere")],
    "refuses-max-tokens": refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    "refuses-stream-options": refusal(422, "Extra inputs are not permitted: stream_options"),
    "echoes-key-and-prompt": lambda model, turn: [plain(400, orjson.dumps({"error": {"message": turn["text"]}}))],
    # Connections
    "reset": lambda model, turn: ["abort"],
    "reset-after-head": lambda model, turn: [HEAD, "abort"],
    "cut-after-token": cut(2, "abort"),
    "closed-after-token": cut(2, "close"),
    "ended-after-token": lambda model, turn: [HEAD, *stream(events(model, turn))[:2], END],
    "hang": lambda model, turn: ["hang"],
    "hang-after-head": cut(0, "hang"),
    "hang-after-token": cut(2, "hang"),
    "hang-after-done": lambda model, turn: [HEAD, *stream(events(model, turn))[:-1], "hang"],
    "abort-after-done": lambda model, turn: [HEAD, *stream(events(model, turn))[:-1], "abort"],
    "drips-comments": _dripping,
    # Bytes of the stream
    "cut-inside-utf8": body(_inside_utf8),
    "split-bytes": body(_bytewise),
    "one-lump": body(lambda model, turn: [_joined(model, turn)]),
    "crlf": body(lambda model, turn: [_joined(model, turn).replace(b"\n", b"\r\n")]),
    "bom": body(lambda model, turn: [b"\xef\xbb\xbf" + _joined(model, turn)]),
    "comments": body(lambda model, turn: [b": hello\n\nretry: 3\nid: 7\n\n" + _joined(model, turn) + b": bye\n\n"]),
    "no-spaces": body(lambda model, turn: [_joined(model, turn).replace(b"data: ", b"data:").replace(b"\n\n", b"\n")]),
    "no-last-newline": body(lambda model, turn: [_joined(model, turn).rstrip()]),
    "no-done": body(lambda model, turn: [event(value) for value in events(model, turn)]),
    "no-finish": body(lambda model, turn: [*_without_finish(model, turn), DONE]),
    "no-finish-no-done": body(_without_finish),
    "huge-token": values(lambda model, turn: _adding_finish(model, turn, {"content": "x" * (10 * MEGABYTE)})),
    "huge-line": values(lambda model, turn: _adding_finish(model, turn, {"content": "x" * (20 * MEGABYTE)})),
    "huge-garbage": body(lambda model, turn: [b"x" * MEGABYTE + b"\n"] * 20),
    "not-json": body(lambda model, turn: [event(delta(model, {"content": "Half "})), b"data: {oops\n\n", DONE]),
    "invalid-utf8": body(lambda model, turn: [b'data: {"choices": [{"delta": {"content": "a\xffb"}}]}\n\n', DONE]),
    "surrogates-and-nul": body(
        lambda model, turn: [b'data: {"choices": [{"delta": {"content": "a\\ud800b\\u0000c"}}]}\n\n', DONE]
    ),
    # Something else than a stream
    "empty-body": body(lambda model, turn: []),
    "only-done": body(lambda model, turn: [DONE]),
    "not-streamed": lambda model, turn: [plain(200, orjson.dumps(_completion(model, turn)))],
    "not-streamed-pretty": lambda model, turn: [
        plain(200, orjson.dumps(_completion(model, turn), option=orjson.OPT_INDENT_2))
    ],
    "error-as-json": lambda model, turn: [plain(200, b'{"error": {"message": "boom"}}')],
    "text-body": lambda model, turn: [plain(200, b"It works!", "text/plain")],
    "error-in-stream": values(lambda model, turn: [{"error": {"message": "boom", "code": 500}}]),
    "error-after-token": values(
        lambda model, turn: [delta(model, {"content": "Half "}), {"error": {"message": "boom", "code": 500}}]
    ),
    "error-event": body(lambda model, turn: [b'event: error\ndata: {"message": "boom"}\n\n']),
    "error-event-text": body(lambda model, turn: [b"event: error\ndata: boom\n\n"]),
    # Shapes of the answer
    "odd-shapes": values(
        lambda model, turn: [
            [],
            7,
            None,
            {"choices": None},
            {"choices": [None]},
            {"choices": [{"delta": None}]},
            {"choices": [{"delta": {"content": [{"type": "text", "text": "Parts."}], "tool_calls": "no"}}]},
            {"choices": [{"delta": {"content": 5, "tool_calls": [None]}, "finish_reason": 3}], "usage": "none"},
        ]
    ),
    "no-usage": body(lambda model, turn: [event(value) for value in events(model, turn)[:-1]] + [DONE]),
    "wrong-usage": values(
        lambda model, turn: [
            *events(model, turn)[:-1],
            {"choices": [], "usage": {"prompt_tokens": "ten", "completion_tokens": -5}},
        ]
    ),
    "absurd-usage": values(
        lambda model, turn: [
            *events(model, turn)[:-1],
            {"choices": [], "usage": {"prompt_tokens": 2**60, "completion_tokens": 1}},
        ]
    ),
    "text-and-call": values(_text_and_call),
    "names-repeated": fragments(
        *(fragment(0, "call_1", "look_up", part) for part in ("", '{"que', 'ry": "le', 'ave"}')),
        fragment(0, "call_1", "look_up", ""),
    ),
    "name-in-pieces": fragments(
        fragment(0, "call_1", "look", None),
        fragment(0, None, "_up", None),
        fragment(0, None, None, '{"query": "leave"}'),
    ),
    "arguments-object": fragments(fragment(0, "call_1", "look_up", {"query": "leave"})),
    "arguments-array": fragments(fragment(0, "call_1", "look_up", ["leave"])),
    "arguments-array-text": fragments(fragment(0, "call_1", "look_up", '["leave"]')),
    "arguments-malformed": fragments(fragment(0, "call_1", "look_up", '{"query": "leave"')),
    "arguments-nan": fragments(fragment(0, "call_1", "look_up", '{"query": NaN}')),
    "arguments-deep": fragments(fragment(0, "call_1", "look_up", '{"query": ' + "[" * 5000 + "]" * 5000 + "}")),
    "no-arguments": fragments(fragment(0, "call_1", "look_up", None)),
    "no-ids": fragments(fragment(0, None, "look_up", '{"query": "a"}'), fragment(1, None, "look_up", '{"query": "b"}')),
    "same-ids": fragments(fragment(0, "x", "look_up", '{"query": "a"}'), fragment(1, "x", "look_up", '{"query": "b"}')),
    "same-index": fragments(
        fragment(0, "x", "look_up", '{"query": "a"}'), fragment(0, "y", "look_up", '{"query": "b"}')
    ),
    "same-index-no-ids": fragments(
        fragment(0, None, "look_up", '{"query": "a"}'), fragment(0, None, "look_up", '{"query": "b"}')
    ),
    "no-index": fragments(
        fragment(None, "x", "look_up", '{"query": '),
        fragment(None, None, None, '"a"}'),
        fragment(None, "y", "look_up", '{"query": '),
        fragment(None, "y", None, '"b"}'),
    ),
    "interleaved": fragments(
        fragment(0, "x", "look_up", '{"query": '),
        fragment(1, "y", "look_up", '{"query": '),
        fragment(0, None, None, '"a"}'),
        fragment(1, None, None, '"b"}'),
    ),
    "odd-name": fragments(fragment(0, "call_1", " functions.look\x00up\N{GRINNING FACE} ", "{}")),
    "no-name": fragments(fragment(0, "call_1", None, '{"query": "a"}')),
}
