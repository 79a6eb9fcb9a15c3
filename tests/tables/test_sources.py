"""Where rows come from: lines of CSV, blocks of Parquet, places, names, and what is said of columns that lack."""

from __future__ import annotations

import contextlib
import csv
import io
import sqlite3
import tempfile
import traceback
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, strategies as st

import dpframework as dpf
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit, NotOpened
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.schema import MOST_ROWS
from dpframework.tables import csv_file, parquet_files
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.csv_file import CsvFile
from dpframework.tables.parquet_files import ParquetFile
from dpframework.tables.path_pattern_expansion import files_of, name_of
from dpframework.tables.sources import Source, open_source
from dpframework.tables.table_builder import (
    RowFindings,
    TableBuilder,
    require_found,
    require_public_counts,
    source_names,
)

ILL = dpf.Boolean("ill")


def lines_one_by_one(text: bytes) -> list[tuple[int, int, bool, bool]]:
    """Return where each line starts, its fields, whether it is blank, and whether a line break ends it."""
    found, start, commas, quoted = [], 0, 0, False
    for k, character in enumerate(text.decode()):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            commas += 1
        elif character == "\n" and not quoted:
            found.append((start, commas + 1, text[start:k] in (b"", b"\r"), True))
            start, commas = k + 1, 0
    if start < len(text):
        found.append((start, commas + 1, text[start:] == b"\r", False))
    return found


@given(st.text('a,"\n\r', min_size=1, max_size=30))
@example("\r")
@example("a\n\r")
@example("\n\r\na")
@example('"\n"\n')
@example('a"\n')
def test_lines_are_those_that_single_characters_make(given: str) -> None:
    text = given.encode()
    expected = lines_one_by_one(text)
    starts, fields, blank = csv_file.lines_of(text, ",")
    assert starts.tolist() == [line[0] for line in expected]
    assert fields.tolist() == [line[1] for line in expected]
    assert [bool(b) for b in blank] == [line[2] for line in expected]
    whole = [line for line in expected if line[3]]
    rest = expected[len(whole) :]
    assert csv_file._end_of_lines(text) == (rest[0][0] if rest else len(text))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 50])
