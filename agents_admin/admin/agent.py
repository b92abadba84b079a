from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action, display
from unfold.enums import ActionVariant
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextareaWidget

from agents_admin.admin.page import ModelPage, RefusableFormSet, StackPart, TablePart, after_dialog
from agents_admin.duplicate import duplicate
from agents_admin.models import Agent, AgentMemory, AgentTool, Delegation


class AgentToolInline(TablePart):
    model = AgentTool
    fields = ("tool", "approval", "max_calls", "order")
    empty_choices: ClassVar[dict[str, str]] = {"approval": "As the tool says"}
    autocomplete_fields = ("tool",)
    ordering_field = "order"
    verbose_name = "tool"
    verbose_name_plural = "tools"
    extra = 0
    tab = True


class AgentMemoryInline(TablePart):
    model = AgentMemory
    fields = ("memory", "order")
    autocomplete_fields = ("memory",)
    ordering_field = "order"
    verbose_name = "memory"
    verbose_name_plural = "memories"
    extra = 0
    tab = True


class RosterInline(StackPart):
    model = Delegation
    formset = RefusableFormSet
    fk_name = "coordinator"
    fieldsets = (
        (None, {"fields": ("delegate", "when_to_use", "context", "on_failure", "enabled", "order")}),
        (
            "Limits of one task",
            {
                "fields": ("max_calls", "timeout_seconds", "max_steps", "max_tokens"),
                "classes": ("collapse",),
                "description": "Empty: no limit of its own; those of both agents hold anyway.",
            },
        ),
    )
    autocomplete_fields = ("delegate",)
    ordering_field = "order"
    verbose_name = "delegate"
    verbose_name_plural = "roster"
    extra = 0
    tab = True


@admin.register(Agent)
class AgentAdmin(ModelPage):
    inlines = (AgentToolInline, AgentMemoryInline, RosterInline)
    list_display = ("name", "model", "enabled", "delegates", "audience", "seen")
    list_filter = ("enabled", "hidden", "audience", "model")
    list_select_related = ("model",)
    search_fields = ("name", "slug", "description")
    prepopulated_fields: ClassVar[dict[str, Any]] = {"slug": ("name",)}
    autocomplete_fields = ("model", "groups", "users")
    actions_detail = ("talk",)
    actions_row = ("copy", "switch")
    next_step = "An agent answers people with the help of a model. Add a provider and a model first, then your agent."
    fieldsets = (
        ("Basics", {"fields": ("name", "slug", "description", "greeting", "starters", "enabled"), "classes": ("tab",)}),
        ("Instructions", {"fields": ("instructions",), "classes": ("tab",)}),
        (
            "Model and answers",
            {
                "fields": ("model", "temperature", "max_output_tokens", "history_messages", "delegate_view"),
                "classes": ("tab",),
            },
        ),
        ("Who may use it", {"fields": ("audience", "groups", "users", "hidden"), "classes": ("tab",)}),
        (
            "Limits",
            {
                "fields": ("max_steps", "max_tool_calls", "max_seconds", "max_tokens"),
                "classes": ("tab",),
                "description": "What one run may use. Seconds and tokens hold for it and its delegates together.",
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(delegate_count=Count("roster"))

    def get_form(self, request: HttpRequest, obj: Agent | None = None, change: bool = False, **kwargs: Any) -> Any:
        widgets = {"instructions": UnfoldAdminTextareaWidget({"rows": 20})}
        return super().get_form(request, obj, change, widgets=widgets, **kwargs)

    @display(description="hidden", ordering="hidden", label={"hidden": "warning"})  # type: ignore[untyped-decorator]
    def seen(self, agent: Agent) -> str | None:
        """Most agents are not, so only those that are stand out."""
        return "hidden" if agent.hidden else None

    @admin.display(description="delegates", ordering="delegate_count")
    def delegates(self, agent: Any) -> int:
        return int(agent.delegate_count)

    @action(description="Talk to it", permissions=("view",), icon="forum", variant=ActionVariant.PRIMARY)  # type: ignore[untyped-decorator]
    def talk(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self.row_or_404(request, object_id)
        return HttpResponseRedirect("/chat/?" + urlencode({"agent": agent.slug}))

    @action(  # type: ignore[untyped-decorator]
        description="Duplicate",
        permissions=("add", "view"),
        icon="content_copy",
        dialog={
            "title": "Duplicate this agent",
            "description": "The copy has the same tools, memories and roster, and stays switched off at first.",
            "form_submit_text": "Duplicate",
        },
    )
    def copy(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        try:
            made = duplicate(self.row_or_404(request, object_id))
        except Agent.DoesNotExist:
            raise Http404 from None
        except ValidationError as error:
            self.message_user(request, f"No copy was made. {' '.join(error.messages)}", messages.ERROR)
            return after_dialog(request, reverse("admin:agents_admin_agent_changelist"))
        self.log_addition(request, made, [{"added": {}}])
        return after_dialog(request, reverse("admin:agents_admin_agent_change", args=(made.pk,)))

    @action(  # type: ignore[untyped-decorator]
        description="Switch on or off",
        permissions=("change",),
        icon="power_settings_new",
        dialog={
            "title": "Switch this agent on or off",
            "description": "Switched off, nobody can talk to it and nobody can delegate to it.",
            "form_submit_text": "Switch",
        },
    )
    def switch(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        with transaction.atomic():
            agent = self.row_or_404(request, object_id)
            agent.enabled = not agent.enabled
            agent.save(update_fields=["enabled"])
        self.log_change(request, agent, [{"changed": {"fields": ["enabled"]}}])
        return after_dialog(request, reverse("admin:agents_admin_agent_changelist"))
