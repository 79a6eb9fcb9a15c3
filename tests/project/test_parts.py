"""Parts of long tests: each run of all tests takes one, and twelve runs take everything."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import parts
import pytest
import tiers

ROOT = Path(__file__).parents[2]
TESTS = ["tests/test_a.py::test_b", *(f"tests/test_a.py::test_c[{k}]" for k in range(60)), "tests/test_a.py::test_d"]


@pytest.fixture
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "long_tests", lambda: ["tests/test_a.py::test_b", "tests/test_a.py::test_c"])


@pytest.mark.usefixtures("_long")
def test_each_long_test_is_in_one_part_and_others_are_in_all() -> None:
    taken = [set(TESTS) - parts.in_other_parts(TESTS, part) for part in range(parts.PARTS)]
    times = Counter(test for part in taken for test in part)
    assert times == {test: parts.PARTS if test.endswith("d") else 1 for test in TESTS}
    assert all(len(part) > 1 for part in taken)
    assert parts.in_other_parts(TESTS, 3 * parts.PARTS + 2) == parts.in_other_parts(TESTS, 2)


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize("part", [None, "4"])
def test_a_run_of_all_tests_takes_the_part_that_is_named(part: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPFRAMEWORK_TEST_PART", raising=False)
    if part is not None:
        monkeypatch.setenv("DPFRAMEWORK_TEST_PART", part)
    assert _left_out(["tests", "plugins"]) == parts.in_other_parts(TESTS, int(part or 0))


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize("named", [["tests"], ["tests/test_a.py"], ["tests/test_a.py::test_b", "plugins"]])
def test_what_is_named_is_run_in_full(named: list[str]) -> None:
    assert _left_out(named) == set()


def _left_out(named: list[str]) -> set[str]:
    """Return the tests that a run leaves out, of which some are named on its command line."""
    marked = set()

    def item(test: str) -> Any:
        return SimpleNamespace(nodeid=test, path=ROOT / "tests/test_a.py", add_marker=lambda mark: marked.add(test))

    config: Any = SimpleNamespace(args=named, getini={"testpaths": ["tests", "plugins"]}.get)
    parts.mark_other_parts(config, [item(test) for test in TESTS], ROOT / "tests")
    return marked


def test_what_takes_long_is_measured() -> None:
    lines = """
    0.70s call     tests/test_a.py::test_b[1-a b]
    0.20s setup    tests/test_a.py::test_b[1-a b]
    0.20s call     tests/test_a.py::test_b[2]
    0.30s call     tests/test_a.py::test_c
    3 passed in 2.00s
    """.splitlines()
    assert parts.measured(lines) == ["tests/test_a.py::test_b"]


def test_what_is_listed_is_there() -> None:
    listed = parts.long_tests()
    assert len(listed) == len(set(listed))
    for file in sorted({name.partition("::")[0] for name in listed}):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert {name.split("::")[1] for name in listed if name.startswith(f"{file}::")} <= defined, file
    assert all(name == tiers.family(name) for name in listed)
