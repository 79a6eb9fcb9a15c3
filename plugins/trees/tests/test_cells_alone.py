"""No cell that an estimator is given decides how other rows are read, or whether a fit is refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dpframework_trees import DPAdditiveRegressor, DPID3Classifier

import dpframework as dpf

NUMBER = dpf.Numeric("x", 0, 10, bins=10)
LABELS = dpf.Schema([NUMBER, dpf.Categorical("class", values=["no", "yes"])])
BITS = dpf.Schema([NUMBER, dpf.Categorical("class", values=["0", "1"])])
TRUTHS = dpf.Schema([NUMBER, dpf.Categorical("class", values=["False", "True"])])
LARGE = dpf.Schema([dpf.Categorical("x", values=[str(2**53), str(2**53 + 2)]), LABELS["class"]])
PRICES = dpf.Schema([NUMBER, dpf.Numeric("class", 0, 100, bins=10)])
X = [[1], [2], [3], [4]]
Y = ["yes", "no", "yes", "no"]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[dpf.Table]:
    """The tables that studies are run on."""
    seen: list[dpf.Table] = []
    run = dpf.Study.run

    def watched(self: dpf.Study, table: Any, **given: Any) -> dpf.Results:
        seen.append(table)
        return run(self, table, **given)

    monkeypatch.setattr(dpf.Study, "run", watched)
    return seen


def fit(schema: dpf.Schema, x: Any, y: Any, groups: Any = None) -> Any:
    kind = DPAdditiveRegressor() if schema is PRICES else DPID3Classifier(max_depth=1)
    return kind.set_params(schema=schema, epsilon=1).fit(x, y, groups)


def codes(table: dpf.Table) -> list[list[int]]:
    """Return the rows of a table."""
    return np.array([np.asarray(column) for column in table.columns]).T.tolist()


@pytest.mark.parametrize("last", [4, 4.5, None, "u", True, float("nan")], ids=repr)
@pytest.mark.parametrize("made", [list, tuple, pl.Series, pd.Series, lambda ids: np.array(ids, dtype=object)])
def test_one_more_group_merges_no_others(tables: list[dpf.Table], made: Any, last: Any) -> None:
    """Two ids that no float tells apart are two people, whatever the last row's id is."""
    ids = [2**53, 2**53 + 1, 3, last]
    if made in (pl.Series, pd.Series) and not (last is None or isinstance(last, int)):
        pytest.skip("the series itself has one type for all its cells")
    fit(LABELS, X, Y, pd.Series(ids, dtype="Int64") if made is pd.Series else made(ids))
    assert codes(tables[0])[:3] == [[1, 1], [2, 0], [3, 1]]


