"""What a plan states of the time and memory of its run."""

import json

import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.plan.run_costs import RunCost
from dpframework.reports import markdown_report
from dpframework.reports.html import html_report
from dpframework.reports.planned_result_rows import COSTS, cost_lines

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])], about_rows=10_000)
STUDY = """[data]
path = "people.csv"
schema = "people.schema.toml"
[privacy]
epsilon = 1
[[step]]
name = "tables"
miner = "marginals"
epsilon = 1
"""
TEXT = "3 tables of 11 cells are counted"


def planned(schema=SCHEMA, miner="marginals", **parameters):
    study = dpf.Study(schema, epsilon=1)
    study.add("tables", dpf.miner(miner, epsilon=1, **parameters))
    return study.plan()


def test_a_cost_is_said_in_round_numbers_and_never_less():
    cost = RunCost("two tables", 1234.5, 5 * 2**20 + 1)
    assert cost.text == "at most about 1,300 CPU s and 6 MiB: two tables"
    assert cost.to_dict() == {"seconds": 1234.5, "memory": 5 * 2**20 + 1, "text": cost.text}
    assert RunCost("", None, 0).text.startswith("at most about a time that depends on the number of rows and 1 MiB")


@pytest.mark.parametrize(("seconds", "memory"), [(-1, 0), (0, -1), (float("nan"), 0), (0, float("inf"))])
def test_a_cost_is_a_number_from_0_on(seconds, memory):
    with pytest.raises(dpf.InputError, match="a number from 0 on is needed"):
        RunCost("tables", seconds, memory)


def test_it_grows_with_the_rows_and_the_cells():
    few, many = planned(), planned(dpf.Schema(SCHEMA, about_rows=10**9))
    assert many.run_costs()["tables"].seconds - few.run_costs()["tables"].seconds == pytest.approx(9, rel=0.001)
    assert few.run_costs()["tables"].memory == 32 * 11 + 3 * 8192
    assert planned(dpf.Schema(SCHEMA)).run_costs()["tables"].seconds is None
    assert planned(dpf.Schema(SCHEMA, max_rows=10**9)).run_costs() == many.run_costs()


def test_a_miner_that_does_not_say_is_not_listed():
    plan = planned(miner="crosstab", attributes=["ill", "town"])
    assert plan.run_costs() == {}
    assert cost_lines(plan) == []
    assert COSTS not in markdown_report(plan)


def test_a_plan_that_was_read_says_nothing_without_its_schema():
    assert type(planned()).from_json(planned().to_json()).run_costs() == {}


def test_it_stands_in_reports():
    assert TEXT in markdown_report(planned())
    assert TEXT in html_report(planned())


def test_plan_and_check_print_it(tmp_path, capsys):
    (tmp_path / "people.schema.toml").write_text(SCHEMA.dumps())
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    assert main(["plan", str(study)]) == 0
    assert f"{COSTS}\n  tables: at most about 2 CPU s and 1 MiB: {TEXT}" in capsys.readouterr().out
    assert main(["check", str(study), "--json"]) == 0
    assert TEXT in json.loads(capsys.readouterr().out)["costs"]["tables"]["text"]


def test_marginals_with_too_many_cells_are_refused_when_they_are_planned():
    wide = dpf.Schema([dpf.Categorical(f"a{k}", list(map(str, range(100)))) for k in range(60)])
    study = dpf.Study(wide, epsilon=1)
    with pytest.raises(dpf.InputError, match=r"the 36,050 marginals have .* cells together, more than 134,217,728"):
        study.add("tables", dpf.miner("marginals", epsilon=1, order=3))
