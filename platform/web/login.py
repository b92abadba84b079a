"""Sign-in and sign-out for everybody; the admin's own pages are for staff."""

from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import reverse


class SignIn(LoginView):
    template_name = "login.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    http_method_names = ["post", "options"]


def sign_in_first(request: HttpRequest) -> HttpResponse:
    """The sign-in page, and back; fragments and streams get 401 and where to go."""
    if "HX-Request" not in request.headers:
        return redirect_to_login(request.get_full_path())
    response = HttpResponse("Sign in first.", status=401, content_type="text/plain")
    response["HX-Redirect"] = reverse("login")
    return response
