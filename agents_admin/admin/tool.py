from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from agents_admin.admin.page import ModelPage
from agents_admin.forms import settings_fields, tool_form
from agents_admin.kinds import TOOL_KINDS
from agents_admin.models import Tool


@admin.register(Tool)
class ToolAdmin(ModelPage):
    list_display = ("name", "kind", "slug", "audience", "approval", "enabled")
    list_filter = ("kind", "enabled", "audience", "side_effect")
    search_fields = ("name", "slug", "description")
    prepopulated_fields: ClassVar[dict[str, Any]] = {"slug": ("name",)}
    autocomplete_fields = ("credential", "groups", "users")
    empty_choices: ClassVar[dict[str, str]] = {"side_effect": "What is usual for its kind"}
    next_step = "A tool is something an agent may call: a clock, a calculator, your own web service. Add one."

    def get_form(self, request: HttpRequest, obj: Tool | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, form=tool_form(), **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Tool | None = None) -> list[Any]:
        kinds = [
            (
                f"Settings: {kind.label}",
                {
                    "fields": tuple(settings_fields(slug, kind.settings)),
                    "description": kind.help,
                    "classes": ("kind-settings", f"kind-{slug}"),
                },
            )
            for slug, kind in TOOL_KINDS.items()
            if settings_fields(slug, kind.settings)
        ]
        return [
            (None, {"fields": ("name", "slug", "description", "kind", "enabled")}),
            *kinds,
            (
                "What it may do",
                {"fields": ("side_effect", "approval", "credential", "timeout_seconds", "max_output_chars")},
            ),
            ("Who may use it", {"fields": ("audience", "groups", "users")}),
        ]
