"""The provider kind `offline`: no model, no network. It follows keywords, asks tools and quotes what they return."""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from uuid import uuid4

from haystack import component
from haystack.dataclasses import ChatMessage, ChatRole, StreamingChunk, ToolCall, ToolCallResult
from haystack.dataclasses.streaming_chunk import StreamingCallbackT
from haystack.tools import ToolsType, flatten_tools_or_toolsets
from haystack.tools.tool import Tool

from runtime.engine.guesses import Guess, guess, is_small_talk
from runtime.engine.keywords import best_quote
from runtime.engine.model import AsyncOnly
from runtime.ports import CONSULTED, NOTHING_FOUND, TASK_FOLLOWS

DISCLAIMER = "I am not a language model: I followed keywords and repeat what I found."

_MODEL = "offline"
_QUOTED_CHARS = 1_500
_PASSAGE = re.compile(r"^\[\d+\] (?P<source>[^\n]+?, passage \d+): ", re.MULTILINE)
_MEMORY = re.compile(r"Found in ([^\n]+):\n")
_UNDER = re.compile(r"\s*\(under: ([^\n]+)\)\s*$")
_WORDS = re.compile(r"\s*\S+\s*|\s+")


@component
class OfflineChat(AsyncOnly):
    """Answers like a chat generator, by general rules.

    A question goes to the tool that fits; when none does, delegates and memories are asked in order until one finds
    something. A tool that found nothing says so by a result that begins with `NOTHING_FOUND`, as answers from here do.
    """

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, object] | None = None,
        tools: ToolsType | None = None,
    ) -> dict[str, list[ChatMessage]]:
        answer = _answer(_turn(messages), flatten_tools_or_toolsets(tools))
        if isinstance(answer, Guess):
            call = ToolCall(answer.tool.name, answer.arguments, id=str(uuid4()))
            return {"replies": [ChatMessage.from_assistant("", tool_calls=[call], meta=_meta("tool_calls"))]}
        if streaming_callback is not None:
            await _say(answer, streaming_callback)
        return {"replies": [ChatMessage.from_assistant(answer, meta=_meta("stop"))]}


async def _say(answer: str, callback: StreamingCallbackT) -> None:
    for word in _WORDS.findall(answer):
        told = callback(StreamingChunk(word, index=0))
        if inspect.isawaitable(told):
            await told


@dataclass(frozen=True, slots=True)
class _Turn:
    """What was asked last, and what tools have said about it since."""

    question: str
    results: Sequence[ToolCallResult]


def _turn(messages: Sequence[ChatMessage]) -> _Turn:
    """A user message right after a tool's result is no question: it asks to write up what was found."""
    question, results, before = "", list[ToolCallResult](), None
    for message in messages:
        if message.role is ChatRole.USER and before is not ChatRole.TOOL:
            question, results = "\n".join(message.texts), []
        results.extend(message.tool_call_results)
        before = message.role
    return _Turn(question.rpartition(TASK_FOLLOWS)[2].strip(), results)


def _answer(turn: _Turn, tools: Sequence[Tool]) -> str | Guess:
    useful = next((result for result in reversed(turn.results) if _is_useful(result)), None)
    if useful is not None:
        return f"{_told(turn.question, useful)}\n\n{DISCLAIMER}"
    if is_small_talk(turn.question):
        return _introduction(tools)
    tried = [result.origin.tool_name for result in turn.results]
    return guess(turn.question, tools, tried) or _nothing(turn.question, tried)


def _is_useful(result: ToolCallResult) -> bool:
    text = _text(result).strip()
    return bool(text) and not result.error and not text.startswith(NOTHING_FOUND)


def _told(question: str, result: ToolCallResult) -> str:
    """A result in words, by what its tool was asked: a sum, a search, a task, or anything else."""
    asked, text = result.origin.arguments, _text(result).strip()
    name = _spoken(result.origin.tool_name)
    if "expression" in asked:
        return text if "=" in text else f"{asked['expression']} = {text} ({name})"
    if "task" in asked:
        return _passed_on(text, name)
    if _PASSAGE.search(text):
        return _cited(question, text)
    return f"{name.capitalize()} says:\n\n{_block(text)}"


def _passed_on(text: str, name: str) -> str:
    """A delegate's answer without the list of what it consulted; one from here needs no second introduction."""
    answer = text.partition(f"\n\n{CONSULTED}")[0].strip()
    if DISCLAIMER in answer:
        return answer.replace(DISCLAIMER, "").strip()
    return f"{name.capitalize()} says:\n\n{_block(answer)}"


def _cited(question: str, text: str) -> str:
    """The best sentences of all passages with their source, and where else something was found."""
    passages = list(_passages(text))
    quotes = [best_quote(question, passage.text, passage.source) for passage in passages]
    best = max(range(len(passages)), key=lambda place: quotes[place].score)
    others = [passage.source for place, passage in enumerate(passages) if place != best]
    also = f"\n\nAlso found: {'; '.join(others)}." if others else ""
    return f"{_block(quotes[best].text)}\n\nSource: {passages[best].source}.{also}"


@dataclass(frozen=True, slots=True)
class _Found:
    source: str
    text: str


def _passages(text: str) -> Iterator[_Found]:
    """What runtime.tools.search wrote, read back."""
    memory = _MEMORY.match(text)
    heads = list(_PASSAGE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        body = text[head.end() : end].strip()
        under = _UNDER.search(body)
        source = head["source"]
        source += f", under \N{LEFT DOUBLE QUOTATION MARK}{under[1]}\N{RIGHT DOUBLE QUOTATION MARK}" if under else ""
        source += f" ({memory[1]})" if memory else ""
        yield _Found(source, _UNDER.sub("", body).removeprefix('"').removesuffix('"'))


def _nothing(question: str, tried: Sequence[str]) -> str:
    about = shorten(question, 200, placeholder=" \N{HORIZONTAL ELLIPSIS}")
    names = ", ".join(_spoken(name) for name in dict.fromkeys(tried))
    asked = f"I asked: {names}." if names else "There is nobody and nothing here that I could ask."
    words = f"{NOTHING_FOUND} about \N{LEFT DOUBLE QUOTATION MARK}{about}\N{RIGHT DOUBLE QUOTATION MARK}. {asked}"
    return f"{words}\n\n{DISCLAIMER}"


def _introduction(tools: Sequence[Tool]) -> str:
    can = ", ".join(_spoken(tool.name) for tool in tools)
    offer = (
        f"Ask me something that one of these can answer: {can}."
        if can
        else "There is nobody and nothing here that I could ask."
    )
    return f"Hello. I am not a language model: I follow keywords and repeat what I find. {offer}"


def _spoken(name: str) -> str:
    """A tool's name as words; delegates are `ask_…`, memories `search_…`."""
    return " ".join(re.split(r"[_\W]+", name.removeprefix("ask_").removeprefix("search_"))).strip()


def _block(text: str) -> str:
    if len(text) > _QUOTED_CHARS:
        text = text[:_QUOTED_CHARS] + " \N{HORIZONTAL ELLIPSIS}"
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _text(result: ToolCallResult) -> str:
    return result.result if isinstance(result.result, str) else ""


def _meta(finish: str) -> dict[str, object]:
    # No model, so no tokens: nothing is estimated.
    return {"model": _MODEL, "finish_reason": finish, "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
