"""Long tests are dealt into parts, of which a run of all tests takes one.

A test that takes more than 0.3 seconds is long. `long_tests.txt` names such tests without their parameters. They take
three quarters of the time of all, so a run of the whole suite takes one part of them: the one that
`$DPFRAMEWORK_TEST_PART` names, else part 0. `.ci/run` goes on by one part with each commit. Tests whose file or folder
is named on the command line are run in full, `-m "not slow"` runs all parts, and `-m ""` everything.

After tests were added, measure anew:

    python -m pytest -m "" -q -n 2 --durations=0 | python tests/parts.py
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from tiers import family

PARTS = 12
LONG = 0.3  # seconds
_LIST = Path(__file__).with_name("long_tests.txt")
_DURATION = re.compile(r"^\s*([\d.]+)s (?:setup|call|teardown) +(\S.*)$")


def long_tests() -> list[str]:
    """Return the names of long tests, without parameters."""
    return _LIST.read_text(encoding="utf-8").splitlines()


def part_of(test: str) -> int:
    """Return the part of a long test. It depends on the test's own name alone, so that new tests move no others."""
    return zlib.crc32(test.encode()) % PARTS


def in_other_parts(tests: Iterable[str], part: int) -> set[str]:
    """Return the long tests that a run of one part leaves out."""
    long = set(long_tests())
    return {test for test in tests if family(test) in long and part_of(test) != part % PARTS}


def mark_other_parts(config: pytest.Config, items: Iterable[pytest.Item], folder: Path) -> None:
    """Mark the tests of a folder that are left out, unless the command line names files or folders."""
    if set(config.args) != set(config.getini("testpaths")):
        return
    mine = [item for item in items if item.path.is_relative_to(folder)]
    left_out = in_other_parts((item.nodeid for item in mine), int(os.environ.get("DPFRAMEWORK_TEST_PART", "0")))
    for item in mine:
        if item.nodeid in left_out:
            item.add_marker(pytest.mark.another_part)


def measured(lines: Iterable[str]) -> list[str]:
    """Return the names of tests that take more than `LONG` seconds on average, of what `--durations=0` prints."""
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines:
        if found := _DURATION.match(line):
            seconds[family(found[2])][found[2]] += float(found[1])
    return sorted(name for name, of in seconds.items() if sum(of.values()) > LONG * len(of))


if __name__ == "__main__":
    names = measured(sys.stdin)
    _LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} tests are long")
