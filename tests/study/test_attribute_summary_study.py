"""A study of a whole table in one line: what it asks, what it costs, and that its split is the best."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.study.attribute_summary_study import describe
from dpframework.study.study_file import load_study

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("Größe/cm", ["S", "L"]),
        dpf.Numeric("age", 0, 90, cuts=[40], missing=True),
        dpf.Boolean("age mean"),
        dpf.Open("town"),
    ]
)
STEPS = ["ill", "Gr--e-cm", "age", "age mean", "age median", "age mean 2"]


@pytest.mark.parametrize("relation", list(dpf.Relation))
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_each_attribute_is_described_for_the_whole_budget(relation: dpf.Relation, delta: str | int) -> None:
    schema = dpf.Schema(SCHEMA.attributes, rows=500 if relation is dpf.Relation.REPLACE_ONE else None)
    study = describe(schema, 2, delta=delta, relation=relation)
    assert list(study.miners) == STEPS
    assert [one.name for one in study.miners.values()] == [
        *("histogram", "histogram", "histogram", "mean", "median", "histogram")
    ]
    plan = study.plan()
    assert plan.refusals() == []
    assert plan.total().epsilon <= 2
    assert float(plan.total().epsilon) == pytest.approx(2, abs=1e-3)
    rows = {"ill": [True] * 500, "Größe/cm": ["S", "L"] * 250, "age": [30] * 500, "age mean": [False] * 500}
    found = study.run(dpf.table_from_columns({**rows, "town": ["Oslo"] * 500}, schema), seed=1)
    assert abs(found["age median"].value - 30) <= 1
    assert found["ill"]["true"].value == pytest.approx(500, abs=200)  # 20 standard deviations and more


def test_no_other_split_has_a_smaller_sum_of_errors() -> None:
    """In rows, of the stated errors of all releases: moving a share from any step to any other makes it larger."""
    miners = describe(SCHEMA, 1).miners
    shares = {name: float(miner.epsilon) for name, miner in miners.items()}  # type: ignore[attr-defined]
    rows = {name: math.log(20 * 91) if name == "age median" else math.log(20) for name in shares}
    assert sum(shares.values()) == 1

    def total(split: dict[str, float]) -> float:
        return sum(rows[name] / share for name, share in split.items())

    for one, other in itertools.permutations(shares, 2):
        moved = {**shares, one: shares[one] - 0.01, other: shares[other] + 0.01}
        assert total(moved) > total(shares)


@pytest.mark.parametrize(("delta", "root"), [(0, 2), ("1e-6", 3)])
def test_epsilons_are_in_proportion_to_a_root_of_the_errors(delta: str | int, root: int) -> None:
    """The second where epsilons add up, the third where their squares do (Lagrange)."""
    epsilons = {name: float(miner.epsilon) for name, miner in describe(SCHEMA, 1, delta=delta).miners.items()}  # type: ignore[attr-defined]
    errors = math.log(20 * 91) / math.log(20)
    assert epsilons["age median"] / epsilons["age mean"] == pytest.approx(errors ** (1 / root), rel=2e-3)
    assert epsilons["age"] == pytest.approx(epsilons["age mean"], rel=2e-3)


def test_a_table_of_open_attributes_is_not_described() -> None:
    with pytest.raises(dpf.InputError, match="all attributes of the schema are open; use the miner 'keys'"):
        describe(dpf.Schema([dpf.Open("town")]), 1)


@pytest.mark.parametrize("epsilon", ["2", "0.7", "1/3"])
def test_the_command_prints_the_same_study_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], epsilon: str
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = dpf.Schema([dpf.Numeric('a "b"', 0, 9, bins=3), dpf.Boolean("ill"), dpf.Open("town")])
    (tmp_path / "t.schema.toml").write_text(schema.dumps())
    assert main(["describe", "t.csv", "t.schema.toml", "--epsilon", epsilon]) == 0
    (tmp_path / "study.toml").write_text(capsys.readouterr().out)
    read, made = load_study(tmp_path / "study.toml").study, describe(schema, epsilon)
    assert read.shares().shares == made.shares().shares
    assert read.budget == made.budget
    assert main(["describe", "t.csv", "t.schema.toml", "--epsilon", epsilon, "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in form["step"]] == list(made.miners)
    assert sum(Fraction(str(step["share"])) for step in form["step"]) == 1
    for rows in (1, 2):
        whom = ["--unit", "pid", "--rows-per-unit", str(rows)]
        assert main(["describe", "t.csv", "t.schema.toml", "--epsilon", epsilon, *whom]) == 0
        (tmp_path / "study.toml").write_text(capsys.readouterr().out)
        assert load_study(tmp_path / "study.toml").study.unit == dpf.PrivacyUnit("pid", rows)
    whom = ["--unit", "pid", "--rows-per-unit", "3", "--allow", "mcmc-converged"]
    assert main(["describe", "t.csv", "t.schema.toml", "--epsilon", epsilon, *whom]) == 0
    (tmp_path / "study.toml").write_text(capsys.readouterr().out)
    read = load_study(tmp_path / "study.toml").study
    assert (read.unit, set(read.budget.allow)) == (dpf.PrivacyUnit("pid", 3), {"mcmc-converged"})


@pytest.mark.parametrize(
    ("data", "schema", "says"),
    [
        (
            "/srv/t.csv",
            "t.schema.toml",
            "the study's [data] path is the absolute path '/srv/t.csv'; write a path relative",
        ),
        ("t.csv", "../t.schema.toml", "the study's [data] schema is '../t.schema.toml', which leaves its folder"),
    ],
)
def test_no_study_is_printed_that_would_be_refused_for_its_paths(
    capsys: pytest.CaptureFixture[str], data: str, schema: str, says: str
) -> None:
    assert main(["describe", data, schema]) == 2
    printed = capsys.readouterr()
    assert (printed.out, says in printed.err) == ("", True)
