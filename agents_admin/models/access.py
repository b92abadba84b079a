"""API keys: only a hash is kept; the key itself is shown once."""

import hashlib
import secrets
import uuid

from django.contrib.auth.models import User
from django.db import models

from agents_admin.models.agent import Agent
from agents_admin.models.audience import single_line

PREFIX = "rk_"


def hash_key(key: str) -> str:
    """SHA-256: the key is 256 random bits, so that a slow hash would protect nothing."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKey(models.Model):
    """A program's key. It acts for its user. `limited`: it may start only `agents`, also when these are deleted."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(
        max_length=100, validators=[single_line], help_text="Who uses it, so that you recognise it."
    )
    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="api_keys", help_text="It may do what this person may."
    )
    agents = models.ManyToManyField(
        Agent, blank=True, related_name="+", verbose_name="agents", help_text="Those that may be started with it."
    )
    limited = models.BooleanField(
        "only chosen agents",
        default=False,
        help_text="Otherwise it may start all that the person may use.",
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField("begins with", max_length=12, editable=False)
    enabled = models.BooleanField(default=True)
    expires_at = models.DateTimeField(
        "valid until", null=True, blank=True, help_text="Empty: until it is switched off."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField("last used", null=True, blank=True, editable=False)

    class Meta:
        ordering = ("name",)
        verbose_name = "API key"

    def __str__(self) -> str:
        return self.name

    def renew(self) -> str:
        """Give the (unsaved) row a new key and return it: the only time it is known."""
        key = PREFIX + secrets.token_urlsafe(32)
        self.digest = hash_key(key)
        self.hint = key[:9] + "…"
        return key
