"""The example studies load, plan and check clean; on the real data they run."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import dpframework as dpf
from dpframework.study.study_file import load_study

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
STUDIES = {"adult": 3, "mushroom": 1}


@pytest.fixture(params=sorted(STUDIES))
def name(request) -> str:
    return request.param


def test_example_study_plans_and_checks_clean(name, monkeypatch):
    monkeypatch.delenv("DPFRAMEWORK_DATA", raising=False)
    plan = load_study(EXAMPLES / name / "study.toml").study.plan()
    assert plan.total() == dpf.PrivacyLoss(epsilon=1)
    assert {(finding.code, finding.severity) for finding in plan.check()} <= {("DP021", "info")}  # they bound the rows
    assert len(plan.root.children) == STUDIES[name]


def test_example_study_without_data_says_what_to_set(name, monkeypatch):
    monkeypatch.delenv("DPFRAMEWORK_DATA", raising=False)
    with pytest.raises(dpf.InputError, match="the environment variable DPFRAMEWORK_DATA, which is not set"):
        load_study(EXAMPLES / name / "study.toml").read()


def test_example_study_runs_on_real_data(name, data_dir, monkeypatch):
    monkeypatch.setenv("DPFRAMEWORK_DATA", str(data_dir))
    file = load_study(EXAMPLES / name / "study.toml")
    results = file.study.run(file.read, seed=0)
    assert len(results) == STUDIES[name]
    assert results.spent.epsilon <= Fraction(1)


def test_each_year_of_education_has_its_own_bin():
    years = dpf.Schema.load(EXAMPLES / "adult" / "adult.schema.toml")["education-num"]
    assert years.interior_cuts == tuple(year + 0.5 for year in range(1, 16))


def test_a_tree_on_adult_is_better_than_the_majority(data_dir, monkeypatch):
    monkeypatch.setenv("DPFRAMEWORK_DATA", str(data_dir))
    import pandas as pd

    file = load_study(EXAMPLES / "adult" / "study.toml")
    rows = pd.read_csv(data_dir / "adult" / "adult.csv")
    tree = file.study.run(file.read, seed=0)["income-tree"].tree
    accuracy = (pd.Series(tree.predict(rows), index=rows.index) == rows["income"]).mean()
    assert accuracy > 0.8  # the majority class is 0.76
