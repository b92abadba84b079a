from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from agents_admin.kinds import TOOL_KINDS
from agents_admin.models.audience import HasAudience, single_line, slug_rules
from agents_admin.models.credential import Credential


def tool_kinds() -> list[tuple[str, str]]:
    return [(slug, kind.label) for slug, kind in TOOL_KINDS.items()]


class SideEffect(models.TextChoices):
    READ_ONLY = "read-only", "Only reads"
    REPEATABLE = "repeatable", "Changes something, but may be repeated"
    ACTS = "acts", "Acts: must not happen twice"


class Approval(models.TextChoices):
    NEVER = "never", "Not needed"
    ASK = "ask", "A person is asked first"
    REFUSE = "refuse", "Always refused"


class Tool(HasAudience):
    """Something an agent may call: a kind plus typed settings."""

    name = models.CharField(max_length=100, validators=[single_line])
    slug = models.CharField(
        "short name", max_length=50, unique=True, validators=[slug_rules], help_text="The name by which agents call it."
    )
    kind = models.CharField(max_length=20, choices=tool_kinds, default="http")
    settings = models.JSONField(default=dict, blank=True)
    description = models.TextField(
        blank=True, default="", help_text="What agents are told: what it does and when to use it."
    )
    side_effect = models.CharField(
        "what it does",
        max_length=10,
        choices=SideEffect,
        blank=True,
        default="",
        help_text="Usual: web requests with POST act, everything else only reads.",
    )
    approval = models.CharField(max_length=6, choices=Approval, default=Approval.NEVER)
    timeout_seconds = models.PositiveIntegerField(
        "time limit (seconds)", default=30, validators=[MinValueValidator(1), MaxValueValidator(600)]
    )
    max_output_chars = models.PositiveIntegerField(
        "longest result (characters)",
        default=20_000,
        validators=[MinValueValidator(100), MaxValueValidator(1_000_000)],
        help_text="A longer result is shown to the agent with its middle left out.",
    )
    credential = models.ForeignKey(Credential, on_delete=models.PROTECT, null=True, blank=True, related_name="tools")
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(condition=models.Q(timeout_seconds__gte=1), name="tool_timeout_positive"),
        )

    def __str__(self) -> str:
        return self.name
