from django.db import models

from agents_admin.models.audience import single_line, slug_rules
from agents_admin.models.fields import EncryptedTextField
from agents_admin.models.origin import OriginField, service_address


class Credential(models.Model):
    """A named secret, write-only, sent only to its origins."""

    class Kind(models.TextChoices):
        BEARER = "bearer", "Bearer token (Authorization: Bearer …)"
        HEADER = "header", "A header of its own"
        BASIC = "basic", "User name and password (name:password)"

    name = models.CharField(max_length=100, unique=True, validators=[single_line])
    slug = models.CharField(
        "short name", max_length=50, unique=True, validators=[slug_rules], help_text="A short name for bundles."
    )
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.BEARER)
    header = models.CharField(
        max_length=100,
        blank=True,
        default="",
        validators=[single_line],
        help_text="For “A header of its own”: X-Api-Key.",
    )
    secret = EncryptedTextField(blank=True, default="", help_text="Stored encrypted, never shown again.")
    secret_reference = models.CharField(
        max_length=100, blank=True, default="", editable=False, help_text="Where a bundle took it from: ${SHOP_TOKEN}."
    )

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class CredentialOrigin(models.Model):
    """A place a credential may be sent to: `scheme://host[:port]`."""

    credential = models.ForeignKey(Credential, on_delete=models.CASCADE, related_name="origins")
    origin = OriginField(
        "may be sent to", max_length=300, validators=[service_address], help_text="For example https://shop.example"
    )

    class Meta:
        ordering = ("origin",)
        constraints = (models.UniqueConstraint(fields=("credential", "origin"), name="credential_origin_once"),)

    def __str__(self) -> str:
        return self.origin
