"""The Haystack Agent, shared between runs: everything of one run is in `CURRENT`, so that an Agent is built once.

Building an Agent with three tools costs more CPU than a short run of it (jsonschema checks every Tool).
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import httpx
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools.tool import Tool

from runtime.engine.hooks import Explain, Step
from runtime.engine.model import CURRENT, SteppedModel
from runtime.engine.offline import OfflineChat
from runtime.engine.openai import OpenAIChat
from runtime.ports import BoundTool, Conversation, Turn
from runtime.spec import AgentSpec, ModelSpec

MAX_PARALLEL_CALLS = 16
_NO_LIMIT = 1_000_000  # steps are counted by the Conversation
_KEPT_AGENTS = 256


class ModelSource(Protocol):
    """What a provider kind needs to make its chat generator: the model and the shared, guarded HTTP client."""

    def __call__(self, model: ModelSpec, http: httpx.AsyncClient, /) -> Any: ...


GENERATORS: dict[str, ModelSource] = {
    "openai": OpenAIChat,
    "offline": lambda model, http: OfflineChat(),
}


async def converse(
    agent: AgentSpec,
    tools: Sequence[BoundTool],
    turns: Sequence[Turn],
    conversation: Conversation,
    http: httpx.AsyncClient,
) -> None:
    """Run the agent to its end. Everything that happens is told to `conversation`.

    Raises ModelError when a model call fails for good; cancellation closes the model's stream and every tool at once.
    """
    CURRENT.set(conversation)
    await _shared_agent(agent, tools, http).run_async(messages=[_chat_message(turn) for turn in turns])


class _Door(Tool):
    """A tool as Haystack sees it; the work is done by the current run. `self` is positional: a model may name it."""

    async def invoke_async(self, /, **arguments: Any) -> Any:
        return await CURRENT.get().perform(self.name, arguments)


_agents: OrderedDict[tuple[object, ...], Agent] = OrderedDict()


def _shared_agent(agent: AgentSpec, tools: Sequence[BoundTool], http: httpx.AsyncClient) -> Agent:
    faces = tuple((tool.name, tool.description, json.dumps(tool.parameters, sort_keys=True)) for tool in tools)
    key = (agent.model, agent.temperature, agent.max_output_tokens, http, faces)
    found = _agents.get(key)
    if found is None:
        found = _agents[key] = _build(agent, tools, http)
        if len(_agents) > _KEPT_AGENTS:
            _agents.popitem(last=False)
    else:
        _agents.move_to_end(key)
    return found


def _build(agent: AgentSpec, tools: Sequence[BoundTool], http: httpx.AsyncClient) -> Agent:
    options = {"temperature": agent.temperature, "max_tokens": agent.max_output_tokens}
    chain = [(model, GENERATORS[model.kind](model, http)) for model in _with_fallbacks(agent.model)]
    model = SteppedModel(chain, {name: value for name, value in options.items() if value is not None})
    return Agent(
        chat_generator=model,
        tools=[_door(tool) for tool in tools],
        max_agent_steps=_NO_LIMIT,
        tool_concurrency_limit=MAX_PARALLEL_CALLS,
        hooks={"before_llm": [Step()], "after_tool": [Explain()]},
    )


def _with_fallbacks(model: ModelSpec) -> list[ModelSpec]:
    return [model, *(_with_fallbacks(model.fallback) if model.fallback else [])]


def _door(tool: BoundTool) -> Tool:
    return _Door(
        name=tool.name, description=tool.description, parameters=dict(tool.parameters), async_function=_never_called
    )


async def _never_called() -> None:
    """Tool insists on a function; `_Door` answers itself."""


def _chat_message(turn: Turn) -> ChatMessage:
    calls = [ToolCall(tool_name=call.name, arguments=dict(call.arguments), id=call.id) for call in turn.calls]
    match turn.role:
        case "system":
            return ChatMessage.from_system(turn.text)
        case "user":
            return ChatMessage.from_user(turn.text)
        case "assistant":
            return ChatMessage.from_assistant(turn.text or None, tool_calls=calls or None)
        case "tool":
            return ChatMessage.from_tool(tool_result=turn.text, origin=calls[0], error=not turn.ok)
    raise AssertionError(turn.role)
