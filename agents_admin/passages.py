"""Text and Markdown cut into passages: the pieces that are found and cited. Plain functions, any script."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

TARGET = 900
"""Characters a passage is filled up to with whole paragraphs."""
LONGEST = 1_600
"""Characters no passage exceeds: a longer paragraph is cut between sentences, then between words."""
PATH_MARK = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
_HEADING_LENGTH = 300

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_SENTENCE_END = re.compile(r"(?<=[.!?\u2026\u061f\u0964])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")


@dataclass(frozen=True, slots=True)
class Passage:
    """`heading` is the path of headings it stands under, outermost first."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading (`level` 1 to 6) or a paragraph (`level` 0)."""

    level: int
    text: str


def split(text: str) -> Iterator[Passage]:
    """The passages in the order of the text. No passage crosses a heading."""
    path: list[tuple[int, str]] = []
    gathered: list[str] = []
    bare = False
    for block in _blocks(text):
        if not block.level:
            gathered.append(block.text)
            bare = False
            continue
        yield from _section(path, gathered)
        if bare and path[-1][0] >= block.level:
            yield _bare(path)
        path = [outer for outer in path if outer[0] < block.level] + [(block.level, block.text)]
        gathered = []
        bare = True
    yield from _section(path, gathered)
    if bare:
        yield _bare(path)


def _section(path: list[tuple[int, str]], paragraphs: list[str]) -> Iterator[Passage]:
    heading = _heading(path)
    for piece in _filled(paragraphs):
        yield Passage(heading, piece)


def _bare(path: list[tuple[int, str]]) -> Passage:
    """A heading with nothing under it is still something that was written."""
    return Passage(_heading(path[:-1]), path[-1][1][:LONGEST])


def _heading(path: list[tuple[int, str]]) -> str:
    return PATH_MARK.join(title for _, title in path)[:_HEADING_LENGTH]


def _blocks(text: str) -> Iterator[_Block]:
    lines: list[str] = []
    for line, code in _marked(text):
        title = None if code else _HEADING.match(line)
        underline = None if code or len(lines) != 1 else _UNDERLINE.match(line)
        if underline:
            yield _Block(1 if underline[1][0] == "=" else 2, lines.pop().strip())
        elif title or not (code or line.strip()):
            if lines:
                yield _Block(0, "\n".join(lines))
                lines = []
            if title and title[2]:
                yield _Block(len(title[1]), title[2])
        else:
            lines.append(line)
    if lines:
        yield _Block(0, "\n".join(lines))


def _marked(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code: between fences an empty line ends nothing and `#` is no heading."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        yield line, bool(fence or mark)
        if fence and mark and mark[1].startswith(fence):
            fence = ""
        elif mark and not fence:
            fence = mark[1]


def _filled(paragraphs: list[str]) -> Iterator[str]:
    """Paragraphs joined up to TARGET characters."""
    current = ""
    for paragraph in paragraphs:
        for piece in _short(paragraph.strip("\n")):
            if current and len(current) + 2 + len(piece) > TARGET:
                yield current
                current = piece
            else:
                current = f"{current}\n\n{piece}" if current else piece
    if current:
        yield current


def _short(paragraph: str) -> Iterator[str]:
    """The paragraph, or its sentences joined up to TARGET characters when it is longer than LONGEST."""
    if len(paragraph) <= LONGEST:
        if paragraph.strip():
            yield paragraph
        return
    current = ""
    for sentence in _sentences(paragraph):
        if current and len(current) + len(sentence) > TARGET:
            yield current.strip()
            current = ""
        current += sentence
    if current.strip():
        yield current.strip()


def _sentences(paragraph: str) -> Iterator[str]:
    """Sentences with the space after them, none longer than TARGET."""
    cuts = [0, *(found.end() for found in _SENTENCE_END.finditer(paragraph)), len(paragraph)]
    for start, end in pairwise(cuts):
        while end - start > TARGET:
            space = paragraph.rfind(" ", start + 1, start + TARGET)
            cut = space + 1 if space > start else start + TARGET
            yield paragraph[start:cut]
            start = cut  # noqa: PLW2901 - what is left of the sentence
        if end > start:
            yield paragraph[start:end]
