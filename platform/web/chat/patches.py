"""A page as slots that are filled: the same patches make a live page (htmx) and a page that is loaded later.

A template declares a slot inside an element of the same id: `<div id="x"><!--slot x-->at first<!--end--></div>`.
No escaped text and nothing that `web.markdown` lets through holds a comment, so people can't declare any.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_SLOT = re.compile(r"<!--slot ([\w-]+)-->(.*?)<!--end-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Patch:
    """Safe HTML that replaces what is in a slot, or comes after it. A slot that a page doesn't have is no error."""

    slot: str
    html: str
    append: bool = False

    def for_htmx(self) -> str:
        """The out-of-band fragment. CR would end a line of the event stream, so it travels as a reference."""
        how = "beforeend" if self.append else "innerHTML"
        return f'<div hx-swap-oob="{how}:#{self.slot}">{shown(self.html)}</div>'


def shown(html: str) -> str:
    """The HTML without the marks of its slots."""
    if "<!--slot " in html:
        html = _SLOT.sub(r"\2", html)
    return html.replace("\r", "&#13;")


def for_htmx(patches: Iterable[Patch]) -> str:
    return "".join(patch.for_htmx() for patch in patches)


@dataclass(slots=True)
class Slot:
    parts: "list[str | Slot]" = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


class Document:
    """A page, or a part of one, that patches are applied to."""

    def __init__(self, html: str) -> None:
        self._slots: dict[str, Slot] = {}
        self._root = Slot(self._parsed(html))

    def apply(self, patch: Patch) -> None:
        slot = self._slots.get(patch.slot)
        if slot is None:
            return
        if not patch.append:
            slot.parts.clear()
        slot.parts.extend(self._parsed(patch.html))

    def __str__(self) -> str:
        return str(self._root)

    def _parsed(self, html: str) -> "list[str | Slot]":
        if "<!--slot " not in html:
            return [html]
        parts: list[str | Slot] = []
        pieces = iter(_SLOT.split(html))
        for text in pieces:
            parts.append(text)
            if name := next(pieces, ""):
                parts.append(slot := Slot([next(pieces)]))
                self._slots[name] = slot
        return parts
