"""A document's text becomes passages that can be searched."""

from itertools import islice

from django.db import transaction

from agents_admin import passages
from agents_admin.models import Chunk, Document
from agents_admin.text import clean

MAX_CHARACTERS = 5_000_000
MAX_PASSAGES = 10_000


def ingest(document: Document) -> None:
    """Replace the passages of a saved document; its state becomes `ready`, or `failed` with a reason in words.

    One transaction that locks the row, so that a reader sees the old passages or the new ones, and two at once run one
    after the other. Running it again changes nothing.
    """
    with transaction.atomic():
        row = Document.objects.select_for_update().get(pk=document.pk)
        chunks, reason = _chunks(row)
        row.chunks.all().delete()
        Chunk.objects.bulk_create(chunks, batch_size=500)
        document.state = Document.State.FAILED if reason else Document.State.READY
        document.reason = reason
        Document.objects.filter(pk=row.pk).update(state=document.state, reason=reason)


def _chunks(document: Document) -> tuple[list[Chunk], str]:
    """The rows to write, or none and the reason why."""
    if len(document.text) > MAX_CHARACTERS:
        return [], f"The text has {len(document.text):,} characters; {MAX_CHARACTERS:,} are possible. Split it."
    found = list(islice(passages.split(clean(document.text)), MAX_PASSAGES + 1))
    if not found:
        return [], "There is no text in it."
    if len(found) > MAX_PASSAGES:
        return [], f"It would have more than {MAX_PASSAGES:,} passages. Split it into several documents."
    return [
        Chunk(document=document, number=number, heading=_under(document.title, piece.heading), text=piece.text)
        for number, piece in enumerate(found, 1)
    ], ""


def _under(title: str, heading: str) -> str:
    """The heading path below the document's title, which is part of what is searched."""
    outermost, _, _ = heading.partition(passages.PATH_MARK)
    parts = [heading] if outermost.casefold() == title.casefold() else [title, heading]
    return passages.PATH_MARK.join(part for part in parts if part)[:300]
