"""One line of a roster. Saving refuses what closes a cycle or goes too deep, in every surface: admin, bundle, shell."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connection, models, transaction

from agents_admin import graph
from agents_admin.models.agent import Agent

MAX_DEPTH = 5
_ROSTER_LOCK = 7_241_001
"""Postgres advisory lock of everybody who changes the delegation graph: two saves at once see each other."""


class Delegation(models.Model):
    """A coordinator may hand tasks to a delegate."""

    class Context(models.TextChoices):
        TASK = "task", "Only the task"
        SUMMARY = "summary", "The task and a short summary of the conversation"
        CONVERSATION = "conversation", "The task and the whole conversation"

    coordinator = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="roster")
    delegate = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="delegated_by")
    when_to_use = models.TextField(blank=True, default="", help_text="Which tasks the coordinator should hand over.")
    max_calls = models.PositiveIntegerField(
        "calls in one run", null=True, blank=True, help_text="Empty: no limit of its own. 0: none."
    )
    timeout_seconds = models.PositiveIntegerField(
        "time limit (seconds)", null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(3600)]
    )
    max_steps = models.PositiveIntegerField("steps", null=True, blank=True, validators=[MinValueValidator(1)])
    max_tokens = models.PositiveIntegerField("tokens", null=True, blank=True)
    on_failure = models.TextField(
        "when it fails", blank=True, default="", help_text="What the coordinator is told instead of an answer."
    )
    context = models.CharField("what it is told", max_length=12, choices=Context, default=Context.TASK)
    order = models.PositiveIntegerField(default=0)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("order", "id")
        constraints = (
            models.UniqueConstraint(fields=("coordinator", "delegate"), name="delegation_once"),
            models.CheckConstraint(
                condition=~models.Q(coordinator=models.F("delegate")), name="delegation_not_to_itself"
            ),
        )

    def __str__(self) -> str:
        return f"{self.coordinator} → {self.delegate}"

    def clean(self) -> None:
        if self.coordinator_id and self.delegate_id:
            check_delegation(self.pk, self.coordinator_id, self.delegate_id)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValidationError with the path. The check and the write are one transaction under the roster's lock."""
        with transaction.atomic():
            lock_rosters()
            check_delegation(self.pk, self.coordinator_id, self.delegate_id)
            super().save(*args, **kwargs)


def lock_rosters() -> None:
    """Until the end of the transaction, nobody else changes the delegation graph."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ROSTER_LOCK])


def check_delegation(pk: int | None, coordinator: int, delegate: int) -> None:
    """Disabled rows count too: switching one on must not need a check."""
    if coordinator == delegate:
        raise ValidationError({"delegate": f"An agent can't delegate to itself: {_names([coordinator, delegate])}."})
    edges: dict[int, list[int]] = {}
    rows = Delegation.objects.exclude(pk=pk) if pk else Delegation.objects.all()
    for source, target in rows.values_list("coordinator_id", "delegate_id"):
        edges.setdefault(source, []).append(target)
    back = graph.find_path(edges, delegate, coordinator)
    if back:
        raise ValidationError({"delegate": f"This would go round in a circle: {_names([coordinator, *back])}."})
    edges.setdefault(coordinator, []).append(delegate)
    path = graph.longest_path_through(edges, coordinator, delegate)
    if len(path) - 1 > MAX_DEPTH:
        raise ValidationError(
            {"delegate": f"Delegation may go {MAX_DEPTH} levels deep, this is {len(path) - 1}: {_names(path)}."}
        )


def _names(ids: list[int]) -> str:
    names = dict(Agent.objects.filter(pk__in=ids).values_list("pk", "name"))
    return " → ".join(names.get(pk, "?") for pk in ids)
