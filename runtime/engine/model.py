"""One model call of a run, whatever the provider: streams to the current Conversation, no tools on the last step."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID, uuid4

from haystack import component
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.tools.tool import Tool

from runtime.ports import Conversation, Reply

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


@component
class SteppedModel:
    """Wraps a provider's generator; keeps no state of a run, so that one instance serves all."""

    def __init__(self, generator: ChatGenerator, options: dict[str, Any], model_id: str) -> None:
        self.generator = generator
        self.options = options
        self.model_id = model_id

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
        answer = await self.generator.run_async(
            messages=messages, streaming_callback=_listener(conversation), generation_kwargs=self.options, tools=tools
        )
        reply = _with_own_ids(answer["replies"][0], keep_calls=not conversation.final)
        conversation.replied(self._reply(reply))
        return {"replies": [reply]}

    def _reply(self, message: ChatMessage) -> Reply:
        usage = message.meta.get("usage") or {}
        return Reply(
            text=message.text or "",
            model=str(message.meta.get("model") or self.model_id),
            input_tokens=int(usage.get("prompt_tokens") or 0),
            output_tokens=int(usage.get("completion_tokens") or 0),
            estimated=bool(message.meta.get("usage_estimated")),
            finish=str(message.meta.get("finish_reason") or ""),
        )


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
