"""Reading is row by row and total: what one row says changes no other row, and stops no run."""

from __future__ import annotations

import math
from decimal import Decimal

import attrs
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings, strategies as st

import dpframework as dpf
from dpframework.facts.canonical_cells import label_of, numbers_of, of_number, of_text
from dpframework.mechanisms import DiscreteLaplace
from dpframework.tables.column_encoding import (
    _SMALL,
    OUTSIDE,
    Unfit,
    _bins,
    _bins_of_even,
    _codes_of_numbers,
    cells_of,
    encode_column,
    unfit,
)
from dpframework.tables.plain_cell_series import as_column, as_numbers
from dpframework.verify import assert_read_row_by_row, built_in_readers, check_reading

HALVES = dpf.Categorical("c", ["1.0", "1.5", "2.0", "2.5"], missing=True)
POLICIES = ("clamp", "missing", "error")
SCHEMAS = {
    "with cells for missing values": dpf.Schema(
        [
            dpf.Categorical("c", ["1", "1.5", "2", "x", "10000000000000000", "0.1", "inf"], missing=True),
            dpf.Numeric("x", 0, 4, bins=4, missing=True),
            dpf.Boolean("b", missing=True),
        ]
    ),
    "without": dpf.Schema(
        [
            dpf.Categorical("c", ["0", "yes", "-1"]),
            dpf.Numeric("x", -1e17, 1e17, cuts=[0, 0.1, 1e16]),
            dpf.Boolean("b"),
        ]
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_reader_reads_row_by_row(schema, policy):
    assert_read_row_by_row(schema, readers=built_in_readers(policy), tables=40)


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70) | st.integers(-2, 3) | st.sampled_from([2**53 + 1, 10**16, 10**16 + 1]),
    st.floats() | st.floats(width=32) | st.sampled_from([-0.0, 1.0, 1.5, 1e16, 0.1]),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.text(max_size=5),
    st.sampled_from([" 1", "1.0", "1e3", "+1", "01", "-0", "true", "FALSE", "", "nan", "10000000000000001"]),
    st.dates() | st.datetimes() | st.binary(max_size=2) | st.lists(st.integers(), max_size=1),
    st.sampled_from([np.float32(0.1), np.int8(1), np.uint64(2**63), np.True_, np.float64(-0.0), pd.NA, pd.NaT]),
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(CELLS, max_size=5), CELLS, st.sampled_from([a for s in SCHEMAS.values() for a in s]))
def test_objects_are_read_one_by_one(cells, more, attribute):
    def held(column):
        yield list(column)
        array = np.empty(len(column), dtype=object)
        array[:] = column
        yield array
        yield pd.Series(column, dtype=object)

    for policy in ("clamp", "missing"):
        alone = [encode_column(attribute, [cell], out_of_domain=policy) for cell in cells]
        for column in held([*cells, more]):
            together = encode_column(attribute, column, out_of_domain=policy)
            assert together.codes[:-1].tolist() == [int(one.codes[0]) for one in alone]
            if together.values is not None:
                np.testing.assert_array_equal(together.values[:-1], [one.values[0] for one in alone])


def test_a_histogram_does_not_move_for_one_row_more():
    schema = dpf.Schema([HALVES])

    def counts(frame):
        return np.bincount(dpf.table_from_frame(frame, schema).codes[0], minlength=5).tolist()

    rows = [1.0] * 500 + [2.0] * 500
    assert counts(pd.DataFrame({"c": rows})) == [500, 0, 500, 0, 0]
    assert counts(pd.DataFrame({"c": [*rows, 2.5]})) == [500, 0, 500, 1, 0]
    assert counts(pd.DataFrame({"c": [*rows, None]})) == [500, 0, 500, 0, 1]
    assert counts(pd.DataFrame({"c": [*rows, "a"]})) == [500, 0, 500, 0, 1]


