"""What a question holds that a tool could use: a sum, a wish to know the time, names, codes and numbers."""

import re
from collections.abc import Iterator
from functools import cache
from zoneinfo import available_timezones

_NUMBER = r"(?:\d+(?:,\d+)*(?:\.\d+)?|\.\d+)"
_OPERATOR = r"(?:\*\*|[-+*/^\N{MULTIPLICATION SIGN}\N{DIVISION SIGN}])"
_EXPRESSION = re.compile(
    rf"[(\s]*(?<![\w.])-?\s*{_NUMBER}(?![\w])(?:\s*\)*\s*{_OPERATOR}\s*[-(\s]*{_NUMBER}(?![\w]))+[\s)]*"
)
_TIGHT = re.compile(r"\d[-/]\d")
_SUM_ONLY = re.compile(
    r"\s*(?:(?:please|can you|could you|so|and|hi|hello)\W+)*"
    r"(?:what is|what's|whats|how much (?:is|are)|calculate|compute|work out|evaluate)?[\s:=]*$",
    re.IGNORECASE,
)
_IN_WORDS = (
    (re.compile(rf"({_NUMBER})\s*(?:%|per ?cent)\s+of\s+({_NUMBER})", re.IGNORECASE), r"\2 * \1 / 100"),
    (re.compile(r"(?<=[\d)])\s*(?:x|times|multiplied by)\s*(?=[\d(.])", re.IGNORECASE), " * "),
    (re.compile(r"(?<=[\d)])\s*(?:divided by|over)\s*(?=[\d(.])", re.IGNORECASE), " / "),
    (re.compile(r"(?<=[\d)])\s*plus\s*(?=[\d(.])", re.IGNORECASE), " + "),
    (re.compile(r"(?<=[\d)])\s*minus\s*(?=[\d(.])", re.IGNORECASE), " - "),
    (re.compile(r"(?<=[\d)])\s*(?:to the power of)\s*(?=[\d(.])", re.IGNORECASE), " ** "),
)
_ASKS_TIME = re.compile(
    r"\bwhat(?:'s| is|s)? (?:the )?(?:exact |local )?(?:time|date)(?: is it)?(?: now| today| in\b.*)?\s*[?.!]*$"
    r"|\bwhat time is it\b|\b(?:current|today's|todays) (?:time|date)\b|\b(?:time|date) (?:right )?now\b"
    r"|\b(?:what|which) (?:week)?day (?:is (?:it|today)|of the week)\b"
    r"|\b(?:what|which) (?:year|month) is (?:it|this)\b",
    re.IGNORECASE,
)
_ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_/+-]+|\bUTC\b")
_CODE = re.compile(r"#?\b(?=[\w-]*\d)[A-Za-z0-9][\w-]*\b")
_QUOTED = re.compile(
    r"[\"\N{LEFT DOUBLE QUOTATION MARK}]([^\"\N{RIGHT DOUBLE QUOTATION MARK}]+)[\"\N{RIGHT DOUBLE QUOTATION MARK}]"
)
_PROPER = re.compile(r"(?<=[\w,] )[A-Z]\w+(?: [A-Z]\w+)*")
_PLAIN_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")


def expression(question: str) -> str:
    """The arithmetic in a question, words for operators included; empty when there is none."""
    text = question
    for pattern, instead in _IN_WORDS:
        text = pattern.sub(instead, text)
    for found in _EXPRESSION.finditer(text):
        # 9-17, 24/7 and 2026-11-30 are sums only when the question is nothing else.
        if _TIGHT.search(found[0]) and not _is_alone(text, found):
            continue
        return _balanced(found[0].strip())
    return ""


def _is_alone(text: str, found: re.Match[str]) -> bool:
    return bool(_SUM_ONLY.match(text[: found.start()])) and not text[found.end() :].strip(" ?=.!")


def _balanced(text: str) -> str:
    while text.count("(") > text.count(")") and "(" in text:
        text = text.replace("(", "", 1)
    while text.count(")") > text.count("("):
        text = "".join(text.rsplit(")", 1))
    return text.strip()


def asks_time(question: str) -> bool:
    return bool(_ASKS_TIME.search(question))


def time_zone(question: str) -> str:
    """A zone that is named, or the one of a city that gives its name to a zone; empty when there is none."""
    named = _ZONE.search(question)
    cities = (city for city in _PROPER.findall(question) if city in _zones_by_city())
    return named[0] if named else next((_zones_by_city()[city] for city in cities), "")


def names(question: str) -> Iterator[str]:
    """What names one thing in a text: something quoted, a code with digits, a name in the middle of a sentence."""
    yield from _QUOTED.findall(question)
    yield from (code.lstrip("#") for code in _CODE.findall(question))
    yield from _PROPER.findall(question)


def numbers(question: str) -> Iterator[str]:
    yield from _PLAIN_NUMBER.findall(question)


@cache
def _zones_by_city() -> dict[str, str]:
    return {zone.rsplit("/", 1)[-1].replace("_", " "): zone for zone in sorted(available_timezones()) if "/" in zone}
