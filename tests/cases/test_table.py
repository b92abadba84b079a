"""The table of cases names tests that exist."""

import ast
import re
from pathlib import Path

from tests.architecture.sources import CHECKOUT

ROWS = re.findall(r"^\| (\d+) \| .+? \| (.+) \|$", (Path(__file__).parent / "README.md").read_text(), re.MULTILINE)


def test_every_case_has_a_test_that_exists() -> None:
    assert {int(number) for number, _ in ROWS} >= {*range(1, 15), *range(28, 32)}
    missing = []
    for _, tests in ROWS:
        for path, name in re.findall(r"`([\w/.]+)::(\w+)`", tests):
            tree = ast.parse((CHECKOUT / path).read_text())
            if name not in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}:
                missing.append(f"{path}::{name}")
    assert missing == []
