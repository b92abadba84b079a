"""From an administrator's settings and a model's values to one request that is nothing else but that."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never
from urllib.parse import quote
from uuid import UUID

import httpx

from agents_admin.egress import EgressRefused, SecretHeaders, check_url, origin_of, parse_origin
from agents_admin.kinds import PLACEHOLDER, HttpSettings, Parameter
from agents_admin.text import clean
from runtime.spec import CredentialSpec

_MAX_VALUE = 2_000
_MAX_BODY_VALUE = 100_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class BadValueError(ValueError):
    """A value, or a credential, that can't be put where it goes; the message is for the model."""


@dataclass(slots=True)
class _Values:
    """The arguments, sorted by where they go."""

    path: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, object] = field(default_factory=dict)


def _sorted_values(parameters: tuple[Parameter, ...], arguments: Mapping[str, object]) -> _Values:
    values = _Values()
    for one in parameters:
        if arguments.get(one.name) is None:
            continue
        value = arguments[one.name]
        match one.location:
            case "path":
                values.path[one.name] = _segment(one.name, _text(one.name, value))
            case "query":
                values.query.append((one.name, _text(one.name, value)))
            case "header":
                values.headers[one.name] = _header(one.name, _text(one.name, value))
            case "body":
                values.body[one.name] = _json_value(one.name, value)
            case _:
                assert_never(one.location)
    return values


def make_request(
    client: httpx.AsyncClient, settings: HttpSettings, arguments: Mapping[str, object], call_id: UUID
) -> httpx.Request:
    values = _sorted_values(settings.parameters, arguments)
    headers = httpx.Headers({"Accept": "application/json, text/*;q=0.9, */*;q=0.1"})
    headers.update(values.headers)
    if settings.method == "POST":
        headers["Idempotency-Key"] = str(call_id)
    return client.build_request(
        settings.method,
        _url(settings.url, values),
        headers=headers,
        json=values.body if settings.method == "POST" else None,
    )


def _url(template: str, values: _Values) -> httpx.URL:
    """The address with its values, all put in at once so that no value is read as a placeholder."""
    try:
        url = httpx.URL(PLACEHOLDER.sub(lambda place: values.path.get(place[1], ""), template))
        for name, value in values.query:
            url = url.copy_add_param(name, value)
    except (httpx.InvalidURL, ValueError):
        raise BadValueError("The values don't make a valid address.") from None
    return url


def _text(name: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else clean(str(value))
    if len(text) > _MAX_VALUE:
        raise BadValueError(f"{name} is longer than {_MAX_VALUE:,} characters.")
    return text


def _segment(name: str, text: str) -> str:
    """A value as part of one path segment. Servers may decode before they route, so dots between slashes are refused
    although they are quoted."""
    if not text or _CONTROL.search(text) or not {".", ".."}.isdisjoint(re.split(r"[/\\]", text)):
        raise BadValueError(f"{name} can't be empty or a path with dots.")
    return quote(text, safe="")


def _header(name: str, text: str) -> str:
    if _CONTROL.search(text) or not text.isascii():
        raise BadValueError(f"{name} can hold only plain characters in one line.")
    return text.strip()


def _json_value(name: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if len(value) > _MAX_BODY_VALUE:
        raise BadValueError(f"{name} is longer than {_MAX_BODY_VALUE:,} characters.")
    return clean(value)


def secret_headers(credential: CredentialSpec | None, url: httpx.URL) -> SecretHeaders:
    """The headers of a credential. A call that the credential is not meant for is refused, not made without it."""
    if credential is None:
        return SecretHeaders({}, frozenset())
    try:
        origins = frozenset(parse_origin(origin) for origin in credential.origins)
        origin = origin_of(check_url(url))
    except EgressRefused as refused:
        raise BadValueError(f"The credential or the address of this tool is wrong: {refused.message}") from None
    if origin not in origins:
        raise BadValueError(
            f"The credential of this tool may not be sent to {origin}. An administrator can change that."
        )
    return SecretHeaders(_secret_headers(credential), origins)


def _secret_headers(credential: CredentialSpec) -> dict[str, str]:
    secret = credential.secret.value.strip()
    if not secret or _CONTROL.search(secret) or not secret.isascii():
        raise BadValueError(
            "The credential of this tool is empty or can't be sent. An administrator can enter it again."
        )
    match credential.kind:
        case "bearer":
            return {"Authorization": f"Bearer {secret}"}
        case "basic":
            return {"Authorization": f"Basic {base64_of(secret)}"}
        case "header" if not _TOKEN.fullmatch(credential.header):
            raise BadValueError("The credential of this tool names no valid header. An administrator can correct it.")
        case "header":
            return {credential.header: secret}
        case _:
            assert_never(credential.kind)


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
