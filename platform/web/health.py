"""Alive (no database asked) and ready (everything that a run needs)."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse


async def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """200 with `{"database": true, …}`, or 503 with the part that is away set to false."""
    parts = {"database": _database()}
    return JsonResponse(parts, status=200 if all(parts.values()) else 503)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True
