from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminColorInputWidget

from agents_admin.admin.page import ModelPage, TablePart
from agents_admin.models import Widget, WidgetOrigin


class WidgetOriginInline(TablePart):
    model = WidgetOrigin
    verbose_name = "site"
    verbose_name_plural = "sites that may show it"
    extra = 0
    min_num = 1


@admin.register(Widget)
class WidgetAdmin(ModelPage):
    inlines = (WidgetOriginInline,)
    list_display = ("name", "agent", "sites", "enabled")
    list_filter = ("enabled",)
    list_select_related = ("agent",)
    search_fields = ("name", "agent__name", "origins__origin")
    autocomplete_fields = ("agent",)
    readonly_fields = ("snippet",)
    next_step = "A widget puts an agent on the pages of your site. Add one for an agent that everyone may use."

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("origins")

    def get_fieldsets(self, request: HttpRequest, obj: Widget | None = None) -> list[Any]:
        copied = [("For your pages", {"fields": ("snippet",)})] if obj else []
        return [
            (None, {"fields": ("name", "agent", "enabled")}),
            *copied,
            ("Looks", {"fields": ("title", "greeting", "theme", "accent")}),
            ("How much visitors may ask", {"fields": ("visitor_per_hour", "address_per_hour", "total_per_day")}),
        ]

    def get_form(self, request: HttpRequest, obj: Widget | None = None, change: bool = False, **kwargs: Any) -> Any:
        widgets = {"accent": UnfoldAdminColorInputWidget({"type": "color"})}
        return super().get_form(request, obj, change, widgets=widgets, **kwargs)

    @admin.display(description="sites")
    def sites(self, widget: Widget) -> str:
        return ", ".join(origin.origin for origin in widget.origins.all()) or "none yet"

    @admin.display(description="copy this into your pages")
    def snippet(self, widget: Widget) -> SafeString:
        line = f'<script src="{settings.PUBLIC_URL}/widget.js" data-widget="{widget.pk}" async></script>'
        return format_html(
            '<code id="snippet" class="select-all">{}</code> '
            '<button type="button" class="text-link" data-copy="snippet">Copy</button>',
            line,
        )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        for problem in why_not_shown(form.instance):
            self.message_user(request, problem, messages.WARNING)


def why_not_shown(widget: Widget) -> list[str]:
    """Why visitors would not be able to talk to the widget's agent, in words."""
    agent = widget.agent
    problems = []
    if agent.audience != "everyone":
        problems.append(f"Visitors can't use {agent.name} yet: set “who may use it” of the agent to everyone.")
    if agent.hidden:
        problems.append(f"{agent.name} is hidden, so nobody can talk to it directly.")
    if not agent.enabled:
        problems.append(f"{agent.name} is switched off.")
    if not widget.origins.exists():
        problems.append("Add the address of your site: without one the widget shows nowhere.")
    return problems
