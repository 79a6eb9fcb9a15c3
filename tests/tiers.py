"""Which tests are slow: they repeat, on more examples, what a test that stays quick shows too.

`.ci/run` and `python -m pytest` leave them out; `python -m pytest -m ""` runs all. No family of tests goes as a whole,
and no planted bug: `test_tiers.py` looks. A family is a test with all its parameters, or several that show the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

RELATION = re.compile(r"(?<![^\[-])(add-or-remove-one|replace-one)(?![^\]-])")

# Tests of several examples under both relations stay under one, in turn: each relation is met by every second example.
ONE_RELATION = (
    "*::test_no_transcript_loses_more_than_the_plan_claims",
    "*::test_each_step_holds_what_it_declares",
)

# Of these every so-manieth stays. The number is no multiple of how many relations or engines they go through in turn.
ONE_OF: Mapping[str, int] = {}

# Whole tests, each with the one that stays and fails with it.
SHOWN_BY: Mapping[str, str] = {}

COLLECTED = pytest.StashKey[dict[str, bool]]()  # every test of this run by name, and whether it is slow


def family(test: str) -> str:
    """Return a test's name without parameters."""
    return test.partition("[")[0]


def slow_among(tests: Iterable[str]) -> set[str]:
    """Return the tests that are slow, of tests in the order in which pytest collects them."""
    families = defaultdict(list)
    for test in tests:
        families[family(test)].append(test)
    slow: set[str] = set()
    for name, members in families.items():
        if name in SHOWN_BY:
            slow.update(members)
        elif name in ONE_OF:
            slow.update(set(members) - set(members[:: ONE_OF[name]]))
        elif any(fnmatchcase(name, pattern) for pattern in ONE_RELATION):
            slow.update(_second_relations(members))
    return slow


def _second_relations(tests: Sequence[str]) -> set[str]:
    """Return one test of each pair that differs in the relation only, in turn; none where there is one pair."""
    pairs = defaultdict(list)
    for test in tests:
        pairs[RELATION.sub("", test)].append(test)
    both = [pair for pair in pairs.values() if len(pair) == 2]
    return {pair[1 - place % 2] for place, pair in enumerate(both)} if len(both) > 1 else set()


def mark_slow(config: pytest.Config, items: Iterable[pytest.Item], folder: Path) -> None:
    """Mark those tests of a folder that are slow, and remember all, for the test of the tiers."""
    mine = [item for item in items if item.path.is_relative_to(folder)]
    slow = slow_among(item.nodeid for item in mine)
    for item in mine:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
    config.stash.setdefault(COLLECTED, {}).update({i.nodeid: i.get_closest_marker("slow") is not None for i in mine})
