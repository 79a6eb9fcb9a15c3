"""Forecasts: made-up rows fit any study, a line through trials is continued, and what cannot end is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.lab import run_cost_forecast as forecasts
from dpframework.lab.run_cost_forecast import Forecast, TriedRun, forecast, invent_table

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill", view="left"),
        dpf.Categorical("c", ["x", "y", "z"], view="right", missing=True),
        dpf.Numeric("age", 0, 100, bins=5, view="right", missing=True),
    ],
    max_rows=5_000,
)
OPEN = dpf.Schema([dpf.Open("word"), dpf.Boolean("ill")], max_rows=5_000)


def study(schema: dpf.Schema = SCHEMA, miner: str = "histogram", **params: Any) -> dpf.Study:
    whom = {key: params.pop(key) for key in ("unit", "rows_per_unit", "period", "date") if key in params}
    made = dpf.Study(
        schema, epsilon=1, delta=params.get("delta", 0), relation="replace-one", allow=["mcmc-converged"], **whom
    )
    made.add("it", dpf.miner(miner, **{"epsilon": 1} | params))
    return made


@pytest.mark.parametrize(
    "of",
    [
        study(attribute="c"),
        study(miner="mean", attribute="age", bounds=[0, 100]),
        study(miner="dp-id3", target="ill", max_depth=2),
        study(miner="serenade-es"),
        study(attribute="c", unit="who", rows_per_unit=3),
        study(attribute="c", unit="who", rows_per_unit=3, period="week", date="day"),
        study(OPEN, "keys", attribute="word", delta="1e-6", unit="who", rows_per_unit=2),
    ],
    ids=["codes", "values", "tree", "views", "units", "periods", "keys"],
)
def test_made_up_rows_can_be_mined(of: dpf.Study) -> None:
    table = invent_table(of, 60)
    assert table.rows == 60
    assert of.run(table, seed=1)["it"] is not None


def test_a_forecast_is_found_in_another_process_and_its_trials_grow_to_the_rows_of_the_schema() -> None:
    found = forecast(study(attribute="age"))
    assert (found.rows, [trial.rows for trial in found.trials]) == (5_000, [1_000, 5_000])
    assert 0 <= found.seconds < 10
    assert 20 < found.megabytes < 2_000
    assert "without reading the data (tried on up to 5,000 made-up rows)" in str(found)
    assert forecast(study(attribute="age"), 300).trials[-1].rows == 300


def test_a_study_of_a_public_number_of_rows_is_tried_on_fewer_and_on_more() -> None:
    """A run refuses a table with another number of rows than the schema's, and the forecast failed for that reason."""
    public = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=5)], rows=2_000)
    of = dpf.Study(public, epsilon=1, relation="replace-one", delta="1e-9")
    of.add("ill", dpf.share("0.5", "marginals"))
    of.add("age", dpf.share("0.3", "mean", attribute="age"))
    of.add_plan("ages", dpf.step("ages", dpf.queries.Histogram(public["age"]), dpf.mechanisms.DiscreteLaplace(0.1)))
    assert [trial.rows for trial in forecast(of).trials] == [1_000, 2_000]
    assert forecast(of, 3_000).trials[-1].rows == 3_000
    fewer = of.with_rows(50)
    assert (fewer.schema.rows, of.schema.rows) == (50, 2_000)
    assert fewer.run(invent_table(fewer, 50), seed=1)["ill"].total == dpf.results.Noisy(50, 0)


@pytest.mark.parametrize(
    ("points", "target", "found"),
    [
        ([(1_000, 0.5), (10_000, 1.4)], 10_000, 1.4),
        ([(1_000, 0.5), (10_000, 1.4)], 20_000, 2.4),
        ([(1_000, 0.1), (10_000, 0.5), (100_000, 0.5)], 10**6, 0.5),
        ([(10_000, 0.5), (100_000, 0.4)], 10**6, 0.4),
        ([(1_000, 2.0)], 1_000, 2.0),
        ([(1_000, 2.0)], 10_000, 20.0),
    ],
)
def test_the_last_two_trials_are_continued(points: list[tuple[int, float]], target: int, found: float) -> None:
    assert forecasts._continue_line(points, target) == pytest.approx(found, rel=1e-12)


