"""Kinds of tools and providers: one frozen settings class each, and the tables that name them. No Django.

A row's JSON becomes one of these classes the moment it leaves the row (`parse`). The admin's form is built from the
class: each field's `metadata` holds its `label` and `help` text, and `choices` where there are some.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import UTC, tzinfo
from typing import Literal, cast, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agents_admin.egress import EgressRefused, check_url
from agents_admin.text import clean

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
# Headers that frame the request, say who asks, or that Roster writes itself.
_RESERVED_HEADERS = frozenset(
    {"accept-encoding", "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie"}
    | {"expect", "host", "idempotency-key", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_RESERVED_HEADER_PREFIXES = ("proxy-", "sec-", "x-forwarded-")

type SideEffect = Literal["read-only", "repeatable", "acts"]


class SettingsError(ValueError):
    """Settings that don't fit their kind: `field` is the path of the field, the message is for people."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def _option[T](label: str, help: str = "", *, default: T) -> T:  # noqa: A002 - the word that forms use
    return field(default=default, metadata={"label": label, "help": help})


def _required(label: str, help: str = "") -> dict[str, object]:  # noqa: A002 - the word that forms use
    return {"label": label, "help": help}


@dataclass(frozen=True, slots=True)
class ClockSettings:
    timezone: str = _option("Time zone", "A name such as Europe/Berlin. The tool answers in this zone.", default="UTC")

    def __post_init__(self) -> None:
        time_zone(self.timezone)


@dataclass(frozen=True, slots=True)
class CalculatorSettings:
    pass


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that the model fills in when it calls an HTTP tool."""

    name: str = field(metadata=_required("Name", "Letters, digits, _ and -. A header's name as it is sent."))
    location: Literal["path", "query", "body", "header"] = field(
        default="query",
        metadata={
            "label": "Goes into",
            "help": "Where in the request the value is put.",
            "key": "in",
            "choices": {
                "path": "the address",
                "query": "the address, after “?”",
                "body": "the data (JSON)",
                "header": "a header",
            },
        },
    )
    type: Literal["string", "integer", "number", "boolean"] = field(
        default="string",
        metadata={
            "label": "Type",
            "choices": {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"},
        },
    )
    required: bool = _option("Required", default=False)
    description: str = _option("Description", "What the agent is told about this value.", default="")

    def __post_init__(self) -> None:
        if not _PARAMETER_NAME.fullmatch(self.name):
            raise SettingsError("name", f"“{_short(self.name)}” is not a name: use letters, digits, _ and -.")
        if self.location == "header" and _is_reserved(self.name.lower()):
            raise SettingsError("name", f"The header {self.name} can't be filled in by an agent.")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    url: str = field(metadata=_required("Address", "The full address; write {name} where a path parameter goes."))
    method: Literal["GET", "POST"] = _option("Method", default="GET")
    parameters: tuple[Parameter, ...] = _option(
        "Parameters",
        "The values that the agent fills in. Nothing else of the request can be changed by it.",
        default=(),
    )

    def __post_init__(self) -> None:
        _check_address(self.url)
        repeated = [name for name, times in Counter(one.name.lower() for one in self.parameters).items() if times > 1]
        if repeated:
            raise SettingsError("parameters", f"There are several parameters named {repeated[0]}.")
        places = set(PLACEHOLDER.findall(self.url))
        for number, parameter in enumerate(self.parameters, 1):
            if parameter.location == "path" and parameter.name not in places:
                words = f"The address has no {{{parameter.name}}} where this value could go."
                raise SettingsError(f"parameters.{number}.name", words)
            if parameter.location == "body" and self.method == "GET":
                raise SettingsError(
                    f"parameters.{number}.in", "A GET request has no body. Use POST, or put it in the query."
                )
        if lost := places - {one.name for one in self.parameters if one.location == "path"}:
            raise SettingsError(
                "url", f"{{{_short(lost.pop())}}} in the address is not a parameter that goes into the path."
            )


type ToolSettings = ClockSettings | CalculatorSettings | HttpSettings


@dataclass(frozen=True, slots=True)
class ToolKind:
    label: str
    help: str
    settings: type[ToolSettings]
    side_effect: SideEffect = "read-only"
    uses_credential: bool = False


TOOL_KINDS: dict[str, ToolKind] = {
    "clock": ToolKind("Clock", "Tells the date and time.", ClockSettings),
    "calculator": ToolKind("Calculator", "Works out arithmetic exactly.", CalculatorSettings),
    "http": ToolKind("Web request", "Calls one address of a web service.", HttpSettings, uses_credential=True),
}


@dataclass(frozen=True, slots=True)
class ProviderKind:
    label: str
    help: str
    needs_base_url: bool
    default_base_url: str = ""


PROVIDER_KINDS: dict[str, ProviderKind] = {
    "openai": ProviderKind(
        "OpenAI-compatible",
        "OpenAI itself and every server that speaks its chat protocol.",
        needs_base_url=True,
        default_base_url="https://api.openai.com/v1",
    ),
    "offline": ProviderKind(
        "Offline (no model)",
        "Follows keywords instead of a language model. No key, no network.",
        needs_base_url=False,
    ),
}


def default_side_effect(kind: str, settings: ToolSettings) -> SideEffect:
    """What a tool of this kind does to the world unless its row says otherwise: HTTP POST acts."""
    if isinstance(settings, HttpSettings) and settings.method == "POST":
        return "acts"
    return TOOL_KINDS[kind].side_effect


def parse(kind: str, raw: Mapping[str, object]) -> ToolSettings:
    """The typed settings of a tool row. Raises SettingsError with the field's path."""
    if kind not in TOOL_KINDS:
        raise SettingsError("kind", f"There is no tool kind “{_short(kind)}”. Use one of: {', '.join(TOOL_KINDS)}.")
    return cast(ToolSettings, _build(TOOL_KINDS[kind].settings, raw, ""))


