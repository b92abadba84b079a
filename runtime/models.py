"""What happened: conversations, runs and their logs. Rows are written by `execute` and `project`, never by people."""

import uuid

from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now

from agents_admin.actor import Actor
from agents_admin.models import Agent, ApiKey, Widget


class OwnedQuerySet[Row: models.Model](models.QuerySet[Row]):
    def for_actor(self, actor: Actor) -> "OwnedQuerySet[Row]":
        """The rows that belong to this actor: the same rule as `rights.owned`.

        An API key sees its user's rows, those of agents that it may not start left out. No owner: nobody's.
        """
        if actor.widget_id is not None:
            return self.filter(widget_id=actor.widget_id, visitor=actor.visitor) if actor.visitor else self.none()
        if actor.user_id is None:
            return self.none()
        mine = self.filter(user_id=actor.user_id)
        return mine if actor.startable is None else mine.filter(agent_id__in=actor.startable)


class Owner(models.Model):
    """Who a row belongs to: a user (an API key acts for its user) or one visitor of one widget. No owner: nobody's."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    widget = models.ForeignKey(Widget, on_delete=models.CASCADE, null=True, related_name="+")
    visitor = models.CharField(max_length=64, default="", blank=True)

    class Meta:
        abstract = True


class Thread(Owner):
    """A conversation of one actor with one agent."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, related_name="threads")
    agent_slug = models.CharField(max_length=50)
    agent_label = models.CharField(max_length=100)
    title = models.CharField(max_length=200, default="", blank=True)
    channel = models.CharField(max_length=10)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["Thread"].as_manager()

    class Meta:
        ordering = ("-updated_at",)
        indexes = (
            models.Index(fields=("user", "-updated_at"), name="thread_of_user"),
            models.Index(fields=("widget", "visitor", "-updated_at"), name="thread_of_visitor"),
        )

    def __str__(self) -> str:
        return self.title or str(self.id)


class Run(Owner):
    """One execution of one agent. A delegate's run is a child; `root` of a root run is itself.

    Owner and thread are the root's. `lease_until` is renewed by the process that runs it (the database's clock).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    root = models.ForeignKey("self", on_delete=models.CASCADE, related_name="tree")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    parent_call = models.UUIDField(null=True)
    depth = models.PositiveSmallIntegerField(default=0)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="runs")
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, related_name="runs")
    agent_slug = models.CharField(max_length=50)
    agent_label = models.CharField(max_length=100)
    view = models.CharField(max_length=7, default="full")
    channel = models.CharField(max_length=10)
    api_key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="runs")
    status = models.CharField(max_length=20, db_index=True)
    reason = models.CharField(max_length=40, default="", blank=True)
    error = models.TextField(default="", blank=True)
    detail = models.TextField(default="", blank=True)
    input = models.TextField(default="", blank=True)
    output = models.TextField(default="", blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    omitted = models.JSONField(default=list, blank=True)
    idempotency_key = models.CharField(max_length=200, null=True)
    idempotency_hash = models.CharField(max_length=64, default="", blank=True)
    epoch = models.PositiveIntegerField(default=0, help_text="Counts its owners: a write of an earlier one is refused.")
    attempts = models.PositiveSmallIntegerField(default=1)
    owner_process = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    log_state = models.CharField(
        max_length=9, db_default="whole", help_text="whole, collapsed (each text in one piece) or gone."
    )

    objects = OwnedQuerySet["Run"].as_manager()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("user", "idempotency_key"),
                condition=models.Q(idempotency_key__isnull=False),
                name="run_idempotency_once",
            ),
            models.UniqueConstraint(
                fields=("thread",),
                condition=models.Q(depth=0, status__in=("queued", "running", "waiting_approval", "needs_review")),
                name="run_one_open_per_thread",
            ),
        )
        indexes = (
            models.Index(fields=("root", "created_at"), name="run_tree"),
            models.Index(fields=("user", "-created_at"), name="run_of_user"),
            models.Index(fields=("log_state", "finished_at"), name="run_to_tidy", condition=models.Q(depth=0)),
            models.Index(
                fields=("lease_until",),
                name="run_leased",
                condition=models.Q(depth=0, status__in=("queued", "running")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.agent_label} · {self.id}"


class Message(models.Model):
    """What was said in a thread. An assistant's message belongs to the root run that said it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="messages")
    role = models.CharField(max_length=10)
    text = models.TextField(default="", blank=True)
    complete = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())
    n = models.PositiveIntegerField(default=0, help_text="Its place in the log of its run; 0: what the person wrote.")

    class Meta:
        ordering = ("created_at", "n")
        indexes = (models.Index(fields=("thread", "created_at"), name="message_of_thread"),)

    def __str__(self) -> str:
        return self.text[:80]


class ToolCall(models.Model):
    """The ledger: `started` is committed before a call that acts is made."""

    id = models.UUIDField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tool_calls")
    name = models.CharField(max_length=100)
    label = models.CharField(max_length=120)
    kind = models.CharField(max_length=20)
    side_effect = models.CharField(max_length=10, default="read-only")
    arguments = models.TextField(default="", blank=True)
    state = models.CharField(max_length=10, default="started")
    reason = models.CharField(max_length=20, default="", blank=True)
    content = models.TextField(default="", blank=True)
    seconds = models.FloatField(null=True)
    child_run = models.UUIDField(null=True)
    n = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("n",)
        indexes = (models.Index(fields=("run", "n"), name="toolcall_of_run"),)

    def __str__(self) -> str:
        return self.label


class Event(models.Model):
    """One line of the log of a root run: `n` counts from 1; `run` is the run it belongs to, `child` a delegate's."""

    pk = models.CompositePrimaryKey("root_id", "n")
    root = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="log", db_index=False)
    n = models.PositiveIntegerField()
    run_id = models.UUIDField()
    kind = models.CharField(max_length=30)
    data = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ("root_id", "n")

    def __str__(self) -> str:
        return f"{self.n} {self.kind}"
