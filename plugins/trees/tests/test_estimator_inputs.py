"""What estimators read of X and y: containers, types of classes, and the schemas that they get or are warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dpframework_trees.estimator_inputs import (
    InputColumns,
    Outcomes,
    PrivacyWarning,
    class_cells,
    keep_cells,
    ordered_classes,
)

import dpframework as dpf

AGE, CITY = dpf.Numeric("age", 0, 100, bins=10), dpf.Categorical("city", ["Rome", "Oslo"])
SCHEMA = dpf.Schema([AGE, CITY, dpf.Categorical("class", ["no", "yes"])])
COLUMNS = [np.array([10.0, 20.0]), np.array(["Rome", "Oslo"])]


def labelled(*labels: str) -> dpf.Categorical:
    return dpf.Categorical("class", list(labels))


# --- y --------------------------------------------------------------------------------------------------------------


def test_a_list_has_no_type_and_each_cell_its_own() -> None:
    found = Outcomes.of([1, "a", None, 2.5])
    assert (found.cells, found.dtype, len(found)) == ([1, "a", None, 2.5], None, 4)
    assert Outcomes.of([[1], ("a",), [1, 2], []]).cells == [1, "a", [1, 2], []]
    assert found.typed.dtype == object


def test_an_array_has_a_type_and_one_dimension() -> None:
    for dtype in (np.int64, np.float32, np.bool_, "U3", object):
        given = np.array([1, 0, 1]).astype(dtype)
        found = Outcomes.of(given)
        assert (found.dtype, found.cells.tolist()) == (given.dtype, given.tolist())
    with pytest.warns(UserWarning, match="column-vector"):
        assert Outcomes.of(np.array([[1], [2]])).cells.tolist() == [1, 2]


def test_a_series_has_its_containers_type_and_stays_in_it() -> None:
    numbers, texts = pl.Series([1, 2, None]), pl.Series(["a", "b"])
    assert Outcomes.of(numbers).cells is numbers
    assert Outcomes.of(numbers).dtype == np.int64  # as declared: a null makes no float of it
    assert Outcomes.of(texts).cells is texts
    assert Outcomes.of(pl.Series([True, None])).cells == [True, None]
    assert Outcomes.of(pd.Series([1, "a"], dtype=object)).cells == [1, "a"]


def test_no_y_is_refused_as_scikit_learn_does() -> None:
    with pytest.raises(dpf.InputError, match="requires y to be passed, but the target y is None"):
        Outcomes.of(None)


def test_ids_are_read_one_by_one() -> None:
    for column in ([2**53, 2**53 + 1, None], (1, 2), pl.Series([2**53 + 1, None])):
        assert keep_cells(column) is column
    assert keep_cells(np.array([1, 2])).tolist() == [1, 2]


# --- classes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "y", "cells", "dtype"),
    [
        (dpf.Boolean("class"), [True, False], ["True", "False"], np.bool_),
        (labelled("False", "TRUE"), [1, 0], [1, 0], np.bool_),
        (labelled("0", "1"), [True, 0], ["True", 0], np.int64),
        (labelled("0.5", "1"), [1], [1], np.float64),
        (labelled("1.0", "2"), [1], [1], np.int64),
        (labelled("no", "1"), [1], [1], np.dtype("<U2")),
    ],
)
def test_a_list_of_classes_has_the_type_of_the_schemas_labels(target: Any, y: Any, cells: Any, dtype: Any) -> None:
    assert class_cells(target, Outcomes.of(y)) == (cells, np.dtype(dtype))


@pytest.mark.parametrize(
    ("target", "y", "cells", "dtype"),
    [
        (dpf.Boolean("class"), np.array([True, False]), ["True", "False"], np.bool_),
        (dpf.Boolean("class"), np.array([1, 0]), [1, 0], np.int64),
        (labelled("0", "1", "2"), np.array([True, False]), ["True", "False"], np.int64),
        (labelled("1", "x"), np.array([1.0, 3.0]), [1.0, 3.0], np.float64),  # one number among labels is enough
        (labelled("no", "yes"), np.array(["no"]), ["no"], np.dtype("<U2")),
        (dpf.Numeric("class", 0, 9, bins=3), np.array([4.0]), [4.0], np.float64),
    ],
)
def test_an_array_of_classes_keeps_its_type(target: Any, y: Any, cells: Any, dtype: Any) -> None:
    found, kind = class_cells(target, Outcomes.of(y))
    assert (list(found), kind) == (cells, np.dtype(dtype))


def test_a_type_that_no_label_has_is_refused_with_four_labels_shown() -> None:
    five = labelled("a", "b", "c", "d", "e")
    shown = r"y is numeric, and class 'class' .* has the values 'a', 'b', 'c', 'd'; .*, describe them as '0' to '4'"
    with pytest.raises(dpf.InputError, match=shown):
        class_cells(five, Outcomes.of(np.array([1])))
    for labels in (("0", "2"), ("1", "2")):  # both truths are needed
        with pytest.raises(dpf.InputError, match="y is Boolean, and class 'class' of the schema has the values"):
            class_cells(labelled(*labels), Outcomes.of(np.array([True])))


@pytest.mark.parametrize(
    ("target", "dtype", "values", "order"),
    [
        (labelled("true", "false"), np.bool_, [False, True], [1, 0]),
        (labelled("true", "false"), np.int64, [0, 1], [1, 0]),
        (labelled("true", "false"), "U5", ["false", "true"], [1, 0]),
        (labelled("10", "9", "-1"), np.int64, [-1, 9, 10], [2, 1, 0]),
        (labelled("10", "9"), "U2", ["10", "9"], [0, 1]),  # as texts
        (labelled("10", "9", "x"), np.float64, ["10", "9", "x"], [0, 1, 2]),
        (labelled("b", "a"), object, ["a", "b"], [1, 0]),
    ],
)
def test_classes_are_sorted_in_the_type_of_y(target: Any, dtype: Any, values: Any, order: Any) -> None:
    found, places = ordered_classes(target, np.dtype(dtype))
    assert (found.tolist(), places.tolist()) == (values, order)
    assert [type(value) for value in found.tolist()] == [type(value) for value in values]
    assert (found.dtype == object) == (dtype is object)


# --- schemas --------------------------------------------------------------------------------------------------------


def told(schema: dpf.Schema | None, names: list[str], target: str | None = None, *, named: bool = True) -> InputColumns:
    return InputColumns(schema, target, names, named)


def test_the_schemas_attributes_come_in_the_order_of_x_and_y_last() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for columns in (told(SCHEMA, ["city", "age"]), told(SCHEMA, ["city", "age"], "class")):
            for read in (columns.with_class, columns.with_number):
                found, target = read(COLUMNS, Outcomes.of(["no", "yes"]))
                assert (found.names, target) == (("city", "age", "class"), "class")
        by_place = told(SCHEMA, ["x0", "x1"], "age", named=False)
        found, target = by_place.with_class(COLUMNS, Outcomes.of([1, 2]))
        assert (found.names, target) == (("city", "class", "age"), "age")


def test_columns_that_the_schema_does_not_describe_are_refused() -> None:
    def refused(columns: InputColumns, sentence: str) -> None:
        with pytest.raises(dpf.InputError) as caught:
            columns.with_class(COLUMNS, Outcomes.of(["no", "yes"]))
        assert str(caught.value) == sentence

    refused(told(SCHEMA, ["age", "citi"]), "column 'citi' of X is not in the schema; did you mean 'city'?")
    refused(
        told(SCHEMA, ["a", "b", "c", "d"], named=False),
        "the schema describes 3 columns, X has 4; describe them all",
    )
    for target in ("age", "none"):
        sentence = f"target '{target}' must be an attribute of the schema, and not a column of X"
        refused(told(SCHEMA, ["age", "city"], target), sentence)
    many = dpf.Schema([AGE, *(dpf.Boolean(name) for name in "abcde")])
    refused(
        told(many, ["age"]),
        "the schema has several attributes that are not columns of X ('a', 'b', 'c', 'd'); "
        "name the one that y holds with target=",
    )


def test_a_schema_without_y_gets_what_is_observed_and_a_warning() -> None:
    columns = told(dpf.Schema([AGE, CITY]), ["age", "city"])
    with pytest.warns(PrivacyWarning, match="no attribute for the class; its values come from y"):
        found, target = columns.with_class(COLUMNS, Outcomes.of(["b", "a", "b"]))
    assert (target, found[target].labels, found.inferred) == ("class", ("a", "b"), ("classes: observed",))
    with pytest.warns(PrivacyWarning, match="no attribute for y; its bounds come from y"):
        found, target = columns.with_number(COLUMNS, Outcomes.of([2, -3, 1.5]))
    assert (target, found[target].lower, found[target].upper) == ("number", -3, 2)
    assert (found[target].size, found.inferred) == (1, ("bounds of y: observed",))
    with pytest.warns(PrivacyWarning):
        found, target = columns.with_number(COLUMNS, Outcomes.of([7, 7]))
    assert (found[target].lower, found[target].upper) == (7, 8)


def test_an_observed_y_takes_a_name_that_is_free() -> None:
    taken = dpf.Schema([attribute for name in ("class", "class_", "number") for attribute in [dpf.Boolean(name)]])
    columns = told(taken, ["class", "class_", "number"])
    given = [np.array([True, False])] * 3
    with pytest.warns(PrivacyWarning):
        assert columns.with_class(given, Outcomes.of(["a", "b"]))[1] == "class__"
    with pytest.warns(PrivacyWarning):
        assert columns.with_number(given, Outcomes.of([1, 2]))[1] == "number_"


def test_without_a_schema_one_is_inferred_with_one_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, target = told(None, ["age", "city"]).with_class(COLUMNS, Outcomes.of([1, 0]))
    assert [str(one.message) for one in caught] == [
        "no schema was given, so one is inferred from the data and this fit is not private; "
        "write a public schema and pass it as schema="
    ]
    assert (found.names, target, found["class"].labels) == (("age", "city", "class"), "class", ("0", "1"))
    assert "classes: observed" in found.inferred
    with pytest.warns(PrivacyWarning, match="the schema was inferred from data, so this fit is not private"):
        told(found, ["age", "city"]).with_class(COLUMNS, Outcomes.of([1, 0]))


def test_outcomes_of_no_use_are_refused() -> None:
    columns = told(dpf.Schema([AGE, CITY]), ["age", "city"])

    def refused(y: Any, sentence: str, *, number: bool = False, error: type[Exception] = dpf.InputError) -> None:
        with pytest.raises(error, match=sentence), pytest.warns(PrivacyWarning):
            (columns.with_number if number else columns.with_class)(COLUMNS, Outcomes.of(y))

    refused(["a", "a"], "y has 1 class; a classifier needs two or more")
    refused([1.0, 2.5], "Unknown label type: continuous", error=ValueError)
    refused([1 + 2j, 0.5j], "[Cc]omplex|Unknown label type", error=ValueError)
    refused(["a", None], "y has missing values; every row needs a class")
    refused(np.array(["2026-01-01", "NaT"], dtype="M8[D]"), "y has missing values; every row needs a class")
    refused([float("nan"), "a", None], "y has missing values; every row needs a class")
    refused(["a", 1], "y has values that are not numbers; a regression needs numbers", number=True)