def test_what_does_not_end_is_refused() -> None:
    endless = study(miner="dp-tree", target="ill", sampler="mcmc", max_depth=3, iterations=10**7)
    with pytest.raises(dpf.InputError, match="does not end within 1 CPU s on 1,000 made-up rows; mine fewer"):
        forecast(endless, patience=1)


@pytest.mark.parametrize(
    ("seconds", "megabytes", "why"),
    [(61.0, 100.0, "more than the 60 CPU s that it may take"), (1.0, 1e9, "MiB of this machine"), (60.0, 100.0, None)],
)
def test_what_takes_more_than_there_is_is_refused(seconds: float, megabytes: float, why: str | None) -> None:
    found = Forecast(1_000, seconds, megabytes, (TriedRun(1_000, seconds, megabytes),))
    if why is None:
        forecasts._require_affordable(found, 60)
        return
    with pytest.raises(dpf.InputError, match=why):
        forecasts._require_affordable(found, 60)


def test_a_schema_that_says_no_number_of_rows_needs_one() -> None:
    with pytest.raises(dpf.InputError, match="does not say how many rows there are"):
        forecast(study(dpf.Schema([dpf.Boolean("c")]), attribute="c"))


@pytest.mark.parametrize(("rows", "says"), [(0, "at least 1"), (-5, "at least 1"), (2**31, "exceeds 2,147,483,647")])
def test_a_number_of_rows_that_no_table_has_is_refused_and_not_tried(rows: int, says: str) -> None:
    """0 was taken for the schema's own number, and -5 for a run that does not end."""
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill")], about_rows=500), epsilon=1)
    study.add("n", dpf.miner("count", epsilon=1))
    for refused in (lambda: forecast(study, rows), lambda: study.plan().with_rows(rows)):
        with pytest.raises(dpf.InputError, match=f"^rows .*{says}"):
            refused()


def test_a_plan_that_is_refused_is_not_run() -> None:
    refused = dpf.Study(SCHEMA, epsilon="0.5")
    refused.add("it", dpf.miner("histogram", epsilon=1, attribute="c"))
    with pytest.raises(dpf.PlanRefused):
        forecast(refused)


def test_a_miner_that_cannot_be_sent_is_refused() -> None:
    of = study(attribute="c")

    def unsent(given: object) -> tuple[object, ...]:
        raise pickle.PicklingError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(of), "__reduce_ex__", unsent)
        with pytest.raises(dpf.InputError, match="cannot be sent to another process; write it into a module"):
            forecast(of)


def test_a_forecast_is_one_sentence() -> None:
    def said(seconds: float) -> str:
        return str(Forecast(2_000, seconds, 310.6, (TriedRun(1_000, 0.1, 150), TriedRun(1_500, 0.1, 150))))

    assert said(0.0999) == (
        "a run on 2,000 rows takes less than .1 CPU s and 311 MiB, without reading the data "
        "(tried on up to 1,500 made-up rows)"
    )
    assert "takes about 0.1 CPU s" in said(0.1)
    assert "takes about 1.2e+02 CPU s" in said(123)


@pytest.mark.parametrize(
    ("target", "tried"),
    [(500, [500]), (1_000, [1_000]), (1_001, [1_000, 1_001]), (10**7, [1_000, 10_000, 100_000, 1_000_000])],
)
def test_sizes_grow_to_the_rows_of_the_schema(target: int, tried: list[int]) -> None:
    assert [*forecasts._sizes(forecasts.SIZES, target)] == tried


