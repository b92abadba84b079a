"""One model call of a run, whatever the provider: streams to the current Conversation, no tools on the last step."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID, uuid4

from haystack import component
from haystack.dataclasses import ChatMessage, StreamingChunk, ToolCall
from haystack.dataclasses.streaming_chunk import StreamingCallbackT
from haystack.tools import ToolsType
from haystack.tools.tool import Tool

from runtime.errors import ModelError
from runtime.ports import Conversation, Reply, RequestedCall, estimated_tokens
from runtime.spec import ModelSpec

CURRENT: ContextVar[Conversation] = ContextVar("conversation")
"""The run that this task works for. Delegates set their own in the task of their tool call."""

LAST_STEP = "This is your last step: answer now, with what you have. No tools are available any more."


class ChatGenerator(Protocol):
    """A Haystack chat generator with an async side; every provider's fits."""

    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: Callable[[StreamingChunk], Awaitable[None]] | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: list[Tool] | None = None,
    ) -> dict[str, list[ChatMessage]]: ...


class AsyncOnly:
    """What a chat generator of ours begins with: Haystack wants `run`, with the parameters of `run_async`."""

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, object] | None = None,
        tools: ToolsType | None = None,
    ) -> dict[str, list[ChatMessage]]:
        raise NotImplementedError(f"{type(self).__name__} is asynchronous only: await run_async(…).")


@component
class SteppedModel:
    """Wraps the generators of a model and its fallbacks; keeps no state of a run, so that one instance serves all."""

    def __init__(self, chain: Sequence[tuple[ModelSpec, ChatGenerator]], options: dict[str, Any]) -> None:
        self.chain = chain
        self.options = options

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list[Tool] | None = None) -> dict[str, list[ChatMessage]]:
        raise NotImplementedError("Runs are asynchronous.")

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self, messages: list[ChatMessage], tools: list[Tool] | None = None
    ) -> dict[str, list[ChatMessage]]:
        conversation = CURRENT.get()
        if conversation.final and tools:
            messages = [*messages, ChatMessage.from_system(LAST_STEP)]
            tools = None
        model, answer = await self._ask(conversation, messages, tools)
        reply = _with_own_ids(answer["replies"][0], keep_calls=not conversation.final)
        conversation.replied(_reply(model, reply))
        return {"replies": [reply]}

    async def _ask(
        self, conversation: Conversation, messages: list[ChatMessage], tools: list[Tool] | None
    ) -> tuple[ModelSpec, dict[str, list[ChatMessage]]]:
        """The next model is asked only while nothing was said: text that people have seen is never said twice."""
        hear = _listener(conversation)
        for place, (model, generator) in enumerate(self.chain):
            try:
                return model, await generator.run_async(
                    messages=messages, streaming_callback=hear, generation_kwargs=self.options, tools=tools
                )
            except asyncio.CancelledError:
                conversation.broke_off(model.model_id, _asked_tokens(messages))
                raise
            except ModelError as error:
                if error.partial or place + 1 == len(self.chain):
                    conversation.broke_off(model.model_id, _asked_tokens(messages))
                    raise
                conversation.fell_back(model.label, self.chain[place + 1][0].label, error.detail or error.message)
        raise AssertionError("A chain has at least one model.")


def _asked_tokens(messages: Sequence[ChatMessage]) -> int:
    texts = [message.text or "" for message in messages]
    texts += [str(result.result) for message in messages for result in message.tool_call_results]
    return estimated_tokens(sum(map(len, texts)))


def _reply(model: ModelSpec, message: ChatMessage) -> Reply:
    usage = message.meta.get("usage") or {}
    return Reply(
        text=message.text or "",
        model=str(message.meta.get("model") or model.model_id),
        input_tokens=int(usage.get("prompt_tokens") or 0),
        output_tokens=int(usage.get("completion_tokens") or 0),
        estimated=bool(message.meta.get("usage_estimated")),
        finish=str(message.meta.get("finish_reason") or ""),
        calls=tuple(_requested(call) for call in message.tool_calls),
    )


def _requested(call: ToolCall) -> RequestedCall:
    unreadable = (call.extra or {}).get("unreadable")
    return RequestedCall(UUID(call.id), call.tool_name, call.arguments, None if unreadable is None else str(unreadable))


def _listener(conversation: Conversation) -> Callable[[StreamingChunk], Awaitable[None]]:
    """Never raises: a raising callback would leave the provider's stream open."""

    async def hear(chunk: StreamingChunk) -> None:
        if chunk.content:
            conversation.said(chunk.content)
        elif chunk.reasoning is not None:
            conversation.thought(chunk.reasoning.reasoning_text)

    return hear


def _with_own_ids(message: ChatMessage, *, keep_calls: bool) -> ChatMessage:
    """Providers' call ids may be missing or repeated; ours are UUIDs, once each. On the last step calls are dropped."""
    calls = message.tool_calls
    if not calls:
        return message
    kept = [call if _is_uuid(call.id) else replace(call, id=str(uuid4())) for call in calls] if keep_calls else None
    if kept and len({call.id for call in kept}) < len(kept):
        kept = [replace(call, id=str(uuid4())) for call in kept]
    return ChatMessage.from_assistant(message.text, tool_calls=kept, meta=dict(message.meta))


def _is_uuid(value: str | None) -> bool:
    try:
        return bool(UUID(value or ""))
    except ValueError:
        return False
