"""One bundle being applied: what it declares, and what is wrong with it so far."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models, transaction

from agents_admin.portable import values
from agents_admin.portable.problem import BundleError, Problem, refuse
from agents_admin.portable.reading import Group, Node
from agents_admin.portable.sections import SECTION_OF


class Work:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self._declared: dict[tuple[type[models.Model], str], Any] = {}

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """A part that fails is undone and told; the parts after it are still looked at."""
        try:
            with transaction.atomic():
                yield
        except BundleError as error:
            self.problems += error.problems

    def declare(self, model: type[models.Model], node: Node) -> str:
        """The slug of a row of this bundle, refused when it appears twice."""
        slug = values.text(node)
        if (model, slug) in self._declared:
            raise refuse(node.line, node.field, f"“{slug}” appears twice.")
        self._declared[model, slug] = None
        return slug

    def made(self, row: models.Model, slug: str) -> None:
        self._declared[type(row), slug] = row

    def find(self, model: Any, node: Node) -> Any:
        """The row a slug refers to: of this bundle, or one that exists already."""
        slug = values.text(node)
        if (model, slug) in self._declared:
            row = self._declared[model, slug]
            if row is None:
                raise BundleError([])  # what is wrong with it has been told where it stands
            return row
        row = model.objects.filter(slug=slug).first()
        if row is None:
            one = SECTION_OF[model].one
            raise refuse(
                node.line, node.field, f"There is no {one} “{slug}”, neither in this bundle nor among the rows."
            )
        return row


def check(row: models.Model, entry: Group, moved: Mapping[str, Node] | None = None) -> None:
    """What the row's own rules say, each at the line of its field. `moved`: fields that stand in another group."""
    try:
        row.full_clean()
    except ValidationError as error:
        nodes = {**entry.entries, **(moved or {})}
        raise BundleError(
            [
                _problem(entry, nodes.get(name), name, single)
                for name, several in error.error_dict.items()
                for single in several
            ]
        ) from None


def _problem(entry: Group, node: Node | None, name: str, error: ValidationError) -> Problem:
    words = "This is required." if error.code in {"blank", "null"} else " ".join(error.messages)
    if node is not None:
        return Problem(node.line, node.field, words)
    return Problem(entry.line, entry.field if name == NON_FIELD_ERRORS else f"{entry.field}.{name}", words)
