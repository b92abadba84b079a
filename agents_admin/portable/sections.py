"""What a bundle may hold: one section per kind of row, in the order in which they refer to each other."""

from dataclasses import dataclass
from typing import Any

from django.db import models

from agents_admin.models import (
    Agent,
    AgentMemory,
    AgentTool,
    Credential,
    Delegation,
    Memory,
    Model,
    Provider,
    Tool,
)

VERSION_KEY = "roster"
VERSION = "1"
AUDIENCE = ("audience", "groups", "users")
LIMITS = ("max_steps", "max_tool_calls", "max_seconds", "max_tokens")


@dataclass(frozen=True, slots=True)
class Section:
    """`fields` are plain fields and foreign keys, written as slugs; `others` have a meaning of their own."""

    name: str
    one: str
    model: Any
    fields: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.fields, *self.others)


SECTIONS = (
    Section(
        "providers",
        "provider",
        Provider,
        ("slug", "name", "kind", "base_url", "timeout_seconds", "idle_seconds", "enabled"),
        ("api_key",),
    ),
    Section(
        "models",
        "model",
        Model,
        ("slug", "name", "provider", "model_id", "context_window", "input_price", "output_price", "enabled"),
        ("fallback",),
    ),
    Section("credentials", "credential", Credential, ("slug", "name", "kind", "header"), ("secret", "origins")),
    Section(
        "tools",
        "tool",
        Tool,
        (
            *("slug", "name", "kind", "description", "side_effect", "approval", "timeout_seconds"),
            *("max_output_chars", "credential", "enabled", "audience"),
        ),
        ("groups", "users", "settings"),
    ),
    Section(
        "memories",
        "memory",
        Memory,
        ("slug", "name", "kind", "description", "enabled", "audience"),
        ("groups", "users", "documents"),
    ),
    Section(
        "agents",
        "agent",
        Agent,
        (
            *("slug", "name", "description", "instructions", "model", "temperature", "max_output_tokens"),
            *("greeting", "enabled", "hidden", "history_messages", "delegate_view", "audience"),
        ),
        ("groups", "users", "starters", "limits", "tools", "memories", "roster"),
    ),
)
SECTION_OF = {section.model: section for section in SECTIONS}


@dataclass(frozen=True, slots=True)
class Link:
    """A list of an agent whose lines are rows: each refers to another row and says what differs."""

    model: type[models.Model]
    owner: str
    target: str
    fields: tuple[str, ...]


LINKS = {
    "tools": Link(AgentTool, "agent", "tool", ("approval", "max_calls")),
    "memories": Link(AgentMemory, "agent", "memory", ()),
    "roster": Link(
        Delegation,
        "coordinator",
        "delegate",
        (
            *("when_to_use", "max_calls", "timeout_seconds", "max_steps", "max_tokens"),
            *("on_failure", "context", "enabled"),
        ),
    ),
}
