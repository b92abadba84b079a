from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from agents_admin.models.audience import HasAudience, single_line, slug_rules
from agents_admin.models.memory import Memory
from agents_admin.models.provider import Model
from agents_admin.models.tool import Approval, Tool


class Agent(HasAudience):
    """A model with instructions, tools, memories and a roster."""

    class View(models.TextChoices):
        FULL = "full", "Everything it does"
        SUMMARY = "summary", "That it worked, and its answer"
        NONE = "none", "Nothing"

    name = models.CharField(max_length=100, validators=[single_line])
    slug = models.CharField(
        "short name", max_length=50, unique=True, validators=[slug_rules], help_text="Used in addresses and bundles."
    )
    description = models.TextField(
        blank=True,
        default="",
        help_text="What other agents are told when they may ask it, and people when they choose it.",
    )
    instructions = models.TextField(
        blank=True,
        default="",
        help_text="What the agent should do, in plain words. Reaches the model exactly as written.",
    )
    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="agents")
    temperature = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(2)],
        help_text="0 is sober, 2 is wild. Empty: the model's own.",
    )
    max_output_tokens = models.PositiveIntegerField(
        "longest answer (tokens)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Empty: no limit.",
    )
    greeting = models.TextField(blank=True, default="", help_text="Shown before the first message.")
    starters = models.TextField(
        blank=True, default="", help_text="Questions that people can start with by a click, one on a line."
    )
    enabled = models.BooleanField(
        default=True, help_text="Switched off, nobody can talk to it and nobody can delegate to it."
    )
    hidden = models.BooleanField(
        default=False, help_text="Works for other agents only: people can't find it or start it (superusers can, here)."
    )
    history_messages = models.PositiveIntegerField(
        "messages remembered", default=20, help_text="How many earlier messages of the conversation it is shown."
    )
    delegate_view = models.CharField(
        "what people see of its work for others",
        max_length=7,
        choices=View,
        default=View.FULL,
        help_text="When another agent asks this one.",
    )
    max_steps = models.PositiveIntegerField(
        "steps", default=6, validators=[MinValueValidator(1)], help_text="How often the model may be asked in one run."
    )
    max_tool_calls = models.PositiveIntegerField(
        "tool calls", null=True, blank=True, default=6, help_text="Empty: no limit. 0: none."
    )
    max_seconds = models.PositiveIntegerField("seconds", default=300, validators=[MinValueValidator(1)])
    max_tokens = models.PositiveIntegerField(
        "tokens", null=True, blank=True, help_text="Everything the run and its delegates use. Empty: no limit. 0: none."
    )
    tools = models.ManyToManyField(Tool, through="AgentTool", related_name="agents", blank=True)
    memories = models.ManyToManyField(Memory, through="AgentMemory", related_name="agents", blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(max_steps__gte=1) & models.Q(max_seconds__gte=1), name="agent_limits_positive"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def starter_list(self) -> list[str]:
        return [line.strip() for line in self.starters.splitlines() if line.strip()]


class AgentTool(models.Model):
    """A tool that an agent has, with what differs for this agent."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="agent_tools")
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="agent_tools")
    approval = models.CharField(
        max_length=6, choices=Approval, blank=True, default="", help_text="Empty: as the tool says."
    )
    max_calls = models.PositiveIntegerField(
        "calls in one run", null=True, blank=True, help_text="Empty: no limit. 0: none."
    )
    order = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("order", "id")
        constraints = (models.UniqueConstraint(fields=("agent", "tool"), name="agent_tool_once"),)

    def __str__(self) -> str:
        return str(self.tool)


class AgentMemory(models.Model):
    """A memory that an agent may search."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="agent_memories")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="agent_memories")
    order = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("order", "id")
        verbose_name_plural = "agent memories"
        constraints = (models.UniqueConstraint(fields=("agent", "memory"), name="agent_memory_once"),)

    def __str__(self) -> str:
        return str(self.memory)
