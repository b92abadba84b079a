import uuid

from django.core.validators import RegexValidator
from django.db import models

from agents_admin.models.agent import Agent
from agents_admin.models.audience import single_line
from agents_admin.models.origin import OriginField

colour = RegexValidator(r"^#[0-9a-fA-F]{6}\Z", "Write a colour as # and six digits or letters a to f: #4f46e5.")


class Widget(models.Model):
    """An agent on other people's pages."""

    class Theme(models.TextChoices):
        AUTO = "auto", "As the visitor's system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, validators=[single_line])
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        related_name="widgets",
        help_text="It must be for everyone: visitors don't sign in.",
    )
    title = models.CharField(
        max_length=60, blank=True, default="", help_text="Above the conversation. Empty: the agent's name."
    )
    greeting = models.TextField(blank=True, default="", help_text="Empty: the agent's greeting.")
    theme = models.CharField(max_length=5, choices=Theme, default=Theme.AUTO)
    accent = models.CharField("colour", max_length=7, default="#4f46e5", validators=[colour])
    visitor_per_hour = models.PositiveIntegerField("messages of one visitor in an hour", default=30)
    address_per_hour = models.PositiveIntegerField(
        "messages from one address in an hour", default=120, help_text="Many visitors can share an address."
    )
    total_per_day = models.PositiveIntegerField("messages in a day, all visitors together", default=5000)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class WidgetOrigin(models.Model):
    """A site whose pages may show the widget: `scheme://host[:port]`."""

    widget = models.ForeignKey(Widget, on_delete=models.CASCADE, related_name="origins")
    origin = OriginField("site", max_length=300, help_text="For example https://www.shop.example")

    class Meta:
        ordering = ("origin",)
        constraints = (models.UniqueConstraint(fields=("widget", "origin"), name="widget_origin_once"),)

    def __str__(self) -> str:
        return self.origin
