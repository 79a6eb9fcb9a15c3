"""The changelog lists renamed names that plugins may have used, and each row is true."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "changelog.md"
NAME = re.compile(r"`((?:dpf|dpframework\w*)(?:\.\w+)+)`")


def exists(name: str) -> bool:
    """Say whether a dotted name is a module, or something that a module has."""
    try:
        pkgutil.resolve_name(re.sub(r"^dpf\.", "dpframework.", name))
    except (ImportError, AttributeError):
        return False
    return True


def rows() -> Iterator[tuple[str, str]]:
    """Yield the two cells of each row of the table of old and new names."""
    text = PAGE.read_text(encoding="utf-8")
    yield from re.findall(r"^\| (`dpf[^|]*) \| ([^|]+) \|$", text, re.MULTILINE)


@pytest.mark.parametrize(("was", "now"), list(rows()))
def test_a_row_leads_from_a_name_that_is_gone_to_one_that_exists(was: str, now: str) -> None:
    assert NAME.findall(was)
    assert NAME.findall(now)
    assert all(map(exists, NAME.findall(now)))
    assert not any(map(exists, NAME.findall(was)))
