"""What a plan says of the code that it would run, and that an approval holds for that code only."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts import installed_package_digests
from dpframework.facts.errors import PlanRefused
from dpframework.plan import code_digests
from dpframework.reports.difference import difference

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, cuts=[18])])
TABLE = dpf.Table.from_codes(SCHEMA, np.array([[0, 1, 1], [0, 1, 0]]))

PLUGIN = """
import attrs
import dpframework as dpf
from {package}.helpers import FACTOR


@attrs.frozen
class Noisy(dpf.mechanisms.DiscreteLaplace):
    name = "noisy"

    def release(self, answer, calibration, randomness):
        return super().release(answer, calibration, randomness)


@attrs.frozen
class Counts(dpf.Miner):
    name = "counts"
    epsilon: float = 1

    def plan(self, schema):
        return dpf.step("ill", dpf.queries.Histogram(schema["ill"]), Noisy(self.epsilon))

    def mine(self, table):
        return table.release("ill") * FACTOR
"""


class Installed:
    """A plugin package on the disk, that can be edited and imported again as a new process would."""

    def __init__(self, folder: Path) -> None:
        self.name = f"acme_{folder.name}".replace("-", "_")
        self.package = folder / self.name
        self.package.mkdir()
        (self.package / "__init__.py").write_text("")
        (self.package / "helpers.py").write_text("FACTOR = 1\n")
        (self.package / "mechanisms.py").write_text(PLUGIN.format(package=self.name))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.package / file).read_text()
        assert old in text
        (self.package / file).write_text(text.replace(old, new))

    def study(self) -> dpf.Study:
        for loaded in [name for name in sys.modules if name.partition(".")[0] == self.name]:
            del sys.modules[loaded]
        importlib.invalidate_caches()
        code_digests.component_digest.cache_clear()
        code_digests.package_form.cache_clear()
        plugin = importlib.import_module(f"{self.name}.mechanisms")
        study = dpf.Study(SCHEMA, epsilon=1)
        study.add("counts", plugin.Counts())
        return study


@pytest.fixture
def plugin(tmp_path, monkeypatch) -> Installed:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Installed(tmp_path)


@pytest.fixture
def ledger(tmp_path) -> dpf.Ledger:
    ledger = dpf.Ledger.create(tmp_path / "hospital.ledger")
    ledger.open("patients", epsilon=5)
    return ledger


def unread() -> dpf.Table:
    raise AssertionError("the data was opened")


def test_a_plan_names_the_code_of_everything_that_runs():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", epsilon=1))
    held = study.plan().content()["code"]
    assert {(c["kind"], c["name"]) for c in held["components"]} == {
        ("engine", "memory"),
        ("mechanism", "discrete-laplace"),
        ("mechanism", "permute-and-flip"),
        ("miner", "dp-id3"),
        ("query", "histogram"),
        ("query", "split-scores"),
    }
    assert [(p["package"], p["distribution"]) for p in held["packages"]] == [
        ("dpframework", "dpframework"),
        ("dpframework_trees", "dpframework"),
    ]
    assert all(p["version"] == dpf.__version__ for p in held["packages"])
    assert dpf.StudyPlan.from_json(study.plan().to_json()) == study.plan()


def test_another_engine_is_another_plan():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", epsilon=1))
    assert study.plan(dpf.InMemory()) == study.plan() != study.plan(dpf.Threads())


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "mechanisms.py",
            "return super().release(answer, calibration, randomness)",
            "return answer",
            r"the code of mechanism 'noisy' \(acme_\w+\.mechanisms\) has changed",
        ),
        ("helpers.py", "FACTOR = 1", "FACTOR = 2", r"the code of package 'acme_\w+' has changed"),
    ],
    ids=["noise deleted", "constant changed"],
)
def test_an_approval_holds_for_the_code_that_was_approved(plugin, ledger, file, old, new, told):
    approved = plugin.study().plan()
    ledger.approve("patients", approved, by="officer")
    plugin.study().run(TABLE, ledger=ledger.run("patients"))
    ledger.approve("patients", approved, by="officer")
    plugin.edit(file, old, new)
    study = plugin.study()
    assert study.plan() != approved
    with pytest.raises(PlanRefused, match=f"is approved, but not with this code: .*{told}"):
        study.run(unread, ledger=ledger.run("patients"))
    assert any(change.topic == "code" for change in difference(approved, study.plan()).changes)
    plugin.edit(file, new, old)
    plugin.study().run(TABLE, ledger=ledger.run("patients"))


def test_an_approval_holds_for_the_version_that_was_approved(ledger, monkeypatch):
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", epsilon=1))
    ledger.approve("patients", study.plan(), by="officer")
    code_digests.package_form.cache_clear()
    monkeypatch.setattr(
        installed_package_digests, "distributions", lambda: {"dpframework_trees": ("dpframework", "9.0")}
    )
    with pytest.raises(PlanRefused, match=f"package 'dpframework_trees' has version 9.0, not {dpf.__version__}"):
        study.run(unread, ledger=ledger.run("patients"))
    code_digests.package_form.cache_clear()


def test_what_has_no_file_is_known_by_its_bytecode():
    def made(factor: int) -> type:
        module = types.ModuleType("typed_in")
        exec(f"class Counted:\n    def count(self, block):\n        return [x * {factor} for x in block]", vars(module))
        return module.Counted

    assert code_digests.component_digest(made(2)) == code_digests.component_digest(made(2))
    assert code_digests.component_digest(made(2)) != code_digests.component_digest(made(3))


def test_a_plan_file_whose_code_was_edited_does_not_fit_its_hash():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", epsilon=1))
    form = json.loads(study.plan().to_json())
    form["code"]["packages"][0]["digest"] = "0" * 64
    with pytest.raises(dpf.InputError, match="does not fit its hash"):
        dpf.StudyPlan.from_json(json.dumps(form))


def component(kind: str, name: str, cls: str, digest: str = "1") -> dict[str, str]:
    return {"kind": kind, "name": name, "class": cls, "digest": digest}


def package(name: str, version: str = "1.0", digest: str = "1") -> dict[str, str]:
    return {"package": name, "distribution": name, "version": version, "digest": digest}


OLD = {
    "components": [
        component("engine", "memory", "acme.engines:Memory"),
        component("miner", "mode", "acme.miners:Mode"),
        component("miner", "mean", "acme.miners:Mean"),
        component("query", "mode", "acme.queries:Mode"),
    ],
    "packages": [package("acme"), package("dpframework"), package("other")],
}


@pytest.mark.parametrize(
    ("components", "packages", "told"),
    [
        (OLD["components"], OLD["packages"], []),
        ([], [], []),  # what only one of them runs is not told
        ([component("miner", "median", "acme.miners:Median")], [package("new")], []),
        (
            [component("engine", "threads", "acme.engines:Threads")],
            [],
            ["the engine is 'threads', not 'memory'"],
        ),
        (
            [component("engine", "memory", "acme.engines:Memory", "2")],
            [],
            ["the code of engine 'memory' (acme.engines) has changed"],
        ),
        (
            [component("miner", "mode", "acme.miners:Mode", "2"), component("query", "mode", "acme.queries:Other")],
            [package("acme", digest="2"), package("other", digest="2")],  # whose code has changed is told once
            [
                "the code of miner 'mode' (acme.miners) has changed",
                "query 'mode' is now acme.queries:Other",
                "the code of package 'other' has changed",
            ],
        ),
        (
            [],
            [package("acme", "1.1", "2"), package("other", digest="2")],
            ["package 'acme' has version 1.1, not 1.0", "the code of package 'other' has changed"],
        ),
    ],
)
def test_what_of_the_code_is_different_is_told_in_words(components, packages, told):
    assert code_digests.changes(OLD, {"components": components, "packages": packages}) == told
    assert code_digests.changes({"components": [], "packages": []}, OLD) == []


def test_components_and_packages_are_written_once_and_in_order():
    step = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.Laplace(1))
    root = dpf.sequential(step, dpf.step("m", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    held = code_digests.code_of(root, [("miner", "zeta", Counted), ("miner", "alpha", Counted)])
    assert [(one["kind"], one["name"]) for one in held["components"]] == [
        ("mechanism", "discrete-laplace"),
        ("mechanism", "laplace"),
        ("miner", "alpha"),
        ("miner", "zeta"),
        ("query", "count"),
    ]
    assert held["components"][-1]["class"] == "dpframework.queries.counts:Count"
    names = [one["package"] for one in held["packages"]]
    assert names == sorted(names)
    assert "dpframework" in names
    assert "builtins" not in names
    planned = code_digests.PlannedCode(root, [])
    assert dict(planned) == code_digests.code_of(root, [])
    assert (len(planned), list(planned)) == (2, ["components", "packages"])


class Counted:
    """A class of this file, which is known by its bytes."""


def test_a_class_is_known_by_the_files_of_its_bases_in_order():
    own = hashlib.sha256(Path(__file__).read_bytes()).digest()
    assert code_digests.component_digest(Counted) == hashlib.sha256(own).hexdigest()
    twice = type("Twice", (Counted,), {"__module__": __name__})
    assert code_digests.component_digest(twice) == hashlib.sha256(own + own).hexdigest()
    assert code_digests.class_path(Counted) == f"{__name__}:Counted"


def test_bytecode_knows_what_is_wrapped_and_what_is_within():
    """Of a class without a file: properties, class methods, cached ones, inner functions, names that are called."""

    def made(text: str) -> str:
        module = types.ModuleType("typed_in_too")
        body = "import functools\nclass Made:\n" + "\n".join(f"    {line}" for line in text.splitlines())
        exec(body, vars(module))
        return code_digests.component_digest(module.Made)

    kinds = [
        "def f(self):\n    return {}",
        "@property\ndef f(self):\n    return {}",
        "@classmethod\ndef f(cls):\n    return {}",
        "@staticmethod\ndef f():\n    return {}",
        "@functools.cached_property\ndef f(self):\n    return {}",
        "@functools.cache\ndef f(self):\n    return {}",
        "def f(self):\n    return [lambda: {}]",
        "def f(self):\n    return [lambda: [lambda: {}]]",
        "def f(self):\n    return 7 in ({}, 5)",
    ]
    for kind in kinds:
        assert len({made(kind.format(value)) for value in (2, 3, "len(3)", "abs(3)")}) == 4, kind
    held = ["def f(self, x={}):\n    pass", "def f(self, *, x={}):\n    pass", "x = {}", "x = (1, {})"]
    for kind in held:
        values = (2, 3, 2.0, True, None, "'2'", "b'2'", "(2, 3)", "frozenset([2])", "2j")
        assert len({made(kind.format(value)) for value in values}) == len(values), kind
        assert made(kind.format("object()")) == made(kind.format("object()"))  # which is told by its type
    assert made("x = 2") != made("y = 2") != made("pass")


def test_what_has_no_file_has_the_same_digest_in_every_process():
    script = (
        "import types; from dpframework.plan import code_digests; module = types.ModuleType('typed')\n"
        'text = \'class Made:\\n def f(self, x):\\n  return x in {"a", "b", "c", "d", "e"}\'\n'
        "exec(text, vars(module)); print(code_digests.component_digest(module.Made))"
    )
    seeds = ({**os.environ, "PYTHONHASHSEED": str(seed)} for seed in range(3))
    printed = {subprocess.run([sys.executable, "-c", script], env=env, capture_output=True).stdout for env in seeds}
    assert len(printed) == 1
    assert len(printed.pop().strip()) == 64
