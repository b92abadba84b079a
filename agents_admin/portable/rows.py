"""One row of a section: its own fields, checked and saved."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from agents_admin import kinds
from agents_admin.egress.policy import EgressRefused
from agents_admin.kinds import SettingsError
from agents_admin.models import Credential, Provider, Tool
from agents_admin.models.origin import short_origin
from agents_admin.portable import values
from agents_admin.portable.problem import refuse
from agents_admin.portable.reading import Group, Items, Node, Scalar
from agents_admin.portable.sections import AUDIENCE, LIMITS, Section
from agents_admin.portable.work import Work, check

_SECRETS = {Provider: "api_key", Credential: "secret"}


def save_row(work: Work, section: Section, node: Node) -> tuple[models.Model, Group]:
    """Make or update the row that the slug names; what the bundle doesn't name stays as it is."""
    entry = values.group(node, section.keys)
    if "slug" not in entry.entries:
        raise refuse(entry.line, f"{entry.field}.slug", "This is required: rows are known by their slug.")
    slug = work.declare(section.model, entry.entries["slug"])
    row = section.model.objects.filter(slug=slug).first() or section.model()
    bound = _bound(row)
    for key in section.fields:
        if key in entry.entries:
            _set(work, row, key, entry.entries[key])
    moved = _set_others(row, entry)
    check(row, entry, moved)
    _check_settings(row, entry)
    _check_audience(row, entry)
    _check_bound(row, entry, bound)
    row.save()
    work.made(row, slug)
    return row, entry


def _set(work: Work, row: models.Model, key: str, node: Node) -> None:
    field = row._meta.get_field(key)
    if not isinstance(field, models.ForeignKey):
        assert isinstance(field, models.Field)  # noqa: S101 - what sections name are fields
        setattr(row, key, values.value(field, node))
    elif isinstance(node, Scalar) and node.is_null:
        setattr(row, key, None)
    else:
        setattr(row, key, work.find(field.related_model, node))


def _set_others(row: Any, entry: Group) -> Mapping[str, Node]:
    """Fields that are written in a way of their own; gives those that stand in the group `limits`."""
    entries = entry.entries
    secret = _SECRETS.get(type(row), "")
    if secret in entries:
        node = entries[secret]
        setattr(row, secret, values.text(node).strip())
        row.secret_reference = node.reference if isinstance(node, Scalar) else ""
    if "settings" in entries:
        row.settings = values.plain(entries["settings"])
    if "starters" in entries:
        row.starters = "\n".join(" ".join(line.splitlines()) for line in values.texts(entries["starters"]))
    if "limits" not in entries:
        return {}
    limits = values.group(entries["limits"], LIMITS).entries
    for key, node in limits.items():
        setattr(row, key, values.value(row._meta.get_field(key), node))
    return limits


def _check_settings(row: models.Model, entry: Group) -> None:
    if not isinstance(row, Tool):
        return
    try:
        kinds.parse(row.kind, row.settings)
    except SettingsError as error:
        node = entry.entries.get("settings")
        found = _below(node, error.field.split(".")) if node else entry
        path = ".".join(part for part in (entry.field, "settings", error.field) if part)
        raise refuse(found.line, path, error.message) from None


def _below(node: Node, parts: list[str]) -> Node:
    """The deepest node on the path of a setting; a missing one is told where it should stand."""
    for part in parts:
        if isinstance(node, Group) and part in node.entries:
            node = node.entries[part]
        elif isinstance(node, Items) and part.isdigit() and 0 < int(part) <= len(node.items):
            node = node.items[int(part) - 1]
        else:
            break
    return node


def _check_audience(row: Any, entry: Group) -> None:
    for key in AUDIENCE[1:]:
        node = entry.entries.get(key)
        if node is not None and row.audience != "chosen" and values.items(node):
            raise refuse(node.line, node.field, "This counts only with “audience: chosen”.")


def _bound(row: Any) -> frozenset[str] | None:
    """The origins a stored secret was given for; None when there is no secret."""
    match row:
        case Provider(api_key=str(key)) if key:
            return frozenset({row.origin()})
        case Credential(secret=str(secret)) if secret:
            return frozenset(row.origins.values_list("origin", flat=True))
        case _:
            return None


def _check_bound(row: models.Model, entry: Group, before: frozenset[str] | None) -> None:
    """A stored secret goes nowhere it was not given for (security rule 5)."""
    secret = _SECRETS.get(type(row), "")
    if before is None or secret in entry.entries:
        return
    strange = _places(row, entry) - before
    if strange:
        raise refuse(
            entry.line,
            f"{entry.field}.{secret}",
            f"The stored secret was not given for {', '.join(sorted(strange))}. Write {secret} here too.",
        )


def _places(row: models.Model, entry: Group) -> frozenset[str]:
    if isinstance(row, Provider):
        return frozenset({row.origin()})
    node = entry.entries.get("origins")
    written = values.texts(node) if node else []
    try:
        return frozenset(short_origin(origin) for origin in written)
    except EgressRefused:
        return frozenset()  # told when the origins are saved
