"""Rows to predict: cells that the schema does not hold are unknown, whatever the order of its labels."""

import warnings

import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.tables import NewRows, UnknownCellWarning

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("city", ["Rome", "Oslo"]),
        dpf.Categorical("crop", ["oats", "rye"], missing=True),
        dpf.Numeric("age", 0, 100, bins=4),
        dpf.Boolean("ill"),
    ]
)
CELLS = {
    "city": ["Rome", "Paris", None, "Oslo"],
    "crop": ["rye", "maize", None, "oats"],
    "age": [10.0, -5.0, None, 200.0],
    "ill": ["yes", "maybe", "no", None],
}


@pytest.mark.parametrize(("policy", "ages"), [("clamp", [0, 0, 1, 0]), ("missing", [0, 1, 1, 1])])
@pytest.mark.parametrize("frame", [CELLS, pl.DataFrame(CELLS)], ids=["columns", "frame"])
def test_cells_that_the_schema_does_not_hold_are_unknown(policy, ages, frame):
    with pytest.warns(UnknownCellWarning, match=rf"^{4 + sum(ages)} cells are missing.*'city' 2, 'age' {sum(ages)},"):
        rows = NewRows.read(frame, SCHEMA, out_of_domain=policy)
    expected = {"city": [0, 1, 1, 0], "age": ages, "ill": [0, 1, 0, 1]}
    assert {name: own.astype(int).tolist() for name, own in rows.unknown.items()} == expected
    assert rows.block.codes("crop").tolist() == [1, 2, 2, 0]  # the schema has a cell for these
    assert np.isnan(rows.block.values("age")).astype(int).tolist() == ages
    assert len(rows) == 4


def test_rows_that_fit_are_read_without_a_warning():
    fine = {name: [column[0]] for name, column in CELLS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = NewRows.read(fine, SCHEMA)
        assert not read.unknown
        again = NewRows.read(dpf.table_from_columns(fine, SCHEMA), SCHEMA.select(["age"]))
        assert again.block.codes("age").tolist() == [0]
        assert NewRows.read(read, SCHEMA.select(["city"])) is read
    assert repr(read) == "NewRows(1 rows)"


def test_a_single_cell_is_counted_as_one():
    with pytest.warns(UnknownCellWarning, match=r"^1 cell is missing"):
        NewRows.read({"city": ["Lima", "Rome"]}, SCHEMA.select(["city"]), out_of_domain="clamp")


def test_what_cannot_be_read_is_refused():
    for frame, sentence in [
        (CELLS, "not in its public list"),
        ({"city": ["Rome"]}, "no column"),
        ({**CELLS, "age": [1.0]}, "differ in length"),
        (
            dpf.table_from_columns({"ill": [True]}, dpf.Schema([dpf.Boolean("ill", missing=True)])),
            "differs from the model's attribute",
        ),
    ]:
        wanted = SCHEMA.select(["ill"]) if isinstance(frame, dpf.Table) else SCHEMA
        policy = "clamp" if sentence == "differ in length" else "error"
        with pytest.raises(dpf.InputError, match=sentence):
            NewRows.read(frame, wanted, out_of_domain=policy)
