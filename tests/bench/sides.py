"""Who is measured: Roster, the bare baseline and the fake model server itself, each in a process of its own."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import orjson

from tests.bench.load import Target
from tests.bench.product import ROSTER, Database, Rows, database, rows
from tests.bench.programs import Program, free_port, model_server, uvicorn, wait_for

TOKENS = [f"word{number} " for number in range(50)]
FINDINGS = [f"term{number} " for number in range(50)]
"""What delegates say: only the coordinator's own words are its first text."""
DELEGATED = [
    {
        "match": {"model": "boss", "after_tool": False},
        "turn": {"calls": [{"name": name, "arguments": {"task": "Look."}} for name in ("ask_first", "ask_second")]},
        "times": None,
    },
    {
        "match": {"model": "first", "after_tool": False},
        "turn": {"calls": [{"name": "clock", "arguments": {}}]},
        "times": None,
    },
    {"match": {"model": "first"}, "turn": {"text": FINDINGS}, "times": None},
    {"match": {"model": "second"}, "turn": {"text": FINDINGS}, "times": None},
]
"""Five model calls: the coordinator asks two delegates, one of which uses a tool, and answers."""
SCRIPT = [
    *DELEGATED,
    {"match": {"contains": "paced"}, "turn": {"text": TOKENS, "delay": 0.01}, "times": None},
    {"match": {"contains": "clock"}, "turn": {"fault": "clock", "words": 400, "delay": 0.5}, "times": None},
    {"match": {}, "turn": {"text": TOKENS}, "times": None},
]


@dataclass(frozen=True)
class Side:
    """A server under test. `asks` makes the target for a kind of answer: `plain`, `paced` or `clock`; of Roster also
    `delegated`."""

    name: str
    program: Program
    asks: Callable[[str], Target]


@dataclass(frozen=True)
class Bench:
    database: Database
    rows: Rows
    model: Program
    roster: Side
    bare: Side
    direct: Target

    @property
    def sides(self) -> list[Side]:
        return [self.roster, self.bare]


def start(stack: ExitStack) -> Bench:
    model = stack.enter_context(model_server())
    httpx.put(f"{model.url}/script/bench", json=SCRIPT, trust_env=False).raise_for_status()
    model_url = f"{model.url}/s/bench/v1"
    bare = stack.enter_context(uvicorn("tests.bench.bare:application", free_port(), {"MODEL_URL": model_url}))
    found = stack.enter_context(database())
    made = stack.enter_context(rows(found, "rows", model_url))
    roster = stack.enter_context(uvicorn("config.asgi:application", free_port(), found.environ(ROSTER)))
    wait_for(bare, "/")
    wait_for(roster, "/healthz")
    return Bench(found, made, model, roster_side(roster, made.api_key), bare_side(bare), direct_target(model_url))


def roster_side(program: Program, key: str) -> Side:
    def asks(kind: str) -> Target:
        agent = "boss" if kind == "delegated" else "plain"
        body = orjson.dumps({"agent": agent, "input": kind})
        return Target("Roster", f"{program.url}/api/v1/runs", body, b"RUN_FINISHED", {"authorization": f"Bearer {key}"})

    return Side("roster", program, asks)


def bare_side(program: Program) -> Side:
    return Side(
        "bare", program, lambda kind: Target("bare", f"{program.url}/", orjson.dumps({"input": kind}), b'"end"')
    )


def direct_target(model_url: str) -> Target:
    body = {"model": "small", "stream": True, "messages": [{"role": "user", "content": "plain"}]}
    return Target("the fake model server", f"{model_url}/chat/completions", orjson.dumps(body), b"[DONE]")
