from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

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
        only_looks = obj and not self.has_change_permission(request, obj)
        return [
            (None, {"fields": ("name", "slug", "description", "kind", "enabled")}),
            *([("Settings", {"fields": ("as_set",)})] if only_looks else _settings_of_kinds()),
            (
                "What it may do",
                {"fields": ("side_effect", "approval", "credential", "timeout_seconds", "max_output_chars")},
            ),
            ("Who may use it", {"fields": ("audience", "groups", "users")}),
        ]

    @admin.display(description="settings")
    def as_set(self, tool: Tool) -> SafeString | str:
        """For a page to look at, which has no form with the settings' own fields."""
        stored = tool.settings if isinstance(tool.settings, dict) else {}
        kind = TOOL_KINDS.get(tool.kind)
        fields = settings_fields(tool.kind, kind.settings) if kind else {}
        labels = {name.partition("__")[2]: field.label for name, field in fields.items()}
        lines = [(labels.get(key, key), _in_words(value)) for key, value in stored.items()]
        return format_html_join("", "<p>{}: {}</p>", lines) or "the usual ones"


def _settings_of_kinds() -> list[Any]:
    return [
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


def _in_words(value: object) -> str:
    match value:
        case list():
            return "; ".join(map(_in_words, value))
        case dict():
            return ", ".join(f"{key} {_in_words(item)}" for key, item in value.items())
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
