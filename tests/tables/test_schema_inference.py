"""Schemas made from data: the right kinds, valid grids, and a schema that says where it comes from."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from dpframework.facts.attributes import Boolean, Categorical, Numeric, View
from dpframework.facts.errors import InputError
from dpframework.facts.input_limits import MOST_CELL_BYTES
from dpframework.facts.schema import Schema
from dpframework.tables.attribute_kind_and_bounds_inference import CutMode
from dpframework.tables.distinct_column_texts import DistinctCells, distinct_cells
from dpframework.tables.reading import read_table, table_from_frame
from dpframework.tables.schema_inference import draft_schema, infer_schema, infer_two_view_schema
from dpframework.tables.two_view_reader import read_two_views


def infer_one(column, **choices):
    return infer_schema(pl.DataFrame({"x": column}), **choices)["x"]


@pytest.mark.parametrize(
    ("column", "attribute"),
    [
        ([True, False], Boolean("x")),
        ([True, None], Boolean("x", missing=True)),
        ([0, 1, 1], Boolean("x")),
        ([0.0, math.nan], Boolean("x", missing=True)),
        ([0, 0], Boolean("x")),
        (["1", "0", ""], Boolean("x", missing=True)),
        (["True", "false"], Boolean("x")),
        ([5, 5, None], Numeric("x", 4.5, 5.5, bins=1, missing=True)),
        ([1e300] * 2, Numeric("x", 1e300 - 1e291, 1e300 + 1e291, bins=1)),
        ([1, 2, 4], Numeric("x", 1, 4, bins=16)),
        (["1", " 2.5", "4"], Numeric("x", 1, 4, bins=16)),
        (["1", "NaN", "4"], Numeric("x", 1, 4, bins=16, missing=True)),
        ([1.0, 1.0 + 1e-15], Numeric("x", 1.0, 1.0 + 1e-15, bins=1)),
        (["b", "a ", "a", "b"], Categorical("x", ["a", "b"])),
        (["b", "1", " "], Categorical("x", ["1", "b"], missing=True)),
        (["one"], Categorical("x", ["one"])),
        (pl.Series(["2", "3"], dtype=pl.Categorical), Categorical("x", ["2", "3"])),
    ],
)
def test_kinds(column, attribute) -> None:
    found = infer_one(column)
    assert found == attribute
    table_from_frame(pl.DataFrame({"x": column}), Schema([found]))


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame, pa.table])
def test_every_backend_gives_the_same_schema(make) -> None:
    rows = {"a": [1.5, 2.5, None], "b": ["u", "v", None], "c": [True, False, True]}
    assert infer_schema(make(rows)) == infer_schema(pl.DataFrame(rows))


def test_files_and_choices(tmp_path) -> None:
    frame = pl.DataFrame({"n": [1, 2, 3], "code": [1, 2, 3], "name": ["a", "b", "c"], "f": [1.0, 2.5, 3.0]})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", str(tmp_path / "a.parquet")):
        schema = infer_schema(
            path, categorical=["code", "f"], exclude=["name"], views={"n": "left", "code": "right"}, bins=3
        )
        assert schema.names == ("n", "code", "f")
        assert schema["n"] == Numeric("n", 1, 3, bins=3, view=View.LEFT)
        assert schema["code"] == Categorical("code", ["1", "2", "3"], view=View.RIGHT)
        assert schema["f"].values == ("1", "2.5", "3")
        read_table(path, schema)


def test_the_schema_says_what_it_took() -> None:
    frame = pl.DataFrame({"b": [True], "c": ["x"], "n": [2]})
    everything = infer_schema(frame, numeric="quantile").inferred
    assert everything == (
        "attribute kinds: observed",
        "missing allowed: observed",
        "categorical values: observed",
        "numeric bounds: observed",
        "numeric cuts: quantile",
    )
    assert infer_schema(frame.select("b")).inferred == everything[:2]
    assert infer_schema(frame).rows is None
    assert Schema.loads(infer_schema(frame).dumps()) == infer_schema(frame)


def test_cut_modes() -> None:
    column = [0.0, 1, 2, 3, 4, 5, 100, 101, 102, 200]
    assert infer_one(column, bins=2).interior_cuts == (100,)
    assert infer_one(column, numeric="quantile", bins=2).interior_cuts == (4.5,)
    assert infer_one(column, numeric="k-means", bins=3).interior_cuts == pytest.approx((51.75, 150.5))
    assert infer_one(column, numeric=CutMode.OBSERVED).interior_cuts == (
        0.5, 1.5, 2.5, 3.5, 4.5, 52.5, 100.5, 101.5, 151.0
    )  # fmt: skip
    width = 2 * (np.quantile(column, 0.75) - np.quantile(column, 0.25)) / 10 ** (1 / 3)
    assert infer_one(column, numeric="freedman-diaconis").bins == math.ceil(200 / width)


def test_cut_modes_on_skewed_columns() -> None:
    skewed = [0] * 90 + list(range(10))
    assert infer_one(skewed, numeric="quantile", bins=4).bins == 1
    assert infer_one(skewed, numeric="freedman-diaconis", bins=7).bins == 7
    assert infer_one([2, 3], numeric="k-means").interior_cuts == (2.5,)
    assert infer_one([*range(999), 10**12], numeric="freedman-diaconis").bins == 1000


def test_k_means_is_as_good_as_a_general_one() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    column = np.random.default_rng(3).normal([0, 5, 20], 1, (200, 3)).ravel()
    cuts = np.array(infer_one(column, numeric="k-means", bins=3).cuts)
    labels = np.searchsorted(cuts, column)
    ours = sum(((column[labels == k] - column[labels == k].mean()) ** 2).sum() for k in range(3))
    theirs = cluster.KMeans(3, n_init=5, random_state=0).fit(column[:, None]).inertia_
    assert ours <= theirs * 1.001


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30), st.sampled_from(CutMode), st.integers(1, 20))
def test_every_mode_gives_a_schema_that_fits_its_column(column, mode, bins) -> None:
    frame = pl.DataFrame({"x": column})
    schema = infer_schema(frame, numeric=mode, bins=bins)
    table = table_from_frame(frame, schema)
    attribute = schema["x"]
    if not isinstance(attribute, Numeric):
        assert set(column) <= {0, 1}
    elif mode is CutMode.OBSERVED:
        # No cut lies between the two highest values if they are neighbouring floats.
        assert len(np.unique(table.codes)) >= len(set(column)) - 1
    else:
        assert attribute.size <= max(bins, len(set(column)))


@given(st.lists(st.none() | st.text(max_size=5).filter(lambda t: t.isascii()), min_size=1, max_size=30))
def test_texts_give_a_schema_that_fits_their_column(column) -> None:
    frame = pl.DataFrame({"x": pl.Series(column, dtype=pl.String)})
    try:
        schema = infer_schema(frame)
    except InputError as error:
        assert "no values at all" in str(error) or "infinite" in str(error)  # noqa: PT017
        return
    table_from_frame(frame, schema)


@pytest.mark.parametrize(
    ("frame", "choices", "sentence"),
    [
        ({"x": ["s3cr3t", "b", "c"]}, {"max_categories": 2}, "column 'x' has more than 2 distinct values; leave it"),
        ({"x": [None, None]}, {}, "column 'x' has no values at all"),
        ({"x": ["", " "]}, {}, "column 'x' has no values at all"),
        ({"x": ["nan", "NaN"]}, {}, "column 'x' has no values at all"),
        ({"x": [1.0, math.inf]}, {}, "column 'x' holds infinite numbers"),
        ({"x": [[1], [2]]}, {}, "column 'x' has cells that no schema can hold, such as lists or very long texts"),
        (
            {"x": pl.Series(["a", [2], "b"], dtype=pl.Object)},
            {},
            "column 'x' has cells that no schema can hold, such as lists or very long texts",
        ),
        ({"x": [1, 2]}, {"numeric": "kmeans"}, "'kmeans' is unknown; did you mean 'k-means'"),
        ({"x": [1, 2]}, {"bins": 0}, "bins must be from 1"),
        ({"x": [1, 2]}, {"bins": 1_000_001}, "bins must be from 1 to 1000000"),
        ({"x": [1, 2]}, {"max_categories": 0}, "max_categories must be at least 1"),
        ({"x": ["\x1f", "a", "b", "c"]}, {"max_categories": 2}, "more than 2 distinct values"),  # and a blank one
        ({"rain": [1, 2]}, {"exclude": ["rian"]}, "exclude: there is no 'rian'; did you mean 'rain'"),
        ({"rain": [1, 2]}, {"categorical": ["rian"]}, "there is no 'rian'; did you mean 'rain'"),
        ({"rain": [1, 2]}, {"views": {"rian": "left"}}, "there is no 'rian'; did you mean 'rain'"),
        ({"x": [1, 2]}, {"views": {"x": "top"}}, "view 'top' is unknown"),
        ({"x": [1, 2]}, {"exclude": ["x"]}, "has no column left"),
        ({"x": pl.Series([], dtype=pl.Int64)}, {}, "has no rows"),
        ({"x": [-1.7e308, 1.7e308]}, {}, "attribute 'x': the width"),
    ],
)
def test_what_gives_no_schema(frame, choices, sentence) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        infer_schema(pl.DataFrame(frame), **choices)
    assert "s3cr3t" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_least_and_the_most_of_bins_and_of_values() -> None:
    assert infer_one([1, 2], bins=1).bins == 1
    assert infer_one([1, 2], numeric="observed", bins=1_000_000).interior_cuts == (1.5,)
    assert infer_one(["a", "a"], max_categories=1).values == ("a",)
    assert infer_one(["\x1f", "a", "b"], max_categories=2) == Categorical("x", ["a", "b"], missing=True)


def test_too_many_observed_cuts() -> None:
    with pytest.raises(InputError, match="more than 1000000 distinct values"):
        infer_schema(pl.DataFrame({"x": np.arange(1_000_002)}), numeric="observed")


def test_two_files_are_written_alike(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1;u\n2;v\n")
    (tmp_path / "b.csv").write_text("z;w\n1;u\n2;v\n")
    (tmp_path / "c.csv").write_text("z|w\n1|u\n2|v\n")
    assert infer_two_view_schema(tmp_path / "a.csv", tmp_path / "b.csv").names == ("x", "y", "z", "w")
    for sides in ((tmp_path / "a.csv", tmp_path / "c.csv"), (tmp_path / "c.csv", tmp_path / "a.csv")):
        with pytest.raises(InputError, match="the two files differ in separator, encoding or skipped lines"):
            infer_two_view_schema(*sides)
    frame = pl.DataFrame({"f": [1, 2]})
    assert infer_two_view_schema(tmp_path / "a.csv", frame).names == ("x", "y", "f")
    assert infer_two_view_schema(frame, tmp_path / "c.csv").names == ("f", "z", "w")
    assert infer_two_view_schema(frame, frame.rename({"f": "g"})).names == ("f", "g")


def test_of_a_column_of_another_type_no_cells_are_counted() -> None:
    frame = pl.DataFrame({"x": pl.Series(["a", [2], "b"], dtype=pl.Object), "y": [1, 2, 3]})
    (note,) = draft_schema(frame).notes
    assert (note.column, note.left_out) == ("x", True)
    assert note.found == "has cells that no schema can hold, such as lists or very long texts"
    assert note.proposal == "left out; to count its values that several people share, declare it open"


def test_a_hundred_values_and_sixteen_bins_are_drafted_unless_more_are_asked_for() -> None:
    labels = [f"v{k:03}" for k in range(101)]
    few, many = pl.DataFrame({"c": labels[:100], "x": range(100)}), pl.DataFrame({"c": labels, "x": range(101)})
    more = few.rename({"c": "d", "x": "y"})
    for schema in (infer_schema(few), draft_schema(few).schema, infer_two_view_schema(few, more)):
        assert schema["c"].size == 100
        assert schema["x"].size == 16
    assert infer_schema(many, max_categories=101)["c"].size == 101
    assert draft_schema(many).schema.names == ("x",)
    for refused in (lambda: infer_schema(many), lambda: infer_two_view_schema(many, more.head(1).vstack(more))):
        with pytest.raises(InputError, match="'c' has more than 100 distinct values"):
            refused()


def test_two_views(tmp_path) -> None:
    left = pl.DataFrame({"site": [1, 2, 3], "puma": [0, 1, 1], "note": ["a", "b", "c"]})
    right = pl.DataFrame({"site": [3, 2, 9], "rain": [10.0, 20.0, 1e6]})
    schema = infer_two_view_schema(left, right, id="site", exclude=["note"], bins=2)
    assert schema.attributes == (
        Boolean("puma", view="left"),
        Numeric("rain", 10, 20, bins=2, view="right"),
    )
    left.write_csv(tmp_path / "l.csv")
    right.write_parquet(tmp_path / "r.parquet")
    table = read_two_views(tmp_path / "l.csv", tmp_path / "r.parquet", schema, id="site")
    assert table.codes.tolist() == [[1, 1], [1, 0]]
    by_position = infer_two_view_schema(left.drop("site"), right.drop("site"), categorical=["puma"])
    assert by_position["puma"] == Categorical("puma", ["0", "1"], view="left")
    with pytest.raises(InputError, match="column 'site' is on both sides"):
        infer_two_view_schema(left, right)
    with pytest.raises(InputError, match="different numbers of rows"):
        infer_two_view_schema(left.drop("site").head(2), right.drop("site"))
    with pytest.raises(InputError, match="no column left"):
        infer_two_view_schema(left, right, id="site", exclude=["rain"])
    with pytest.raises(InputError, match="there is no 'snow'"):
        infer_two_view_schema(left, right, id="site", exclude=["snow"])


@pytest.mark.parametrize("mode", CutMode)
def test_adult_in_every_mode(mode: CutMode, data_dir) -> None:
    path = data_dir / "adult" / "adult.csv"
    schema = infer_schema(path, numeric=mode, categorical=["education-num"])
    assert schema["income"].labels == ("<=50K", ">50K")
    assert schema["education-num"].size == 16
    assert f"numeric cuts: {mode}" in schema.inferred
    read_table(path, schema)


@pytest.mark.parametrize("mode", ["equal-width", "quantile", "freedman-diaconis", "k-means", "observed"])
def test_numbers_as_texts_are_cut_where_the_numbers_are(mode) -> None:
    """Texts are looked at once each, but cut points depend on how often a number occurs."""
    numbers = [0.0] * 60 + [1.0] * 20 + [2.0, 3.0, 5.0, 8.0, 13.0] * 4
    texts = [f" {number} " if number == 2 else str(number) for number in numbers]
    assert infer_one(pl.Series(texts), numeric=mode, bins=4) == infer_one(numbers, numeric=mode, bins=4)


def test_a_column_with_a_text_that_is_longer_than_any_label_is_left_out_and_others_are_not() -> None:
    longest = "é" * (MOST_CELL_BYTES // 2)
    columns = {"a": [longest, "x"], "b": [longest + "x", "x"], "c": ["x", "x"]}
    found = distinct_cells({name: pl.Series(cells) for name, cells in columns.items()})
    assert {name: cells.texts.to_list() for name, cells in found.items()} == {"a": [longest, "x"], "c": ["x"]}
    alone = DistinctCells.of(pl.Series([longest, longest + "x", "x", None]))
    assert (alone.texts.to_list(), alone.counts.tolist(), alone.missing) == ([longest, "x"], [1, 1], True)


def test_cells_that_only_differ_by_the_space_around_them_are_one() -> None:
    columns = {"a": pl.Series(["yes", " yes", "no", "", None, "yes"]), "b": pl.Series(["1", " ", "2", "2", "1", "1"])}
    found = distinct_cells(columns)
    assert dict(zip(found["a"].texts.to_list(), found["a"].counts.tolist(), strict=True)) == {"yes": 3, "no": 1}
    assert dict(zip(found["b"].texts.to_list(), found["b"].counts.tolist(), strict=True)) == {"1": 3, "2": 2}
    assert [one.missing for one in found.values()] == [True, True]
