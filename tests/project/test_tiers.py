"""The quick tier: what repeats is left out, and of everything that is shown something stays."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import tiers

ROOT = Path(__file__).parents[2]
PLANTED = re.compile("bug|mistake|planted|caught|forge|spoilt")


def test_two_relations_are_met_in_turn() -> None:
    name = "tests/test_a.py::TestA::test_no_transcript_loses_more_than_the_plan_claims"
    tests = [f"{name}[{example}-{relation}]" for example in "abc" for relation in ("add-or-remove-one", "replace-one")]
    assert tiers.slow_among(tests) == {tests[0], tests[3], tests[4]}
    assert tiers.slow_among(tests[:2]) == set()  # one example stays under both
    assert tiers.slow_among(tests[::2]) == set()  # as do examples that claim something under one only
    assert tiers.slow_among(tests[:3]) == set()
    assert tiers.slow_among(test.replace("::test_no", "::test_a_no") for test in tests) == set()


def test_every_so_manieth_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "ONE_OF", {"tests/test_a.py::test_b": 3})
    monkeypatch.setattr(tiers, "SHOWN_BY", {"tests/test_a.py::test_c": "tests/test_a.py::test_b"})
    tests = [f"tests/test_a.py::test_b[{k}]" for k in range(5)]
    other = ["tests/test_a.py::test_c", "tests/test_a.py::test_d[0]", "tests/test_a.py::test_d[1]"]
    assert tiers.slow_among([*tests, *other]) == {tests[1], tests[2], tests[4], other[0]}


def test_something_quick_shows_what_each_slow_test_shows(request: pytest.FixtureRequest) -> None:
    """Of the tests that were collected with this one: all, where no file is named."""
    collected = request.config.stash[tiers.COLLECTED]
    quick = {tiers.family(test) for test, is_slow in collected.items() if not is_slow}
    slow = {tiers.family(test) for test, is_slow in collected.items() if is_slow}
    files = {test.partition("::")[0] for test in collected}
    for name in sorted(slow - quick):
        assert name in tiers.SHOWN_BY, f"of {name} no test is quick"
        shown_by = tiers.SHOWN_BY[name]
        assert shown_by in quick or shown_by.partition("::")[0] not in files, f"{shown_by} is not quick"
    assert not (slow & quick & tiers.SHOWN_BY.keys())
    assert not {name for name in slow if PLANTED.search(name.partition("::")[2])}, "what is planted is tried each time"


def test_what_the_tiers_name_is_there() -> None:
    named = {*tiers.ONE_OF, *tiers.ONE_OF_EACH_MINER, *tiers.SHOWN_BY, *tiers.SHOWN_BY.values()}
    for file in sorted({name.partition("::")[0] for name in named}):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert {name.split("::")[1] for name in named if name.startswith(f"{file}::")} <= defined
