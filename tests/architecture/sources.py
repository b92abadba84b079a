"""The product's own Python files, parsed once."""

import ast
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("agents_admin", "runtime", "platform")


@cache
def product_files() -> dict[str, ast.Module]:
    """Path relative to the checkout → syntax tree; migrations are generated, so they are left out."""
    files = [CHECKOUT / "manage.py", *(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))]
    return {
        str(path.relative_to(CHECKOUT)): ast.parse(path.read_text(), filename=str(path))
        for path in files
        if "migrations" not in path.parts
    }
