"""The only door to Haystack: drives one agent's model through its steps and tools, and tells a Conversation."""

import os

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")  # read when haystack is imported

from runtime.engine.agent import converse

__all__ = ["converse"]
