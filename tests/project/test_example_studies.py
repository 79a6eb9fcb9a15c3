"""The example studies load, plan and check clean; on the real data they run."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest

import dpframework as dpf
from dpframework.study.study_file import load_study

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
STUDIES = {"adult/study": 3, "adult/first-page": 8, "mushroom/study": 1}


@pytest.fixture(params=sorted(STUDIES))
def name(request) -> str:
    return request.param


def test_example_study_plans_and_checks_clean(name):
    plan = load_study(EXAMPLES / f"{name}.toml").study.plan()
    assert plan.total() == dpf.PrivacyLoss(epsilon=1)
    assert {(finding.code, finding.severity) for finding in plan.check()} <= {("DP021", "info"), ("DP027", "info")}
    assert len(plan.root.children) == STUDIES[name]


def test_example_study_without_data_says_which_file_is_not_there(name):
    with pytest.raises(dpf.InputError, match=r"(adult|mushroom)\.csv: there is no such file"):
        load_study(EXAMPLES / f"{name}.toml").read()


def test_example_study_runs_on_real_data(name, example_with_data):
    folder, _, page = name.partition("/")
    file = load_study(example_with_data(folder) / f"{page}.toml")
    results = file.study.run(file.read, seed=0)
    assert len(results) == STUDIES[name]
    assert results.spent.epsilon <= Fraction(1)


def test_each_year_of_education_has_its_own_bin():
    years = dpf.Schema.load(EXAMPLES / "adult" / "adult.schema.toml")["education-num"]
    assert years.interior_cuts == tuple(year + 0.5 for year in range(1, 16))


def test_a_tree_on_adult_is_better_than_the_majority(example_with_data):
    import pandas as pd

    file = load_study(example_with_data("adult") / "study.toml")
    rows = pd.read_csv(file.data.folder / "adult.csv")
    tree = file.study.run(file.read, seed=0)["income-tree"].tree
    accuracy = (pd.Series(tree.predict(rows), index=rows.index) == rows["income"]).mean()
    assert accuracy > 0.8  # the majority class is 0.76


def test_an_analyst_s_first_page_of_ten_lines(example_with_data):
    text = (EXAMPLES / "adult" / "first-page.toml").read_text()
    assert len(text.splitlines()) == 10
    file = load_study(example_with_data("adult") / "first-page.toml")
    results = file.study.run(file.read, seed=0)
    assert results.spent.epsilon == 1
    assert abs(results["sex by income"].total.value - 48842) < 400  # 10 deviations of the noise of 4 cells
    assert results["median age"].value == 37  # which 2 % of all rows have: no point is as near, by far
    assert all(str(results[name]) for name in results)


def test_the_accuracy_on_adult_is_as_the_page_says(data_dir):
    """The mean errors of 40 runs; twice as large or half with a probability below 1e-9."""
    import importlib.util

    import pandas as pd

    spec = importlib.util.spec_from_file_location("accuracy", EXAMPLES / "adult" / "accuracy.py")
    accuracy = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = accuracy
    spec.loader.exec_module(accuracy)
    path = data_dir / "adult" / "adult.csv"
    table, rows = dpf.read_table(path, dpf.Schema.load(EXAMPLES / "adult" / "adult.schema.toml")), pd.read_csv(path)
    page = (EXAMPLES.parent / "basics.md").read_text()
    for name in ("`histogram` of education, 16 cells", "`mean` of hours per week", "`quantile` 0.5 of age"):
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        stated = float(line.split("|")[2])
        found, _ = accuracy.errors(table, rows, name, "0.1", 40)
        assert stated / 2 <= found.mean() <= 2 * stated
