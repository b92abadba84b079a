"""How requests are read and answers written, the same for every address: JSON, keys, refusals in words."""

from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.utils.datastructures import MultiValueDict
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from ninja.security.http import HttpAuthBase

from agents_admin.actor import Actor
from agents_admin.text import BadJson, clean, read_json
from runtime.errors import RunError
from web.access import key_actor
from web.errors import error_json, run_error_json

MAX_BODY_BYTES = 2_500_000


class ApiRequest(HttpRequest):
    """A request whose key was checked."""

    auth: Actor


class ApiKey(HttpAuthBase):
    openapi_scheme = "bearer"

    async def __call__(self, request: HttpRequest) -> Actor:
        return await key_actor(request)


class Json(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return orjson.dumps(data, option=orjson.OPT_UTC_Z)


class WrongMediaTypeError(Exception):
    """The body is not called JSON."""


class CleanParser(Parser):
    """Reads what was sent through agents_admin.text, as all text from outside."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise WrongMediaTypeError
        if len(request.body) > MAX_BODY_BYTES:
            raise RequestDataTooBig
        return read_json(request.body)

    def parse_querydict(
        self, data: MultiValueDict[str, str], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        given = super().parse_querydict(data, list_fields, request)
        return {name: clean(value) if isinstance(value, str) else value for name, value in given.items()}


def only_known_filters[V: Callable[..., Any]](view: V) -> V:
    """Refuse what the view's `query` does not name: a misspelt filter would give more than was asked for."""
    asked = get_type_hints(view).get("query")
    known = set(asked.model_fields) if asked else set()

    @wraps(view)
    async def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        for name in request.GET:
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise RunError(
                    "invalid", f"There is no filter of this name here; there are: {names}.", clean(name)[:80]
                )
        return await view(request, *args, **kwargs)

    return checked  # type: ignore[return-value]


def refuse_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """The first thing that is wrong, with the name under which it was sent."""
    first = error.errors[0]
    # pydantic says where: the source, our view's parameter for a whole body or query, then the path within that.
    path = first["loc"][2:] if first["loc"][1] in {"payload", "query"} else first["loc"][1:]
    field = clean(str(path[0]))[:80] if path else ""
    return error_json(422, "invalid", _words(first, field), field)


def _words(problem: dict[str, Any], field: str) -> str:
    if not field:
        return "Send a JSON object as the body."
    match problem["type"]:
        case "missing":
            return f"“{field}” is missing."
        case "extra_forbidden":
            return f"There is no field “{field}” here."
        case "string_pattern_mismatch" if field == "input":
            return "“input” is empty: write something."
        case _:
            reason = problem["msg"].removeprefix("Value error, ")
            return f"“{field}” is not accepted: {reason[:1].lower()}{reason[1:]}."


def refuse_run(request: HttpRequest, error: RunError) -> HttpResponse:
    return run_error_json(error)


def refuse_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return error_json(413, "too_large", f"The body is too large: {MAX_BODY_BYTES:,} bytes at most.")


def refuse_http(request: HttpRequest, error: HttpError) -> HttpResponse:
    """What Ninja refuses by itself: a body that could not be read, for the reason that the parser gave."""
    match error.__cause__:
        case BadJson() as bad:
            return error_json(422, "invalid", str(bad))
        case RequestDataTooBig() as large:
            return refuse_large(request, large)
        case WrongMediaTypeError():
            words = "Send the body as JSON, with the header “Content-Type: application/json”."
            return error_json(415, "unsupported_media_type", words)
        case _:
            return error_json(error.status_code, "bad_request", "The body can't be read.")


REFUSALS: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    RunError: refuse_run,
    ValidationError: refuse_invalid,
    RequestDataTooBig: refuse_large,
    HttpError: refuse_http,
}
