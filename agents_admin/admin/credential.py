from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from agents_admin.admin.page import ModelPage, PartFormSet, TablePart
from agents_admin.admin.secret import SecretField, SecretForm
from agents_admin.models import Credential, CredentialOrigin


class CredentialForm(SecretForm):
    secret_name = "secret"  # noqa: S105 - a field's name
    secret = SecretField(required=False, help_text="Stored encrypted, never shown again.")

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if values.get("kind") == Credential.Kind.HEADER and not values.get("header"):
            self.add_error("header", "Write which header the secret is sent in, for example X-Api-Key.")
        if values.get("kind") == Credential.Kind.BASIC and self.secret_given and ":" not in values["secret"]:
            self.add_error("secret", "Write it as name:password.")
        return values


class OriginFormSet(PartFormSet):
    """A stored secret goes to a new place only when it is entered again (security rule 5)."""

    def clean(self) -> None:
        super().clean()
        stored = Credential.objects.filter(pk=self.instance.pk).values_list("secret", flat=True).first()
        if not stored or str(self.data.get("secret", "")).strip() or self.data.get("secret-clear"):
            return
        for form in self.forms:
            if "origin" in form.changed_data and form.cleaned_data.get("origin") and not self._should_delete_form(form):
                form.add_error(
                    "origin", "The secret was not given for this place. To send it there, enter the secret again."
                )


class OriginInline(TablePart):
    model = CredentialOrigin
    formset = OriginFormSet
    extra = 0
    min_num = 1
    verbose_name = "place it may be sent to"
    verbose_name_plural = "places it may be sent to"


@admin.register(Credential)
class CredentialAdmin(ModelPage):
    form = CredentialForm
    inlines = (OriginInline,)
    list_display = ("name", "kind", "places", "has_secret")
    list_filter = ("kind",)
    search_fields = ("name", "slug")
    prepopulated_fields: ClassVar[dict[str, Any]] = {"slug": ("name",)}
    never_shown = ("secret",)
    next_step = (
        "A credential is a secret that a tool sends along, such as a token. Add one when a web service asks for it."
    )
    fieldsets = ((None, {"fields": ("name", "slug", "kind", "header", "secret")}),)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("origins")

    @admin.display(description="sent to")
    def places(self, credential: Credential) -> str:
        return ", ".join(origin.origin for origin in credential.origins.all()) or "nowhere yet"

    @admin.display(description="secret", boolean=True)
    def has_secret(self, credential: Credential) -> bool:
        return bool(credential.secret)
