"""A small table in a form: rows of the same few fields, added and removed by buttons, usable without a script."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

_MAX_ROWS = 100
_BLANK = "__n__"


class RowsInput(forms.Widget):
    """Posts each cell as `<name>-<row>-<key>`; its value is a list of mappings from key to what was typed."""

    def __init__(self, cells: Mapping[str, forms.Field]) -> None:
        super().__init__()
        self.cells = cells

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[dict[str, Any]]:
        posted = re.compile(rf"{re.escape(name)}-(\d{{1,6}})-")
        numbers = sorted({int(found[1]) for key in data if (found := posted.match(key))})
        rows = [self._row(data, files, f"{name}-{number}-") for number in numbers]
        return [row for row in rows if self._filled(row)]

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return False

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        rows = [row for row in value or [] if isinstance(row, Mapping)]
        context = {
            "name": name,
            "labels": [(field.label, field.required, field.help_text) for field in self.cells.values()],
            "rows": [list(self._cells(name, str(n), row)) for n, row in enumerate([*rows, {}])],
            "blank": list(self._cells(name, _BLANK, {})),
        }
        return render_to_string("admin/parts/rows.html", context)

    def _row(self, data: Mapping[str, Any], files: Any, prefix: str) -> dict[str, Any]:
        return {key: field.widget.value_from_datadict(data, files, prefix + key) for key, field in self.cells.items()}

    def _filled(self, row: Mapping[str, Any]) -> bool:
        """Choices and switches always have a value: only what was typed counts."""
        return any(str(row[key] or "").strip() for key, field in self.cells.items() if _is_typed(field))

    def _cells(self, name: str, number: str, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for key, field in self.cells.items():
            label = f"{field.label}, row {int(number) + 1 if number.isdigit() else 'new'}"
            html = field.widget.render(f"{name}-{number}-{key}", row.get(key, field.initial), {"aria-label": label})
            yield {"html": html, "label": field.label}


class RowsField(forms.Field):
    """Cleans to a list of mappings; cells that are empty or at their default are left out."""

    def __init__(self, *, cells: Mapping[str, forms.Field], **kwargs: Any) -> None:
        self.cells = cells
        super().__init__(widget=RowsInput(cells), **kwargs)

    def clean(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len(value) > _MAX_ROWS:
            raise ValidationError(f"These are {len(value)} rows; at most {_MAX_ROWS} are possible.")
        problems: list[str] = []
        rows = [self._clean_row(number, row, problems) for number, row in enumerate(value, 1)]
        if problems:
            raise ValidationError(problems)
        return rows

    def in_words(self, path: str, message: str) -> str:
        """A complaint about `<row>.<key>` with the row's number and the column's label."""
        number, _, key = path.partition(".")
        label = f", {self.cells[key].label}" if key in self.cells else ""
        return f"Row {number}{label}: {message}"

    def _clean_row(self, number: int, row: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
        cleaned = {}
        for key, field in self.cells.items():
            try:
                value = field.clean(row.get(key))
            except ValidationError as error:
                problems += [self.in_words(f"{number}.{key}", message) for message in error.messages]
            else:
                if value not in (None, "", field.initial):
                    cleaned[key] = value
        return cleaned


def _is_typed(field: forms.Field) -> bool:
    return not isinstance(field, forms.ChoiceField | forms.BooleanField)
