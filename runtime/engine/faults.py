"""What can go wrong with a model server, each in a sentence of its own: ModelError for people and administrators."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import orjson

from agents_admin.egress import EgressRefused
from runtime.errors import ModelError
from runtime.spec import ModelSpec

LONGEST_PAUSE = 20.0
"""Seconds. A server that asks to wait longer is not asked again."""

_QUOTED_CHARS = 300
_ECHO_CHARS = 24

WRONG_KEY = "The model's provider does not accept its key. An administrator can enter a new one on the provider's page."
NOT_ALLOWED = "The provider does not let this key use the model. An administrator can check what the key may use."
UNKNOWN_MODEL = "The provider does not know this model. An administrator can check its id and the provider's address."
QUOTA = "The account at the model's provider is used up. An administrator can check its plan and billing."
TOO_LONG = "This conversation has become too long for the model. Start a new one, or send less text."
TOO_BIG = "The request is too big for the model's provider. Start a new conversation, or send less text."
FILTERED = "The provider's content filter refused this conversation. Say it differently."
BUSY = "The model's provider is receiving too many requests. Try again in a minute."
OVERLOADED = "The model's provider is overloaded or out of order. Try again in a few minutes."
TOOK_TOO_LONG = "The model's provider gave up because the answer took too long. Try again."
REJECTED = "The model's provider did not accept the request. An administrator can see its reason on the run's page."
REPORTED = "The model's provider reported an error. Try again; an administrator can see its reason on the run's page."
REDIRECTED = "The provider's address leads to another one, which is not followed. An administrator can enter that one."
WEB_PAGE = "The provider's address answers with a web page, not with a model. An administrator can check the address."
UNREADABLE = "The model's provider sent something that can't be read as an answer. Try again."
HUGE = "The model's provider sent more than can be read at once, so the answer was cut off."
UNREACHABLE = "The model's provider can't be reached. Try again; if this stays, an administrator can check its address."
CUT_OFF = "The connection to the model broke off, so the answer is not complete. Try again."
NO_ANSWER = "The model's provider ended the connection without an answer. Try again."
SILENT = "The model did not answer in time. Try again."
FELL_SILENT = "The model stopped in the middle of its answer, so it is not complete. Try again."
TOO_SLOW = "The answer took longer than the provider is given, so it is not complete. Try again, or ask for less."
BAD_ADDRESS = "The provider's address can't be called. An administrator can correct it on the provider's page."
BAD_KEY = "The provider's key has characters that can't be sent. An administrator can enter it again."

_BY_STATUS = {
    401: WRONG_KEY,
    402: QUOTA,
    403: NOT_ALLOWED,
    404: UNKNOWN_MODEL,
    408: TOOK_TOO_LONG,
    413: TOO_BIG,
    429: BUSY,
}
_BY_WORDS = (
    (
        re.compile(r"context.?length|maximum context|context window|too many .{0,6}tokens|prompt is too long"),
        TOO_LONG,
    ),
    (re.compile(r"insufficient.?quota|exceeded your.{0,20}quota|billing|credit balance"), QUOTA),
    (re.compile(r"invalid.?api.?key|incorrect api key|authentication.?error"), WRONG_KEY),
    (re.compile(r"model.?not.?found|does not exist|unknown model"), UNKNOWN_MODEL),
    (re.compile(r"content.?filter|content.?policy|content management policy"), FILTERED),
    (re.compile(r"rate.?limit"), BUSY),
    (re.compile(r"overloaded|server.?error|unavailable"), OVERLOADED),
)


class TransientError(ModelError):
    """A failure that may be gone in a moment. `pause`: the seconds that the server asked to wait, if it did."""

    def __init__(self, message: str, detail: str = "", pause: float | None = None) -> None:
        super().__init__(message, detail)
        self.pause = pause


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """An answer with any status but success."""
    said = _said(_json(body))
    detail = f"HTTP {status}. {said or _kind_of(body)}"
    if 300 <= status < 400:
        return ModelError(REDIRECTED, detail)
    message = _BY_STATUS.get(status) or (OVERLOADED if status >= 500 else REJECTED)
    # The words say more than the status where servers use one for several things, but a wrong key is a wrong key.
    if status not in (401, 402, 408) and status < 500:
        message = _by_words(said) or message
    pause = _pause(headers.get("retry-after", ""))
    is_transient = status == 408 or status >= 500 or (status == 429 and message != QUOTA)
    if is_transient and (pause is None or pause <= LONGEST_PAUSE):
        return TransientError(message, detail, pause)
    return ModelError(message, detail if pause is None else f"{detail} It asks to wait {pause:.0f} seconds.")


def reported(error: object) -> ModelError:
    """An error object inside a stream, or in place of an answer."""
    said = _said({"error": error})
    message = _by_words(said) or REPORTED
    return TransientError(message, said) if message in (BUSY, OVERLOADED) else ModelError(message, said)


def unreadable(detail: str) -> ModelError:
    return ModelError(UNREADABLE, detail)


def not_a_stream(body: bytes) -> ModelError:
    """A body with status 200 that is no answer at all."""
    if not body.strip():
        return ModelError(NO_ANSWER, "The body was empty.")
    return ModelError(WEB_PAGE if _is_html(body) else UNREADABLE, _kind_of(body))


def broken(error: Exception, *, begun: bool) -> ModelError:
    """A connection that could not be made or did not last; `begun`: a part of the answer had arrived."""
    detail = f"{type(error).__name__}: {error}"
    if begun:
        return ModelError(CUT_OFF, detail)
    match error:
        case EgressRefused():
            return ModelError(error.message, error.address)
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return ModelError(BAD_ADDRESS, detail)
        case httpx.LocalProtocolError():
            # Its text may quote the header, and the header is the key.
            return ModelError(BAD_KEY, type(error).__name__)
        case httpx.TransportError():
            unreachable = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            return TransientError(UNREACHABLE if unreachable else NO_ANSWER, detail)
        case _:
            return ModelError(UNREADABLE, detail)


def late(endpoint: ModelSpec, *, begun: bool, silent: bool) -> ModelError:
    """No end in time; `silent`: the server stopped sending before the deadline of the whole answer."""
    detail = (
        f"Limits: {endpoint.timeout_seconds:g} s for the whole answer, {endpoint.idle_seconds:g} s of silence in it."
    )
    return ModelError((FELL_SILENT if silent else TOO_SLOW) if begun else SILENT, detail)


def discreet(detail: str, key: str, prompts: Iterable[str]) -> str:
    """The detail without the key, and without the provider's words where these quote the conversation."""
    if key:
        detail = detail.replace(key, "[key]")
    everything = "\n".join(prompts)
    pieces = (detail[start : start + _ECHO_CHARS] for start in range(len(detail) - _ECHO_CHARS + 1))
    if any(piece in everything for piece in pieces):
        status = detail[:10] if detail.startswith("HTTP ") else ""
        return f"{status}The provider's reason quotes the conversation and is left out."
    return detail


def _said(answer: object) -> str:
    """What an error body says, in any of the shapes that servers use, shortened."""
    error = answer
    while isinstance(error, dict) and error.get("error"):
        error = error["error"]
    if isinstance(error, dict):
        parts = (error.get(name) for name in ("code", "type", "param", "message", "detail"))
        error = " · ".join(str(part) for part in parts if part)
    return error[:_QUOTED_CHARS] if isinstance(error, str) else ""


def _by_words(said: str) -> str:
    lowered = said.lower()
    return next((message for pattern, message in _BY_WORDS if pattern.search(lowered)), "")


def _json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except ValueError:
        return None


def _is_html(body: bytes) -> bool:
    return body.lstrip()[:200].lower().startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))


def _kind_of(body: bytes) -> str:
    if not body.strip():
        return "The body was empty."
    return f"The body was {'a web page' if _is_html(body) else 'neither an event stream nor JSON'} ({len(body)} bytes)."


def _pause(value: str) -> float | None:
    """Seconds of a Retry-After header: a number or an HTTP date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
