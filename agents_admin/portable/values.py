"""What is written in a bundle, as the values of fields and of settings."""

import math
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import models

from agents_admin.portable.problem import BundleError, Problem, refuse
from agents_admin.portable.reading import Group, Items, Node, Scalar

_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def group(node: Node, known: Collection[str]) -> Group:
    """The node as a group of known keys."""
    if not isinstance(node, Group):
        raise refuse(node.line, node.field, f"This must be a group of: {', '.join(known)}.")
    strange = [value for key, value in node.entries.items() if key not in known]
    if strange:
        words = f"There is no such key here. Known: {', '.join(known)}."
        raise BundleError([Problem(value.line, value.field, words) for value in strange])
    return node


def items(node: Node) -> tuple[Node, ...]:
    """The entries of a list; nothing (null) is an empty one."""
    if isinstance(node, Scalar) and node.is_null:
        return ()
    if not isinstance(node, Items):
        raise refuse(node.line, node.field, "This must be a list.")
    return node.items


def text(node: Node) -> str:
    if not isinstance(node, Scalar):
        raise refuse(node.line, node.field, "This must be text, not a list or a group.")
    return "" if node.is_null else node.text


def texts(node: Node) -> list[str]:
    return [text(item) for item in items(node)]


def value(field: "models.Field[Any, Any]", node: Node) -> object:
    """The scalar as the field's type; its range and choices are the row's to check."""
    if not isinstance(node, Scalar):
        raise refuse(node.line, node.field, "This must be a single value, not a list or a group.")
    if node.is_null:
        return None if field.null else field.get_default()
    for cls, (convert, words) in _TYPES.items():
        if isinstance(field, cls):
            try:
                return convert(node.text.strip())
            except (ValueError, KeyError, InvalidOperation):
                raise refuse(node.line, node.field, f"“{node.text[:60]}” is not {words}.") from None
    return node.text.strip() if isinstance(field, models.CharField) else node.text


def plain(node: Node) -> Any:
    """The node as JSON: what a tool's settings are stored as."""
    match node:
        case Group():
            return {key: plain(entry) for key, entry in node.entries.items()}
        case Items():
            return [plain(entry) for entry in node.items]
        case Scalar(type="null"):
            return None
        case Scalar(type="str"):
            return node.text
        case _:
            convert, words = _JSON[node.type]
            try:
                return convert(node.text)
            except (ValueError, KeyError):
                raise refuse(node.line, node.field, f"“{node.text[:60]}” is not {words}.") from None


def _whole(written: str) -> int:
    if len(written) > 18:
        raise ValueError(written)
    return int(written)


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(written)
    return number


def _exact(written: str) -> Decimal:
    number = Decimal(written)
    if not number.is_finite():
        raise ValueError(written)
    return number


def _yes_no(written: str) -> bool:
    return _YES_NO[written.lower()]


type _Conversion = tuple[Callable[[str], object], str]
_JSON: Mapping[str, _Conversion] = {
    "int": (_whole, "a whole number"),
    "float": (_finite, "a number"),
    "bool": (_yes_no, "yes or no"),
}
_TYPES: Mapping[type, _Conversion] = {
    models.BooleanField: _JSON["bool"],
    models.IntegerField: _JSON["int"],
    models.FloatField: _JSON["float"],
    models.DecimalField: (_exact, "a number"),
}
