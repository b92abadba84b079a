"""A fake model server: the OpenAI chat protocol over real HTTP, in its own process, scripted by tests and benchmarks.

    python -m tests.model_server --port 0        prints its port

A client's base URL `http://127.0.0.1:PORT/s/KEY/v1` chooses the script KEY, which is a list of entries
`{"match": {…}, "turn": {…}, "times": 1}`; the first entry whose match fits answers and is used up (null: never).

match   `model`, `contains` (in the last user message), `instructions` (in a system message), `tools` and `after_tool`
        (whether tools are offered; whether the last message is a tool's result)
turn    `text` (cut into words, or a list of tokens), `reasoning`, `calls` `[{"name", "arguments"}]`, `finish`, `usage`,
        `wait` (seconds before the first part), `delay` (before each part), `burst` (all in one write),
        `gate` (after so many pieces of text it waits until the script may go on),
        `fault` (a name in tests.model_faults), `delegate` (`first` or `all`: call the offered tools that take a task;
        none offered: say `text`)

Without a script, or when it is used up, the server echoes the last user message.

    PUT /script/KEY, POST /script/KEY     replace the list, append to it
    GET /script/KEY/requests              [{"headers", "body"}], the newest 1,000
    GET /script/KEY/open                  how many answers are being streamed
    POST /script/KEY/go                   what waits at a gate goes on, and nothing waits there any more
    GET /healthz
"""

import argparse
import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import httptools
import orjson
import uvloop

from tests.model_answers import HEAD, events, plain, stream, tokens
from tests.model_faults import FAULTS, Step

type Body = dict[str, Any]


@dataclass(slots=True)
class Script:
    entries: list[Body] = field(default_factory=list)
    requests: deque[tuple[dict[str, str], bytes]] = field(default_factory=lambda: deque(maxlen=1000))
    open: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    def turn(self, body: Body) -> Body:
        for place, entry in enumerate(self.entries):
            if matches(entry.get("match") or {}, body):
                times = entry.get("times", 1)
                if times is not None:
                    entry["times"] = times - 1
                    if times <= 1:
                        del self.entries[place]
                return entry
        return {"turn": {"text": "Echo: " + last_words(body)}}


def matches(match: Body, body: Body) -> bool:
    messages = body.get("messages") or [{}]
    facts = {
        "model": lambda wanted: body.get("model") == wanted,
        "contains": lambda wanted: wanted in last_words(body),
        "instructions": lambda wanted: any(
            wanted in str(message.get("content")) for message in messages if message.get("role") == "system"
        ),
        "tools": lambda wanted: bool(body.get("tools")) is wanted,
        "after_tool": lambda wanted: (messages[-1].get("role") == "tool") is wanted,
    }
    return all(facts[name](wanted) for name, wanted in match.items())


def last_words(body: Body) -> str:
    spoken = [message for message in body.get("messages") or [] if message.get("role") == "user"]
    return str(spoken[-1].get("content")) if spoken else ""


def steps(entry: Body, body: Body) -> Iterable[Step]:
    """The answer as bytes and pauses; a healthy turn of a script is rendered once."""
    turn, model = entry["turn"], str(body.get("model"))
    if "delegate" in turn:
        return [HEAD, *stream(events(model, delegating(turn, body)))]
    if fault := turn.get("fault"):
        return FAULTS[fault](model, turn)
    kept: dict[str, list[Step]] = entry.setdefault("rendered", {})
    if model not in kept:
        kept[model] = rendered(model, turn)
    return kept[model]


def rendered(model: str, turn: Body) -> list[Step]:
    parts: list[Step] = [*stream(events(model, turn))]
    if "gate" in turn:
        before = 1 + len(tokens(turn.get("reasoning")))  # the first part says who speaks
        parts.insert(before + int(turn["gate"]), "gate")
    head: list[Step] = [HEAD, float(turn["wait"])] if "wait" in turn else [HEAD]
    if turn.get("burst"):
        return [*head, b"".join(part for part in parts if isinstance(part, bytes))]
    if delay := turn.get("delay"):
        return [*head, *(step for part in parts for step in (float(delay), part))]
    return [*head, *parts]


def delegating(turn: Body, body: Body) -> Body:
    """Calls of the tools that take a task, while the request offers any."""
    offered = [tool["function"] for tool in body.get("tools") or []]
    names = [tool["name"] for tool in offered if "task" in (tool.get("parameters") or {}).get("properties", {})]
    chosen = names if turn["delegate"] == "all" else names[:1]
    return {**turn, "calls": [{"name": name, "arguments": {"task": last_words(body)}} for name in chosen]}


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; one request at a time."""

    def __init__(self, scripts: defaultdict[str, Script]) -> None:
        self.scripts = scripts
        self.parser = httptools.HttpRequestParser(self)
        self.answering: asyncio.Task[None] | None = None
        self.url = ""
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self.answering:
            self.answering.cancel()

    def on_url(self, url: bytes) -> None:
        self.url, self.headers, self.body = url.decode("ascii"), {}, []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        method, body = self.parser.get_method().decode(), b"".join(self.body)
        if self.url.endswith("/chat/completions"):
            self.complete(body)
        else:
            self.transport.write(self.control(method, body))

    def control(self, method: str, body: bytes) -> bytes:
        match method, self.url.strip("/").split("/"):
            case "GET", ["healthz"]:
                return plain(200, b'"ok"')
            case "GET", [*_, "v1", "models"]:
                return plain(200, b'{"object": "list", "data": [{"id": "small", "object": "model"}]}')
            case "PUT", ["script", key]:
                self.scripts[key].entries = orjson.loads(body)
            case "POST", ["script", key]:
                self.scripts[key].entries += orjson.loads(body)
            case "GET", ["script", key, "requests"]:
                seen = [
                    {"headers": headers, "body": orjson.loads(text)} for headers, text in self.scripts[key].requests
                ]
                return plain(200, orjson.dumps(seen))
            case "POST", ["script", key, "go"]:
                self.scripts[key].go.set()
            case "GET", ["script", key, "open"]:
                return plain(200, orjson.dumps(self.scripts[key].open))
            case _:
                return plain(404, b'{"error": {"message": "There is no such address here."}}')
        return plain(200, b"{}")

    def complete(self, body: bytes) -> None:
        key = self.url.split("/")[2] if self.url.startswith("/s/") else ""
        script, asked = self.scripts[key], orjson.loads(body)
        script.requests.append((self.headers, body))
        plan = steps(script.turn(asked), asked)
        if isinstance(plan, list) and all(isinstance(step, bytes) for step in plan):
            for step in plan:
                self.transport.write(step)
        else:
            self.answering = asyncio.create_task(self.play(script, plan))

    async def play(self, script: Script, plan: Iterable[Step]) -> None:
        script.open += 1
        try:
            for step in plan:
                match step:
                    case bytes():
                        self.transport.write(step)
                    case "abort":
                        # What was written before must arrive first.
                        await asyncio.sleep(0.02)
                        self.transport.abort()
                    case "close":
                        self.transport.close()
                    case "hang":
                        await asyncio.Event().wait()
                    case "gate":
                        await script.go.wait()
                    case seconds:
                        await asyncio.sleep(seconds)
        finally:
            script.open -= 1


async def serve(port: int) -> None:
    scripts: defaultdict[str, Script] = defaultdict(Script)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(scripts), "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - whoever started it reads the port
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    uvloop.run(serve(parser.parse_args().port))
