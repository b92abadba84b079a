"""A YAML file as nodes that know their line and field. Nothing but text, numbers, yes/no, lists and groups is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from agents_admin.portable.problem import refuse
from agents_admin.text import clean

MAX_BYTES = 20_000_000
_MAX_NODES = 100_000
"""Counted with every alias written out: ten lines of aliases can stand for billions of nodes."""
_MAX_DEPTH = 20
_REFERENCE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TAG = "tag:yaml.org,2002:"
_LABELS = ("slug", "title", "delegate", "tool", "memory", "name")
"""What a group in a list is called in the path of a field, instead of its number."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """`text` is what is written, references filled in; `written` is what is written; `type` is str, int, float, bool or
    null."""

    line: int
    field: str
    text: str
    written: str
    type: str

    @property
    def is_null(self) -> bool:
        return self.type == "null"

    @property
    def reference(self) -> str:
        """`${NAME}` when that is all that is written."""
        found = _REFERENCE.fullmatch(self.written)
        return self.written if found and not found[1] else ""


@dataclass(frozen=True, slots=True)
class Items:
    line: int
    field: str
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Group:
    line: int
    field: str
    entries: Mapping[str, "Node"]


type Node = Scalar | Items | Group


class _Loader(yaml.SafeLoader):
    """Dates and times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path, environ: Mapping[str, str]) -> Group:
    """The file's outermost group, `${NAME}` filled in from `environ`; `$${NAME}` stands for itself.

    Raises BundleError.
    """
    text = _text(path)
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise refuse(line, "", f"This is not valid YAML: {error.problem or error.context}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        words = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise refuse(1, "", f"This is not valid YAML: {words}.") from None
    if not isinstance(root, yaml.MappingNode):
        raise refuse(1, "", "A bundle is a group of sections that begins with “roster: 1”.")
    group = _Reader(loader, environ).node(root, 1, "", 0)
    assert isinstance(group, Group)  # noqa: S101 - a mapping node becomes a group
    return group


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise refuse(1, "", f"The file is larger than {MAX_BYTES // 1_000_000} MB.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse(error.object.count(b"\n", 0, error.start) + 1, "", "The file is not UTF-8 text.") from None
    except OSError as error:
        raise refuse(1, "", f"The file can't be read: {error.strerror}.") from None


class _Reader:
    def __init__(self, loader: _Loader, environ: Mapping[str, str]) -> None:
        self._loader = loader
        self._environ = environ
        self._nodes = 0

    def node(self, node: yaml.Node, line: int, field: str, depth: int) -> Node:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise refuse(line, field, "The bundle has too many entries, or its aliases stand for too many.")
        match node:
            case yaml.ScalarNode():
                return self._scalar(node, line, field)
            case yaml.SequenceNode():
                lines = [item.start_mark.line + 1 for item in node.value]
                names = [f"{field}.{_label(item, number)}" for number, item in enumerate(node.value, 1)]
                each = zip(node.value, lines, names, strict=True)
                return Items(line, field, tuple(self.node(*item, depth + 1) for item in each))
            case yaml.MappingNode():
                return Group(line, field, self._entries(node, field, depth))
        raise refuse(line, field, "This can't be read.")

    def _entries(self, node: yaml.MappingNode, field: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag == _TAG + "merge":
                raise refuse(line, field, "A key must be plain text.")
            path = f"{field}.{key.value}" if field else key.value
            if key.value in entries:
                raise refuse(line, path, "This key appears twice.")
            entries[key.value] = self.node(value, line, path, depth + 1)
        return entries

    def _scalar(self, node: yaml.ScalarNode, line: int, field: str) -> Scalar:
        text = _REFERENCE.sub(lambda found: self._value(found, line, field), node.value)
        tag = node.tag
        if text != node.value and node.style is None:
            tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        kind = tag.removeprefix(_TAG)
        if kind not in {"str", "int", "float", "bool", "null"}:
            raise refuse(line, field, f"“{tag}” is not allowed here: write text, a number, yes or no.")
        return Scalar(line, field, clean(text), node.value, kind)

    def _value(self, found: re.Match[str], line: int, field: str) -> str:
        literal, name = found.groups()
        if literal:
            return found[0][1:]
        if name not in self._environ:
            raise refuse(line, field, f"The environment variable {name} is not set.")
        return self._environ[name]


def _label(node: yaml.Node, number: int) -> str:
    if isinstance(node, yaml.MappingNode):
        entries = {key.value: value.value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        for name in _LABELS:
            if isinstance(entries.get(name), str):
                return str(entries[name])
    return str(number)


def escaped(text: str) -> str:
    """Text in which `read` finds no reference."""
    return _REFERENCE.sub(lambda found: "$" + found[0], text)
