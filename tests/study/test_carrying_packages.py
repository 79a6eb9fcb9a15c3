"""Plans and checks are carried by pluggy, typeguard and attrs: without one of them they break, and where.

A plan's graph is one of networkx, which is loaded when the graph is asked for. That plans read the edges of that graph
is tested by tests/plan/test_plan_node_index.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pluggy
import pytest
import typeguard

import dpframework as dpf
from dpframework.facts import argument_type_checks
from dpframework.study import built_in_components
from dpframework.study.plugin_registry import Registry

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("smokes")])

#: Names each stage before it begins, in an interpreter that cannot find one package. Nothing of it is loaded before.
STAGES = """
import sys, traceback

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"{name} is blocked")

assert sys.argv[1] not in sys.modules
sys.meta_path.insert(0, Without())
try:
    print("import", end=" ")
    import dpframework as dpf
    schema = dpf.Schema([dpf.Boolean("ill")])
    print("study", end=" ")
    study = dpf.Study(schema, epsilon=1)
    print("miner", end=" ")
    study.add("ill", dpf.miner("count", epsilon=1, where={"equals": ["ill", "true"]}))
    print("plan", end=" ")
    plan = study.plan()
    print("total", end=" ")
    plan.total()
    print("check", end=" ")
    plan.check()
    print("graph", end=" ")
    plan.graph()
    print("done", end=" ")
except ModuleNotFoundError as error:
    frames = traceback.extract_tb(error.__traceback__)
    print(error, [frame.filename.replace("\\\\", "/") for frame in frames if "dpframework/" in frame.filename][-1])
"""


@pytest.mark.parametrize(
    ("package", "stage", "file"),
    [
        ("attrs", "import", "dpframework/facts/"),
        ("pluggy", "import study", "dpframework/study/hook"),
        ("networkx", "import study miner plan total check graph", "dpframework/plan/"),
        ("typeguard", "import study miner", "dpframework/facts/argument_type_checks.py"),
    ],
)
def test_a_plan_breaks_where_a_package_that_carries_it_is_blocked(package: str, stage: str, file: str) -> None:
    ended = subprocess.run([sys.executable, "-c", STAGES, package], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(f"{stage} {package}")
    assert "is blocked" in ended.stdout
    assert file in ended.stdout


def test_a_plan_does_not_need_every_package() -> None:
    # the same code as above: what breaks there is not the block itself
    ended = subprocess.run([sys.executable, "-c", STAGES, "matplotlib"], capture_output=True, text=True, check=True)
    assert ended.stdout == "import study miner plan total check graph done "


def test_a_nested_type_is_compared_by_typeguard(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> Any:
        return dpf.miner("count", epsilon=1, where={"equals": ["ill", "true"]})

    made()
    asked: list[Any] = []

    def refuse(value: Any, hint: Any) -> None:
        asked.append(hint)
        raise typeguard.TypeCheckError("no")

    monkeypatch.setattr(typeguard, "check_type", refuse)
    with pytest.raises(dpf.InputError, match="where is a dict"):
        made()
    assert asked


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (Path("x"), str | os.PathLike[str]),
        (["x"], Iterable[str]),
        ((SCHEMA["ill"],), tuple[dpf.Attribute, ...]),
        ([], list[str]),
        (("x", 1), Sequence[str] | None),
        ([b"x"], Sequence[bytes]),
        ([True], list[int]),
    ],
)
def test_what_fits_by_its_class_is_what_typeguard_takes(value: Any, hint: Any) -> None:
    assert argument_type_checks._fits(value, hint)
    typeguard.check_type(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, str | os.PathLike[str]),
        (1, Iterable[str]),
        ([1], Sequence[str]),
        ((1,), tuple[str, ...]),
        ("x", list[str]),
        ((["x"],), tuple[str, ...]),
        ([Fraction(1, 2)], Sequence[float]),
        ([1.5], list[Fraction]),
    ],
)
def test_what_does_not_fit_is_refused_by_typeguard(value: Any, hint: Any) -> None:
    assert not argument_type_checks._fits(value, hint)
    with pytest.raises(typeguard.TypeCheckError):
        typeguard.check_type(value, hint)


def test_miners_and_checks_come_through_calls_of_pluggy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"histogram", "count"} <= set(Registry([]).miners)
    assert Registry([]).checks
    with monkeypatch.context() as patched:  # pytest calls its own hooks by pluggy, too
        patched.setattr(pluggy.HookCaller, "__call__", lambda self, **given: [])
        found = Registry([])
        brought = dict(found.miners)
    assert brought == {}
    assert found.checks == built_in_components.dpframework_checks()  # these are kept, and it is said that none came
    assert any("removes DP001" in problem.reason for problem in found.problems)


def test_parameters_of_a_miner_are_the_fields_of_attrs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dpf.miner("histogram", epsilon=1, attribute="ill")
    with monkeypatch.context() as patched:
        patched.setattr(attrs, "fields", lambda kind: ())
        with pytest.raises(dpf.InputError, match="has no parameter"):
            dpf.miner("histogram", epsilon=1, attribute="ill")
