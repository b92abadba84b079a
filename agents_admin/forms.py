"""The form of a tool, built from the settings classes of the kinds: a new kind needs no form code.

Every kind's fields are on the page as `<kind>__<setting>`, and a script shows those of the chosen one. Only these are
checked and stored.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from django import forms
from unfold import widgets

from agents_admin.kinds import TOOL_KINDS, SettingsError, ToolKind, key_of, parse
from agents_admin.rows_field import RowsField


def setting_field(option: Field[Any], hint: object) -> forms.Field:
    """The form field of one setting. Raises TypeError for a type that no form knows yet."""
    common = {
        "label": option.metadata.get("label", option.name),
        "help_text": option.metadata.get("help", ""),
        "required": option.default is MISSING,
        "initial": None if option.default is MISSING else option.default,
    }
    if get_origin(hint) is Literal:
        return forms.ChoiceField(
            **common | {"required": True}, choices=_choices(option, hint), widget=widgets.UnfoldAdminSelectWidget
        )
    if get_origin(hint) is tuple and isinstance(item := get_args(hint)[0], type) and is_dataclass(item):
        return RowsField(**common | {"initial": []}, cells=_cells(item))
    if hint is bool:
        return forms.BooleanField(**common | {"required": False}, widget=widgets.UnfoldBooleanSwitchWidget)
    if hint is int:
        return forms.IntegerField(**common, widget=widgets.UnfoldAdminIntegerFieldWidget)
    if hint is str:
        return forms.CharField(**common, widget=widgets.UnfoldAdminTextInputWidget)
    raise TypeError(f"The setting {option.name} is a {hint}: teach setting_field to ask people for one.")


def settings_fields(kind: str, settings: type) -> dict[str, forms.Field]:
    return {f"{kind}__{key}": field for key, field in _cells(settings).items()}


def tool_form(kinds: Mapping[str, ToolKind] = TOOL_KINDS) -> type["ToolForm"]:
    """The form class for these kinds."""
    made: dict[str, Any] = {}
    for slug, kind in kinds.items():
        made |= settings_fields(slug, kind.settings)
    return type("ToolForm", (ToolForm,), made | {"kinds": kinds})


class ToolForm(forms.ModelForm):
    kinds: Mapping[str, ToolKind] = {}

    class Media:
        js = ("js/admin-forms.js",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.instance.settings if isinstance(self.instance.settings, dict) else {}
        for key, value in stored.items():
            self.initial.setdefault(f"{self.instance.kind}__{key}", value)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        kind = values.get("kind", "")
        for name in self._of_other_kinds(kind):
            self.errors.pop(name, None)
        settings = self._settings(kind) if kind in self.kinds else {}
        if not any(name.startswith(f"{kind}__") for name in self.errors):
            self._store(kind, settings)
        return values

    def _of_other_kinds(self, kind: str) -> list[str]:
        return [name for name in self.fields if "__" in name and not name.startswith(f"{kind}__")]

    def _settings(self, kind: str) -> dict[str, object]:
        """What was filled in, defaults left out."""
        return {
            name.partition("__")[2]: self.cleaned_data[name]
            for name, field in self.fields.items()
            if name.startswith(f"{kind}__")
            and self.cleaned_data.get(name, field.initial) not in (field.initial, None, "", [])
        }

    def _store(self, kind: str, settings: dict[str, object]) -> None:
        try:
            parse(kind, settings)
        except SettingsError as error:
            setting, _, inside = error.field.partition(".")
            name = f"{kind}__{setting}"
            field = self.fields.get(name)
            if isinstance(field, RowsField) and inside:
                self.add_error(name, field.in_words(inside, error.message))
            else:
                self.add_error(name if field else "kind", error.message)
        else:
            self.instance.settings = settings


def _cells(cls: type) -> dict[str, forms.Field]:
    hints = get_type_hints(cls)
    return {key_of(option): setting_field(option, hints[option.name]) for option in fields(cls)}


def _choices(option: Field[Any], hint: object) -> list[tuple[str, str]]:
    labels: Mapping[str, str] = option.metadata.get("choices", {})
    return [(value, labels.get(value, value)) for value in get_args(hint)]
