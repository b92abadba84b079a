"""What happened, to look at: conversations and runs are never edited here, and only superusers delete them.

Who may change runs decides about calls that may or may not have happened.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import F, Model, OuterRef, Subquery, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.decorators import display

from agents_admin.actor import Actor
from agents_admin.admin.page import ModelPage
from runtime import trace
from runtime.errors import RunError
from runtime.events import WAITING
from runtime.models import Run, Thread
from runtime.review import DECISIONS, UNSAID, review

_COLOURS = {
    "completed": "success",
    "limited": "warning",
    "failed": "danger",
    "running": "info",
    "needs_review": "warning",
    "waiting_approval": "warning",
}
_DECIDED = "It was noted, and the run goes on as soon as every step is decided."


class RecordPage(ModelPage):
    """A list and a page to read. `page_template` shows one row."""

    page_template: str
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.row_or_404(request, object_id)
        context = self.admin_site.each_context(request) | {
            "title": str(row),
            "opts": self.opts,
            "row": row,
            "who": self.who(row),
            "may_delete": self.has_delete_permission(request, row),
        }
        return TemplateResponse(request, self.page_template, context | self.page_context(request, row))

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Named, not listed: the log of one run has thousands of lines."""
        rows = [f"{row}, with its log and everything that its agents and their delegates did" for row in objs]
        return rows, {str(self.opts.verbose_name_plural): len(rows)}, set(), []

    @admin.display(description="agent", ordering="agent_label")
    def asked_agent(self, row: Any) -> str:
        return str(row.agent_label)

    @admin.display(description="who")
    def who(self, row: Any) -> str:
        if row.widget_id:
            return f"a visitor of {row.widget.name}"
        return str(row.user) if row.user_id else "nobody"


class WaitingFilter(admin.SimpleListFilter):
    title = "waiting for a person"
    parameter_name = "waiting"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(status__in=WAITING) if self.value() == "yes" else queryset


@admin.register(Run)
class RunAdmin(RecordPage):
    page_template = "admin/run.html"
    list_display = ("asked_agent", "who", "channel", "state", "asked_at", "duration", "tokens")
    list_filter = (WaitingFilter, "status", "channel", "created_at", "agent")
    list_select_related = ("user", "widget")
    search_fields = ("agent_label", "agent_slug", "user__username", "input")
    next_step = "Nobody has asked an agent yet. Every question, from the chat, the API or a widget, appears here."

    def get_queryset(self, request: HttpRequest) -> Any:
        """Root runs; `tree_tokens` counts their delegates too."""
        below = Run.objects.filter(root=OuterRef("pk")).order_by().values("root")
        spent = below.annotate(sum=Sum(F("input_tokens") + F("output_tokens"))).values("sum")
        return super().get_queryset(request).filter(depth=0).annotate(tree_tokens=Subquery(spent))

    def page_context(self, request: HttpRequest, row: Run) -> dict[str, Any]:
        waits, branch = row.status == "needs_review", trace.tree(row)
        if branch is None:
            raise Http404
        return {
            "branch": branch,
            "tokens": self.tokens(row),
            "duration": trace.duration(row),
            "waits": waits,
            "may_decide": waits and request.user.has_perm("runtime.change_run"),
        }

    def get_urls(self) -> list[URLPattern]:
        decide = path("<uuid:run>/review/<uuid:call>/", self.decide, name="runtime_run_review")
        return [decide, *super().get_urls()]

    async def decide(self, request: HttpRequest, run: UUID, call: UUID) -> HttpResponse:
        """About a call that may have happened. It is async because the run goes on in the loop that runs this."""
        user = await request.auser()
        if not (user.is_active and user.is_staff):
            return redirect_to_login(request.get_full_path(), reverse("admin:login"))
        if not await user.ahas_perm("runtime.change_run"):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        await self._decide(request, Actor("admin", user_id=user.pk), run, call)
        return redirect("admin:runtime_run_change", run)

    async def _decide(self, request: HttpRequest, actor: Actor, run: UUID, call: UUID) -> None:
        decision = DECISIONS.get(request.POST.get("decision", ""))
        try:
            if decision is None:
                raise RunError("invalid", UNSAID, "decision")
            await review(actor, run, call, decision, anybodys=True)
        except RunError as error:
            if error.code == "not_found":
                raise Http404 from error
            messages.warning(request, error.message)
        else:
            messages.success(request, _DECIDED)

    @display(description="status", ordering="status", label=_COLOURS)  # type: ignore[untyped-decorator]
    def state(self, run: Run) -> tuple[str, str]:
        words = "waits for a person" if run.status in WAITING else run.status
        return run.status, f"{words}: {run.reason}" if run.reason else words

    @admin.display(description="asked", ordering="created_at")
    def asked_at(self, run: Run) -> datetime:
        return run.created_at

    @admin.display(description="took")
    def duration(self, run: Run) -> str:
        took = trace.duration(run)
        return f"{took.total_seconds():.1f} s" if took else "not finished"

    @admin.display(description="tokens")
    def tokens(self, run: Any) -> int:
        return int(run.tree_tokens or 0)


@admin.register(Thread)
class ThreadAdmin(RecordPage):
    page_template = "admin/thread.html"
    list_display = ("title_or_agent", "asked_agent", "who", "channel", "updated_at")
    list_filter = ("channel", "updated_at", "agent")
    list_select_related = ("user", "widget")
    search_fields = ("title", "agent_label", "user__username")
    next_step = "A thread is a conversation with an agent. The first one appears when somebody talks to an agent."

    @admin.display(description="thread", ordering="title")
    def title_or_agent(self, thread: Thread) -> str:
        return thread.title or f"with {thread.agent_label}"

    def page_context(self, request: HttpRequest, row: Thread) -> dict[str, Any]:
        return {"messages_said": row.messages.select_related("run"), "runs": row.runs.filter(depth=0)}
