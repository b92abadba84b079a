"""What is wrong with a bundle, in words, with the line and the field."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents_admin.text import clean


@dataclass(frozen=True, slots=True)
class Problem:
    """`field` is a path such as `agents.concierge.roster.librarian.max_calls`; empty: the file as a whole."""

    line: int
    field: str
    message: str


class BundleError(Exception):
    """A bundle that was not applied. Its text has one line per problem: `demo.yaml:12: agents.concierge.model: …`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)
        self.file = ""

    def __str__(self) -> str:
        ordered = sorted(self.problems, key=lambda problem: problem.line)
        lines = (
            f"{self.file}:{problem.line}: " + ": ".join(part for part in (problem.field, problem.message) if part)
            for problem in ordered
        )
        return clean("\n".join(lines))  # a name in it may be what a terminal can't write


def refuse(line: int, field: str, message: str) -> BundleError:
    """A BundleError with one problem."""
    return BundleError([Problem(line, field, message)])
