"""The fake model server in tests: start it once, script it per test.

model.says("Twenty-eight days.")                      the next answer
model.calls("search_handbook", {"query": "leave"})    the next answer is a tool call
model.fails("429")                                    the next answer is a fault of tests.model_faults
model.when(model="small", after_tool=True).says(…)    answers only what fits
model.requests[-1].messages                           what was asked
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from runtime.spec import ModelSpec, Secret

type Json = dict[str, object]

API_KEY = "sk-canary-4711"
_CHECKOUT = Path(__file__).resolve().parents[1]
# Proxies of the environment are for the network, not for loopback.
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Request:
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """One script on the fake server. `match` narrows what the next turns answer."""

    server: str
    key: str
    match: Mapping[str, object]

    @property
    def base_url(self) -> str:
        return f"{self.server}/s/{self.key}/v1"

    def spec(self, model_id: str = "small", **changes: object) -> ModelSpec:
        """A ModelSpec that leads here; patient for seconds only, so that a hanging test fails soon."""
        patient = ModelSpec(
            id=1,
            label=model_id.capitalize(),
            kind="openai",
            model_id=model_id,
            base_url=self.base_url,
            api_key=Secret(API_KEY),
            timeout_seconds=10.0,
            idle_seconds=5.0,
        )
        return replace(patient, **changes)  # type: ignore[arg-type]

    def when(self, **match: object) -> "ScriptedModel":
        """The same script, for turns that answer only what fits: see `match` in tests.model_server."""
        return replace(self, match={**self.match, **match})

    def for_model(self, model_id: str) -> "ScriptedModel":
        return self.when(model=model_id)

    def says(self, text: str | Sequence[str], *, times: int | None = 1, **turn: object) -> "ScriptedModel":
        """Stream a text. `turn`: `wait` and `delay` (seconds), `gate`, `reasoning`, `finish`, `usage`, `burst`."""
        return self.answers({"text": text if isinstance(text, str) else list(text), **turn}, times=times)

    def calls(
        self, name: str, arguments: Mapping[str, object] | str, *, times: int | None = 1, **turn: object
    ) -> "ScriptedModel":
        """Ask for a tool call; arguments that are text are sent as they are."""
        return self.calls_all([(name, arguments)], times=times, **turn)

    def calls_all(
        self,
        calls: Sequence[tuple[str, Mapping[str, object] | str]],
        *,
        times: int | None = 1,
        **turn: object,
    ) -> "ScriptedModel":
        """Ask for several tool calls in one answer."""
        wanted = [{"name": name, "arguments": arguments} for name, arguments in calls]
        return self.answers({"calls": wanted, **turn}, times=times)

    def fails(self, fault: str, *, times: int | None = 1, **turn: object) -> "ScriptedModel":
        """Go wrong in the way tests.model_faults has under this name."""
        return self.answers({"text": "One two three.", **turn, "fault": fault}, times=times)

    def always_delegates(self, to: str = "first", text: str = "Done.") -> "ScriptedModel":
        """Call the `first` (or `all`) of the tools that take a task, whenever one is offered; else say the text."""
        return self.answers({"delegate": to, "text": text}, times=None)

    def answers(self, turn: Json, *, times: int | None = 1) -> "ScriptedModel":
        _ask("POST", f"{self.server}/script/{self.key}", [{"match": dict(self.match), "turn": turn, "times": times}])
        return self

    def goes_on(self) -> None:
        """From its `gate`, after so many pieces of text, on to the end."""
        _ask("POST", f"{self.server}/script/{self.key}/go")

    @property
    def requests(self) -> list[Request]:
        """What this script was asked, oldest first."""
        return [Request(**seen) for seen in _ask("GET", f"{self.server}/script/{self.key}/requests")]

    @property
    def open_streams(self) -> int:
        """Answers under way that pause or hang."""
        return int(_ask("GET", f"{self.server}/script/{self.key}/open"))


def _ask(method: str, url: str, value: object = None) -> Any:
    data = None if value is None else json.dumps(value).encode()
    with _DIRECTLY.open(urllib.request.Request(url, data=data, method=method), timeout=10) as answer:
        return json.load(answer)


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    """The address of the fake model server, started once, on loopback."""
    command = [sys.executable, "-m", "tests.model_server", "--port", "0"]
    server = subprocess.Popen(command, cwd=_CHECKOUT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
    server.terminate()
    server.wait(timeout=5)


@pytest.fixture
def model(model_server: str) -> ScriptedModel:
    """A script of this test's own."""
    return ScriptedModel(model_server, uuid4().hex, {})
