"""A unit of a person in a period: what is read of it, what its budgets add up to, and which windows are refused."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from noisy_runs import never

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.calendar_periods import Period, PeriodKind
from dpframework.ledger import LedgerTampered
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.mechanisms import Gaussian
from dpframework.reports import markdown_report
from dpframework.tables import table_from_columns
from dpframework.tables.date_reader import days_of

SCHEMA = dpf.Schema([dpf.Numeric("n", 0, 63, bins=64)])
UNIT = dpf.PrivacyUnit("person", 2, period="month", date="on")
MARCH = UNIT.during("2026-03")
DAY = datetime.date(2026, 3, 9)


@pytest.mark.parametrize(
    ("kind", "name", "first", "last"),
    [
        ("day", "2024-02-29", "2024-02-29", "2024-02-29"),
        ("week", "2026-W01", "2025-12-29", "2026-01-04"),
        ("week", "2020-W53", "2020-12-28", "2021-01-03"),
        ("month", "2024-02", "2024-02-01", "2024-02-29"),
        ("month", "9999-12", "9999-12-01", "9999-12-31"),
    ],
)
def test_a_period_is_a_span_of_days(kind: str, name: str, first: str, last: str) -> None:
    period = Period.parse(PeriodKind(kind), name)
    assert (str(period.first), str(period.last)) == (first, last)


@pytest.mark.parametrize("kind", list(PeriodKind))
def test_periods_are_disjoint_and_cover_all_days(kind: PeriodKind) -> None:
    names = {
        PeriodKind.DAY: lambda day: day.isoformat(),
        PeriodKind.WEEK: lambda day: "{}-W{:02}".format(*day.isocalendar()),
        PeriodKind.MONTH: lambda day: day.isoformat()[:7],
    }
    last = None
    for number in range(800):
        day = datetime.date(2023, 12, 1) + datetime.timedelta(days=number)
        period = Period.parse(kind, names[kind](day))
        assert period.first <= day <= period.last
        assert last in (None, period) or last.last + datetime.timedelta(days=1) == period.first
        last = period


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("month", name) for name in ("2026-3", "2026-13", "2026-W10", "2026-03-09", "", " 2026-03", "٢٠٢٦-٠٣")),
        *(("week", name) for name in ("2026-W54", "2026-W00", "2026-W1", "2025-W53", "2026-03")),
        *(("day", name) for name in ("2026-02-29", "2026-03", "0000-01-01", "2026-03-09T00:00")),
    ],
)
def test_another_window_is_refused(kind: str, name: str) -> None:
    with pytest.raises(dpf.InputError, match=f"is no {kind}; write a {kind} as .* other spans would overlap periods"):
        Period.parse(PeriodKind(kind), name)


CELLS: list[tuple[Any, bool]] = [
    (DAY, True),
    (datetime.datetime(2026, 3, 9, 23, 59), True),
    ("2026-03-09", True),
    ("  2026-03-09T12:00:00+05:00", True),
    ("2026-03-09 12:00", True),
    ("2026-3-9", False),
    ("2026-02-30", False),
    ("2026-03-091", False),
    ("09.03.2026", False),
    ("٢٠٢٦-٠٣-٠٩", False),
    (20260309, False),
    (1.5, False),
    (True, False),
    (None, False),
    ([2026], False),
]


def test_a_cells_date_follows_from_the_cell_alone() -> None:
    """Alone and among all others, in lists, series of objects and arrays of objects."""
    cells = [cell for cell, _ in CELLS]
    expected = [DAY if dated else None for _, dated in CELLS]
    assert days_of(cells, "t").to_list() == expected
    assert days_of(np.array([*cells, None], dtype=object)[:-1], "t").to_list() == expected
    assert days_of(pd.Series(cells, dtype=object), "t").to_list() == expected
    for cell, date in zip(cells, expected, strict=True):
        assert days_of([cell], "t").to_list() == [date]


def test_series_of_one_type_have_the_dates_of_their_cells() -> None:
    assert days_of(pl.Series([DAY, None]), "t").to_list() == [DAY, None]
    late = datetime.datetime(2026, 3, 9, 23, 30)
    assert days_of(pl.Series([late]), "t").to_list() == [DAY]
    zoned = pl.Series([late]).dt.replace_time_zone("Asia/Tokyo")
    assert days_of(zoned, "t").to_list() == [DAY]  # of its own zone
    assert days_of(pd.Series(pd.to_datetime(["2026-03-09 10:00", None])), "t").to_list() == [DAY, None]
    assert days_of(pl.Series(["2026-03-09"], dtype=pl.Categorical), "t").to_list() == [DAY]
    assert days_of(np.array(["2026-03-09"], dtype="datetime64[D]"), "t").to_list() == [DAY]
    for series in (pl.Series([20260309]), pl.Series([True]), pl.Series([None, None]), pl.Series([1.0])):
        assert days_of(series, "t").null_count() == len(series)


def rows_of(people: list[tuple[Any, str, int]], unit: dpf.PrivacyUnit = MARCH) -> list[int]:
    """Return the numbers of the rows that a table keeps."""
    ids, dates, numbers = zip(*people, strict=True) if people else ((), (), ())
    columns = {"n": list(numbers), "on": list(dates)} | ({} if unit.id is None else {"person": list(ids)})
    table = table_from_columns(columns, SCHEMA, unit=unit, key=b"k")
    return sorted(table.codes[0].tolist())


PEOPLE = [("a", "2026-03-01", 1), ("a", "2026-03-31", 2), ("a", "2026-04-01", 3), ("b", "2026-02-28", 4),
          ("c", "2026-03-15", 5), ("c", "2026-03-16", 6), ("c", "2026-03-17", 7), ("d", "soon", 8),
          (None, "2026-03-02", 9)]  # fmt: skip


def test_rows_of_one_period_are_read_and_bounded_within_it() -> None:
    kept = rows_of(PEOPLE)
    assert kept[:2] == [1, 2]
    assert len(kept) == 4
    assert set(kept[2:]) < {5, 6, 7}
    asserted = dpf.PrivacyUnit(None, 3, period="month", date="on").during("2026-03")
    assert rows_of(PEOPLE, asserted) == [1, 2, 5, 6, 7, 9]


def test_neighbours_differ_by_one_persons_rows_in_the_period() -> None:
    """A person more, in this period and in others, adds at most two rows of this period and moves no other row."""
    before = rows_of(PEOPLE)
    for more in range(5):
        new = [("e", f"2026-03-{10 + k}", 20 + k) for k in range(more)]
        new += [("e", f"2026-0{1 + k}-05", 30 + k) for k in (0, 1, 3)]
        for place in (0, 4, len(PEOPLE)):
            after = rows_of(PEOPLE[:place] + new + PEOPLE[place:])
            assert [n for n in after if n < 20] == before
            assert len(after) - len(before) == min(more, 2)
            assert all(n < 30 for n in after)


def test_rows_of_other_periods_choose_none_of_this_one() -> None:
    """What a person does in other periods does not say which of their rows are kept in this one."""
    many = [("c", f"2026-04-{1 + k:02}", 40 + k) for k in range(9)]
    assert rows_of(many + PEOPLE) == rows_of(PEOPLE)


def test_an_owner_who_would_rather_be_stopped_is_stopped_by_rows_without_a_date_only() -> None:
    def read(people: list[Any]) -> dpf.Table:
        ids, dates, numbers = zip(*people, strict=True)
        columns = {"person": list(ids), "on": list(dates), "n": list(numbers)}
        return table_from_columns(columns, SCHEMA, unit=MARCH, out_of_domain="error")

    assert read([("a", "2026-03-01", 1), (None, "2026-04-01", 2)]).rows == 1  # nobody's row, of another period
    with pytest.raises(dpf.InputError, match="'on' holds values that are no dates"):
        read([("a", "2026-03-01", 1), ("a", "soon", 2)])
    with pytest.raises(dpf.InputError, match="has missing values"):
        read([(None, "2026-03-01", 1)])


def test_a_unit_of_a_period_is_read_for_one_period() -> None:
    with pytest.raises(dpf.InputError, match="reads one month at a time"):
        rows_of(PEOPLE, UNIT)
    with pytest.raises(dpf.InputError, match="has no periods"):
        dpf.PrivacyUnit("person", 2).during("2026-03")
    for wrong in ({"period": "month"}, {"date": "on"}, {"period": "year", "date": "on"}, {"period": "day", "date": " "},
                  {"period": "day", "date": "person"}):  # fmt: skip
        with pytest.raises(dpf.InputError):
            dpf.PrivacyUnit("person", 2, **wrong)
    with pytest.raises(dpf.InputError, match="is an attribute of the schema"):
        study_of(date="n")


def study_of(own: Any = "0.5", *, date: str = "on", **options: Any) -> dpf.Study:
    given = {"epsilon": 1, "unit": "person", "rows_per_unit": 2, "period": "month", "date": date, **options}
    study = dpf.Study(SCHEMA, **given)
    study.add("n", dpf.miner("count", epsilon=own))
    return study


def table_of(unit: dpf.PrivacyUnit, key: bytes | None = None) -> dpf.Table:
    ids, dates, numbers = zip(*PEOPLE, strict=True)
    columns = {"person": list(ids), "on": list(dates), "n": list(numbers)}
    return table_from_columns(columns, SCHEMA, unit=unit, key=key)


def test_a_plan_is_one_for_all_periods_and_older_plans_keep_their_hashes() -> None:
    plan = study_of().plan()
    assert plan.content()["unit"] == {"id": "person", "rows": 2, "period": "month", "date": "on"}
    assert dpf.StudyPlan.from_json(plan.to_json()) == plan
    older = dpf.Study(SCHEMA, epsilon=1, unit="person", rows_per_unit=2)
    older.add("n", dpf.miner("count", epsilon="0.5"))
    assert older.plan().content()["unit"] == {"id": "person", "rows": 2}
    assert older.plan() != plan
    assert older.plan().total() == plan.total()


def test_a_table_of_another_reading_is_refused() -> None:
    study = study_of(1000, epsilon=1000)
    assert round(float(study.run(table_of(MARCH))["n"].value)) == 4
    for unit in (
        dpf.PrivacyUnit("person", 2),
        dpf.PrivacyUnit("person", 2, period="day", date="on").during("2026-03-01"),
    ):
        with pytest.raises(dpf.InputError, match=r"the table was read for .*; read it with unit=study.unit.during\("):
            study.run(table_of(unit))


def test_results_and_their_report_name_the_period(tmp_path: Path) -> None:
    found = study_of().run(table_of(MARCH))
    found.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "results.json").read_text())["period"] == "2026-03"
    loaded = dpf.Results.load(tmp_path / "out")
    assert loaded.period == "2026-03"
    assert "The run read the rows of 2026-03." in markdown_report(loaded.plan, loaded).replace("\\", "")


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    made = dpf.Ledger.create(tmp_path / "people.ledger")
    made.open("people", epsilon=1, history=2, unit=UNIT)
    return made


def ran(ledger: dpf.Ledger, period: str, study: dpf.Study | None = None) -> None:
    made = study or study_of()
    made.run(table_of(UNIT.during(period)), ledger=ledger.run("people", period=period))


def test_each_period_has_its_cap_and_a_persons_history_has_one(ledger: dpf.Ledger) -> None:
    ledger.approve("people", study_of().plan(), by="b", runs=9)
    for period in ("2026-03", "2026-03", "2026-04"):
        ran(ledger, period)
    data_set = ledger.data_set("people")
    assert {name: budget.loss().epsilon for name, budget in data_set.periods.items()} == {
        "2026-03": 1,
        "2026-04": Fraction(1, 2),
    }
    assert (data_set.spent.epsilon, data_set.left) == (Fraction(3, 2), Fraction(1, 2))
    with pytest.raises(dpf.PlanRefused, match=r"over the cap of period '2026-03': with this plan the total is 1.5"):
        study_of().run(never, ledger=ledger.run("people", period="2026-03"))
    ran(ledger, "2026-05")
    with pytest.raises(
        dpf.PlanRefused, match=r"over the cap of a person's whole history: with this plan the total is 2.5"
    ):
        study_of().run(never, ledger=ledger.run("people", period="2026-06"))
    ledger.verify()


@pytest.mark.parametrize("period", ["2026-W10", "2026-03-01", "2026", "", "2026-3"])
def test_a_run_of_an_overlapping_window_is_refused_before_data_is_read(ledger: dpf.Ledger, period: str) -> None:
    ledger.approve("people", study_of().plan(), by="b")
    with pytest.raises(dpf.PlanRefused, match="is no month"):
        study_of().run(never, ledger=ledger.run("people", period=period))
    assert ledger.data_set("people").spent.epsilon == 0


def test_the_table_is_that_of_the_runs_period(ledger: dpf.Ledger) -> None:
    ledger.approve("people", study_of().plan(), by="b")
    with pytest.raises(dpf.InputError, match="read for period '2026-04', and the run is recorded for period '2026-03'"):
        study_of().run(table_of(UNIT.during("2026-04")), ledger=ledger.run("people", period="2026-03"))


def test_plans_of_other_units_and_caps_without_both_are_refused(ledger: dpf.Ledger, tmp_path: Path) -> None:
    for other in (study_of(period="week"), study_of(period=None, date=None), study_of(rows_per_unit=3)):
        with pytest.raises(dpf.PlanRefused, match="the plan protects"):
            ledger.approve("people", other.plan(), by="b")
    for cap, why in (
        ({"unit": UNIT}, "need a second cap over a person's whole history"),
        ({"unit": "person", "history": 3}, "needs a unit with a period"),
        ({"unit": UNIT, "history": "0.5"}, "below the cap of one period"),
    ):
        with pytest.raises(dpf.InputError, match=why):
            ledger.open("others", epsilon=1, **cap)
    ledger.open("one period", epsilon=1, history=1, unit=UNIT)
    plain = dpf.Ledger.create(tmp_path / "plain")
    plain.open("people", epsilon=1)
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("n", dpf.miner("count", epsilon=1))
    plain.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.PlanRefused, match="has no periods"):
        study.run(never, ledger=plain.run("people", period="2026-03"))


def test_an_approval_is_refused_if_no_period_has_room_for_it(ledger: dpf.Ledger) -> None:
    with pytest.raises(dpf.PlanRefused, match=r"over the cap of one month: with this plan the total is 1.25"):
        ledger.approve("people", study_of("1.25", epsilon=2).plan(), by="b")


def test_private_releases_outside_count_in_every_period(ledger: dpf.Ledger) -> None:
    ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon="0.6")
    with pytest.raises(dpf.PlanRefused, match=r"over the cap of one month: with this plan the total is 1.1"):
        ledger.approve("people", study_of().plan(), by="b")


def test_noise_without_a_pure_epsilon_has_an_order_in_each_budget(tmp_path: Path) -> None:
    """A period's cap is small and the history's large, so that one order would fit one of them badly."""
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon="1.2", history=6, delta="1e-6", unit=UNIT)
    study = dpf.Study(SCHEMA, epsilon=2, delta="1e-6", unit="person", rows_per_unit=2, period="month", date="on")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.02")))
    ledger.approve("people", study.plan(), by="b", runs=12)
    for month in range(1, 13):
        ran(ledger, f"2026-{month:02}", study)
    data_set = ledger.data_set("people")
    months = {budget.loss().epsilon for budget in data_set.periods.values()}
    (month,) = months
    assert float(month) < 1.2
    assert float(data_set.spent.epsilon) < 6 < 12 * float(month)
    assert data_set.budget.order != next(iter(data_set.periods.values())).order
    ledger.verify()


def forge(ledger: dpf.Ledger, change: dict[str, Any], charged: str = "2026-03") -> None:
    """Append a run of March with the charges of a run in another period, or with a change."""
    plan = study_of().plan()
    ledger.approve("people", plan, by="b")
    data_set = ledger.data_set("people")
    content = {"run": "01", "data_set": "people", "plan": plan.hash, "dpframework": "0", "period": "2026-03"}
    content |= data_set.charges(plan, charged) | change
    with Chain(ledger.path).writing() as transaction:
        transaction.read()
        transaction.append("run", {key: value for key, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"of_period": {"pure": {"add-or-remove-one": "1/4", "replace-one": "1/4"}}}, "charged to its period"),
        ({"period": "2026-W10"}, "is no month"),
        ({"period": None, "of_period": None}, "is no month"),
        ({"of_period": None}, "does not fit kind 'run'"),
    ],
)
def test_the_audit_sees_a_charge_to_another_period(ledger: dpf.Ledger, change: dict[str, Any], why: str) -> None:
    forge(ledger, change)
    with pytest.raises(LedgerTampered, match=why):
        ledger.verify()


def test_the_audit_sees_a_run_beyond_the_cap_of_its_period(ledger: dpf.Ledger) -> None:
    """Each run costs a half, a month may cost 1, and a person's whole history 2."""
    ledger.approve("people", study_of().plan(), by="b", runs=2)
    ran(ledger, "2026-03")
    ran(ledger, "2026-03")
    ledger.verify()
    forge(ledger, {}, charged="2026-04")
    with pytest.raises(LedgerTampered, match="over the cap of period '2026-03'"):
        ledger.verify()


