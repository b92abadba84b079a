from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.forms import BaseDialogForm

from agents_admin.admin.page import ModelPage
from agents_admin.admin.secret import SecretField, SecretForm
from agents_admin.models import Model, Provider
from agents_admin.provider_check import check_provider


class ProviderForm(SecretForm):
    secret_name = "api_key"  # noqa: S105 - a field's name
    api_key = SecretField(
        label="API key",
        required=False,
        help_text="Stored encrypted, never shown again. It belongs to the address above.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given_for = self.instance.origin() if self.instance.pk else ""

    def _post_clean(self) -> None:
        """After the row has its new values: a kept key must not be sent to another server than it was given for."""
        super()._post_clean()  # type: ignore[misc]
        if (
            self.secret_kept
            and not {"base_url", "kind"} & set(self.errors)
            and self.instance.origin() != self.given_for
        ):
            self.add_error(
                "api_key",
                f"This key was given for {self.given_for or 'no address'}. To send it to {self.instance.origin()}, "
                "enter it again; or clear it.",
            )


@admin.register(Provider)
class ProviderAdmin(ModelPage):
    form = ProviderForm
    list_display = ("name", "kind", "base_url", "has_key", "enabled")
    list_filter = ("kind", "enabled")
    search_fields = ("name", "slug", "base_url")
    prepopulated_fields: ClassVar[dict[str, Any]] = {"slug": ("name",)}
    next_step = (
        "A provider is where language models are served: OpenAI, or any server that speaks its protocol. Add one."
    )
    actions_detail = ("test_connection",)
    never_shown = ("api_key",)
    fieldsets = (
        (None, {"fields": ("name", "slug", "kind", "base_url", "api_key", "enabled")}),
        ("How long to wait", {"fields": ("timeout_seconds", "idle_seconds")}),
    )

    @admin.display(description="key", boolean=True)
    def has_key(self, provider: Provider) -> bool:
        return bool(provider.api_key)

    @action(  # type: ignore[untyped-decorator]
        description="Test connection",
        permissions=("change",),
        icon="network_check",
        variant=ActionVariant.PRIMARY,
        dialog={
            "title": "Test connection",
            "description": "Asks the saved address, with the saved key, for its list of models. Nothing is changed.",
            "form_submit_text": "Test",
        },
    )
    def test_connection(self, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        provider = self.row_or_404(request, object_id)
        return TemplateResponse(
            request, "admin/parts/finding.html", {"finding": check_provider(provider), "form": form}
        )


@admin.register(Model)
class ModelAdmin(ModelPage):
    list_display = ("name", "provider", "model_id", "context_window", "enabled")
    list_filter = ("provider", "enabled")
    list_select_related = ("provider",)
    search_fields = ("name", "slug", "model_id", "provider__name")
    prepopulated_fields: ClassVar[dict[str, Any]] = {"slug": ("name",)}
    autocomplete_fields = ("provider", "fallback")
    next_step = "A model answers for your agents. Add a provider first, then the models that you use there."
    fieldsets = (
        (None, {"fields": ("name", "slug", "provider", "model_id", "fallback", "enabled")}),
        (
            "Size and price",
            {
                "fields": ("context_window", "input_price", "output_price"),
                "description": "Prices are for a million tokens, in the currency you keep your books in.",
            },
        ),
    )