def time_zone(name: str) -> tzinfo:
    """The zone of that name. Raises SettingsError that says how to write one."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        words = f"There is no time zone “{_short(name)}”. Write it like Europe/Berlin, America/New_York or UTC."
        raise SettingsError("timezone", words) from None


def key_of(option: Field[object]) -> str:
    """The name of a field in stored JSON and bundles (`in` where Python needs another word)."""
    return str(option.metadata.get("key", option.name))


def _build(cls: type, raw: object, path: str) -> object:
    if not isinstance(raw, Mapping):
        raise SettingsError(path.rstrip("."), "This must be a group of named settings.")
    hints = get_type_hints(cls)
    known = {key_of(option): option for option in fields(cls)}
    for key in raw:
        if key not in known:
            raise SettingsError(
                f"{path}{_short(key)}",
                f"There is no setting “{_short(key)}” here. Known: {', '.join(known) or 'none'}.",
            )
    values: dict[str, object] = {}
    for key, option in known.items():
        if key in raw:
            values[option.name] = _convert(hints[option.name], raw[key], f"{path}{key}")
        elif option.default is MISSING:
            raise SettingsError(f"{path}{key}", "This setting is required.")
    try:
        return cls(**values)
    except SettingsError as error:
        raise SettingsError(f"{path}{error.field}", error.message) from None


def _convert(hint: object, value: object, path: str) -> object:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise SettingsError(path, f"“{_short(value)}” is not one of: {', '.join(map(str, get_args(hint)))}.")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise SettingsError(path, "This must be a list.")
        item = get_args(hint)[0]
        return tuple(_convert(item, entry, f"{path}.{number}") for number, entry in enumerate(value, 1))
    if isinstance(hint, type) and is_dataclass(hint):
        return _build(hint, value, f"{path}.")
    # In Python yes and no are whole numbers too.
    if not isinstance(value, cast(type, hint)) or (isinstance(value, bool) and hint is not bool):
        raise SettingsError(path, f"This must be {_WORDS[cast(type, hint)]}.")
    return clean(value) if isinstance(value, str) else value


def _check_address(url: str) -> None:
    mark = "placeholder"
    try:
        address = check_url(PLACEHOLDER.sub(mark, url))
    except EgressRefused as refused:
        raise SettingsError("url", refused.message) from None
    if address.path.count(mark) != PLACEHOLDER.sub(mark, url).count(mark):
        raise SettingsError("url", "{name} can stand only in the path of the address, not in its host or after “?”.")


def _is_reserved(header: str) -> bool:
    return header in _RESERVED_HEADERS or header.startswith(_RESERVED_HEADER_PREFIXES)


def _short(value: object) -> str:
    return clean(str(value))[:80]


_WORDS = {str: "text", bool: "yes or no", int: "a whole number"}
