"""The folder of a run is read again as it was written, and anything else is refused in a sentence with its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpframework as dpf
from dpframework.study.run_folder_reader import load_results, read_record

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1], [0, 0, 1]])
COUNT = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study = dpf.Study(SCHEMA, epsilon=3)
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
    study.add_plan("rows", dpf.repeat(2, COUNT))
    study.run(TABLE, seed=1).save(tmp_path / "out")
    return tmp_path / "out"


def test_results_are_read_as_they_were_written(folder: Path) -> None:
    found = load_results(folder)
    assert found.to_dict() == read_record(folder)
    assert [charge.path for charge in found.charges] == ["ill/counts", "rows/n", "rows/n"]
    assert found.spent == found.plan.total()
    assert read_record(folder / "results.json") == read_record(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda form: form.update(results_version=0), "results version 0 cannot be read"),
        (lambda form: form.pop("results_version"), "not results that dpframework wrote"),
        (lambda form: form.pop("about"), "not results that dpframework wrote"),
        (lambda form: form.update(plan="0" * 64), "is of another plan"),
        (
            lambda form: form["charges"].append("rows/m"),
            "a release 'rows/m' was charged, but the plan does not hold it",
        ),
        (lambda form: form["results"].update(ill={"counts": 1}), "result 'ill'"),
    ],
)
def test_a_record_that_was_changed_is_refused(folder: Path, change: Callable[[Any], Any], message: str) -> None:
    place = folder / "results.json"
    form = json.loads(place.read_text())
    change(form)
    place.write_text(json.dumps(form))
    with pytest.raises(dpf.InputError, match=message) as caught:
        load_results(folder)
    assert str(folder) in str(caught.value)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dpf.InputError, match=r"not the folder of a run; there is no results\.json"):
        read_record(tmp_path)
