"""What a run learns of and says to Haystack's loop, at the points where the loop asks."""

from typing import Any
from uuid import UUID

from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, ToolCall

from runtime.engine.model import CURRENT
from runtime.ports import RequestedCall


class _InLoop:
    """A hook that does no I/O: without an async side Haystack would send it to a thread."""

    def run(self, state: State) -> None:
        raise NotImplementedError

    async def run_async(self, state: State) -> None:
        self.run(state)

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError("Agents are made from rows, never from stored Haystack objects.")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "_InLoop":
        raise NotImplementedError("Agents are made from rows, never from stored Haystack objects.")


class Announce(_InLoop):
    """before_tool: tells the run which calls the model asked for, before any of them is performed."""

    def run(self, state: State) -> None:
        calls = state.data["messages"][-1].tool_calls
        CURRENT.get().requested([_requested(call) for call in calls])


class Explain(_InLoop):
    """after_tool: Haystack answers calls of unknown tools itself; the run words that so that a model can act on it."""

    def run(self, state: State) -> None:
        messages: list[ChatMessage] = state.data["messages"]
        known = {tool.name for tool in state.data["tools"]}
        for place in range(len(messages) - 1, -1, -1):
            result = messages[place].tool_call_result
            if result is None:
                break
            if result.origin.tool_name not in known:
                words = CURRENT.get().refusal(UUID(result.origin.id))
                messages[place] = ChatMessage.from_tool(tool_result=words, origin=result.origin, error=True)


class Step(_InLoop):
    """before_llm: asks the run whether another model call is allowed."""

    def run(self, state: State) -> None:
        if not CURRENT.get().step():
            state.set("stop_run", "limit")


def _requested(call: ToolCall) -> RequestedCall:
    unreadable = (call.extra or {}).get("unreadable")
    return RequestedCall(UUID(call.id), call.tool_name, call.arguments, None if unreadable is None else str(unreadable))
