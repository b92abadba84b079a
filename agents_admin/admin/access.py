from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.debug import sensitive_variables

from agents_admin.admin.page import ModelPage
from agents_admin.models import ApiKey


@admin.register(ApiKey)
class ApiKeyAdmin(ModelPage):
    """Staff see and make their own keys; superusers everybody's."""

    list_display = ("name", "user", "hint", "enabled", "expires_at", "last_used_at")
    list_filter = ("enabled", "limited")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    autocomplete_fields = ("user", "agents")
    readonly_fields = ("hint", "created_at", "last_used_at")
    next_step = "A program that starts agents needs a key. Add one: it is shown once, right after you save it."
    fieldsets = (
        (None, {"fields": ("name", "user", "enabled", "expires_at")}),
        ("Which agents it may start", {"fields": ("limited", "agents")}),
        ("Use", {"fields": ("hint", "created_at", "last_used_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        keys = super().get_queryset(request)
        return keys if request.user.is_superuser else keys.filter(user_id=request.user.pk)

    def get_fieldsets(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj else fieldsets[:-1]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        """A key never changes hands; only superusers make one for somebody else."""
        fixed = ("user",) if obj or not request.user.is_superuser else ()
        return (*super().get_readonly_fields(request, obj), *fixed)

    def get_changeform_initial_data(self, request: HttpRequest) -> Any:
        return super().get_changeform_initial_data(request) | {"user": request.user.pk}

    @sensitive_variables()
    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if not change:
            if not request.user.is_superuser:
                obj.user = cast(User, request.user)
            request.made_key = obj.renew()  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    @sensitive_variables()
    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """The one page that shows the key: never kept in a message, a session or a browser's cache."""
        context = self.admin_site.each_context(request) | {
            "title": f"The new key “{obj.name}”",
            "opts": self.opts,
            "row": obj,
            "key": vars(request)["made_key"],
        }
        return TemplateResponse(request, "admin/api_key_made.html", context, headers={"Cache-Control": "no-store"})