@pytest.mark.parametrize(
    ("labels", "cells", "more"),
    [
        (["0", "1"], [-0.0, 1.0], [None]),
        (["0", "1"], [-0.0, 1.0], [0.5]),
        (["10000000000000000", "2"], [10**16, 2], [None]),
        (["10000000000000001", "2"], [10**16 + 1, 2], [None]),
        (["9007199254740993", "2"], [2**53 + 1, 2], [None]),
        (["true", "false"], [True, False], ["text"]),
        (["true", "false"], [True, False], [None]),
        (["true", "false"], [True, False], [3]),
        (["1", "2"], [1, 2], ["text"]),
        (["1.0", "2.5"], [1.0, 2.5], ["text"]),
        (["1", "2"], [1, 2], [True]),
        (["1", "2"], [1, 2], [2.5, None]),
        (["0.1", "0.25"], [0.1, 0.25], ["text", None]),
    ],
)
@pytest.mark.parametrize("make", [pd.Series, lambda cells: cells])
def test_the_type_that_a_row_gives_its_column_does_not_matter(labels, cells, more, make):
    attribute = dpf.Categorical("c", labels, missing=True)
    for column in (cells, [*cells, *more]):
        assert encode_column(attribute, make(column)).codes[:2].tolist() == [0, 1]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 0]),
        np.array([1.0, -0.0]),
        np.array([1, 0], dtype=np.float32),
        np.array([True, False]),
        np.array(["1.0", "-0"]),
        np.array([np.int64(1), np.float32(0)], dtype=object),
        [Decimal("1.0"), Decimal("0E+3")],
        ["1e0", " 0.00 "],
        ["TRUE", "false"],
        pl.Series([1, 0], dtype=pl.UInt64),
        pl.Series([1, 0], dtype=pl.Decimal(10, 2)),
        pl.Series(["1", "0"], dtype=pl.Enum(["0", "1"])),
        pd.Series([1, 0], dtype="category"),
        pd.Series([1.0, 0.0], dtype="category"),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([1, 0], dtype="Int64"),
        pd.Series(["1", "0"], dtype="string"),
        pa.chunked_array([[1, 0]]).dictionary_encode(),
        pa.chunked_array([["1.0", "0.0"]]).dictionary_encode(),
        pa.chunked_array([pa.array(np.array([1, 0], np.float16))]),
    ],
)
def test_one_value_has_one_code_in_every_type(column):
    for label in ("1", "1.0", "1e0", "true"):
        assert encode_column(dpf.Categorical("c", ["0", label]), column).codes.tolist() == [1, 0]
    assert encode_column(dpf.Boolean("b"), column).codes.tolist() == [1, 0]
    numeric = encode_column(dpf.Numeric("x", 0, 2, cuts=[1]), column)
    assert numeric.codes.tolist() == [1, 0]
    assert not np.signbit(numeric.values).any()


@given(st.floats(allow_nan=False) | st.floats(width=32, allow_nan=False))
def test_a_form_is_its_own_form_and_every_number_of_it_has_it(number):
    form = of_number(number)
    assert of_number(form) == form
    assert math.copysign(1, form) == 1 or form
    assert number in numbers_of(form)
    assert all(of_number(other) == form for other in numbers_of(form))
    assert of_text(repr(number)) == form
    assert of_text(label_of(form)) == form


def test_a_narrow_number_is_the_shortest_decimal_that_rounds_to_it():
    for value in (0.1, 0.3, 1 / 3, 8388607.5, 0.12345679, 16777.217, 1.17549435e-38, 1e-45):
        narrow = np.float32(value)
        form = of_number(float(narrow))
        assert np.float32(form) == narrow
        for digits in range(9):  # none with fewer digits rounds to it
            shorter = float(f"{float(narrow):.{digits}e}")
            if np.float32(shorter) == narrow:
                assert form == shorter
                break
            assert form != shorter
    needs_nine = float(np.nextafter(np.float32(1000), np.float32(1001)))
    assert of_number(needs_nine) == float(f"{needs_nine:.9g}") != float(f"{needs_nine:.8g}")
    assert of_number(0.1 + 2**-50) == 0.1 + 2**-50
    assert numbers_of(0.1) == (0.1, float(np.float32(0.1)))
    assert (numbers_of(3.0), numbers_of(math.inf), numbers_of(0.5)) == ((3.0,), (math.inf,), (0.5,))
    assert numbers_of(0.1 + 2**-50) == (0.1 + 2**-50,)
    assert (numbers_of(1e300), numbers_of(-math.inf)) == ((1e300,), (-math.inf,))  # no 32-bit float is near the first


