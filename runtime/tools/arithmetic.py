"""A bounded walk over `ast` nodes with exact fractions. Nothing is evaluated by Python itself."""

import ast
import math
from collections.abc import Callable
from decimal import Context, Decimal, DecimalException, Inexact
from fractions import Fraction

_MAX_BITS = 4_000
_MAX_DIGITS = 1_200
_MAX_EXPONENT = 1_000
_MAX_PLACES = 100
_MAX_DEPTH = 50
_INEXACT = Context(prec=50, Emax=_MAX_DIGITS, Emin=-_MAX_DIGITS)
_EXACT_DIGITS = 30
_EXACT_INTEGER_DIGITS = 100
_ROUNDED_DIGITS = 15


class CalculatorError(ValueError):
    """A calculation that can't be done; the message says why and what to write instead."""


def evaluate(source: str) -> Fraction:
    """The value of one line of Python grammar in which numbers, `+ - * / // % **`, brackets, known functions and the
    attribute `.percent` may occur."""
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CalculatorError(_UNREADABLE) from None
    return _Walk(source).value(tree.body, 0)


def shown(value: Fraction) -> str:
    """All digits of a value that has few, else 15 significant ones and “(rounded)”."""
    if value.denominator == 1 and abs(value) < 10**_EXACT_INTEGER_DIGITS:
        return str(value.numerator)
    exact = Context(prec=_EXACT_DIGITS, traps=[Inexact])
    try:
        return _plain(exact.divide(Decimal(value.numerator), Decimal(value.denominator)))
    except Inexact:
        rounded = Context(prec=_ROUNDED_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
        return f"{_plain(rounded)} (rounded)"


def _plain(number: Decimal) -> str:
    number = number.normalize()
    return f"{number:f}" if -20 < number.adjusted() < _EXACT_DIGITS else str(number).replace("E", "e")


class _Walk:
    def __init__(self, source: str) -> None:
        self._source = source

    def value(self, node: ast.expr, depth: int) -> Fraction:
        if depth > _MAX_DEPTH:
            raise CalculatorError(f"The calculation is nested deeper than {_MAX_DEPTH} levels. Split it into parts.")
        match node:
            case ast.Constant():
                return _literal(self._source[node.col_offset : node.end_col_offset])
            case ast.BinOp():
                return self._chain(node, depth + 1)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.value(operand, depth + 1)
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.value(operand, depth + 1)
            case ast.Attribute(percent, "percent"):
                return self.value(percent, depth + 1) / 100
            case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS:
                return _bounded(FUNCTIONS[name]([self.value(item, depth + 1) for item in _flat(arguments)]))
            case _:
                raise CalculatorError(_UNREADABLE)

    def _chain(self, node: ast.expr, depth: int) -> Fraction:
        """`a + b + c …` from left to right in a loop, so that a long sum is not a deep one."""
        rest: list[tuple[type[ast.operator], ast.expr]] = []
        while isinstance(node, ast.BinOp):
            rest.append((type(node.op), node.right))
            node = node.left
        total = self.value(node, depth)
        for operator, right in reversed(rest):
            if operator not in _OPERATORS:
                raise CalculatorError(_UNREADABLE)
            total = _bounded(_OPERATORS[operator](total, self.value(right, depth)))
        return total


def _flat(arguments: list[ast.expr]) -> list[ast.expr]:
    """`sum([1, 2])` as `sum(1, 2)`."""
    return [
        item for argument in arguments for item in (argument.elts if isinstance(argument, ast.List) else [argument])
    ]


def _literal(text: str) -> Fraction:
    exponent = text.lower().partition("e")[2]
    if len(exponent) > 5 or abs(int(exponent or 0)) > _MAX_EXPONENT:
        raise CalculatorError(f"“{text[:40]}” is out of range: exponents go to {_MAX_EXPONENT:,}.")
    return _bounded(Fraction(text))


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise CalculatorError(_TOO_LONG)
    return value


def _divisor(value: Fraction) -> Fraction:
    if not value:
        raise CalculatorError("Nothing can be divided by zero.")
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if base == 0 and exponent < 0:
        return _divisor(base)
    if abs(exponent) > _MAX_EXPONENT and abs(base) not in (0, 1):
        raise CalculatorError(f"The exponent is too large: exponents go to {_MAX_EXPONENT:,}.")
    if exponent.denominator != 1:
        return _root(base, exponent)
    if abs(base) == 1:
        return base if exponent % 2 else Fraction(1)
    # Sizes are told before the work is done: the power of a number of n bits has more than (n - 1) * exponent bits.
    if (max(base.numerator.bit_length(), base.denominator.bit_length()) - 1) * abs(exponent) > _MAX_BITS:
        raise CalculatorError(_TOO_LONG)
    return base**exponent.numerator


def _root(base: Fraction, exponent: Fraction) -> Fraction:
    if base < 0:
        raise CalculatorError("A negative number has no such root or broken power.")
    try:
        return Fraction(_INEXACT.power(_decimal(base), _decimal(exponent)))
    except DecimalException:
        raise CalculatorError("The result is too large or too small to work with.") from None


def _decimal(value: Fraction) -> Decimal:
    return _INEXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


def _sqrt(values: list[Fraction]) -> Fraction:
    (value,) = _counted(values, "sqrt", 1, 1)
    if value < 0:
        raise CalculatorError("A negative number has no square root.")
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return root if root * root == value else _root(value, Fraction(1, 2))


def _round(values: list[Fraction]) -> Fraction:
    """Halves away from zero, as people round; not to even, as Python does."""
    value, *rest = _counted(values, "round", 1, 2)
    places = rest[0] if rest else Fraction(0)
    if places.denominator != 1 or abs(places) > _MAX_PLACES:
        raise CalculatorError(f"Digits to round to must be a whole number up to {_MAX_PLACES}.")
    unit = Fraction(10) ** places.numerator
    whole = math.floor(abs(value) * unit + Fraction(1, 2)) / unit
    return -whole if value < 0 else whole


def _absolute(values: list[Fraction]) -> Fraction:
    return abs(_counted(values, "abs", 1, 1)[0])


def _counted(values: list[Fraction], name: str, least: int, most: int) -> list[Fraction]:
    if not least <= len(values) <= most:
        raise CalculatorError(f"{name}(…) takes {least if least == most else f'{least} to {most}'} value(s).")
    return values


def _any_number(name: str, function: Callable[[list[Fraction]], Fraction]) -> Callable[[list[Fraction]], Fraction]:
    return lambda values: function(_counted(values, name, 1, 1_000))


FUNCTIONS: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "sqrt": _sqrt,
    "round": _round,
    "min": _any_number("min", min),
    "max": _any_number("max", max),
    "abs": _absolute,
    "sum": _any_number("sum", lambda values: sum(values, Fraction(0))),
}
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / _divisor(right),
    ast.FloorDiv: lambda left, right: Fraction(left // _divisor(right)),
    ast.Mod: lambda left, right: left % _divisor(right),
    ast.Pow: _power,
}
_TOO_LONG = f"The numbers get longer than {_MAX_DIGITS:,} digits, which is too long to work with."
_UNREADABLE = "This can't be read as a calculation. Write it like (1249 + 51) * 0.21."
