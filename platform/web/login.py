"""Sign-in and sign-out for everybody; the admin's own pages are for staff."""

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    template_name = "login.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    http_method_names = ["post", "options"]