def test_a_column_of_objects_is_of_their_one_type_or_of_texts_that_spell_each():
    for cells in (["a", None, " b"], [True, None], [1.5, None, math.nan]):
        column = as_column(cells, "t")
        assert column.foreign is None
        assert str(column.series.to_list()) == str(cells)
    spelled = {
        "x": "x",
        True: "true",
        np.False_: "false",
        3: "3.0",
        -(10**400): "-inf",
        10**400: "inf",
        Decimal("0.10"): "0.1",
        Decimal("NaN"): None,
        Decimal("-Infinity"): "-inf",
        np.float32(0.5): "0.5",
        np.int8(-7): "-7.0",
        math.nan: None,
        pd.NA: None,
        pd.NaT: None,
        None: None,
    }
    cells = list(spelled)
    assert as_column(cells, "t").series.to_list() == [spelled[cell] for cell in cells]
    assert as_column(cells, "t").foreign is None
    odd = as_column(["a", b"b", None, "\ud800", 1j, [3]], "t")
    assert odd.series.to_list() == ["a"] + [None] * 5
    assert odd.foreign.tolist() == [False, True, False, True, True, True]
    taken = odd.take(pl.Series([5, 0, 0], dtype=pl.UInt32))
    assert (len(taken), taken.series.to_list(), taken.foreign.tolist()) == (3, [None, "a", "a"], [True, False, False])
    assert repr(odd) == "Column(rows are private)"


def test_what_a_container_calls_its_values_is_remembered():
    """For inference only: categories may read as numbers."""
    categories = [
        pl.Series(["1", "2"], dtype=pl.Enum(["1", "2"])),
        pl.Series(["1", "2"], dtype=pl.Categorical),
        pd.Series(["1", "2"], dtype="category"),
        pd.Series(["1", 2], dtype="category"),
    ]
    for values in categories:
        column = as_column(values, "t")
        assert column.categories
        assert column.take(pl.Series([1], dtype=pl.UInt32)).categories
    for values in (pl.Series(["1"]), pd.Series(["1", 2], dtype=object), np.array([1, 2]), ["1"], (1, 2)):
        assert not as_column(values, "t").categories
    column = as_column([1], "t")
    assert as_column(column, "t") is column
    dates = as_column(pl.Series([None, "2020-01-01"]).str.to_date(), "t")
    assert (dates.series.to_list(), dates.foreign.tolist()) == ([None, None], [False, True])


def test_numbers_of_a_column_and_texts_that_are_none():
    numbers, strange = as_numbers(pl.Series([" 1", "x", None, "", " ", "TRUE", "false ", "1e3", "nan"]))
    np.testing.assert_array_equal(numbers, [1, math.nan, math.nan, math.nan, math.nan, 1, 0, 1000, math.nan])
    assert strange.tolist() == [False, True] + [False] * 7
    for series in (
        pl.Series([True, None, False]),
        pl.Series([1, None, 0], dtype=pl.Int8),
        pl.Series([1.0, math.nan, 0]),
    ):
        numbers, strange = as_numbers(series)
        np.testing.assert_array_equal(numbers, [1, math.nan, 0])
        assert (numbers.dtype, strange.tolist()) == (np.float64, [False] * 3)


@pytest.mark.parametrize("size", [1, 2, 65, 66, 129, 300])
def test_bins_are_the_cuts_at_or_below(size):
    cuts = np.arange(size - 1, dtype=float)
    numbers = np.array([-0.5, 0.0, 0.5, size - 2.0, size - 1.5, size + 1.0])
    assert _bins(numbers, cuts.tolist()).tolist() == [sum(cut <= number for cut in cuts) for number in numbers]


