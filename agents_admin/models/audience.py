"""Who may use a row: one shape for agents, tools and memories."""

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

slug_rules = RegexValidator(
    r"^[a-z][a-z0-9_-]{0,49}\Z",
    "Use small letters, digits, - and _, start with a letter, 50 characters at most.",
)


class Audience(models.TextChoices):
    EVERYONE = "everyone", "Everyone, visitors of your site included"
    SIGNED_IN = "signed-in", "People who are signed in"
    CHOSEN = "chosen", "Chosen groups and people"


class HasAudience(models.Model):
    """`groups` and `users` count only with the audience `chosen`."""

    audience = models.CharField(
        "who may use it",
        max_length=10,
        choices=Audience,
        default=Audience.SIGNED_IN,
        help_text="Superusers always may.",
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text="Counts when “Chosen groups and people” is selected."
    )
    users = models.ManyToManyField(
        User, blank=True, related_name="+", help_text="Counts when “Chosen groups and people” is selected."
    )

    class Meta:
        abstract = True


def single_line(value: str) -> None:
    if any(character in value for character in "\r\n\x00"):
        raise ValidationError("Write this on one line.")
