"""Reading and encoding private columns: right codes from every backend, and errors that show nothing private."""

from __future__ import annotations

import gzip
import math
import pickle
import traceback
from decimal import Decimal
from pathlib import Path

import attrs
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, strategies as st

from dpframework.facts.attributes import Boolean, Categorical, Numeric
from dpframework.facts.canonical_cells import of_text
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.schema import Schema
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import encode_column
from dpframework.tables.reading import read_table, table_from_columns, table_from_frame
from dpframework.tables.schema_inference import infer_schema, infer_two_view_schema
from dpframework.tables.two_view_reader import read_two_views

SECRET = "s3cr3t"
AGE = Numeric("age", 17, 90, cuts=[25, 65], missing=True)
SEX = Categorical("sex", ["Female", "Male"], missing=True)
SMOKES = Boolean("smokes", missing=True)
SCHEMA = Schema([AGE, SEX, SMOKES])
ROWS = {
    "age": [17.0, 24.5, 25.0, 90.0, None],
    "sex": ["Male", "Female", None, "Male", "Female"],
    "smokes": [True, False, True, None, False],
}
CODES = [[0, 0, 1, 2, 3], [1, 0, 2, 1, 0], [1, 0, 1, 2, 0]]


def refused(action, *parts: str, secrets: tuple[str, ...] = (SECRET,)) -> str:
    """Return the one sentence of the error, which must hold the parts and, however printed, no secret."""
    with pytest.raises(InputError) as caught:
        action()
    sentence = str(caught.value)
    for part in parts:
        assert part in sentence
    assert "\n" not in sentence
    links = [caught.value, caught.value.__context__, caught.value.__cause__]
    printed = "".join(f"{link!r}{link}" for link in links)
    last = "".join(traceback.format_exception_only(caught.value))
    for secret in secrets:
        assert secret not in printed + last
    return sentence


def written(folder: Path, text: str | bytes, name: str = "adult.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# Encoding


@given(st.data())
def test_the_label_of_a_code_is_the_bin_that_holds_the_value(data: st.DataObject) -> None:
    whole = st.integers(-(10**5), 10**5)
    edges = sorted(data.draw(st.lists(whole, min_size=2, max_size=8, unique=True)))
    lower, *cuts, upper = edges
    grid = {"cuts": cuts} if cuts else {"bins": 1}
    attribute = Numeric("x", lower, upper, **grid)
    values = data.draw(st.lists(st.floats(lower, upper), min_size=1, max_size=20))
    column = encode_column(attribute, values)
    assert column.values.tolist() == values
    for value, code in zip(values, column.codes, strict=True):
        label = attribute.labels[code]
        low, high = map(float, label[1:-1].split(","))
        assert low <= value
        assert value < high or (label.endswith("]") and value == high)


@given(st.integers(1, 60), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(0, 1), min_size=1))
def test_equal_bins_hold_what_lies_between_their_cuts(bins, lower, width, shares) -> None:
    assume(width > 1e-9 * abs(lower))
    attribute = Numeric("x", lower, lower + width, bins=bins)
    values = [min(max(lower + width * share, attribute.lower), attribute.upper) for share in shares]
    cuts = attribute.interior_cuts
    expected = [sum(cut <= value for cut in cuts) for value in values]
    assert encode_column(attribute, values).codes.tolist() == expected


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, unique=True), st.data())
def test_categories_keep_their_positions(values, data) -> None:
    assume(not any(0xD800 <= ord(c) <= 0xDFFF for v in values for c in v))
    assume(len({of_text(value) for value in values}) == len(values))
    drawn = data.draw(st.lists(st.sampled_from(values), min_size=1))
    codes = encode_column(Categorical("x", values), drawn).codes
    assert [values[code] for code in codes] == drawn


@pytest.mark.parametrize(
    "column",
    [
        [True, False, None],
        [1, 0, None],
        [1.0, 0.0, math.nan],
        ["true", "FALSE", ""],
        ["Yes", "no", " "],
        ["t", "F", None],
        [" 1", "0 ", None],
        ["1.0", "0.0", None],
        np.array([1, 0, np.nan]),
        np.array([True, False, None], dtype=object),
        np.array(["yes", 0, None], dtype=object),
        pl.Series([1, 0, None]),
        pl.Series(["yes", "no", None], dtype=pl.Categorical),
        pd.Series([True, False, None], dtype="boolean"),
        pd.Series([True, False, None], dtype=object),
        pd.Series(["1", "0", None], dtype="category"),
        pa.chunked_array([[True], [False, None]]),
    ],
)
def test_booleans_as_people_store_them(column) -> None:
    encoded = encode_column(SMOKES, column)
    assert encoded.codes.tolist() == [1, 0, 2]
    assert encoded.codes.dtype == np.uint8
    assert encoded.values is None


