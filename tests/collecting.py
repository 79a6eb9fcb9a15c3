"""What pytest need not look for: examples in docstrings of files of tests that have none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


def without_empty_doctests(file: Path, found: Iterable[pytest.Collector]) -> list[pytest.Collector]:
    """Return the collectors of a file, without that of examples if it is a file of tests without any.

    Its objects would all be searched for examples. Other files keep theirs, since it shows that they can be imported.
    """
    kept = list(found)
    if file.name.startswith("test_") and b">>> " not in file.read_bytes():
        kept = [one for one in kept if not isinstance(one, DoctestModule)]
    return kept
