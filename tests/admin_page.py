"""Admin pages as a browser sees them: what a form holds, what a person changes, what comes back."""

from html import unescape
from html.parser import HTMLParser
from typing import Any

from django.test import Client
from django.urls import reverse


class _Fields(HTMLParser):
    """The fields of the form of a change page and what a browser would post for them."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}
        self.inside = False
        self.text_of = ""
        self.choices_of = ""
        self.in_template = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "form":
            self.inside = (given.get("id") or "").endswith("_form")
        if tag == "template":
            self.in_template += 1
        if not self.inside or self.in_template:
            return
        if tag == "option" and self.choices_of and "selected" in given:
            self.values.setdefault(self.choices_of, []).append(given.get("value") or "")
        elif tag == "select":
            self.choices_of = name
        elif tag == "textarea":
            self.text_of, self.values[name] = name, ""
        elif tag == "input" and name and "disabled" not in given:
            self._input(name, given)

    def _input(self, name: str, given: dict[str, str | None]) -> None:
        kind = given.get("type")
        if kind in ("submit", "button", "file") or (kind in ("checkbox", "radio") and "checked" not in given):
            return
        self.values[name] = given.get("value") or ("on" if kind == "checkbox" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        if tag == "template":
            self.in_template -= 1
        if tag == "textarea":
            self.values[self.text_of] = self.values.get(self.text_of, "").removeprefix("\n")
            self.text_of = ""
        if tag == "select":
            self.choices_of = ""

    def handle_data(self, data: str) -> None:
        if self.text_of:
            self.values[self.text_of] += data


def fields(page: Any) -> dict[str, Any]:
    parser = _Fields()
    parser.feed(page.content.decode())
    return {name: value for name, value in parser.values.items() if name and "__prefix__" not in name}


def submit(client: Client, url: str, **changes: Any) -> Any:
    """Open a change or add page, change some fields (None: as if it weren't there), press Save."""
    page = client.get(url)
    assert page.status_code == 200, page.status_code
    values = {name: value for name, value in (fields(page) | changes).items() if value is not None}
    return client.post(url, values | {"_save": "Save"})


def text(page: Any) -> str:
    """The page's source with its entities resolved."""
    return unescape(page.content.decode())


def refused(page: Any) -> str:
    """The source of a page that came back with errors instead of leading on."""
    assert page.status_code == 200, f"it was saved: {page.status_code}"
    assert "Please correct the error" in text(page)
    return text(page)


def saved(page: Any) -> None:
    if page.status_code != 302:
        errors = page.context and page.context.get("errors")
        raise AssertionError(f"not saved ({page.status_code}): {errors}")


def add(model: str) -> str:
    """The address of an add page."""
    return reverse(f"admin:agents_admin_{model}_add")


def change(row: Any) -> str:
    """The address of a row's page."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