@pytest.mark.parametrize(
    "column",
    [
        ["3", "10", None],
        [" 3", "10 ", "  "],
        ["3.0", "10.00", ""],
        [3, 10, None],
        [3.0, 10.0, math.nan],
        [Decimal(3), Decimal(10), None],
        np.array([3, 10, np.nan], dtype=np.float32),
        np.array(["3", 10, None], dtype=object),
        pd.Series([3, 10, None]),
        pd.Series([3, 10, None], dtype="Int64"),
        pd.Series(["3", 10, pd.NA], dtype=object),
        pd.Series(["3", 10, np.nan], dtype=object),
        pd.Series([3, 10, None], dtype="category"),
        pa.chunked_array([["3", "10", None]]).dictionary_encode(),
    ],
)
def test_whole_numbers_are_categories_by_their_text(column) -> None:
    assert encode_column(Categorical("c", ["3", "10"], missing=True), column).codes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("last", [4094, 4095, 4096, 4097])
def test_whole_numbers_are_categories_however_large_the_largest_is(last) -> None:
    column = np.array([0, last - 1, last, math.nan, 5.5 if last % 2 else 5])
    attribute = Categorical("c", ["0", str(last - 1), str(last), str(last + 1)], missing=True)
    assert encode_column(attribute, column).codes.tolist() == [0, 1, 2, 4, 4]
    assert encode_column(attribute, np.append(column, last + 1.0)).codes.tolist() == [0, 1, 2, 4, 4, 3]


def test_categories_that_need_care() -> None:
    assert encode_column(Categorical("c", ["true", "false"]), [True, False]).codes.tolist() == [0, 1]
    assert encode_column(Categorical("c", ["True", "False"]), [True, False]).codes.tolist() == [0, 1]
    assert encode_column(Categorical("c", ["0.1", "2.5"]), np.float32([2.5, 0.1])).codes.tolist() == [1, 0]
    assert encode_column(Categorical("c", ["007", "7"]), ["7", "007"]).codes.tolist() == [1, 0]
    assert encode_column(Categorical("c", [" a", "b"]), ["a", " a", "a "]).codes.tolist() == [0, 0, 0]
    assert encode_column(Categorical("c", ["?"]), ["?"]).codes.tolist() == [0]


@pytest.mark.parametrize(
    "column",
    [
        ["17", " 24.5", "2.5e1", "90", ""],
        [17, 24.5, 25, 90, math.nan],
        [Decimal("17"), Decimal("24.5"), Decimal("25"), Decimal("90"), None],
        np.array(["17", 24.5, 25, 90, None], dtype=object),
        pd.Series([17, 24.5, 25, 90, None], dtype="Float64"),
        pa.chunked_array([[17, 24.5], [25, 90, None]]),
    ],
)
def test_numbers_as_people_store_them(column) -> None:
    encoded = encode_column(AGE, column)
    assert encoded.codes.tolist() == [0, 0, 1, 2, 3]
    np.testing.assert_array_equal(encoded.values, [17, 24.5, 25, 90, np.nan])
    assert encoded.values.dtype == np.float64


@pytest.mark.parametrize(("bins", "dtype"), [(256, np.uint8), (257, np.uint16), (65537, np.uint32)])
def test_codes_take_the_smallest_type(bins: int, dtype: type) -> None:
    column = encode_column(Numeric("x", 0, 1, bins=bins), [0.0, 1.0])
    assert column.codes.dtype == dtype
    assert column.codes.tolist() == [0, bins - 1]


def test_out_of_domain_numbers() -> None:
    column = [16.0, 91.5, math.inf, -math.inf, 30.0, "many", "True"]
    sentence = refused(lambda: encode_column(AGE, column[:5], out_of_domain="error", source="adult.csv"))
    assert sentence == (
        "adult.csv: attribute 'age' holds values outside its public range [17, 90]; "
        "correct the schema, or choose out_of_domain='clamp' or 'missing'"
    )
    clamped = encode_column(AGE, column)
    assert clamped.codes.tolist() == [0, 2, 2, 0, 1, 3, 0]
    np.testing.assert_array_equal(clamped.values, [17, 90, 90, 17, 30, np.nan, 17])
    gone = encode_column(AGE, column, out_of_domain=OutOfDomain.MISSING)
    assert gone.codes.tolist() == [3, 3, 3, 3, 1, 3, 3]
    np.testing.assert_array_equal(gone.values, [np.nan] * 4 + [30, np.nan, np.nan])


