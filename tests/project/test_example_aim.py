"""AIM, an adaptive algorithm of a paper, written as a plugin's author would: planned, checked, run and audited."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.verify import audit

FILE = Path(__file__).parents[2] / "docs" / "examples" / "aim" / "aim.py"
SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old"), dpf.Categorical("town", ["A", "B", "C"])])


@pytest.fixture(scope="module")
def aim() -> Any:
    spec = importlib.util.spec_from_file_location("aim", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    old = rng.integers(0, 2, 3_000)
    return [(rng.random(3_000) < np.where(old, 0.6, 0.1)).astype(int), old, rng.integers(0, 3, 3_000)]


def test_it_is_a_plugin_of_150_lines_at_most() -> None:
    assert len(FILE.read_text().splitlines()) <= 150


def test_it_chooses_the_related_attributes_and_spends_its_cap(aim: Any) -> None:
    """Noise on a cell is at most 13 rows here; it fails with a probability below 1e-9."""
    study = dpf.Study(SCHEMA, epsilon=2, delta="1e-6", allow=["one-row-per-person"])
    study.add("model", aim.AIM("0.05"))
    assert study.plan().refusals() == []
    ill, old, town = rows()
    results = study.run(dpf.Table.from_codes(SCHEMA, [ill, old, town]), seed=1)
    exact = np.zeros((2, 2, 3))
    np.add.at(exact, (ill, old, town), 1)
    assert np.abs(results["model"] - exact).sum() < 300  # of 3,000; independent attributes are off by 1,500
    assert results.spent.rho == Fraction("0.05")
    paths = list(results.to_frame()["release"])
    assert any("ill-old" in path for path in paths)
    assert len({path.rpartition("(")[2] for path in paths if "-" in path}) >= 2  # precisions, chosen on the way


def test_it_is_audited(aim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aim, "ROUNDS", 1)  # fewer of them, each more precise
    pair = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
    report = audit(aim.AIM("0.5"), pair, "add-or-remove-one", replays=100, delta="1e-6")
    assert report.passed, str(report)
    assert report.worst / float(report.claim) > 0.5
