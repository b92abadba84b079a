"""What a run learns of and says to Haystack's loop, at the points where the loop asks."""

from typing import Any
from uuid import UUID

from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage

from runtime.engine.model import CURRENT


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


class Explain(_InLoop):
    """after_tool: puts the run's own words for a failed call, an unknown tool's included, and marks it as failed."""

    def run(self, state: State) -> None:
        messages: list[ChatMessage] = state.data["messages"]
        conversation = CURRENT.get()
        for place in range(len(messages) - 1, -1, -1):
            answered = messages[place].tool_call_result
            if answered is None:
                break
            result = conversation.result(UUID(answered.origin.id))
            if not result.ok:
                messages[place] = ChatMessage.from_tool(tool_result=result.content, origin=answered.origin, error=True)


class Step(_InLoop):
    """before_llm: asks the run whether another model call is allowed."""

    async def run_async(self, state: State) -> None:
        if not await CURRENT.get().step():
            state.set("stop_run", "limit")