@given(
    lower=st.floats(-1e9, 1e9),
    step=st.floats(1e-6, 1e6),
    size=st.integers(65, 300),
    off=st.floats(0, 0.49),
    seed=st.integers(0, 99),
)
def test_nearly_even_cuts_are_found_by_division(lower, step, size, off, seed):
    rng = np.random.default_rng(seed)
    cuts = np.unique(lower + step * (np.arange(size) + rng.uniform(-off, off, size)))
    around = (np.nextafter(cuts, -np.inf), cuts, np.nextafter(cuts, np.inf), rng.uniform(cuts[0], cuts[-1], 300))
    numbers = np.concatenate((*around, [cuts[0] - step, cuts[-1] + step, cuts[0] - 1e12, cuts[-1] + 1e12]))
    expected = np.searchsorted(cuts, numbers, side="right")
    assert (_bins(numbers, cuts.tolist()) == expected).all()
    found = _bins_of_even(np.append(numbers, np.nan), cuts)
    assume(found is not None)
    assert (found[:-1] == expected).all()


def test_labels_are_looked_up_as_numbers_in_either_precision():
    """Small whole ones in an array, others among sorted keys: which of both follows from the largest and smallest."""
    attribute = dpf.Categorical("c", ["0", "7", "0.1", "-1", "inf", "5000", "a"], missing=True)
    for cells, codes in (
        ([0, 7, 8], [0, 1, 7]),
        ([7, math.nan, 0], [1, 7, 0]),
        ([0.1, 7, 0, 0.3], [2, 1, 0, 7]),
        ([-1, 0, 7, 5000], [3, 0, 1, 5]),
        ([-1, 0, 7], [3, 0, 1]),
        ([math.inf, -math.inf, 7], [4, 7, 1]),
        ([math.inf, 0], [4, 0]),
        ([-math.inf, 0], [7, 0]),
        ([9000, -3, 0], [7, 7, 0]),
        ([], []),
    ):
        for kind in (np.float64, np.float32):
            assert encode_column(attribute, np.array(cells, dtype=kind)).codes.tolist() == codes
    texts = dpf.Categorical("c", ["x", "y"])
    assert encode_column(texts, [1.5, 0.0]).codes.tolist() == [0, 0]
    with pytest.raises(dpf.InputError, match="not in its public list"):
        encode_column(texts, [1.5, 0.0], out_of_domain="error")


@pytest.mark.parametrize("missing", [False, True])
def test_ways_in_which_cells_do_not_fit(missing):
    number, kind = dpf.Numeric("x", 0, 4, bins=2, missing=missing), dpf.Categorical("x", ["a"], missing=missing)
    gone = set() if missing else {Unfit.MISSING}
    for attribute, cells, ways in (
        (number, [0, 4], set()),
        (number, [0, -0.1], {Unfit.BEYOND}),
        (number, [4.1, None], {Unfit.BEYOND} | gone),
        (number, ["x"], {Unfit.OUTSIDE}),
        (number, [None], gone),
        (kind, ["a"], set()),
        (kind, ["a", "b", ""], {Unfit.OUTSIDE} | gone),
        (kind, ["a", None], gone),
    ):
        assert unfit(attribute, cells_of(attribute, as_column(cells, "t"))) == ways


def test_texts_that_are_no_numbers():
    for text in ("007", "+1", "1_000", "0x10", "1.", ".5", "one", "1 2", "--1", "NaN", "٣"):
        assert of_text(f" {text} ") == text
    assert [of_text(text) for text in ("", " \t", "\x1f")] == [None] * 3
    assert [of_text(text) for text in ("inf", "-INF", "1e999")] == [math.inf, -math.inf, math.inf]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["1", "1.0"], "values '1' and '1.0' are one value in a table"),
        (["0", "-0.0"], "one value"),
        ([" a", "a"], "values ' a' and 'a' are one value"),
        (["True", "true"], "one value"),
        (["9007199254740992", "9007199254740993"], "one value"),
        (["0.1", "0.10000000149011612"], "one value"),
        (["a", "a"], "value 'a' is listed twice"),
    ],
)
def test_labels_of_one_form_are_refused(values, sentence):
    with pytest.raises(dpf.InputError, match=f"attribute 'c': .*{sentence}"):
        dpf.Categorical("c", values)


