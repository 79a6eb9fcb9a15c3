"""The threat model: each line of the page on security names a test, and each test that a page names exists."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMED = re.compile(r"`((?:tests|plugins|docs)/[\w/-]+\.py)::(\w+)(?:\[[^`]*\])?`")
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if NAMED.search(page.read_text(encoding="utf-8"))]


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names of the tests that a file defines, and of their classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def rows() -> Iterator[tuple[int, list[str]]]:
    """Return the rows of the page's tables, without their heads, with their line numbers."""
    lines = (DOCS / "security.md").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        following = lines[number] if number < len(lines) else ""
        if line.startswith("|") and not line.startswith("|---") and not following.startswith("|---"):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_each_test_that_a_page_names_exists(page: Path) -> None:
    for file, name in NAMED.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / file).is_file(), f"{page.name}: {file}"
        assert name.startswith(("test_", "Test")), f"{page.name}: {file}::{name}"
        assert name in names_in(ROOT / file), f"{page.name}: {file}::{name}"


def test_each_line_of_the_threat_model_names_its_test() -> None:
    found = list(rows())
    assert len(found) > 10
    for number, cells in found:
        assert NAMED.search(cells[-1]), f"security.md, line {number}: {cells}"
