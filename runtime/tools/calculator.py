"""Arithmetic as people write it, rewritten to a small part of Python's grammar that `arithmetic` works out exactly."""

import re
from collections.abc import Iterator, Mapping
from uuid import UUID

from agents_admin.text import clean
from runtime.ports import Call, Ports, ToolResult
from runtime.spec import ToolSpec
from runtime.tools.arithmetic import FUNCTIONS, CalculatorError, evaluate, shown

_MAX_LENGTH = 2_000
_SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"
_SIGNS = str.maketrans(
    {
        "\N{MULTIPLICATION SIGN}": "*",
        "\N{MIDDLE DOT}": "*",
        "\N{DIVISION SIGN}": "/",
        "\N{MINUS SIGN}": "-",
        "\N{EN DASH}": "-",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "^": "**",
    }
)
_TOKEN = re.compile(
    rf"""
    (?P<space>[\s{_SPACES}]+)
  | (?P<grouped>\d{{1,3}}(?P<mark>[,_'{_SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*(?![\d_])(?:\.\d+)?)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<modulo>%(?=[\s{_SPACES}]*(?!of\b)[\w.(]))
  | (?P<percent>%|per\ ?cent\b)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<open>[(\[])
  | (?P<close>[)\]])
  | (?P<comma>,)
  | (?P<operator>\*\*|//|[-+*/])
    """,
    re.VERBOSE | re.ASCII,
)

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "expression": {
            "type": "string",
            "description": (
                "The calculation, for example (1249 + 51) * 0.21, 20% of 50, 2 ** 10 or round(10 / 3, 2). "
                f"Functions: {', '.join(FUNCTIONS)}."
            ),
        }
    },
    "required": ["expression"],
    "additionalProperties": False,
}


def build(tool: ToolSpec, ports: Ports) -> tuple[Mapping[str, object], Call]:
    """One parameter, `expression`."""

    async def call(arguments: Mapping[str, object], call_id: UUID) -> ToolResult:
        expression = clean(str(arguments["expression"])).strip()
        try:
            return ToolResult(f"{expression} = {work_out(expression)}")
        except CalculatorError as error:
            return ToolResult(str(error), False, "invalid")

    return SCHEMA, call


def work_out(expression: str) -> str:
    """The result as digits, with “(rounded)” where digits are missing. Raises CalculatorError in words."""
    if len(expression) > _MAX_LENGTH:
        raise CalculatorError(f"The calculation is longer than {_MAX_LENGTH:,} characters. Split it into parts.")
    return shown(evaluate(" ".join(_rewritten(expression.strip(" =?").translate(_SIGNS)))))


def _rewritten(text: str) -> Iterator[str]:
    """Python tokens of the same meaning. A percentage becomes an attribute, the tightest postfix that Python has."""
    lists: list[bool] = []  # for each open bracket, whether commas separate values in it
    before = ""
    for token in _tokens(text):
        match token.lastgroup:
            case "number" | "grouped":
                yield _number(token, in_list=lists[-1:] == [True])
            case "percent":
                yield ".percent"
            case "word":
                yield _word(token[0].lower(), before)
            case "open":
                lists.append(token[0] == "[" or before == "word")
                yield token[0]
            case "close":
                del lists[-1:]
                yield token[0]
            case "comma" if lists[-1:] != [True]:
                raise CalculatorError("Write decimals with a point, and thousands like 1,249 or 1249.")
            case _:
                yield token[0]
        before = token.lastgroup or ""


def _tokens(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise CalculatorError(f"“{text[position]}” can't be used in a calculation.")
        if token.lastgroup != "space":
            yield token
        position = token.end()


def _number(token: re.Match[str], *, in_list: bool) -> str:
    """The digits without marks between thousands and without the leading zeros that Python refuses."""
    if in_list and token["mark"] == ",":
        one, two = token[0].replace(",", ""), token[0].replace(",", ", ")
        raise CalculatorError(f"“{token[0]}” can be read in two ways here: write {one} or {two}.")
    return re.sub(r"^0+(?=\d)", "", token[0].replace(token["mark"] or "_", ""))


def _word(word: str, before: str) -> str:
    if word == "x" or (word == "of" and before == "percent"):
        return "*"
    if word in FUNCTIONS:
        return word
    raise CalculatorError(f"“{word[:40]}” is not known here. Use numbers and: {', '.join(FUNCTIONS)}.")
