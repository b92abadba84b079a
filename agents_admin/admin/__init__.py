"""One module per model file; importing them registers the pages."""

from agents_admin.admin import access, agent, credential, memory, people, provider, tool, widget

__all__ = ["access", "agent", "credential", "memory", "people", "provider", "tool", "widget"]