@pytest.mark.parametrize("policy", ["clamp", "missing"])
@pytest.mark.parametrize(
    ("attribute", "column"),
    [
        (Boolean("b"), [True, None, SECRET, 2, pl.Date]),
        (Categorical("b", ["y", "x"]), ["x", "", SECRET, 2, pl.Date]),
        (Numeric("b", 0, 1, bins=2), [1, None, SECRET, "", pl.Date]),
    ],
)
def test_without_a_cell_for_missing_values_they_count_as_the_first(attribute, column, policy) -> None:
    encoded = encode_column(attribute, column, out_of_domain=policy)
    assert encoded.codes.tolist() == [1, 0, 0, 0, 0]
    if encoded.values is not None:
        assert encoded.values.tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        (SEX, "not in its public list"),
        (SMOKES, "neither true nor false"),
        (AGE, "not numbers"),
        (Categorical("sex", ["Female"]), "not in its public list"),
    ],
)
def test_out_of_domain_texts(attribute, found) -> None:
    column = [SECRET, ""]
    remedy = "correct the schema, or choose out_of_domain"
    refused(lambda: encode_column(attribute, column, out_of_domain="error"), attribute.name, found, remedy)
    for policy in ("clamp", "missing"):
        codes = encode_column(attribute, column, out_of_domain=policy).codes
        assert codes.tolist() == [attribute.missing_code or 0] * 2


def test_numbers_that_are_no_booleans() -> None:
    for column in ([0, 1, 2741], [0, 0.2741]):
        refused(lambda c=column: encode_column(SMOKES, c, out_of_domain="error"), "neither true nor false")
        assert encode_column(SMOKES, column).codes[-1] == 2


@pytest.mark.parametrize(
    ("attribute", "column"),
    [
        (Boolean("b"), [True, None]),
        (Categorical("b", ["x"]), ["x", ""]),
        (Numeric("b", 0, 1, bins=2), [0, None]),
        (Numeric("b", 0, 1, bins=2), [None, None]),
        (Categorical("b", ["x"]), pl.Series([None])),
    ],
)
def test_an_owner_may_be_stopped_by_missing_values(attribute, column) -> None:
    refused(
        lambda: encode_column(attribute, column, out_of_domain="error"),
        "attribute 'b' has missing values, which the schema does not allow",
    )


def test_columns_of_nulls_only() -> None:
    for attribute in SCHEMA:
        assert encode_column(attribute, [None, None]).codes.tolist() == [attribute.missing_code] * 2


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1], None]),
        pl.Series([{"a": SECRET}, None]),
        pl.Series([SECRET.encode(), None]),
        pl.Series(["2020-01-01", None]).str.to_date(),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series([[SECRET], None]),
        pd.Series(pd.to_datetime(["2020-01-01", None]), dtype=object),
        ["\ud800", None],
        [1j, float("nan")],
        np.array([1j, 1j]),
        pa.chunked_array([[b"1", None]]),
    ],
)
@pytest.mark.parametrize("attribute", SCHEMA)
def test_columns_of_other_types(attribute, column) -> None:
    found = {"boolean": "neither true nor false", "categorical": "not in its public list", "numeric": "not numbers"}
    refused(lambda: encode_column(attribute, column, out_of_domain="error"), found[attribute.kind])
    assert encode_column(attribute, column).codes.tolist() == [attribute.missing_code] * 2


def test_what_is_no_column() -> None:
    refused(lambda: encode_column(AGE, {"a": 1}), "must be a series, array or list")
    refused(lambda: encode_column(AGE, np.zeros((2, 2))), "one dimension")
    refused(lambda: encode_column(AGE, [object(), 1], out_of_domain="error"), "not numbers")
    refused(lambda: encode_column(AGE, [1, SECRET, {1}], out_of_domain="error"), "not numbers")
    refused(lambda: encode_column(AGE, [1], out_of_domain="clam"), "did you mean 'clamp'")
    assert SECRET not in repr(encode_column(Categorical("c", [SECRET]), [SECRET]))


# Tables


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame, pa.table])
def test_every_backend_gives_the_same_table(make) -> None:
    table = table_from_frame(make({"unused": [SECRET] * 5, **ROWS}), SCHEMA)
    assert table.codes.tolist() == CODES
    np.testing.assert_array_equal(table.values["age"], [17, 24.5, 25, 90, np.nan])


