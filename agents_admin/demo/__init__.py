"""The bundle of the demo, `demo.yaml`, with the handbook that its Librarian searches."""

from pathlib import Path

BUNDLE = Path(__file__).with_name("demo.yaml")
MODEL = "demo"
"""The slug of the model that all agents of the demo use."""
