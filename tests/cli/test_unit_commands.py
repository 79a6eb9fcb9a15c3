"""Privacy units on the command line and in what people read: one sentence says whom a study protects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.reports.difference import difference
from dpframework.reports.html import html_report
from dpframework.reports.report_headlines import public_facts
from dpframework.reports.text_plan_drawings import total_line
from dpframework.study.plugin_registry import registry

SCHEMA = """
[[attribute]]
name = "ill"
kind = "boolean"
"""

STUDY = """
[data]
path = "visits.csv"
schema = "schema.toml"

[privacy]
epsilon = 100
{privacy}

[[step]]
name = "ill"
miner = "histogram"
epsilon = 100
params = {{ attribute = "ill" }}
"""
UNIT = 'unit = "patient"\nrows_per_unit = 2'
WHOM = "one patient, by at most 2 of its rows"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rows = [f"p{k % 20},{'yes' if k % 20 < 5 else 'no'}" for k in range(100)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,ill", *rows, ",yes"]) + "\n")
    (tmp_path / "study.toml").write_text(STUDY.format(privacy=UNIT))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def test_a_plan_and_a_run_say_whom_they_protect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", folder / "study.toml")
    assert code == 0
    assert f", protecting {WHOM}" in out
    code, out, _ = run(capsys, "run", folder / "study.toml", "--out", folder / "out")
    assert code == 0
    assert WHOM in (folder / "out" / "report.html").read_text()
    assert json.loads((folder / "out" / "plan.json").read_text())["unit"] == {"id": "patient", "rows": 2}


def test_a_seeded_run_keeps_the_same_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for name in ("one", "other"):
        run(capsys, "run", folder / "study.toml", "--out", folder / name, "--seed", 3)
        told.append(json.loads((folder / name / "results.json").read_text())["results"])
    assert told[0] == told[1]


def test_a_ledger_keeps_a_cap_for_one_unit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger, study = folder / "l.ledger", folder / "study.toml"
    cap = ("--data-set", "visits", "--epsilon", 150, "--unit", "patient", "--rows-per-unit", 2)
    code, out, _ = run(capsys, "ledger", "open", ledger, *cap)
    assert code == 0
    assert f"under add-or-remove-one, protecting {WHOM}" in out
    code, out, _ = run(capsys, "ledger", "approve", ledger, study, "--data-set", "visits", "--by", "me")
    assert code == 0
    assert f", which protects {WHOM}" in out
    code, out, _ = run(capsys, "run", study, "--out", folder / "out", "--ledger", ledger, "--data-set", "visits")
    assert code == 0
    assert "100.0 spent" in out
    (folder / "rows.toml").write_text(STUDY.format(privacy=""))
    code, _, err = run(capsys, "ledger", "approve", ledger, folder / "rows.toml", "--data-set", "visits", "--by", "me")
    assert code == 1
    assert "the plan protects one row, the cap of data set 'visits' protects one patient" in err
    code, _, err = run(capsys, "ledger", "open", ledger, "--data-set", "more", "--epsilon", 1, "--rows-per-unit", 0)
    assert code == 2
    assert "rows_per_unit is 0" in err


def test_the_owner_asks_for_rows_without_an_id(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schema", "check", folder / "visits.csv", folder / "schema.toml", "--unit", "patient")
    assert code == 1
    assert "patient: no id (such rows are left out) in 1 row" in out


@pytest.mark.parametrize(
    ("privacy", "code", "sentence"),
    [
        (
            'unit = "patient"\nrows_per_unit = 0',
            2,
            "rows_per_unit is 0; write how many rows of one unit are kept, from 1 to 1000000",
        ),
        ('unit = "doctor"', 2, "visits.csv: has no column 'doctor'"),
        ("rows_per_unit = 2", 1, "the study assumes 'rows-per-unit-asserted'"),
        (
            'unit = "patient"\nallow = ["data-fits-schema"]',
            2,
            "the table breaks what its owner asserts: data-fits-schema",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_spent(
    folder: Path, capsys: pytest.CaptureFixture[str], privacy: str, code: int, sentence: str
) -> None:
    (folder / "study.toml").write_text(STUDY.format(privacy=privacy))
    found, out, err = run(capsys, "run", folder / "study.toml", "--out", folder / "out")
    assert found == code
    assert sentence in out + err
    assert not (folder / "out").exists()


def test_verify_tries_units_of_several_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, how = folder / "study.toml", ("--replays", 300, "--runs", 0, "--seconds", 3)
    path.write_text(path.read_text().replace("epsilon = 100", "epsilon = 1"))
    assert run(capsys, "verify", path, *how)[0] == 0
    example = ("--example", "rows", "--rows-per-unit", 3, "--relation", "add-or-remove-one")
    assert run(capsys, "verify", "count", *example, *how)[0] == 0


def plan_of(**privacy: object) -> dpf.StudyPlan:
    schema = dpf.Schema([dpf.Boolean("ill")])
    study = dpf.Study(schema, epsilon=2, **privacy)  # type: ignore[arg-type]
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
    return study.plan()


def test_reports_say_whom_a_plan_protects() -> None:
    rows, units = plan_of(), plan_of(unit="patient", rows_per_unit=2)
    assert dict(public_facts(rows))["protects"] == "one row"
    facts = dict(public_facts(units))
    assert facts["protects"] == WHOM
    assert facts["relation"] == "add-or-remove-one (tables that differ by one unit's presence)"
    replaced = dict(public_facts(plan_of(unit="patient", relation="replace-one")))
    assert replaced["relation"].endswith("(tables of one public number of units that differ in one unit)")
    assert total_line(units).endswith(f"(budget 2.0), protecting {WHOM}")
    assert "protecting" not in total_line(rows)
    assert WHOM in html_report(units)


def test_two_plans_for_other_units_cannot_be_compared() -> None:
    found = difference(plan_of(), plan_of(unit="patient", rows_per_unit=2), registry().checks)
    assert "for one row and is" in found.headlines[0]
    assert "claims about different neighbours, which cannot be compared" in found.headlines[0]
    assert f"unit: protects from one row to {WHOM}" in "\n".join(map(str, found.changes))


def test_what_is_needed_for_an_accuracy_is_for_the_unit() -> None:
    def needed(**privacy: object) -> float:
        schema = dpf.Schema([dpf.Boolean("ill")])
        study = dpf.Study(schema, epsilon=100, **privacy)  # type: ignore[arg-type]
        study.add("ill", dpf.miner("count", epsilon=1))
        return float(study.epsilon_for("ill", within=50))

    assert needed(unit="patient", rows_per_unit=4) == pytest.approx(4 * needed(), rel=0.05)