def test_a_csv_file_is_read_in_pieces_of_whole_lines(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", size)
    text = 'a,b\n1,x\n2,"y\nz"\n3,"q,"\n4,\n'
    (tmp_path / "t.csv").write_text(text)
    pieces = list(csv_file._texts(tmp_path / "t.csv", "utf-8", 0))
    assert b"".join(pieces) == text.encode()
    assert all(csv_file._end_of_lines(piece) == len(piece) for piece in pieces)
    assert len(pieces) == {8: 4, 50: 1}.get(size, len(pieces))
    file = CsvFile.open(tmp_path / "t.csv", ReadOptions())
    assert (file.columns, file.header) == (("a", "b"), b"a,b\n")
    rows = [pair for block in file.blocks([1, 0]) for pair in zip(*block, strict=True)]
    expected = [(b, a) for a, b in list(csv.reader(io.StringIO(text)))[1:]]
    assert [(b or "", a) for b, a in rows] == expected


def test_a_line_is_blank_or_a_row(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_bytes(b"\xef\xbb\xbf\r\n\r\na,b\r\n\r\n1,2\r\n\r\n")
    (tmp_path / "one.csv").write_bytes(b"a\n\n1\n\n")
    (tmp_path / "none.csv").write_bytes(b"a,b")
    found = {
        path.name: [one.to_list() for one in open_source(path).take(names).values()]
        for path, names in (
            (tmp_path / "two.csv", ["a", "b"]),
            (tmp_path / "one.csv", ["a"]),
            (tmp_path / "none.csv", ["b"]),
        )
    }
    assert found == {"two.csv": [["1"], ["2"]], "one.csv": [[None, "1", None]], "none.csv": [[]]}


@pytest.mark.parametrize(
    "rows", ['5" pipe,1\n2,2\n3" pipe,3\n', 'a,1\n b" c,"2"\n', ' "a,b",1\n', 'a""b,1\n', '"a"b"c",1\n']
)
def test_a_quote_within_a_field_is_refused_before_it_swallows_rows(rows: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"what,n\n{rows}")
    says = r"^t\.csv: a field holds a quote and does not begin with one; put quotes around such a field"
    with pytest.raises(dpf.InputError, match=says):
        open_source(tmp_path / "t.csv").take(["n"])


def test_a_quote_that_is_never_closed_is_refused_without_the_cell_that_the_reader_quotes(tmp_path: Path) -> None:
    """A traceback prints what an error was raised from, and what was being handled meanwhile."""
    (tmp_path / "t.csv").write_text('n,what\n1,a\n2,"Ada Lovelace\n')
    with pytest.raises(dpf.InputError, match=r"^t\.csv: ") as failed:
        open_source(tmp_path / "t.csv").take(["what", "n"])
    assert failed.value.__context__ is None
    assert "Lovelace" not in "".join(traceback.format_exception(failed.value))


@given(st.lists(st.tuples(st.text('a",; \n\r', max_size=6), st.integers(0, 9)), max_size=6), st.sampled_from(",;"))
def test_what_a_writer_of_csv_quotes_is_read(given: list[tuple[str, int]], separator: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows([("what", "n"), *given])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_bytes(text.getvalue().encode())
        source = open_source(Path(folder) / "t.csv", read=ReadOptions(separator=separator))
        assert source.take(["n"])["n"].to_list() == [str(number) for _, number in given]


@pytest.mark.parametrize("names", ["age", "age,sex"])
def test_lines_that_end_with_carriage_returns_alone_are_refused_and_not_one_line(names: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(f"{names}\r30\r40\r".encode())
    with pytest.raises(dpf.InputError, match=r"^t\.csv: its lines end with carriage returns alone; save it with line"):
        open_source(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b'"age\r\n(in years)"\r\n30\r\n')
    assert open_source(tmp_path / "t.csv").columns == ("age (in years)",)


@pytest.mark.parametrize("changed", ["b,a\n1,2\n", "a\n1\n"])
def test_a_csv_file_with_another_first_line_is_refused(changed: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    file = CsvFile.open(tmp_path / "t.csv", ReadOptions())
    (tmp_path / "t.csv").write_text(changed)
    with pytest.raises(dpf.InputError, match=r"^t\.csv: changed while it was read; read it again$"):
        list(file.blocks([0]))


@pytest.mark.parametrize(("columns", "rows"), [(1, 7), (2, 6), (3, 4), (12, 2), (13, 2)])
def test_blocks_of_parquet_hold_as_many_cells_whatever_the_columns(
    columns: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"BLOCK_CELLS": 12, "FEWEST_ROWS": 2, "MOST_ROWS": 7}.items():
        monkeypatch.setattr(parquet_files, name, value)
    pl.DataFrame({str(k): range(20) for k in range(columns)}).write_parquet(tmp_path / "t.parquet")
    file = ParquetFile.open(str(tmp_path / "t.parquet"), "t")
    assert file.part == (0, 1)
    blocks = list(file.blocks(range(columns)))
    assert [len(block[0]) for block in blocks] == [rows] * (20 // rows) + [20 % rows] * (20 % rows > 0)
    assert all(len(block) == columns for block in blocks)
    assert [cell for block in blocks for cell in block[-1].to_list()] == list(range(20))


@pytest.mark.parametrize("rows", [0, 1, 2, 10])
@pytest.mark.parametrize("number", [1, 3, 4])
def test_parts_of_parquet_are_all_rows_and_about_as_many_each(rows: int, number: int, tmp_path: Path) -> None:
    pl.DataFrame({"a": range(rows)}, schema={"a": pl.Int64}).write_parquet(tmp_path / "t.parquet")
    sources = [open_source(tmp_path / "t.parquet", part=(k, number)) for k in range(number)]
    parts = [source.take(["a"])["a"].to_list() for source in sources]
    assert [row for part in parts for row in part] == list(range(rows))
    assert {len(part) for part in parts} <= {rows // number, -(-rows // number)}


@pytest.mark.parametrize("data", [["a.csv", 3], [3, 4], [], {"a.csv"}, {"a.csv": 1}])
def test_what_is_neither_files_nor_a_frame_is_refused(data: Any) -> None:
    said = "the list of files is empty" if data == [] else f"frame: {type(data).__name__} is not a dataframe; accepted"
    with pytest.raises(dpf.InputError, match=said):
        open_source(data)


def test_what_opens_a_store_is_shown_nowhere() -> None:
    file = ParquetFile("s3://b/t.parquet", "t.parquet", ("a",), {"key": "s3cr3t"})
    assert "s3cr3t" not in repr(file)
    assert file.part == (0, 1)


def test_the_files_of_a_place_in_order_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ["d/b.parquet", "d/a.parquet", "d/e/c.parquet", "d/_x/f.parquet", "d/.y/g.parquet", "d/_h.parquet"]
    for name in [*made, "d/i.csv", "a[1].csv", "_d/j.parquet"]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    data = ["d/a.parquet", "d/b.parquet", "d/e/c.parquet"]
    assert files_of("d") == files_of(Path("d")) == data
    assert files_of("_d") == ["_d/j.parquet"]  # what is named is wanted
    assert files_of("d/*.parquet") == ["d/_h.parquet", *data[:2]]
    assert files_of("d/**/c.parquet") == data[2:]
    assert files_of("**/c.parquet") == data[2:]
    assert files_of("a[1].csv") == ["a[1].csv"]
    assert files_of("s3://b/*.parquet") == ["s3://b/*.parquet"]
    for nowhere in ("none.csv", "none*.csv"):
        with pytest.raises(
            NotOpened, match=r"^none.*\.csv: there is no such file; correct its name, or save it there$"
        ):
            files_of(nowhere)
    assert name_of(["d"], ["d/a.parquet"]) == "a.parquet"
    assert name_of(["x", "y", "z"], ["x", "y", "z"]) == "x and 2 more files"


def source_of(*columns: str) -> Source:
    return Source("t", columns, lambda positions: iter([[[columns[k]] for k in positions]]))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("ab", None),
        ("ax", "t: has no column 'x'; correct the names in the schema or in the table"),
        ("axy", "t: has no columns 'x', 'y'; correct"),
        ("astuvwxyz", "t: has no columns 's', 't', 'u', 'v', 'w', 'x', 'y', 'z'; correct"),
        ("arstuvwxyz", "t: has no columns 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', ...; correct"),
        (
            "xy",
            "t: has none of the requested columns, such as 'x'; its first line must name",
        ),
        ("x", "t: has none of the requested columns, such as 'x'"),
        ("c", "t: column 'c' occurs more than once; rename all but one"),
        ("", None),
    ],
)
def test_columns_that_lack_or_occur_twice_are_one_sentence(asked: str, sentence: str | None) -> None:
    source = source_of("a", "b", "c", "c")
    if sentence is None:
        source.require(asked)
        assert source.take(asked) == {name: [name] for name in asked}
        return
    with pytest.raises(dpf.InputError) as caught:
        source.blocks(asked)
    assert str(caught.value).startswith(sentence)


def test_a_line_is_as_long_as_may_be_and_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "MOST_LINE_BYTES", 10)
    (tmp_path / "t.csv").write_text("a,b\n12345,789\n1,2\n")  # ten bytes, with its end
    assert [column.to_list() for column in open_source(tmp_path / "t.csv").take(["a", "b"]).values()] == [
        ["12345", "1"],
        ["789", "2"],
    ]
    (tmp_path / "t.csv").write_text("a,b\n123456,789\n1,2\n")
    with pytest.raises(dpf.InputError, match="a line is longer than"):
        open_source(tmp_path / "t.csv").take(["a", "b"])


def test_what_is_read_once_is_kept_to_be_read_again(tmp_path: Path) -> None:
    read: list[Any] = []

    def rows(positions: Any) -> Any:
        read.append(list(positions))
        return iter([[[len(read), k] for k in positions]])

    again = Source("t", ("a", "b", "c"), rows)
    assert again.fix(["c"]) is again
    once = Source("t", ("a", "b", "c"), rows, once=True).fix(["c", "a"])
    assert (once.name, once.columns, once.once) == ("t", ("c", "a"), False)
    with contextlib.closing(sqlite3.connect(tmp_path / "t.sqlite")) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
        database.commit()
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert open_source(tmp_path / "t.sqlite", read=ReadOptions(table="t")).once  # no order of rows is promised
    assert not open_source(tmp_path / "t.csv").once
    both = open_source([tmp_path / "t.csv", tmp_path / "t.sqlite"], read=ReadOptions(table="t"))
    assert both.once  # as any of the files is
    assert [open_source(frame).once for frame in (pl.LazyFrame({"a": [1]}), pl.DataFrame({"a": [1]}))] == [True, False]
    assert [once.take(["a"]), once.take(["c", "a"])] == [{"a": [1, 0]}, {"c": [1, 2], "a": [1, 0]}]
    assert read == [[2, 0]]


def test_a_column_of_nothing_but_nulls_in_one_file_has_the_type_of_the_others() -> None:
    def of(*parts: Any) -> Any:
        source = Source("t", ("a",), lambda positions: iter([[part] for part in parts]))
        return source.take(["a"])["a"]

    nothing = pl.Series([None, None])
    assert of(nothing, pl.Series([1, 2])).to_list() == [None, None, 1, 2]
    assert of(nothing, nothing).to_list() == [None] * 4
    assert of(pl.Series([1]), nothing, pl.Series([2.5])).to_list() == ["1", None, None, "2.5"]


def test_public_facts_of_rows_are_those_of_the_table() -> None:
    plain, counted = dpf.Schema([ILL]), dpf.Schema([ILL], rows=5)
    bounded = dpf.Schema([ILL], max_rows=5)
    for schema, rows in ((plain, 0), (plain, MOST_ROWS), (counted, 5), (bounded, 5), (bounded, 0)):
        require_public_counts(schema, rows, "t")
    for schema, rows, kind, sentence in (
        (plain, MOST_ROWS + 1, "max_rows", f"t: has more rows than the {MOST_ROWS:,} that a table may have"),
        (counted, 4, "rows", "t: the number of rows is not the schema's public rows = 5"),
        (counted, 6, "rows", "t: the number of rows is not the schema's public rows = 5"),
        (bounded, 6, "max_rows", "t: has more rows than the schema's public max_rows = 5"),
    ):
        with pytest.raises(DoesNotFit) as caught:
            require_public_counts(schema, rows, "t")
        assert (str(caught.value), caught.value.kind) == (sentence, kind)


def test_a_builder_counts_and_keeps_what_it_is_given() -> None:
    schema = dpf.Schema([ILL, dpf.Numeric("age", 0, 9, bins=3), dpf.Numeric("size", 0, 9, bins=3)])
    sources = dict.fromkeys(schema.names, "t")
    builder = TableBuilder(schema, sources, OutOfDomain.ERROR, values=["age", "ill"])
    assert builder.found == RowFindings(0, (frozenset(),) * 3)
    builder.add({"ill": [1, 0], "age": [2, 9], "size": [0, 10]})
    builder.add({"ill": [None], "age": [3], "size": ["x"]})
    assert builder.found == RowFindings(3, ({Unfit.MISSING}, set(), {Unfit.BEYOND, Unfit.OUTSIDE}))  # type: ignore[arg-type]
    table = builder.part(dpf.PrivacyUnit("person", 2), b"key")
    assert (table.codes.tolist(), set(table.values)) == ([[1, 0, 0], [0, 2, 1], [0, 2, 0]], {"age"})
    assert (table.unit, table.key) == (dpf.PrivacyUnit("person", 2), b"key")
    assert builder.part().codes.shape == (3, 0)
    lenient = TableBuilder(schema, sources, OutOfDomain.CLAMP)
    lenient.add({"ill": [None], "age": ["x"], "size": [99]})
    assert lenient.found == RowFindings(1, (frozenset(),) * 3)
    assert set(lenient.table().values) == {"age", "size"}


def test_what_is_found_of_parts_is_found_of_all() -> None:
    schema = dpf.Schema([ILL, dpf.Numeric("age", 0, 9, bins=3)], rows=7)
    one = RowFindings(3, (frozenset({Unfit.MISSING}), frozenset()))
    other = RowFindings(4, (frozenset(), frozenset({Unfit.BEYOND})))
    both = one + other
    assert both == RowFindings(7, (frozenset({Unfit.MISSING}), frozenset({Unfit.BEYOND})))
    sources = {"ill": "l.csv", "age": "r.csv"}
    assert source_names(schema, sources) == "l.csv and r.csv"
    assert source_names(schema, dict.fromkeys(sources, "t.csv")) == "t.csv"
    require_found(schema, RowFindings(7, (frozenset(), frozenset())), sources)
    for found, sentence in (
        (both, "l.csv: attribute 'ill' has missing values, which the schema does not allow"),
        (
            RowFindings(7, other.unfit),
            r"r.csv: attribute 'age' holds values outside its public range \[0, 9\]; correct",
        ),
        (RowFindings(8, both.unfit), "l.csv and r.csv: the number of rows is not the schema's public rows = 7"),
    ):
        with pytest.raises(DoesNotFit, match=f"^{sentence}"):
            require_found(schema, found, sources)
