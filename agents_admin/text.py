"""Text and JSON from people, files, models and tools, made safe once at the edge (security rule 7)."""

import json
import math
import re
from collections.abc import Iterable

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_DIGITS = 300
_MAX_DEPTH = 50


class BadJson(ValueError):  # noqa: N818 - it says what it is
    """JSON that is not accepted; the message says why, in words for people."""


def clean(text: str) -> str:
    """The text with NUL and lone surrogates, which Postgres and UTF-8 can't hold, as U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def cleaned(value: object, depth: int = 0) -> object:
    """`clean` for every string inside a JSON value, keys included. Raises BadJson when it is nested deeper than 50."""
    match value:
        case str():
            return clean(value)
        case dict() | list() if depth == _MAX_DEPTH:
            raise BadJson(f"This JSON is nested deeper than {_MAX_DEPTH} levels.")
        case dict():
            return {clean(str(key)): cleaned(item, depth + 1) for key, item in value.items()}
        case list():
            return [cleaned(item, depth + 1) for item in value]
        case _:
            return value


def read_json(text: str | bytes) -> object:
    """The JSON value of a text, its strings cleaned.

    Raises BadJson for what `json.loads` would let through and nothing else can hold: NaN, Infinity, duplicate keys,
    integers of more than 300 digits, nesting deeper than 50.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_bounded_int,
            parse_float=_finite_float,
            object_pairs_hook=_unique_pairs,
        )
    except UnicodeDecodeError:
        raise BadJson("This is not valid UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"This is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise BadJson(f"This JSON is nested deeper than {_MAX_DEPTH} levels.") from None
    return cleaned(value)


def _refuse_constant(name: str) -> object:
    raise BadJson(f"{name} is not a JSON value.")


def _bounded_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise BadJson(f"A number has more than {_MAX_DIGITS} digits.")
    return int(digits)


def _finite_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise BadJson(f"The number {digits[:40]} is too large.")
    return value


def _unique_pairs(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise BadJson(f"The key “{clean(key)[:80]}” appears twice.")
        result[key] = value
    return result
