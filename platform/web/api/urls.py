"""The REST interface: /api/v1/…, its OpenAPI description and the page that shows it."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

from web.api import runs, threads, wire


class Docs(DocsBase):
    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: object) -> HttpResponse:
        return render(request, "api/docs.html", {"schema_url": self.get_openapi_url(api, kwargs)})


api = NinjaAPI(
    title="Roster",
    version="1",
    description="Start agents and read what they do. Make a key in the admin, or with `manage.py createkey`.",
    urls_namespace="api",
    auth=wire.ApiKey(),
    parser=wire.CleanParser(),
    renderer=wire.Json(),
    docs=Docs(),
    docs_decorator=require_safe,
)
for error, refuse in wire.REFUSALS.items():
    api.add_exception_handler(error, refuse)
api.add_router("", runs.router)
api.add_router("", threads.router)

urlpatterns: list[URLPattern | URLResolver] = [path("api/v1/", api.urls)]
