"""Every refusal as JSON for programs: `{"error": {"code", "message", "field"?}}`, whoever refused."""

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_and_async_middleware

from runtime.errors import Code, RunError

STATUS: dict[Code, int] = {
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "run_in_progress": 409,
    "decided": 409,
    "idempotency_conflict": 409,
    "invalid": 422,
    "quota": 429,
    "unavailable": 503,
}

# What Django, or the server before any view, refuses.
_WORDS: dict[int, tuple[str, str]] = {
    400: ("bad_request", "This request can't be read."),
    404: ("not_found", "There is nothing at this address. /api/v1/docs lists the addresses."),
    405: ("method_not_allowed", "This address does not take that method. The header Allow names those it takes."),
    413: ("too_large", "The body is too large."),
    503: ("unavailable", "The database can't be reached right now. Try again in a few seconds."),
}
_OURS = ("internal", "Something went wrong on our side. It was written to the log; please try again later.")


def error_json(status: int, code: str, message: str, field: str = "") -> JsonResponse:
    error = {"code": code, "message": message} | ({"field": field} if field else {})
    answer = JsonResponse({"error": error}, status=status)
    if status == STATUS["unauthenticated"]:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def run_error_json(error: RunError) -> JsonResponse:
    return error_json(STATUS[error.code], error.code, error.message, error.field)


@sync_and_async_middleware
def json_errors(get_response):  # type: ignore[no-untyped-def]
    """Middleware: under /api/ what no view of ours refused is refused in JSON too: unknown addresses, outages."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            return _as_json(request, await get_response(request))

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _as_json(request, get_response(request))

    return answer


def _as_json(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    is_json = response.get("Content-Type", "").startswith("application/json")
    if response.status_code < 400 or is_json or not request.path.startswith("/api/"):
        return response
    words = error_json(response.status_code, *_WORDS.get(response.status_code, _OURS))
    for name in ("Allow", "Retry-After"):
        if name in response:
            words[name] = response[name]
    return words
