"""Text that models, tools and people wrote may hold signs that turn the direction of what follows: it stays theirs."""

import re

_SIGNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CLOSED_BY = {"\u202a": "\u202c", "\u202b": "\u202c", "\u2066": "\u2069", "\u2067": "\u2069", "\u2068": "\u2069"}
_CLOSES = frozenset(_CLOSED_BY.values())
_DEEPEST = 125
"""What Unicode lets nest (UAX 9); it also bounds the search for what a sign closes."""


def contained(text: str) -> str:
    """What sets a direction stays where its own line closes it again; overrides, which write backwards, go."""
    if not _SIGNS.search(text):
        return text
    return "".join(map(_contained_line, text.splitlines(keepends=True)))


def _contained_line(line: str) -> str:
    kept: set[int] = set()
    opened: list[int] = []
    for sign in _SIGNS.finditer(line):
        place, which = sign.start(), sign[0]
        if which in _CLOSED_BY and len(opened) < _DEEPEST:
            opened.append(place)
        elif which in _CLOSES:
            depth = next((n for n in reversed(range(len(opened))) if _CLOSED_BY[line[opened[n]]] == which), None)
            if depth is not None:
                kept |= {opened[depth], place}
                del opened[depth:]
    return _SIGNS.sub(lambda sign: sign[0] if sign.start() in kept else "", line)
