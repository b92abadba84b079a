"""Every address of the product; web/routes.py says who may use each."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from web import health, login

handler500 = "web.outage.server_error"

urlpatterns = [
    path("", RedirectView.as_view(url="/chat/", http_method_names=["get", "head"]), name="home"),
    path("login/", login.SignIn.as_view(), name="login"),
    path("logout/", login.SignOut.as_view(), name="logout"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("", include("web.chat.urls")),
    path("", include("web.api.urls")),
    path("", include("web.widget.urls")),
]
