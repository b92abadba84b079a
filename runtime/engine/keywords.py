"""Words that tell what a text is about, and the sentences of a passage that hold most of them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

_WORD = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}]\w+)?")
_STEM_LENGTH = 6
_IN_ONE_SENTENCE = 400

# What questions are made of, and how people greet: it says nothing about the matter.
_EMPTY_WORDS = (
    "a about actually again all also am an and any anybody anyone anything are as ask at be been before being but by "
    "bye can ciao come could dear did do does doing done each else ever every explain few find for from get gets "
    "getting give given go good goodbye got had hallo happen has have having hello help her here hey hi him his hola "
    "how i if in into is it its just know let like look lot make many may me might more morning most much must my "
    "name need no not now of off ok okay on one only or other our out over please possible really same say see "
    "shall she should show so some somebody someone something still such sure take tell than thank thanks that the "
    "their them then there these they thing think this those to today too try under until up us use used very want "
    "was we well were what when where whether which while who whom whose why will with "
    "without would yes yet you your"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|half|no|none|never)\b",
    re.IGNORECASE,
)
_ASKS_FOR_NUMBER = re.compile(
    r"\b(how (many|much|long|often|far|old|big)|what (time|percentage|rate|amount)|when)\b", re.IGNORECASE
)
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=[ \t]*(?:[-*\N{BULLET}|#]|\d+[.)])\s?)")
_ITEM = re.compile(r"[ \t]*(?:[-*\N{BULLET}]|\d+[.)])[ \t]+")
_RULE = re.compile(r"\s*\|?[\s|:-]*--[\s|:-]*$")
_SENTENCE = re.compile(r"(?<=[.!?\N{HORIZONTAL ELLIPSIS}])[\"\N{RIGHT DOUBLE QUOTATION MARK})]?\s+(?=[^a-z\s])")


def words(text: str) -> frozenset[str]:
    """The stems of the telling words of a text."""
    found = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return frozenset(_stem(word) for word in found if word not in _EMPTY and _is_telling(word))


def _is_telling(word: str) -> bool:
    return len(word) > 1 and not _bare(word).isdigit() and _bare(word) not in _EMPTY


def _bare(word: str) -> str:
    return re.split("['\N{RIGHT SINGLE QUOTATION MARK}]", word)[0]


def _stem(word: str) -> str:
    """English endings off, then the first letters: enough to bring “opening”, “opens” and “open” together."""
    word = _bare(word)
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return (word.removesuffix(ending) + instead)[:_STEM_LENGTH]
    return word[:_STEM_LENGTH]


@dataclass(frozen=True, slots=True)
class Quote:
    text: str
    score: float


def best_quote(question: str, passage: str, about: str = "") -> Quote:
    """The sentence or two of a passage that hold most of the question's words; its beginning when none does.

    `about`: titles that the passage stands under; a word found only there counts half.
    """
    wanted, titled = words(question), words(about)
    asks_for_number = bool(_ASKS_FOR_NUMBER.search(question))
    sentences = list(_sentences(passage)) or [passage.strip()]
    best = Quote(_joined(sentences[:2]), 0.0)
    for start in range(len(sentences)):
        for end in range(start + 1, min(start + 2, len(sentences)) + 1):
            text = _joined(sentences[start:end])
            said = words(text)
            held = len(wanted & said) + len(wanted & titled - said) / 2
            score = held + (0.5 if held and asks_for_number and _NUMBER.search(text) else 0.0)
            # A second sentence must bring something: of two equal quotes the shorter one is better.
            score -= len(text) / 10_000
            if held and score > best.score:
                best = Quote(text, score)
    return best


def _joined(sentences: Iterable[str]) -> str:
    return " ".join(sentences).strip()


def _sentences(passage: str) -> Iterator[str]:
    """Sentences, list items with the line that introduces their list, table rows with the names of their columns."""
    introduction, columns = "", list[str]()
    paragraphs = [paragraph for paragraph in _PARAGRAPH.split(passage) if paragraph.strip()]
    for paragraph, following in zip_longest(paragraphs, paragraphs[1:], fillvalue=""):
        text = " ".join(paragraph.split())
        if text.startswith("|"):
            if _RULE.match(following):
                columns = _cells(text)
            elif not _RULE.match(text):
                yield _cut(_row(columns, _cells(text)))
        elif item := _ITEM.match(paragraph.lstrip("\n")):
            yield _cut(f"{introduction} {text[len(item[0].strip()) :].strip()}" if introduction else text)
        else:
            introduction, columns = (text if text.endswith(":") else ""), []
            if not introduction and not text.startswith("#"):
                yield from (_cut(sentence) for sentence in _SENTENCE.split(text))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("| ").split("|")]


def _row(columns: list[str], cells: list[str]) -> str:
    named = zip_longest(columns[: len(cells)], cells, fillvalue="")
    return "; ".join(f"{column}: {cell}" if column else cell for column, cell in named)


def _cut(sentence: str) -> str:
    if len(sentence) <= _IN_ONE_SENTENCE:
        return sentence
    return sentence[:_IN_ONE_SENTENCE].rsplit(" ", 1)[0] + " \N{HORIZONTAL ELLIPSIS}"
