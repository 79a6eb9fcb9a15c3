"""Which tests are slow: they repeat, on more examples, what a test that stays quick shows too.

`.ci/run` and `python -m pytest` leave them out; `python -m pytest -m ""` runs all. `tiers.toml` names them. A family is
a test with all its parameters: of each something stays quick, and all planted bugs do. `test_tiers.py` looks.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

RELATION = re.compile(r"(?<![^\[-])(add-or-remove-one|replace-one)(?![^\]-])")

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ONE_RELATION: Sequence[str] = _TOLD["one-relation"]
ONE_OF, ONE_OF_EACH_MINER, SHOWN_BY = (
    {f"{file}::{name}": value for file, named in _TOLD[table].items() for name, value in named.items()}
    for table in ("one-of", "one-of-each-miner", "shown-by")
)
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
        elif name in ONE_OF_EACH_MINER:
            for each in _by_miner(members):
                slow.update(set(each) - set(each[:: ONE_OF_EACH_MINER[name]]))
        elif any(fnmatchcase(name, pattern) for pattern in ONE_RELATION):
            slow.update(_second_relations(members))
    return slow


def _by_miner(tests: Sequence[str]) -> Iterable[list[str]]:
    """Return tests by the miner whose name their parameters begin with."""
    miners = defaultdict(list)
    for test in tests:
        miners[test.partition(", ")[0]].append(test)
    return miners.values()


def _second_relations(tests: Sequence[str]) -> set[str]:
    """Return one test of each pair that differs in the relation only, in turn; none where there is one pair."""
    pairs = defaultdict(list)
    for test in tests:
        pairs[RELATION.sub("", test)].append(test)
    both = [pair for pair in pairs.values() if len(pair) == 2]
    return {pair[place % 2] for place, pair in enumerate(both)} if len(both) > 1 else set()


def mark_slow(config: pytest.Config, items: Iterable[pytest.Item], folder: Path) -> None:
    """Mark those tests of a folder that are slow, and remember all, for the test of the tiers."""
    mine = [item for item in items if item.path.is_relative_to(folder)]
    slow = slow_among(item.nodeid for item in mine)
    for item in mine:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
    config.stash.setdefault(COLLECTED, {}).update({i.nodeid: i.get_closest_marker("slow") is not None for i in mine})