def test_a_run_is_resumed_on_its_own_period_only(ledger: dpf.Ledger, tmp_path: Path) -> None:
    study = study_of()
    ledger.approve("people", study.plan(), by="b", runs=2)
    journal = tmp_path / "journal"

    class Stops(dpf.Observer):
        def released(self, release: Any) -> None:
            raise KeyboardInterrupt

    run = ledger.run("people", journal=journal, period="2026-03")
    with pytest.raises((dpf.RunStopped, KeyboardInterrupt)):
        study.run(lambda: table_of(MARCH, run.key), ledger=run, observers=[Stops()])
    with pytest.raises(dpf.PlanRefused, match="it was begun on period '2026-03'"):
        study.run(never, ledger=ledger.run("people", journal=journal, period="2026-04"))
    again = ledger.run("people", journal=journal, period="2026-03")
    study.run(lambda: table_of(MARCH, again.key), ledger=again)
    assert len(ledger.data_set("people").runs) == 1


def test_the_commands_run_a_template_each_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.dump("p.schema.toml")
    lines = [f"{who or ''},{on},{n}" for who, on, n in PEOPLE]
    Path("p.csv").write_text("person,on,n\n" + "\n".join(lines) + "\n")
    privacy = '[privacy]\nepsilon = 1\nunit = "person"\nrows_per_unit = 2\nperiod = "month"\ndate = "on"\n'
    step = '[[step]]\nname = "n"\nminer = "count"\nepsilon = 1\n'
    Path("s.toml").write_text(f'[data]\npath = "p.csv"\nschema = "p.schema.toml"\n{privacy}{step}')
    cap = ["--epsilon", "1", "--unit", "person", "--rows-per-unit", "2", "--period", "month", "--date", "on"]
    assert main(["ledger", "open", "l", "--data-set", "p", *cap, "--history", "2"]) == 0
    assert "epsilon 1.0 per month and 2.0 over a person's whole history" in capsys.readouterr().out
    assert main(["ledger", "approve", "l", "s.toml", "--data-set", "p", "--by", "b", "--runs", "12"]) == 0
    run = ["run", "s.toml", "--ledger", "l", "--data-set", "p"]
    assert main([*run, "--out", "none"]) == 2  # which month?
    assert main([*run, "--out", "week", "--period", "2026-W10"]) == 2
    assert main([*run, "--out", "march", "--period", "2026-03"]) == 0
    assert main([*run, "--out", "again", "--period", "2026-03"]) == 1
    assert main([*run, "--out", "april", "--period", "2026-04"]) == 0
    assert main([*run, "--out", "may", "--period", "2026-05"]) == 1
    capsys.readouterr()
    assert main(["ledger", "show", "l", "--json"]) == 0
    (form,) = json.loads(capsys.readouterr().out)["data_sets"]
    assert (form["history"], form["periods"], form["left"]) == ("2", {"2026-03": "1", "2026-04": "1"}, {"epsilon": "0"})
    assert main(["ledger", "show", "l", "--data-set", "p"]) == 0
    assert "2026-03  1.0    0.0" in capsys.readouterr().out
    assert main(["ledger", "show", "l", "--out", "l.html"]) == 0
    assert "Periods" in Path("l.html").read_text()
    assert main(["check", "s.toml"]) == 0
    assert "DP031 info" in capsys.readouterr().out
    assert main(["report", "march"]) == 0
    assert "does not protect" in capsys.readouterr().out
