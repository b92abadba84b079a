from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.decorators import action

from agents_admin.admin.page import ModelPage, PartFormSet, TablePart
from agents_admin.document_form import DocumentForm
from agents_admin.ingest import ingest
from agents_admin.models import Document, Memory
from agents_admin.search_memory import search

_MAX_QUERY = 1_000


class PagedFormSet(PartFormSet):
    def get_page_num(self) -> int:
        """Unfold's takes “²” for a number."""
        try:
            return int(super().get_page_num())
        except ValueError:
            return 1


class DocumentInline(TablePart):
    model = Document
    formset = PagedFormSet
    template_before = "admin/parts/add_document.html"
    fields = ("title", "state", "reason", "updated_at")
    readonly_fields = fields
    extra = 0
    per_page = 50
    show_change_link = True
    show_title = False
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Memory | None = None) -> bool:
        return False


@admin.register(Memory)
class MemoryAdmin(ModelPage):
    inlines = (DocumentInline,)
    list_display = ("name", "documents_ready", "audience", "enabled")
    list_filter = ("enabled", "audience")
    search_fields = ("name", "slug", "description")
    prepopulated_fields: ClassVar[dict[str, Any]] = {"slug": ("name",)}
    autocomplete_fields = ("groups", "users")
    actions_detail = ("try_search",)
    next_step = "A memory holds documents that agents look things up in. Add one, then put documents into it."
    fieldsets = (
        (None, {"fields": ("name", "slug", "kind", "description", "enabled")}),
        ("Who may use it", {"fields": ("audience", "groups", "users")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(document_count=Count("documents"))

    @admin.display(description="documents", ordering="document_count")
    def documents_ready(self, memory: Any) -> int:
        return int(memory.document_count)

    @action(description="Try a search", permissions=("view", "agents_admin.view_document"), icon="search")  # type: ignore[untyped-decorator]
    def try_search(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Shows what an agent would find. Reads only, so it is a GET."""
        memory = self.row_or_404(request, object_id)
        query = request.GET.get("q", "")[:_MAX_QUERY]
        context = self.admin_site.each_context(request) | {
            "title": f"Try a search: {memory.name}",
            "opts": self.opts,
            "memory": memory,
            "query": query,
            "hits": search(memory.pk, query) if query.strip() else [],
        }
        return TemplateResponse(request, "admin/try_search.html", context)


@admin.register(Document)
class DocumentAdmin(ModelPage):
    form = DocumentForm
    list_display = ("title", "memory", "state", "passages", "updated_at")
    list_filter = ("memory", "state")
    list_select_related = ("memory",)
    search_fields = ("title", "memory__name")
    autocomplete_fields = ("memory",)
    readonly_fields = ("state", "reason", "passages")
    never_shown = ("upload",)
    next_step = "A document is text that agents find passages in. Make a memory first, then add documents to it."
    fieldsets = ((None, {"fields": ("memory", "title", "upload", "text")}),)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("text").annotate(chunk_count=Count("chunks"))

    def get_fieldsets(self, request: HttpRequest, obj: Document | None = None) -> list[Any]:
        found = [("What agents can find", {"fields": ("state", "reason", "passages")})] if obj else []
        return [*super().get_fieldsets(request, obj), *found]

    @admin.display(description="passages", ordering="chunk_count")
    def passages(self, document: Any) -> int:
        return int(document.chunk_count)

    def save_model(self, request: HttpRequest, obj: Document, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        ingest(obj)
