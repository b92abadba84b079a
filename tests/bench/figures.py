"""The figures, as a table for people and as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """None: not measured on that side."""

    name: str
    unit: str
    roster: float | None
    bare: float | None = None
    direct: float | None = None

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def ratio(self) -> float | None:
        return self.roster / self.bare if self.roster is not None and self.bare else None

    def as_json(self) -> dict[str, object]:
        values = {"roster": self.roster, "bare": self.bare, "direct": self.direct, "ratio": self.ratio}
        return {"name": self.name, "unit": self.unit} | {
            name: round(value, 3) for name, value in values.items() if value is not None
        }


def table(figures: Iterable[Figure]) -> str:
    rows = [("", "Roster", "bare", "direct", "Roster / bare")]
    rows += [
        (one.title, _short(one.roster), _short(one.bare), _short(one.direct), _short(one.ratio)) for one in figures
    ]
    first = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:<{first}}" + "".join(f"{value:>14}" for value in values) for name, *values in rows)


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
