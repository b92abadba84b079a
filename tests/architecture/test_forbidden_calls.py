"""Security rule 3: no code from configuration, and one way out to the network."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch

import pytest

from tests.architecture.sources import product_files

# What → the only files that may use it, each with its reason.
ALLOWED: dict[str, list[str]] = {
    "exec": [],
    "eval": [],
    "compile": [],
    "__import__": [],
    "importlib": [],
    "import_string": [],
    "importlib.util": ["platform/config/postgres.py"],  # finds the wheel that holds the server
    "importlib.metadata": ["platform/config/postgres.py"],  # and its version
    "subprocess": [
        "platform/config/postgres.py",  # the embedded server
        "platform/config/supervisor.py",  # web and worker
    ],
    "os.system": [],
    "os.popen": [],
    "pickle": [],
    "marshal": [],
    "shelve": [],
    "dill": [],
    "yaml.load": [],
    "yaml.unsafe_load": [],
    "yaml.full_load": [],
    "httpx": [
        "agents_admin/egress/*",
        "agents_admin/models/origin.py",  # takes an address apart
        "runtime/engine/*",
        "runtime/ports.py",
        "runtime/runner.py",  # keeps the process's one client, which egress makes
        "runtime/tools/*",
    ],
    "requests": [],
    "urllib.request": [],
    "http.client": [],
    "aiohttp": ["agents_admin/egress/*"],
    "socket": [
        "agents_admin/egress/*",  # the one way out
        "platform/config/management/commands/up.py",  # asks whether the port is free
    ],
    "jinja2": [],
    "mark_safe": [
        "platform/web/markdown.py",  # nh3 cleaned it
        "platform/web/chat/turns.py",  # put together from rendered templates
    ],
}
OPENS_CONNECTIONS = {"AsyncClient", "Client", "get", "post", "put", "patch", "delete", "request", "stream"}


def _used(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every imported module, imported name and called dotted name, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno
                yield alias.name, node.lineno
        elif isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


@pytest.mark.parametrize("path", product_files())
def test_a_file_uses_only_what_it_may(path):
    used = [
        f"{name}, line {line}"
        for name, line in _used(product_files()[path])
        if name in ALLOWED and not any(fnmatch(path, pattern) for pattern in ALLOWED[name])
    ]
    assert used == []


@pytest.mark.parametrize("path", product_files())
def test_only_egress_opens_a_connection(path):
    if fnmatch(path, "agents_admin/egress/*"):
        return
    opened = [line for name, line in _used(product_files()[path]) if name in {f"httpx.{o}" for o in OPENS_CONNECTIONS}]
    assert opened == []


def test_the_list_would_notice():
    tree = ast.parse("import pickle\nfrom yaml import load\nfrom os import system\nexec('1')\nyaml.load(x)")
    assert {name for name, _ in _used(tree)} >= {"pickle", "yaml.load", "os.system", "exec"}