def test_csv_parquet_and_gzip_give_the_same_table(tmp_path) -> None:
    frame = pl.DataFrame(ROWS)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    pd.DataFrame(ROWS).to_csv(tmp_path / "PANDAS.CSV", index=True)
    for name in ("a.csv", "a.parquet", "a.csv.gz", "PANDAS.CSV"):
        table = read_table(tmp_path / name, SCHEMA)
        assert table.codes.tolist() == CODES
        assert list(table.values) == ["age"]


def test_csv_files_as_people_write_them(tmp_path) -> None:
    schema = Schema([Categorical("b", ["x,1", 'q"q', "two\nlines", "z"]), Boolean("a", missing=True)])
    text = '\n"a",unused,b\r\n1,,"x,1"\r\n\r\n"0","""","q""q"\n,\xe9,"two\nlines"\n1,5,z\n\n\n'
    table = read_table(written(tmp_path, b"\xef\xbb\xbf" + text.encode()), schema)
    assert table.codes.tolist() == [[0, 1, 2, 3], [1, 0, 2, 1]]
    one = read_table(written(tmp_path, "a\n1\n\n0"), Schema([Boolean("a", missing=True)]))
    assert one.codes.tolist() == [[1, 2, 0]]
    glob = read_table(written(tmp_path, "a\n1\n", "[ab]*.csv"), Schema([Boolean("a")]))
    assert glob.codes.tolist() == [[1]]


def test_a_table_is_locked_and_shows_nothing() -> None:
    table = table_from_frame(pl.DataFrame(ROWS), SCHEMA)
    assert repr(table) == str(table) == "Table(3 attributes; rows are private)"
    assert all(column.flags.c_contiguous and column.dtype == np.uint8 for column in table.columns)
    with pytest.raises(TypeError):
        len(table)
    with pytest.raises(ValueError, match="read-only"):
        table.columns[0][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        table.values["age"][0] = 1
    with pytest.raises(TypeError):
        table.values["age"] = table.values["age"]
    again = pickle.loads(pickle.dumps(table))
    assert again.codes.tolist() == CODES
    assert again.schema == SCHEMA
    assert not any(column.flags.writeable for column in again.columns)
    assert not again.values["age"].flags.writeable


def test_each_attribute_has_the_smallest_type_that_fits_it() -> None:
    """Whether the table is read or given as codes: one with many values does not double the others."""
    schema = Schema([Boolean("a"), Numeric("x", 0, 1, bins=300), Numeric("y", 0, 1, bins=256)])
    read = table_from_frame(pl.DataFrame({"a": [True], "x": [1.0], "y": [0.0]}), schema)
    given = Table.from_codes(schema, [[1], [299], [0]])
    for table in (read, given, pickle.loads(pickle.dumps(read))):
        assert [column.dtype for column in table.columns] == [np.uint8, np.uint16, np.uint8]
        assert table.codes.tolist() == [[1], [299], [0]]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"old": [True], "il": [False]}, "survey: has no column 'ill'; give one for each attribute of the schema"),
        ({"old": [True], "ill": [False, True]}, "survey: the columns differ in length; give each one value per row"),
    ],
)
def test_columns_that_do_not_fit_are_one_sentence(columns, sentence) -> None:
    with pytest.raises(InputError) as refused:
        table_from_columns(columns, Schema([Boolean("old"), Boolean("ill")]), source="survey")
    assert str(refused.value) == sentence


def test_from_codes() -> None:
    given_ = np.array(CODES)
    table = Table.from_codes(SCHEMA, given_)
    given_[:] = 0
    assert table.codes.tolist() == CODES
    np.testing.assert_array_equal(table.values["age"], [21, 21, 45, 77.5, np.nan])
    ages = [18, 24, 30, 80, np.nan]
    np.testing.assert_array_equal(Table.from_codes(SCHEMA, CODES, {"age": ages}).values["age"], ages)
    assert Table.from_codes(SCHEMA, [[], [], []]).codes.shape == (3, 0)


@pytest.mark.parametrize(
    ("codes", "values", "sentence"),
    [
        ([[0, 1]], None, "here (3, rows)"),
        ([0, 1, 1], None, "shape (attributes, rows)"),
        ([[0], [0, 1], [0]], None, "array of shape"),
        ([[0.0], [1.0], [1.0]], None, "whole numbers"),
        ([[4], [0], [0]], None, "codes of 'age' must be from 0 to 3"),
        ([[0], [-1], [0]], None, "codes of 'sex' must be from 0 to 2"),
        (CODES, {}, "one array for each numeric attribute"),
        (CODES, {"age": [1], "sex": [1]}, "one array for each numeric attribute"),
        (CODES, {"age": [18]}, "one number per row"),
        (CODES, {"age": [SECRET] * 5}, "values of attribute 'age' must be numbers"),
        (CODES, {"age": [18] * 5}, "do not lie in the bins"),
        (CODES, {"age": [99] * 5}, "outside its public range"),
    ],
)
def test_from_codes_refuses(codes, values, sentence) -> None:
    refused(lambda: Table.from_codes(SCHEMA, codes, values), sentence)


