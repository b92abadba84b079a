"""Chat with any server that speaks the OpenAI chat protocol, as a Haystack component."""

import inspect
import random
from collections.abc import Mapping, Sequence

import httpx
from haystack import component
from haystack.dataclasses import ChatMessage, ReasoningContent, StreamingChunk
from haystack.dataclasses.streaming_chunk import StreamingCallbackT
from haystack.tools import ToolsType, flatten_tools_or_toolsets

from agents_admin.egress import EgressRefused
from agents_admin.text import clean
from runtime.engine import faults, wire
from runtime.engine.model import AsyncOnly
from runtime.engine.patience import Patience
from runtime.engine.reply import Reply
from runtime.engine.sse import EventLines, TooLongError
from runtime.errors import ModelError
from runtime.spec import ModelSpec

RETRIES = 2
CONNECT_SECONDS = 10.0
_MAX_ERROR_BODY = 64 * 1024


@component
class OpenAIChat(AsyncOnly):
    """Asks `endpoint` through `client`, the guarded client that all runs share. Keeps nothing of a run: share it too.

    `generation_kwargs`: `temperature`, `max_tokens` (sent as `max_completion_tokens` where only that is known) and any
    other parameter of the protocol; None leaves a parameter out. Every reply's tool calls have ids of ours; arguments
    that are no JSON object are kept as `extra["unreadable"]`. A reply's `meta` holds `model`, `finish_reason`, `usage`
    and, when the server did not count, `usage_estimated`. Every failure is a ModelError. Only what fails before the
    first token is tried again, at most twice.
    """

    def __init__(self, endpoint: ModelSpec, client: httpx.AsyncClient) -> None:
        self._endpoint = endpoint
        self._client = client
        self._address = endpoint.base_url.rstrip("/") + "/chat/completions"
        # Compressed streams would arrive in lumps.
        self._headers = {
            b"content-type": b"application/json",
            b"accept": b"text/event-stream",
            b"accept-encoding": b"identity",
        }
        if endpoint.api_key:
            self._headers[b"authorization"] = b"Bearer " + clean(endpoint.api_key.value).strip().encode()

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, object] | None = None,
        tools: ToolsType | None = None,
    ) -> dict[str, list[ChatMessage]]:
        settings: Mapping[str, object] = generation_kwargs or {}
        body = wire.request_body(self._endpoint.model_id, messages, flatten_tools_or_toolsets(tools), settings)
        wire.use_new_limit(body, self._endpoint.base_url)
        reply = Reply()
        try:
            await self._ask_in_time(body, reply, streaming_callback)
        except ModelError as fault:
            fault.partial = reply.has_text
            fault.detail = faults.discreet(clean(fault.detail), self._endpoint.api_key.value, _prompts(messages))
            raise
        return {"replies": [reply.message(len(wire.dump(body)), self._endpoint.model_id)]}

    async def _ask_in_time(self, body: dict[str, object], reply: Reply, callback: StreamingCallbackT | None) -> None:
        patience = Patience(self._endpoint)
        try:
            async with patience.timeout:
                await self._ask_again(body, reply, patience, callback)
        except TimeoutError:
            if not reply.complete:
                raise faults.late(self._endpoint, begun=reply.has_begun, silent=not patience.is_spent) from None
        finally:
            patience.forget()

    async def _ask_again(
        self, body: dict[str, object], reply: Reply, patience: Patience, callback: StreamingCallbackT | None
    ) -> None:
        for attempt in range(RETRIES + 1):
            try:
                await self._ask(wire.dump(body), reply, patience, callback)
            except ModelError as fault:
                pause = _pause(fault, attempt, body)
                if pause is None or attempt == RETRIES or reply.has_begun or not await patience.pause(pause):
                    raise
            else:
                return

    async def _ask(self, body: bytes, reply: Reply, patience: Patience, callback: StreamingCallbackT | None) -> None:
        try:
            # Not the client's own `build_request`: that would add the cookies of other providers.
            timeout = {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}
            request = httpx.Request(
                "POST", self._address, headers=self._headers, content=body, extensions={"timeout": timeout}
            )
            response = await self._client.send(request, stream=True, follow_redirects=False)
            try:
                if not response.is_success:
                    raise faults.refused(response.status_code, response.headers, await _beginning(response))
                await self._read(response, reply, patience, callback)
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, EgressRefused) as error:
            if not reply.complete:
                raise faults.broken(error, begun=reply.has_begun) from error

    async def _read(
        self, response: httpx.Response, reply: Reply, patience: Patience, callback: StreamingCallbackT | None
    ) -> None:
        lines = EventLines()
        try:
            async for data in response.aiter_bytes():
                patience.heard()
                for payload in lines.feed(data):
                    reply.add(payload)
                if reply.has_news:
                    await _show(reply, callback)
                if reply.complete:
                    patience.complete()
            if not reply.complete:
                _read_rest(lines, reply)
        except TooLongError:
            raise ModelError(faults.HUGE, "A line of the stream is longer than 16 MB.") from None
        finally:
            # What came before a fault in the same read was said, too.
            await _show(reply, callback)


def _pause(fault: ModelError, attempt: int, body: dict[str, object]) -> float | None:
    """Seconds to wait before asking again; None when that would not help."""
    if isinstance(fault, faults.TransientError):
        return fault.pause if fault.pause is not None else random.uniform(0.2, 0.6) * 2**attempt  # noqa: S311 - jitter
    return 0.0 if fault.message == faults.REJECTED and wire.adapt(body, fault.detail) else None


def _read_rest(lines: EventLines, reply: Reply) -> None:
    """The end of a stream that did not say so: a line without a newline, or a body that is no stream."""
    try:
        for payload in lines.end():
            reply.add(payload)
    except ModelError:
        if reply.has_begun:
            raise ModelError(faults.CUT_OFF, "The stream ended inside an event.") from None
        raise
    body = b"\n".join(lines.strays).strip()
    if body.startswith(b"{"):
        reply.add(body)
    if reply.has_begun and not reply.complete:
        raise ModelError(faults.CUT_OFF, "The stream ended without a finish reason and without [DONE].")
    if not reply.complete:
        raise faults.not_a_stream(body)


async def _show(reply: Reply, callback: StreamingCallbackT | None) -> None:
    reasoning, text = reply.take()
    if callback is None:
        return
    if reasoning:
        await _tell(callback, StreamingChunk("", reasoning=ReasoningContent(reasoning), index=0))
    if text:
        await _tell(callback, StreamingChunk(text, index=0))


async def _tell(callback: StreamingCallbackT, chunk: StreamingChunk) -> None:
    told = callback(chunk)
    if inspect.isawaitable(told):
        await told


async def _beginning(response: httpx.Response) -> bytes:
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > _MAX_ERROR_BODY:
            break
    return body


def _prompts(messages: Sequence[ChatMessage]) -> list[str]:
    texts = [text for message in messages for text in message.texts]
    return texts + [str(result.result) for message in messages for result in message.tool_call_results]
