"""The page for what went wrong on our side, database outages told apart."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from runtime import store


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500; uses no database, session or user, since those may be what failed."""
    if isinstance(sys.exception(), (OperationalError, InterfaceError, *store.AWAY)):
        return HttpResponse(render_to_string("503.html"), status=503, headers={"Retry-After": "5"})
    return HttpResponse(render_to_string("500.html"), status=500)