def test_whose_rows_they_are() -> None:
    """Any whole numbers that tell units apart, as many rows of each as the table's unit may have."""
    unit = PrivacyUnit("person", 2)
    table = Table.from_codes(SCHEMA, CODES, unit=unit)
    assert table.unit_codes is None
    told = table.with_units([70, -3, 70, 10**12, -3])
    assert told.unit_codes is not None
    assert (told.unit_codes.dtype, told.unit_codes.tolist()) == (np.uint32, [1, 0, 1, 2, 0])
    assert not told.unit_codes.flags.writeable
    again = pickle.loads(pickle.dumps(told))
    assert (again.unit, again.unit_codes.tolist()) == (unit, [1, 0, 1, 2, 0])
    assert told.with_units(None).unit_codes is None
    assert Table.from_codes(SCHEMA, [[], [], []], unit=unit).with_units([]).unit_codes.tolist() == []
    for codes, sentence in (
        ([0, 1, 0, 1], "unit_codes must hold one whole number per row"),
        ([[0], [1], [0], [1], [2]], "unit_codes must hold one whole number per row"),
        ([0.0, 1.0, 0.0, 1.0, 2.0], "unit_codes must hold one whole number per row"),
        ([[0], [1, 2]], "unit_codes must be an array of whole numbers"),
        (
            [0, 1, 0, 0, 1],
            "unit_codes give a unit more than 2 rows, the most that the table's unit may have; make the table with a "
            "unit that may have more rows",
        ),
    ):
        assert refused(lambda given=codes: table.with_units(given)) == sentence
    with pytest.raises(InputError, match="more than 1 rows"):
        Table.from_codes(SCHEMA, CODES).with_units([0, 1, 0, 2, 3])


def test_values_of_some_attributes_and_middles_of_bins() -> None:
    schema = Schema([Numeric("x", 0, 10, cuts=[2, 5]), Numeric("y", -1, 1, bins=1), Boolean("b")])
    table = Table.from_codes(schema, [[0, 1, 2], [0, 0, 0], [1, 0, 1]])
    assert {name: values.tolist() for name, values in table.values.items()} == {"x": [1, 3.5, 7.5], "y": [0, 0, 0]}
    assert table.rows == 3
    assert set(table.with_values(None).values) == {"x", "y"}
    assert set(table.with_values(["y", "b"]).values) == {"y"}
    assert set(table.with_values([]).values) == set()
    html = table._repr_html_()
    assert "Table(3 attributes; rows are private)" in html
    assert schema._repr_html_() in html


# Files and frames that do not fit


HEAD = "age,sex,smokes\n"


def test_utf_16_without_its_mark_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "t.csv").write_bytes("ill\ntrue\n".encode("utf-16-le"))
    schema = Schema([Boolean("ill")], read=ReadOptions(encoding="utf-16"))
    with pytest.raises(InputError, match=r"t\.csv: is not text in UTF-16; say how the file is written"):
        read_table(tmp_path / "t.csv", schema)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "adult.csv: is empty"),
        ("\n\n", "is empty"),
        ("age,sex,smoke\n30,Male,1\n", "has no column 'smokes'; correct the names"),
        ("age,smoke\n30,1\n", "has no columns 'sex', 'smokes'; correct the names"),
        ("age,age,sex,smokes\n30,30,Male,1\n", "column 'age' occurs more than once"),
        (f"30,{SECRET},1\n31,Male,1\n", "none of the requested columns"),
        ("age;sex;smokes\n30;Male;1\n", "with the separator of"),
        (HEAD + f"30,{SECRET},Male,1\n", "more or fewer fields"),
        (HEAD + f"30,{SECRET}\n", "more or fewer fields"),
        (HEAD + f'"30,{SECRET},1\n', "more or fewer fields"),
        (HEAD + f"30,{SECRET},1\n", "attribute 'sex' holds values that are not in its public list"),
        (HEAD + f"{SECRET},Male,1\n", "attribute 'age' holds values that are not numbers"),
        (HEAD + f"30,Male,{SECRET}\n", "attribute 'smokes' holds values that are neither true nor false"),
        (HEAD + "4711,Male,1\n", "attribute 'age' holds values outside its public range [17, 90]"),
        (HEAD.encode() + b"30,s3cr3t\xff,1\n", "attribute 'sex' holds values that are not in its public list"),
        (b"\xff\xfea\x00g\x00e\x00", "its first line is not a line of CSV in UTF-8"),
        (HEAD + f'30,{SECRET}"x"y,1\n', "adult.csv: "),
    ],
)
def test_wrong_csv_files(text, sentence, tmp_path) -> None:
    path = written(tmp_path, text)
    refused(lambda: read_table(path, SCHEMA, out_of_domain="error"), "adult.csv: ", sentence, secrets=(SECRET, "4711"))


