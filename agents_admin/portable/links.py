"""What belongs to a row: origins, audience, documents, an agent's tools, memories and roster. A given list is whole."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group as UserGroup
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from agents_admin.ingest import ingest
from agents_admin.models import Agent, Credential, CredentialOrigin, Document, Memory, Model
from agents_admin.portable import values
from agents_admin.portable.problem import refuse
from agents_admin.portable.reading import Group, Node, Scalar
from agents_admin.portable.sections import LINKS, Link
from agents_admin.portable.work import Work, check
from agents_admin.text import clean

_SUFFIXES = (".md", ".markdown", ".txt")
_FILE_BYTES = 5_000_000


def save_origins(work: Work, row: Credential, node: Node) -> None:
    row.origins.all().delete()
    for item in values.items(node):
        with work.collecting():
            origin = CredentialOrigin(credential=row, origin=values.text(item))
            check(origin, Group(item.line, item.field, {"origin": item}))
            origin.save()


def save_fallback(work: Work, row: Model, node: Node) -> None:
    row.fallback = None if isinstance(node, Scalar) and node.is_null else work.find(Model, node)
    check(row, Group(node.line, node.field, {"fallback": node}))
    row.save()


def save_groups(work: Work, row: Any, node: Node) -> None:
    _save_people(row.groups, UserGroup, "name", node)


def save_users(work: Work, row: Any, node: Node) -> None:
    _save_people(row.users, User, "username", node)


def _save_people(relation: Any, model: Any, field: str, node: Node) -> None:
    rows = []
    for item in values.items(node):
        name = values.text(item)
        row = model.objects.filter(**{field: name}).first()
        if row is None:
            raise refuse(item.line, item.field, f"There is no {model._meta.verbose_name} “{name}”. Make it first.")
        rows.append(row)
    relation.set(rows)


def save_documents(work: Work, row: Memory, node: Node) -> None:
    titles: list[str] = []
    for item in values.items(node):
        with work.collecting():
            entry = values.group(item, ("title", "file", "text"))
            title = values.text(entry.entries["title"]).strip() if "title" in entry.entries else ""
            if title in titles:
                raise refuse(item.line, item.field, f"“{title}” appears twice.")
            titles.append(title)
            _save_document(row, title, _document_text(work.folder, entry), entry)
    row.documents.exclude(title__in=titles).delete()


def _save_document(memory: Memory, title: str, text: str, entry: Group) -> None:
    row = memory.documents.filter(title=title).first() or Document(memory=memory, title=title)
    if row.text == text and row.state == Document.State.READY:
        return
    row.text = text
    check(row, entry)
    row.save()
    ingest(row)
    if row.state != Document.State.READY:
        raise refuse(entry.line, entry.field, row.reason)


def _document_text(folder: Path, entry: Group) -> str:
    given = [entry.entries[key] for key in ("file", "text") if key in entry.entries]
    if len(given) != 1:
        raise refuse(entry.line, entry.field, "A document has either a “file” or a “text”.")
    return _file_text(folder, given[0]) if "file" in entry.entries else values.text(given[0])


def _file_text(folder: Path, node: Node) -> str:
    """Nothing outside the bundle's folder is read, whatever the name or a symbolic link says."""
    name = values.text(node)
    try:
        path = (folder / name).resolve()
        if Path(name).is_absolute() or not path.is_relative_to(folder.resolve()):
            raise refuse(node.line, node.field, f"“{name}” lies outside the bundle's folder.")
        if path.suffix.lower() not in _SUFFIXES:
            raise refuse(node.line, node.field, f"“{name}” is no text file: use one of {', '.join(_SUFFIXES)}.")
        if not path.is_file():
            raise refuse(node.line, node.field, f"There is no file “{name}” in the bundle's folder.")
        if path.stat().st_size > _FILE_BYTES:
            raise refuse(node.line, node.field, f"“{name}” is larger than {_FILE_BYTES // 1_000_000} MB.")
        return clean(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise refuse(node.line, node.field, f"“{name}” is not UTF-8 text.") from None
    except (OSError, RuntimeError):
        raise refuse(node.line, node.field, f"“{name}” can't be read.") from None


def prune(agent: Agent, key: str, node: Node) -> None:
    """Remove the lines that a list no longer has: before any is added, so that no passing state closes a circle."""
    link = LINKS[key]
    kept = [values.text(entry.entries[link.target]) for entry in _lines(link, node)]
    lines = link.model._default_manager.filter(**{link.owner: agent})
    lines.exclude(**{f"{link.target}__slug__in": kept}).delete()


def save_lines(work: Work, agent: Agent, key: str, node: Node) -> None:
    """Lines that stay are updated in place: a run that is going on holds their ids."""
    link = LINKS[key]
    seen: set[str] = set()
    for order, entry in enumerate(_lines(link, node)):
        with work.collecting():
            slug = values.text(entry.entries[link.target])
            if slug in seen:
                raise refuse(entry.line, entry.field, f"“{slug}” appears twice.")
            seen.add(slug)
            _save_line(work, agent, link, entry, order)


def _save_line(work: Work, agent: Agent, link: Link, entry: Group, order: int) -> None:
    target_model = link.model._meta.get_field(link.target).related_model
    ends = {link.owner: agent, link.target: work.find(target_model, entry.entries[link.target])}
    row = link.model._default_manager.filter(**ends).first() or link.model(**ends)
    for name in link.fields:
        field: Any = link.model._meta.get_field(name)
        given = entry.entries.get(name)
        setattr(row, name, values.value(field, given) if given else field.get_default())
    row.order = order  # type: ignore[attr-defined]
    check(row, entry)
    try:
        row.save()
    except ValidationError as error:
        raise refuse(entry.line, entry.field, " ".join(error.messages)) from None


def _lines(link: Link, node: Node) -> Iterator[Group]:
    """Each line as a group: a slug alone is short for one."""
    for item in values.items(node):
        if isinstance(item, Scalar):
            named = Scalar(item.line, f"{item.field}.{link.target}", item.text, item.written, item.type)
            yield Group(item.line, item.field, {link.target: named})
            continue
        entry = values.group(item, (link.target, *link.fields))
        if link.target not in entry.entries:
            raise refuse(entry.line, f"{entry.field}.{link.target}", "This is required.")
        yield entry


AFTER: dict[str, Callable[[Work, Any, Node], None]] = {
    "origins": save_origins,
    "fallback": save_fallback,
    "groups": save_groups,
    "users": save_users,
    "documents": save_documents,
}
