"""The documentation agrees with the code that it is about."""

import inspect
import re
from pathlib import Path

import pytest

from agents_admin import models
from agents_admin.kinds import PROVIDER_KINDS, TOOL_KINDS
from agents_admin.portable.sections import LIMITS, LINKS, SECTIONS
from runtime import models as happened
from runtime.tools import BUILDERS
from tests.architecture.sources import CHECKOUT

DOCS = CHECKOUT / "docs"
PAGES = sorted([*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md")])
WITHOUT_A_TERM = {"AgentTool", "AgentMemory", "CredentialOrigin", "WidgetOrigin"}


def table(page: Path) -> dict[str, str]:
    """The first column of a page's tables → the second."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", page.read_text(), re.MULTILINE)
    return dict(rows)


def test_every_kind_of_tool_is_built_and_has_a_heading():
    headings = re.findall(r"^## `(\w+)`$", (DOCS / "tools.md").read_text(), re.MULTILINE)
    assert set(headings) == set(TOOL_KINDS) == set(BUILDERS)


def test_the_recipe_for_a_tool_names_places_that_are_there():
    recipe = (DOCS / "howto" / "add-a-tool.md").read_text()
    places = set(re.findall(r"`((?:agents_admin|runtime|tests|docs)/[\w/.]+)`", recipe))
    assert {place for place in places if not (CHECKOUT / place).exists()} == {
        "runtime/tools/dice.py",
        "tests/runtime/test_tools_dice.py",
    }


def test_every_key_of_a_bundle_is_documented():
    keys = {name: set(re.findall(r"`(\w+)`", text)) for name, text in table(DOCS / "bundles.md").items()}
    for section in SECTIONS:
        assert set(section.keys) <= keys[f"`{section.name}`"]
    assert set(LIMITS) == keys["`limits` of an agent"]
    for name, link in LINKS.items():
        assert keys[f"a line of `{name}`"] == {link.target, *link.fields}
    assert set(PROVIDER_KINDS) <= keys["`providers`"]


def test_every_row_has_a_word():
    terms = set(table(DOCS / "glossary.md"))
    rows = {name for name in models.__all__ if name not in WITHOUT_A_TERM}
    rows |= {
        name
        for name, member in inspect.getmembers(happened, inspect.isclass)
        if member.__module__ == happened.__name__ and hasattr(member, "_meta") and not member._meta.abstract
    }
    assert rows <= terms


def test_every_command_is_in_the_readme():
    readme = (CHECKOUT / "README.md").read_text()
    commands = {path.stem for path in CHECKOUT.glob("**/management/commands/*.py") if ".venv" not in path.parts}
    assert [name for name in sorted(commands - {"__init__"}) if f"`{name}" not in readme] == []


def test_decisions_are_numbered_without_a_gap():
    numbers = [int(path.name[:4]) for path in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_link_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    own = [target for target in targets if "://" not in target]
    assert [target for target in own if not (page.parent / target).exists()] == []