@pytest.mark.parametrize("text", [HEAD, HEAD.strip(), HEAD + "\n\n"])
def test_a_table_may_be_empty(text, tmp_path) -> None:
    # as every neighbour of a table of one row may be
    assert read_table(written(tmp_path, text), SCHEMA).codes.shape == (3, 0)
    assert table_from_frame(pl.DataFrame(ROWS).head(0), SCHEMA).codes.shape == (3, 0)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_names_that_the_schema_does_not_know_are_not_shown(known, tmp_path) -> None:
    # The first line may be a row, of which some cells happen to be names of attributes.
    names = [*SCHEMA.names[:known], *["s3cr3t", "sexs", "smoke"][known:]]
    rows = {name: ["1"] for name in names}
    csv = written(tmp_path, ",".join(names) + "\n1,1,1\n")
    pl.DataFrame(rows).write_parquet(tmp_path / "adult.parquet")
    views = Schema([attrs.evolve(a, view="left" if k < 2 else "right") for k, a in enumerate(SCHEMA)])
    for action in (
        lambda: read_table(csv, SCHEMA),
        lambda: read_table(tmp_path / "adult.parquet", SCHEMA),
        lambda: read_two_views(csv, csv, views, id="smoke5"),
        lambda: table_from_columns(rows, SCHEMA),
        *(lambda make=make: table_from_frame(make(rows), SCHEMA) for make in (pl.DataFrame, pd.DataFrame, pa.table)),
        lambda: table_from_frame(pl.LazyFrame(rows), SCHEMA),
    ):
        refused(action, "has no", secrets=(SECRET, "sexs", "smoke'", "smoke,", "smoke?"))


def test_paths_that_are_no_table(tmp_path) -> None:
    refused(lambda: read_table(tmp_path / "none.csv", SCHEMA), "there is no such file")
    refused(lambda: read_table(tmp_path, SCHEMA), "is a directory")
    refused(lambda: read_table(written(tmp_path, "a", "a.docx"), SCHEMA), "unknown kind", ".csv", ".parquet")
    refused(lambda: read_table(written(tmp_path, SECRET, "a.csv.gz"), SCHEMA), "cannot be unpacked")
    cut = gzip.compress((HEAD + "30,Male,1\n" * 99).encode())[:-9]
    refused(lambda: read_table(written(tmp_path, cut, "a.csv.gz"), SCHEMA), "cannot be unpacked")
    refused(lambda: read_table(written(tmp_path, gzip.compress(b""), "a.csv.gz"), SCHEMA), "is empty")


def test_wrong_parquet_files(tmp_path) -> None:
    path = tmp_path / "adult.parquet"

    def reading(frame: pl.DataFrame, *parts: str) -> None:
        frame.write_parquet(path)
        refused(lambda: read_table(path, SCHEMA, out_of_domain="error"), "adult.parquet: ", *parts)

    good = pl.DataFrame(ROWS)
    reading(good.drop("sex"), "has no column 'sex'; correct the names")
    reading(good.with_columns(age=pl.lit(SECRET)), "'age' holds values that are not numbers")
    reading(good.with_columns(sex=pl.concat_list(pl.lit(SECRET))), "'sex' holds values that are not in")
    reading(good.with_columns(smokes=pl.struct(a=pl.lit(SECRET))), "'smokes' holds values that are neither")
    reading(good.with_columns(age=pl.lit(b"s3cr3t")), "'age' holds values that are not numbers")
    good.write_parquet(path)
    whole = path.read_bytes()
    for broken in (b"", b"PAR1", whole[:-20], whole[:4] + bytes(len(whole) - 4), b"a,b\n1,2\n"):
        path.write_bytes(broken)
        refused(lambda: read_table(path, SCHEMA), "adult.parquet: ")
    # Pages full of noise under an intact footer.
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[:4] + b"\xa5" * (len(whole) - 4 - footer) + whole[-footer:])
    refused(lambda: read_table(path, SCHEMA), "cannot be read as Parquet")


