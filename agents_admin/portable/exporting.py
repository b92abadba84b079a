"""Rows become a bundle: every field written out, documents inline, secrets as the references they came from."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import yaml
from django.db import models

from agents_admin.models import Agent, Credential, Delegation, Memory, Model, Provider, Tool
from agents_admin.portable.reading import escaped
from agents_admin.portable.sections import LIMITS, LINKS, SECTIONS, VERSION, VERSION_KEY, Link, Section

_UNPRINTED = frozenset("\r\t\x85\u2028\u2029\ufeff")


class UnknownAgentError(Exception):
    """The message names the slugs that no agent has."""


def export(slugs: Sequence[str] = ()) -> str:
    """The bundle of these agents and all that they need, their delegates included; without slugs, of every row.

    Applied to an empty database it gives the same rows; applied again it changes nothing. Raises UnknownAgentError.
    """
    chosen = _everything() if not slugs else _needed_by(_agents(slugs))
    bundle: dict[str, object] = {VERSION_KEY: int(VERSION)}
    for section in SECTIONS:
        rows = sorted(chosen[section.model], key=lambda row: str(row.slug))
        if rows:
            bundle[section.name] = [_row(row, section) for row in rows]
    return yaml.dump(bundle, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _everything() -> dict[Any, Iterable[Any]]:
    return {section.model: section.model.objects.all() for section in SECTIONS}


def _agents(slugs: Sequence[str]) -> set[Agent]:
    found = {agent.slug: agent for agent in Agent.objects.filter(slug__in=slugs)}
    missing = [slug for slug in slugs if slug not in found]
    if missing:
        known = ", ".join(Agent.objects.order_by("slug").values_list("slug", flat=True)[:20]) or "none"
        raise UnknownAgentError(
            f"There is no agent {', '.join(f'“{slug}”' for slug in missing)}. Agents here: {known}."
        )
    return set(found.values())


def _needed_by(agents: set[Agent]) -> dict[Any, Iterable[Any]]:
    frontier = agents
    while frontier:
        rows = Delegation.objects.filter(coordinator__in=frontier).select_related("delegate")
        frontier = {row.delegate for row in rows} - agents
        agents = agents | frontier
    tools = set(Tool.objects.filter(agents__in=agents))
    found = set(Model.objects.filter(agents__in=agents))
    fallbacks = found
    while fallbacks:
        fallbacks = set(Model.objects.filter(pk__in=[row.fallback_id for row in fallbacks])) - found
        found = found | fallbacks
    return {
        Provider: set(Provider.objects.filter(models__in=found)),
        Model: found,
        Credential: set(Credential.objects.filter(tools__in=tools)),
        Tool: tools,
        Memory: set(Memory.objects.filter(agents__in=agents)),
        Agent: agents,
    }


def _row(row: Any, section: Section) -> dict[str, object]:
    written = {name: _plain(getattr(row, name)) for name in section.fields}
    for name in section.others:
        value = _WRITTEN[name](row)
        if value is not None or name == "fallback":
            written[name] = value
    return written


def _plain(value: object) -> object:
    match value:
        case str():
            return escaped(value)
        case Decimal():
            return str(value)
        case models.Model():
            return value.slug  # type: ignore[attr-defined]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _secret(row: Any, name: str) -> str | None:
    """A secret that was typed in the admin gets a variable's name, in which the one who applies the bundle gives it."""
    owner = row.slug.replace("_", "__").replace("-", "_")  # `a-b` and `a_b` must not share a secret
    placeholder = f"${{{owner}_{name}}}".upper()
    return (row.secret_reference or placeholder) if getattr(row, name) else None


def _people(row: Any, relation: Any, field: str) -> list[str] | None:
    names = relation.order_by(field).values_list(field, flat=True)
    return [escaped(name) for name in names] if row.audience == "chosen" else None


def _documents(memory: Memory) -> list[dict[str, str]]:
    rows = memory.documents.order_by("title")
    return [{"title": escaped(row.title), "text": escaped(row.text)} for row in rows]


def _lines(agent: Agent, link: Link) -> list[object]:
    rows = link.model._default_manager.filter(**{link.owner: agent}).select_related(link.target)
    return [_line(row, link) for row in rows]


def _line(row: Any, link: Link) -> object:
    """Only what differs from the defaults: a line that is applied is whole."""
    written = {}
    for name in link.fields:
        value = getattr(row, name)
        if value != link.model._meta.get_field(name).get_default():  # type: ignore[union-attr]
            written[name] = _plain(value)
    slug = getattr(row, link.target).slug
    return {link.target: slug, **written} if written else slug


_WRITTEN: dict[str, Callable[[Any], object]] = {
    "api_key": lambda row: _secret(row, "api_key"),
    "secret": lambda row: _secret(row, "secret"),
    "groups": lambda row: _people(row, row.groups, "name"),
    "users": lambda row: _people(row, row.users, "username"),
    "origins": lambda row: list(row.origins.order_by("origin").values_list("origin", flat=True)),
    "documents": _documents,
    "starters": lambda row: [escaped(line) for line in row.starter_list()],
    "limits": lambda row: {key: getattr(row, key) for key in LIMITS},
    "settings": lambda row: _plain(row.settings),
    "fallback": lambda row: _plain(row.fallback),
    **{key: partial(_lines, link=link) for key, link in LINKS.items()},
}
"""How the keys that have a meaning of their own are written; None leaves one out, but for the fallback."""


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that people can read them."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # lists stand under their key


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if not _UNPRINTED.isdisjoint(text):
        style = '"'
    elif "\n" in text.rstrip("\n") and not text[0].isspace():
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
