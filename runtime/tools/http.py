"""Calling one address of a web service: the administrator's settings make the request, the model fills in values."""

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from uuid import UUID

from agents_admin.egress import Caps, EgressRefused, Fetched, FetchError, fetch
from agents_admin.kinds import HttpSettings, Parameter
from agents_admin.text import clean
from runtime.ports import Call, CallReason, Ports, ToolResult
from runtime.spec import CredentialSpec, ToolSpec
from runtime.tools.http_request import BadValueError, base64_of, make_request, secret_headers

logger = logging.getLogger(__name__)

_MAX_ANSWER_BYTES = 4_000_000
_EXCERPT = 500
_TEXT_TYPES = re.compile(r"text/.*|.*[/+](?:json|xml|javascript|yaml|x-ndjson|x-www-form-urlencoded)")
# Not every codec that Python has: some are slow, some are no character sets.
_CHARSET = re.compile(r"charset=[\"']?(utf-?16(?:le|be)?|us-ascii|iso-8859-\d{1,2}|windows-125\d)\b")
_SHORTEST_SECRET = 8


def build(tool: ToolSpec, ports: Ports) -> tuple[Mapping[str, object], Call]:
    """The parameters that the administrator declared."""
    settings = tool.settings
    if not isinstance(settings, HttpSettings):
        raise TypeError(f"Tool {tool.name} has no settings of a web request.")
    caps = Caps(seconds=tool.timeout_seconds, bytes=min(4 * tool.max_output_chars, _MAX_ANSWER_BYTES))

    async def call(arguments: Mapping[str, object], call_id: UUID) -> ToolResult:
        try:
            request = make_request(ports.http, settings, arguments, call_id)
            secret = secret_headers(tool.credential, request.url)
        except BadValueError as error:
            return ToolResult(str(error), False, "invalid")
        try:
            fetched = await fetch(ports.http, request, secret, caps)
        except FetchError as error:
            return ToolResult(error.message, False, _reason(error))
        except EgressRefused as refused:
            # Where a name points inside the network is for administrators, not for a model or a visitor.
            logger.warning("Tool %s: %s", tool.name, refused.message)
            return ToolResult(_REFUSED, False, "failed")
        return _told(fetched, tool.credential)

    return _schema(settings.parameters), call


def _reason(error: FetchError) -> CallReason:
    if not error.sent:
        return "failed"
    return "timeout" if error.timed_out else "unsure"


_REFUSED = (
    "The service was not called: its address is not one that may be reached from here. An administrator can tell why."
)


def _schema(parameters: tuple[Parameter, ...]) -> Mapping[str, object]:
    return {
        "type": "object",
        "properties": {
            one.name: {"type": one.type} | ({"description": one.description} if one.description else {})
            for one in parameters
        },
        "required": [one.name for one in parameters if one.required or one.location == "path"],
        "additionalProperties": False,
    }


def _told(fetched: Fetched, credential: CredentialSpec | None) -> ToolResult:
    text = _without_secret(_body_text(fetched), credential)
    if fetched.status >= 400:
        # A server that failed, or a gateway before it, doesn't know how far the work came.
        reason: CallReason = "unsure" if fetched.status >= 500 else "failed"
        return ToolResult(f"The service answered {_status(fetched.status)}. {text[:_EXCERPT]}".strip(), False, reason)
    if not text:
        return ToolResult(f"The service answered {_status(fetched.status)} without any text.")
    return ToolResult(f"{text}\n[… the rest of the answer was left out …]" if fetched.truncated else text)


def _body_text(fetched: Fetched) -> str:
    kind, _, options = fetched.headers.get("Content-Type", "").lower().partition(";")
    if fetched.body and not _is_text(kind.strip(), fetched.body):
        named = clean(kind.strip())[:100] or "data"
        return f"The answer is {named} of {len(fetched.body):,} bytes, which can't be read as text."
    charset = _CHARSET.search(options)
    return clean(fetched.body.decode(charset[1] if charset else "utf-8-sig", errors="replace")).strip()


def _is_text(kind: str, body: bytes) -> bool:
    return bool(_TEXT_TYPES.fullmatch(kind)) if kind else b"\0" not in body[:1_000]


def _status(status: int) -> str:
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)


def _without_secret(text: str, credential: CredentialSpec | None) -> str:
    """Services echo what they are sent; a secret must not reach the model that way. Shorter ones are parts of words."""
    secret = credential.secret.value.strip() if credential else ""
    for form in (secret, secret.partition(":")[2], base64_of(secret)):
        if len(form) >= _SHORTEST_SECRET:
            text = text.replace(form, "[secret]")
    return text
