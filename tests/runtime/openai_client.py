"""Asks a model by the OpenAI chat protocol, and hears the answer, as a run does."""

import asyncio

import httpx
import pytest
from haystack.dataclasses import ChatMessage, StreamingChunk  # noqa: TID251 - what the engine speaks
from haystack.tools.tool import Tool  # noqa: TID251

from runtime.engine.openai import OpenAIChat
from runtime.errors import ModelError
from tests.scripted import ScriptedModel

QUESTION = [ChatMessage.from_system("Be brief."), ChatMessage.from_user("How many days of leave does Maya get?")]


class Listener:
    """Hears the stream as a run does."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasonings: list[str] = []
        self.spoken_to = asyncio.Event()

    async def __call__(self, chunk: StreamingChunk) -> None:
        if chunk.reasoning:
            self.reasonings.append(chunk.reasoning.reasoning_text)
        if chunk.content:
            self.texts.append(chunk.content)
            self.spoken_to.set()

    @property
    def text(self) -> str:
        return "".join(self.texts)


async def _nothing() -> None:
    """Never called: only the tool's description matters here."""


LOOK_UP = Tool(
    "look_up",
    "Looks something up.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    async_function=_nothing,
)


async def ask(
    model: ScriptedModel, http: httpx.AsyncClient, messages: list[ChatMessage] = QUESTION, **changes
) -> tuple[ChatMessage, Listener]:
    listener = Listener()
    answer = await OpenAIChat(model.spec(**changes), http).run_async(messages, listener, tools=[LOOK_UP])
    return answer["replies"][0], listener


async def fail(model: ScriptedModel, http: httpx.AsyncClient, **changes) -> tuple[ModelError, Listener]:
    listener = Listener()
    with pytest.raises(ModelError) as raised:
        await OpenAIChat(model.spec(**changes), http).run_async(QUESTION, listener)
    return raised.value, listener