def test_frames_that_do_not_fit() -> None:
    refused(lambda: table_from_frame([1, 2], SCHEMA), "frame: list is not a dataframe", "pandas")
    refused(lambda: table_from_frame(pl.DataFrame({"age": [1], "sx": ["a"]}), SCHEMA), "no columns 'sex', 'smokes'")
    twice = pd.DataFrame([[1, 2]], columns=["age", "age"])
    refused(lambda: table_from_frame(twice, SCHEMA), "two columns have the same name")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["age", "age"])
    refused(lambda: table_from_frame(twice, SCHEMA), "two columns have the same name")
    failing = pl.LazyFrame(ROWS).with_columns(pl.lit(SECRET).cast(pl.Int64).alias("age"))
    refused(lambda: table_from_frame(failing, SCHEMA), "the lazy frame cannot be run")
    refused(lambda: table_from_frame(pl.DataFrame(ROWS), SCHEMA, out_of_domain="drop"), "out_of_domain 'drop'")


def test_the_public_row_count_must_hold() -> None:
    frame = pl.DataFrame(ROWS)
    assert table_from_frame(frame, Schema(SCHEMA.attributes, rows=5, max_rows=5)).codes.shape == (3, 5)
    sentence = refused(lambda: table_from_frame(frame, Schema(SCHEMA.attributes, rows=4711)))
    assert sentence == "frame: the number of rows is not the schema's public rows = 4711"
    refused(
        lambda: table_from_frame(frame, Schema(SCHEMA.attributes, max_rows=3)),
        "more rows than the schema's public max_rows = 3",
        secrets=("5",),
    )
    assert Schema(SCHEMA.attributes, max_rows=2**31 - 1).max_rows == 2**31 - 1


def test_there_are_no_more_rows_than_can_be_numbered(monkeypatch) -> None:
    monkeypatch.setattr("dpframework.tables.table_builder.MOST_ROWS", 5)
    frame = pl.DataFrame(ROWS)
    assert table_from_frame(frame, SCHEMA).codes.shape == (3, 5)
    more = pl.concat([frame, frame[:1]])
    refused(lambda: table_from_frame(more, SCHEMA), "has more rows than the 5 that a table may have", secrets=("6",))


# Two views


VIEWS = Schema([Boolean("puma", view="left"), Numeric("rain", 0, 100, bins=2, view="right")])


def two(folder: Path, left: str, right: str) -> tuple[Path, Path]:
    return written(folder, left, "left.csv"), written(folder, right, "right.csv")


def test_views_are_joined_by_id(tmp_path) -> None:
    paths = two(tmp_path, "site,puma\n3,1\n1,0\n2,1\n9,bad\n", "rain,site\n10,1\n90,2\n20,3\n999,7\n")
    table = read_two_views(*paths, VIEWS, id="site")
    assert table.codes.tolist() == [[1, 0, 1], [0, 0, 1]]
    assert table.values["rain"].tolist() == [20, 10, 90]
    # The same ids as numbers in Parquet.
    parquet = tmp_path / "right.parquet"
    pl.DataFrame({"site": [1.0, 2.0, 3.0, 7.0], "rain": [10, 90, 20, 999]}).write_parquet(parquet)
    assert read_two_views(paths[0], parquet, VIEWS, id="site").codes.tolist() == table.codes.tolist()


def test_units_that_join_two_views_are_numbered_where_they_may_have_several_rows(tmp_path) -> None:
    paths = two(tmp_path, "site,puma\n3,1\n1,0\n", "rain,site\n10,1\n90,3\n")
    for rows, codes in ((1, None), (2, [0, 1])):
        table = read_two_views(*paths, VIEWS, id="site", unit=PrivacyUnit("site", rows))
        assert (table.unit_codes if codes is None else table.unit_codes.tolist()) == codes


