"""Sign-in and sign-out for everybody; the admin's own pages are for staff."""

from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.defaults import permission_denied

from web.access import SignInFirst
from web.http import HtmxRequest


class SignIn(LoginView):
    template_name = "login.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    http_method_names = ["post", "options"]


def turned_away(request: HtmxRequest, exception: PermissionDenied) -> HttpResponse:
    """403; to whoever is not signed in at all, the sign-in page (fragments and streams: 401 and where to go)."""
    if not isinstance(exception, SignInFirst):
        return permission_denied(request, exception)
    if not request.htmx:
        return redirect_to_login(request.get_full_path())
    response = HttpResponse("Sign in first.", status=401, content_type="text/plain")
    response["HX-Redirect"] = reverse("login")
    return response