@pytest.mark.parametrize(
    ("seconds", "tried"),
    [
        ([0.1], [10]),
        ([0.1, 0.2], [10, 20, 10]),
        ([0.1, 0.2, 0.3], [10, 20, 30, 20]),
        ([0.5, 1.5, 9.0], [10, 20, 10]),  # a second more than the first is enough
        ([0.5, 1.4, 9.0], [10, 20, 30, 20]),
    ],
)
def test_trials_end_where_one_takes_a_second_longer_and_the_last_but_one_is_made_again(
    seconds: list[float], tried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, limits = [], []

    def one(_: Any, rows: int) -> TriedRun:
        found.append(rows)
        return TriedRun(rows, seconds[rows // 10 - 1], 100)

    given = pickle.dumps(("a study", [10 * k for k in range(1, len(seconds) + 1)], 7))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given)))
    monkeypatch.setattr(resource, "setrlimit", lambda *of: limits.append(of))
    monkeypatch.setattr(forecasts, "_try", one)
    forecasts.try_in_turn()
    assert found == tried
    assert limits == [(resource.RLIMIT_CPU, (7, 7))]


def test_a_trial_that_fails_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> TriedRun:
        raise dpf.InputError("first\nsecond")

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(pickle.dumps(("a study", [10], 7)))))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(forecasts, "_try", fails)
    forecasts.try_in_turn()
    assert json.loads(capsys.readouterr().out) == {"error": "first"}


@pytest.mark.parametrize(("clock", "runs", "found"), [([0, 9.9, 20, 20.5], 2, 0.5), ([5, 15.0], 1, 10.0)])
def test_a_short_run_is_made_twice_and_the_second_counts(
    clock: list[float], runs: int, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(time, "process_time", iter(clock).__next__)
    seconds, megabytes = forecasts.measure(SimpleNamespace(run=ran.append), "a table")  # type: ignore[arg-type]
    assert ran == ["a table"] * runs
    assert seconds == found
    (most,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    assert megabytes == pytest.approx(int(most) / 1024, rel=0.01)


def test_memory_is_compared_with_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": 1 << 18}.__getitem__)
    found = Forecast(1_000, 1, 1024.0, (TriedRun(1_000, 1, 1024.0),))
    forecasts._require_affordable(found, 60)
    with pytest.raises(dpf.InputError, match="more than the 1,024 MiB of this machine"):
        forecasts._require_affordable(attrs.evolve(found, megabytes=1024.1), 60)


def test_made_up_rows_have_all_codes_units_of_the_most_rows_and_a_thousand_keys() -> None:
    of = study(attribute="c", unit="who", rows_per_unit=3)
    table = invent_table(of, 300)
    for attribute, codes in zip(SCHEMA, table.columns, strict=True):
        assert set(codes.tolist()) == set(range(attribute.size))
    assert table.unit_codes is not None
    assert np.bincount(table.unit_codes).tolist() == [3] * 100
    keyed = invent_table(study(OPEN, "keys", attribute="word", delta="1e-6"), 20_000)
    keys = set(map(int, keyed.keys["word"].texts()))
    assert (min(keys), max(keys), len(keys)) == (0, 999, 1_000)
    values = invent_table(study(miner="mean", attribute="age", bounds=[0, 100]), 60).values["age"]
    assert {*values[~np.isnan(values)].tolist()} == {10.0, 30.0, 50.0, 70.0, 90.0}


def test_made_up_rows_have_the_values_that_a_study_reads() -> None:
    assert invent_table(study(attribute="age"), 60).values == {}
    assert set(invent_table(study(miner="mean", attribute="age", bounds=[0, 100]), 60).values) == {"age"}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system cannot forget it")
def test_the_most_memory_of_a_trial_is_counted_from_its_begin() -> None:
    before = np.ones(15 << 20)  # 120 MiB
    most = forecasts._most_memory()
    del before
    forecasts._forget_most_memory()
    assert forecasts._most_memory() < most - 80