@attrs.frozen
class Towns(dpf.Miner):
    """Release a histogram."""

    name = "towns"

    def plan(self, schema):
        return dpf.step("n", dpf.queries.Histogram(schema["town"]), DiscreteLaplace(1))

    def mine(self, table):
        return table.release("n")


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(
    "row", ["", ",", "C,40", "A,many", "A,-5", "A,1e999", '"x\ny",\'', "\xff\xfe,3", "A,true", "A,NaN", " , "]
)
def test_no_row_stops_a_run(row, missing, tmp_path):
    schema = dpf.Schema(
        [dpf.Categorical("town", ["A", "B"], missing=missing), dpf.Numeric("age", 0, 99, bins=3, missing=missing)]
    )
    study = dpf.Study(schema, epsilon=1)
    study.add("towns", Towns())
    (tmp_path / "people.csv").write_bytes(b"town,age\nA,30\nB,60\n" + row.encode("latin-1") + b"\n")
    table = dpf.read_table(tmp_path / "people.csv", schema)
    assert table.codes[:, :2].tolist() == [[0, 1], [0, 1]]
    assert len(study.run(table)["towns"]) == 2 + missing


def test_the_kit_says_what_a_reader_does_wrong():
    good, *_ = built_in_readers()
    schema = dpf.Schema([dpf.Boolean("ill")], rows=1)

    def refusing(held, schema):
        return dpf.read_table(held, schema, out_of_domain="error")

    report = check_reading(schema, readers=[good, attrs.evolve(good, name="strict", read=refusing)], tables=50)
    assert not report.passed
    assert all(text.startswith("strict: ") and "stops the reading" in text for text in report.violations)
    assert str(report).startswith("csv, strict: NOT row by row on 50 pairs of tables each\n  strict: ")
    assert report.to_dict()["passed"] is False
    assert check_reading(schema, readers=[attrs.evolve(good, read=refusing, may_refuse=True)], tables=50).passed


@pytest.mark.parametrize("column", [[1.0, math.nan], ["1", ""], np.array([1.0, np.nan]), pl.Series([1, None])])
def test_missing_values_that_the_schema_has_a_cell_for_fit(column):
    for attribute in SCHEMAS["with cells for missing values"]:
        codes = encode_column(attribute, column, out_of_domain="error").codes
        assert codes.tolist()[1] == attribute.missing_code


def test_whole_numbers_have_the_codes_that_they_have_beside_a_fraction() -> None:
    """Columns of small whole numbers are looked up in an array, and others among sorted numbers: to the same codes."""
    labels = ["-1", "0", "1.0", "7", "0.5", str(_SMALL - 2), str(_SMALL), "x"]
    code_of = {of_text(label): code for code, label in enumerate(labels)}
    cells = np.array([0, 1, 2, 7, _SMALL - 2, _SMALL - 1], dtype=float)
    expected = [1, 2, OUTSIDE, 3, 5, OUTSIDE]
    assert _codes_of_numbers(cells, code_of).tolist() == expected
    beside = np.array([-1, 0.5, 0.25, _SMALL])
    assert _codes_of_numbers(np.append(cells, beside), code_of).tolist() == [*expected, 0, 4, OUTSIDE, 6]
    assert _codes_of_numbers(cells, {of_text("x"): 0}).tolist() == [OUTSIDE] * len(cells)
    assert _codes_of_numbers(beside, {of_text("x"): 0}).tolist() == [OUTSIDE] * len(beside)
