"""The request, typed once."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxRequest(HttpRequest):
    htmx: HtmxDetails


class UserRequest(HtmxRequest):
    """The request of a signed-in person."""

    user: User
