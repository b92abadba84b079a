"""Alive (no database asked) and ready (everything that a run needs)."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from psycopg import Error
from psycopg_pool import PoolTimeout

from runtime import store
from runtime.runner import runner

# The worker moves the schedule on every minute, so a schedule far behind means no worker.
_WORKER_LIVES = """
SELECT coalesce(bool_or(next_run > now() - interval '3 minutes'), false) AS lives
FROM django_q_schedule WHERE name = 'housekeeping'
"""


@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
async def readyz(request: HttpRequest) -> JsonResponse:
    """`{"database", "worker", "hub"}`, each true or false; 503 when one is false."""
    try:
        parts = {"database": True, "worker": (await store.fetch(_WORKER_LIVES))[0]["lives"]}
    except (Error, PoolTimeout, OSError):
        parts = {"database": False, "worker": False}
    parts["hub"] = runner().hub.connected
    return JsonResponse(parts, status=200 if all(parts.values()) else 503)