def test_frames_and_columns_are_kept_in_memory(monkeypatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", None)
    assert table_from_frame(pl.DataFrame(ROWS), SCHEMA).codes.tolist() == CODES
    assert table_from_columns(ROWS, SCHEMA).codes.tolist() == CODES


def test_views_are_matched_by_position(tmp_path) -> None:
    paths = two(tmp_path, "puma\n1\n0\n", "rain\n10\n90\n")
    assert read_two_views(*paths, VIEWS).codes.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("left", "right", "key", "sentence"),
    [
        ("puma\n1\n0\n", "rain\n1\n", None, "left.csv and right.csv: have different numbers of rows"),
        ("puma\n1\n", "rain\n1000\n", None, "right.csv: attribute 'rain' holds values outside"),
        ("puma\n1\n", "snow,rian\n1,2\n", None, "right.csv: has none of the requested columns"),
        ("id,puma\ns3cr3t,1\ns3cr3t,0\n", "id,rain\n1,1\n", "id", "left.csv: the id column 'id' holds an id twice"),
        ("id,puma\ns3cr3t,1\n", "id,rain\ns3cr3t,1\ns3cr3t ,1\n", "id", "right.csv: the id column 'id' holds an id"),
        ("id,puma\ns3cr3t,1\n", "id,rain\nother,1\n", "id", "have no id in common in the column 'id'"),
        ("id,puma\ns3cr3t,1\n,1\n", "id,rain\ns3cr3t,1\n", "id", "left.csv: the id column 'id' has missing values"),
        ("id,puma\n1,1\n", "idd,rain\n1,1\n", "id", "right.csv: has no column 'id'; correct"),
    ],
)
def test_views_that_do_not_fit(left, right, key, sentence, tmp_path) -> None:
    paths = two(tmp_path, left, right)
    refused(lambda: read_two_views(*paths, VIEWS, id=key, out_of_domain="error"), sentence)


def test_a_two_view_schema_has_two_views(tmp_path) -> None:
    paths = two(tmp_path, "puma\n1\n", "rain\n1\n")
    viewless = VIEWS.replace(Boolean("puma"))
    refused(lambda: read_two_views(*paths, viewless), "attribute 'puma' of the schema has no view")
    refused(lambda: read_two_views(*paths, VIEWS.select(["rain"])), "no attribute of the left view")


def test_ids_that_name_no_row_join_nothing(tmp_path) -> None:
    paths = two(tmp_path, "id,puma\n1,1\n2,1\n2,0\n,1\n4,1\n", "id,rain\n4,90\n1.0,10\n2,20\n,30\n")
    assert read_two_views(*paths, VIEWS, id="id").codes.tolist() == [[1, 1], [0, 1]]
    paths = two(tmp_path, "id,puma\n1,1\n", "id,rain\n4,90\n")
    assert read_two_views(*paths, VIEWS, id="id").codes.shape == (2, 0)
    left = tmp_path / "left.parquet"
    pl.DataFrame({"id": [[1]], "puma": [1]}).write_parquet(left)
    refused(lambda: read_two_views(left, paths[1], VIEWS, id="id"), "column 'id' has the type List; ids are numbers")


def test_long_ids_keep_their_digits(tmp_path) -> None:
    big = 2**53
    paths = two(tmp_path, f"id,puma\n{big},1\n{big + 1}.0,0\n{big + 2}0,1\n007,0\n", "")
    right = tmp_path / "right.parquet"
    pl.DataFrame({"id": [big + 1, big], "rain": [90, 10]}).write_parquet(right)
    assert read_two_views(paths[0], right, VIEWS, id="id").codes.tolist() == [[1, 0], [0, 1]]
    pl.DataFrame({"id": [float(big), -0.0], "rain": [90, 10]}).write_parquet(right)
    assert read_two_views(paths[0], right, VIEWS, id="id").codes.tolist() == [[1], [1]]


# Real data


def test_adult(data_dir: Path) -> None:
    path = data_dir / "adult" / "adult.csv"
    schema = infer_schema(path)
    table = read_table(path, Schema(schema.attributes, rows=48842, inferred=schema.inferred))
    frame = pd.read_csv(path)
    assert table.codes.shape == (15, 48842)
    assert table.codes.dtype == np.uint8
    sex = [schema["sex"].labels[code] for code in table.codes[schema.index("sex")]]
    assert sex == frame["sex"].tolist()
    np.testing.assert_array_equal(table.values["age"], frame["age"])
    assert schema["workclass"].missing
    assert (table.codes[schema.index("workclass")] == schema["workclass"].missing_code).sum() == 2799
    np.testing.assert_array_equal(table_from_frame(frame, schema).codes, table.codes)


def test_species_and_climate(data_dir: Path) -> None:
    folder = data_dir / "species_climate_SA"
    left, right = folder / "left_species.csv", folder / "right_climate.csv"
    schema = infer_two_view_schema(left, right, id="id")
    assert (len(schema.view("left")), len(schema.view("right"))) == (125, 19)
    assert {a.kind for a in schema.view("left")} == {"boolean"}
    table = read_two_views(left, right, schema, id="id")
    assert table.codes.shape == (144, 5610)
    both = pd.read_csv(left).merge(pd.read_csv(right), on="id")
    np.testing.assert_array_equal(table.codes[0], both[schema.names[0]])
    np.testing.assert_array_equal(table.values[schema.names[-1]], both[schema.names[-1]])
