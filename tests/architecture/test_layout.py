"""Where things are, how big they are and what they are called."""

import ast
import platform
import re
from pathlib import Path

import pytest

import config
import web
from tests.architecture.sources import CHECKOUT, product_files

LONGEST_FILE = 300
LONGEST_FUNCTION = 50
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc", "core"}
LOCKS = ["requirements.lock", "package.json"]


def test_platform_is_a_folder_and_not_the_module_of_that_name():
    assert not (CHECKOUT / "platform" / "__init__.py").exists()
    assert platform.system()
    for package in (config, web):
        assert Path(package.__file__).is_relative_to(CHECKOUT / "platform")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_download_address(name):
    lock = CHECKOUT / name
    if lock.exists():
        assert not re.findall(r"\w+://\S+|--(?:extra-)?index-url|--find-links", lock.read_text())


def test_the_locks_that_carry_addresses_are_not_kept():
    ignored = (CHECKOUT / ".gitignore").read_text().splitlines()
    assert {"uv.lock", "package-lock.json"} <= set(ignored)


@pytest.mark.parametrize("path", product_files())
def test_a_file_is_short_and_its_functions_are(path):
    assert len((CHECKOUT / path).read_text().splitlines()) <= LONGEST_FILE
    long = [
        f"{node.name} (line {node.lineno})"
        for node in ast.walk(product_files()[path])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


@pytest.mark.parametrize("path", product_files())
def test_a_file_is_named_for_what_it_holds(path):
    assert not EMPTY_NAMES & {part.removesuffix(".py") for part in Path(path).parts}


@pytest.mark.parametrize("path", product_files())
def test_imports_stand_at_the_top_and_name_the_whole_path(path):
    functions = (n for n in ast.walk(product_files()[path]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    late = {inner.lineno for f in functions for inner in ast.walk(f) if isinstance(inner, ast.Import | ast.ImportFrom)}
    relative = {n.lineno for n in ast.walk(product_files()[path]) if isinstance(n, ast.ImportFrom) and n.level}
    assert late | relative == set()
