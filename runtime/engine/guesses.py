"""Which tool a question is for, and with which arguments, guessed from keywords and from the tools' own schemas."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from haystack.tools.tool import Tool

from runtime.engine import questions
from runtime.engine.keywords import words

type Json = Mapping[str, object]

_ARITHMETIC = words("calculator calculates arithmetic numbers figures mathematics maths sums computes percentages")
_TIME = words("clock time date calendar hour")
_READ_CHARS = 2_000
_FREE_TEXT = frozenset({"q", "query", "question", "search", "text", "term", "terms", "keywords", "input", "message"})


@dataclass(frozen=True, slots=True)
class Guess:
    tool: Tool
    arguments: dict[str, object]


def guess(question: str, tools: Sequence[Tool], tried: Collection[str]) -> Guess | None:
    """The next call worth making: a tool made for it, else the one that shares most words with the question.

    Delegates and memories are asked even without a shared word, in order; other tools never.
    """
    untried = [tool for tool in tools if tool.name not in tried]
    gist = question[:_READ_CHARS]
    made_for_it = next(_made_for(gist, untried), None)
    if made_for_it is not None:
        return made_for_it
    about, weights = _about(gist), _weights(tools)
    guesses = [
        (sum(weights[word] for word in about & _words_of(tool)), Guess(tool, arguments))
        for tool in untried
        if (arguments := _arguments(question, tool)) is not None
    ]
    worth = [(score, found) for score, found in guesses if score or _seeks(found.tool)]
    return max(worth, key=lambda pair: pair[0])[1] if worth else None


def is_small_talk(question: str) -> bool:
    """Whether there is nothing in it that could be looked up."""
    gist = question[:_READ_CHARS]
    return not (
        words(question) or questions.expression(gist) or questions.asks_time(gist) or any(questions.names(gist))
    )


def _made_for(question: str, tools: Sequence[Tool]) -> Iterator[Guess]:
    if found := questions.expression(question):
        yield from (Guess(tool, {"expression": found}) for tool in tools if _is_calculator(tool))
    if questions.asks_time(question):
        zone = questions.time_zone(question)
        yield from (Guess(tool, {"timezone": zone} if zone else {}) for tool in tools if _is_clock(tool))


def _arguments(question: str, tool: Tool) -> dict[str, object] | None:
    if _is_delegate(tool):
        return {"task": question}
    if _is_memory(tool):
        return {"query": question}
    if _is_calculator(tool) or _is_clock(tool):
        return None
    return _filled(question[:_READ_CHARS], tool)


def _seeks(tool: Tool) -> bool:
    return _is_delegate(tool) or _is_memory(tool)


def _is_delegate(tool: Tool) -> bool:
    return "task" in _properties(tool)


def _is_memory(tool: Tool) -> bool:
    return list(_properties(tool)) == ["query"]


def _is_calculator(tool: Tool) -> bool:
    return "expression" in _properties(tool)


def _is_clock(tool: Tool) -> bool:
    return "timezone" in _properties(tool) and not _required(tool)


def _about(question: str) -> frozenset[str]:
    """The question's words, and what a sum or a question for the time is about without saying so."""
    about = words(question)
    if questions.expression(question):
        about |= _ARITHMETIC
    if questions.asks_time(question):
        about |= _TIME
    return about


def _weights(tools: Sequence[Tool]) -> Mapping[str, float]:
    """A word that several tools have in common tells less."""
    holders = Counter(word for tool in tools for word in _words_of(tool))
    return {word: 1 / count for word, count in holders.items()}


def _words_of(tool: Tool) -> frozenset[str]:
    return words(f"{tool.name} {tool.description}")


def _filled(question: str, tool: Tool) -> dict[str, object] | None:
    """The required arguments as far as the question holds them; None when one is missing."""
    properties, taken = _properties(tool), set[str]()
    arguments: dict[str, object] = {}
    for name in _required(tool):
        value = _value(name, _object(properties.get(name)), question, taken)
        if value is None:
            return None
        arguments[name] = value
    return arguments


def _value(name: str, schema: Json, question: str, taken: set[str]) -> object:
    choices = schema.get("enum")
    if isinstance(choices, list):
        said = question.lower()
        return next((choice for choice in choices if str(choice).lower() in said), None)
    match schema.get("type", "string"):
        case "string" if name.lower() in _FREE_TEXT:
            return question
        case "string":
            return _first(questions.names(question), taken)
        case "integer" | "number" as kind:
            number = _first(questions.numbers(question), taken)
            return number if number is None else float(number) if kind == "number" else int(float(number))
        case _:
            return None


def _first(found: Iterable[str], taken: set[str]) -> str | None:
    """The first that no other argument has taken."""
    value = next((one for one in found if one not in taken), None)
    if value is not None:
        taken.add(value)
    return value


def _properties(tool: Tool) -> Json:
    return _object(tool.parameters.get("properties"))


def _required(tool: Tool) -> list[str]:
    names = tool.parameters.get("required")
    return [str(name) for name in names] if isinstance(names, list) else []


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
