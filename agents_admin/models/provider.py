from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from agents_admin.egress.policy import EgressRefused, check_url, origin_of
from agents_admin.kinds import PROVIDER_KINDS
from agents_admin.models.audience import single_line, slug_rules
from agents_admin.models.fields import EncryptedTextField
from agents_admin.models.origin import service_address


def provider_kinds() -> list[tuple[str, str]]:
    return [(slug, kind.label) for slug, kind in PROVIDER_KINDS.items()]


class Provider(models.Model):
    """Where models are served."""

    name = models.CharField(max_length=100, unique=True, validators=[single_line])
    slug = models.CharField(
        "short name", max_length=50, unique=True, validators=[slug_rules], help_text="A short name for bundles."
    )
    kind = models.CharField("kind", max_length=20, choices=provider_kinds, default="openai")
    base_url = models.CharField(
        "address",
        max_length=500,
        blank=True,
        default="",
        validators=[single_line, service_address],
        help_text="Where its API starts, for example https://api.openai.com/v1. Empty: OpenAI's own.",
    )
    api_key = EncryptedTextField(
        "API key",
        blank=True,
        default="",
        help_text="Stored encrypted, never shown again. Changing the address asks for it again.",
    )
    secret_reference = models.CharField(
        max_length=100,
        blank=True,
        default="",
        editable=False,
        help_text="Where a bundle took the key from: ${LLM_KEY}.",
    )
    timeout_seconds = models.PositiveIntegerField(
        "time limit of an answer (seconds)", default=120, validators=[MinValueValidator(1), MaxValueValidator(3600)]
    )
    idle_seconds = models.PositiveIntegerField(
        "longest silence (seconds)",
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text="An answer that stops arriving for this long is given up.",
    )
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(timeout_seconds__gte=1) & models.Q(idle_seconds__gte=1),
                name="provider_times_positive",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def origin(self) -> str:
        """What the key is bound to: `scheme://host:port` of the address, or of the kind's own; empty without one."""
        kind = PROVIDER_KINDS.get(self.kind)
        try:
            return origin_of(check_url(self.base_url or (kind.default_base_url if kind else "")))
        except EgressRefused:
            return ""


class Model(models.Model):
    """A model at a provider. Prices are per million tokens, in the currency you keep your books in."""

    name = models.CharField(max_length=100, validators=[single_line])
    slug = models.CharField(
        "short name", max_length=50, unique=True, validators=[slug_rules], help_text="A short name for bundles."
    )
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="models")
    model_id = models.CharField(
        "model's name there",
        max_length=200,
        validators=[single_line],
        help_text="As the provider writes it, for example gpt-5-mini.",
    )
    context_window = models.PositiveIntegerField(
        "context window (tokens)", null=True, blank=True, help_text="Empty: unknown."
    )
    input_price = models.DecimalField("price of input", max_digits=12, decimal_places=6, null=True, blank=True)
    output_price = models.DecimalField("price of output", max_digits=12, decimal_places=6, null=True, blank=True)
    fallback = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Asked when this model can't be reached before it has said anything.",
    )
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(fallback__isnull=True) | ~models.Q(fallback=models.F("id")),
                name="model_not_own_fallback",
            ),
        )

    def __str__(self) -> str:
        return self.name
