"""The baseline: a shared Haystack Agent with the stock OpenAI generator behind one bare async Django view.

What the parts that Roster is made of cost by themselves: nothing is stored, checked, resumed or labelled.
MODEL_URL says where the model is.
"""

import asyncio
import os
from collections.abc import AsyncIterator

import django
import orjson
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="bare", MIDDLEWARE=[])
django.setup()

agent = Agent(
    chat_generator=OpenAIChatGenerator(
        api_key=Secret.from_token("sk-bench"),
        model="small",
        api_base_url=os.environ["MODEL_URL"],
        # Roster counts tokens, so both ask for the count.
        generation_kwargs={"stream_options": {"include_usage": True}},
    )
)
agent.warm_up()


async def answer(request: HttpRequest) -> StreamingHttpResponse:
    asked = orjson.loads(request.body)
    return StreamingHttpResponse(_events(asked["input"]), content_type="text/event-stream")


async def _events(text: str) -> AsyncIterator[bytes]:
    chunks: asyncio.Queue[str | None] = asyncio.Queue()

    async def hear(chunk: StreamingChunk) -> None:
        if chunk.content:
            chunks.put_nowait(chunk.content)

    running = asyncio.create_task(agent.run_async([ChatMessage.from_user(text)], streaming_callback=hear))
    running.add_done_callback(lambda done: chunks.put_nowait(None))
    try:
        while (delta := await chunks.get()) is not None:
            yield b"data: " + orjson.dumps({"delta": delta}) + b"\n\n"
    finally:
        running.cancel()
    running.result()
    yield b'data: {"end": true}\n\n'


urlpatterns = [path("", answer)]
application = get_asgi_application()
