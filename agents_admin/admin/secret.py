"""Secrets in forms: typed, replaced or cleared, never shown again."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import INPUT_CLASSES

_CLEAR = "-clear"


class SecretInput(forms.PasswordInput):
    """Never renders a value. Posted empty, it means “keep what is stored” (None); `stored`: is there any."""

    stored = False

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        attrs = {
            **(attrs or {}),
            "class": " ".join(INPUT_CLASSES),
            "autocomplete": "new-password",
            "placeholder": "•••• set; leave empty to keep it" if self.stored else "Not set",
        }
        field = super().render(name, None, attrs, renderer)
        if not self.stored:
            return field
        box = '{}<label class="flex gap-2 items-center mt-2"><input type="checkbox" name="{}" {}> Clear it</label>'
        return format_html(box, field, name + _CLEAR, "checked" if value == "" else "")

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> str | None:
        typed = str(data.get(name) or "").strip()
        if data.get(name + _CLEAR):
            return typed or ""
        return typed or None

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return False


class SecretField(forms.CharField):
    """Cleans to the new secret, "" (clear it) or None (keep it)."""

    widget = SecretInput

    def clean(self, value: str | None) -> str | None:
        if value and len(value) > 10_000:
            raise ValidationError("This is longer than any key: at most 10,000 characters.")
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return data is not None


class SecretForm(forms.ModelForm):
    """A form of a row with one secret, whose name is `secret_name`. `secret_given` after validation: typed just now."""

    secret_name: str
    secret_given = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = getattr(self.instance, self.secret_name) if self.instance.pk else ""
        self.initial.pop(self.secret_name, None)
        if self.secret_name in self.fields:
            self.fields[self.secret_name].widget.stored = bool(self.stored)

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        given = values.get(self.secret_name)
        self.secret_given = bool(given)
        self.secret_kept = given is None and bool(self.stored)
        values[self.secret_name] = self.stored if given is None else given
        if given is not None:
            self.instance.secret_reference = ""  # the bundle's reference stood for the old one
        return values