@pytest.mark.parametrize("last", [4, 4.5, None, "u", True, np.inf, np.nan, -np.inf], ids=repr)
@pytest.mark.parametrize("schema", [LABELS, LARGE], ids=["numbers", "labels"])
def test_one_more_row_changes_no_other_rows_cells(tables: list[dpf.Table], schema: dpf.Schema, last: Any) -> None:
    rows = X if schema is LABELS else [[2**53], [2**53 + 2], [2**53 + 2], [0]]
    for given in (rows, [*rows[:3], [last]]):
        fit(schema, given, Y)
    before, after = map(codes, tables)
    assert before[:3] == after[:3] == ([[1, 1], [2, 0], [3, 1]] if schema is LABELS else [[0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize("last", [0, 0.5, None, "u", np.inf, np.nan], ids=repr)
@pytest.mark.parametrize(
    ("schema", "y"),
    [(BITS, [1, 0, 1]), (BITS, [True, False, True]), (TRUTHS, [True, False, True]), (PRICES, [15, 5, 15])],
)
def test_one_more_outcome_changes_no_other_and_is_not_refused(
    tables: list[dpf.Table], schema: dpf.Schema, y: Sequence[Any], last: Any
) -> None:
    """A fit that a row's outcome could stop would tell of it, at no cost."""
    for given in ([*y, y[0]], [*y, last], np.array([*y, last], dtype=object)):
        fit(schema, X, given)
    for table in tables:
        assert [row[1] for row in codes(table)[:3]] == [1, 0, 1]


@pytest.mark.parametrize("made", [pl.Series, lambda y: pd.Series(y, dtype="Int64")], ids=["polars", "pandas"])
def test_classes_have_the_type_of_the_container(made: Any) -> None:
    """And not of a series with a missing cell, which numpy makes an array of floats."""
    one, other = (fit(BITS, X, made([1, 0, 1, last])).classes_ for last in (0, None))
    assert one.dtype == other.dtype
    assert one.tolist() == other.tolist()


LASTS = [0, 0.5, None, "u", "1", True, float("inf"), float("nan"), 10**400, [0, 1], [0], {}, b"1", 1j, object()]


@pytest.mark.parametrize("last", LASTS, ids=lambda last: "object" if type(last) is object else repr(last)[:9])
@pytest.mark.parametrize(
    ("schema", "y", "classes"),
    [
        (BITS, [1, 0, 1], [0, 1]),
        (BITS, ["1", "0", "1"], [0, 1]),
        (TRUTHS, [True, False, True], [False, True]),
        (TRUTHS, ["True", "False", "True"], [False, True]),
        (LABELS, ["yes", "no", "yes"], ["no", "yes"]),
        (LABELS, [None, 0, None], ["no", "yes"]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("made", [list, tuple, deque])
def test_the_classes_of_a_list_follow_from_the_schema_whatever_a_cell_holds(
    made: Any, schema: dpf.Schema, y: Sequence[Any], classes: list[Any], last: Any
) -> None:
    """The type of what numpy makes of the whole list follows from any one row: so does whether it can."""
    fitted = fit(schema, X, made([*y, last]))
    assert fitted.classes_.tolist() == classes
    assert [type(one) for one in fitted.classes_.tolist()] == [type(one) for one in classes]
    assert fitted.classes_.dtype == np.array(classes).dtype


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("schema", [BITS, PRICES], ids=["classes", "numbers"])
@pytest.mark.parametrize(
    "made", [list, np.array, lambda x: pl.DataFrame({"x": [row[0] for row in x]}, {"x": pl.Int64})]
)
def test_a_table_without_rows_is_fitted_as_one_with_a_row(made: Any, schema: dpf.Schema, rows: int) -> None:
    """A refusal would tell that somebody's row is the only one, or is none."""
    fitted = fit(schema, made(X)[:rows], [1][:rows])
    assert fitted.private_
    assert fitted.predict(made(X)).shape == (4,)
    if made is not list:
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            fitted.predict(made(X)[:0])


def test_numbers_with_a_fraction_are_the_classes_of_a_list() -> None:
    halves = dpf.Schema([NUMBER, dpf.Categorical("class", values=["2", "0.5"])])
    assert fit(halves, X, [2, 0.5, 2, 2]).classes_.tolist() == [0.5, 2.0]


@pytest.mark.filterwarnings("ignore:no schema was given")
@pytest.mark.parametrize("y", [["0", "1"], [0, 1], [0.5, "a"]], ids=repr)
def test_without_a_schema_a_list_keeps_the_type_that_numpy_gives_it(y: list[Any]) -> None:
    """Such a fit is not private, whatever its classes are."""
    fitted = DPID3Classifier(max_depth=1, epsilon=1).fit(X, y * 2)
    assert fitted.classes_.dtype.kind == np.array(y).dtype.kind


def test_a_list_of_rows_of_one_cell_is_a_column(tables: list[dpf.Table]) -> None:
    for y in ([1, 0, 1, 0], [[1], [0], [1], [0]], ([1], (0,), [1], [0])):
        fit(BITS, X, y)
    assert len({str(codes(table)) for table in tables}) == 1


def test_an_array_of_numbers_with_an_infinite_or_missing_one_is_read(tables: list[dpf.Table]) -> None:
    for last in (4.0, np.inf, np.nan):
        fit(LABELS, np.array([[1.0], [2.0], [3.0], [last]]), Y)
        fit(BITS, np.array(X), np.array([1.0, 0.0, 1.0, last]))
    assert {str(codes(table)[:3]) for table in tables} == {"[[1, 1], [2, 0], [3, 1]]"}
