"""DuckDB counts what memory counts, of cells as the reader reads them, and tells nothing else."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from queries.test_crosstab_expressions import study_of
from tables.database_studies import connection_of

import dpframework as dpf
from dpframework.basics import quantile_miners
from dpframework.facts.errors import DoesNotFit, NotOpened
from dpframework.plan import Step, walk
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.study.plugin_registry import registry
from dpframework.tables import Crosstab, sql_engine
from dpframework.tables.duckdb_connection import DuckDBConnection
from dpframework.tables.duckdb_engine import DuckDB
from dpframework.tables.sql_bins import EvenSteps, bin_of
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify import EngineConformance

duckdb = pytest.importorskip("duckdb", reason="the extra 'database' is not installed")


class TestDuckDB(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
        return DuckDB(threads=1)


def opened(files: TableFiles) -> tuple[DuckDB, Any]:
    engine = DuckDB(threads=1)
    return engine, engine.open(files)


def names_of_tables(engine: DuckDB) -> list[str]:
    both = "select table_name from duckdb_tables() union all select name from duckdb_variables()"
    return [str(row[0]) for row in connection_of(engine).rows(both)]


# Cells: each is read as the reader reads it.

PIECES = ["1", "0", "2_8", "+5", "-0.0", "1e3", "nan", "inf", ".5", "5.", "true", "FALSE", "Yes", "t", "a", "A"]
PIECES += ["\u00e1", "a\u0301"]
SPACES = ["", " ", "\t", "\n", "\u00a0", "\u2003", "0", "00", "e1", "\ufeff", "9" * 20]
LABELS = ["a", "A", "á", "1", "0", "5", "1000", "Yes", "0.5"]
ODD = [
    dpf.Boolean("truth", missing=True),
    dpf.Categorical("label", LABELS, missing=True),
    dpf.Numeric("number", -10, 5000, cuts=[0, 0.5, 1, 5, 28, 1000], missing=True),
    dpf.Categorical("strict", LABELS),
    dpf.Numeric("bounded", 0, 10, cuts=[0.1, 0.3, 5]),
]


def odd_texts(cells: int) -> list[str | None]:
    generator = np.random.default_rng(5)
    made = [
        "".join(
            [
                SPACES[generator.integers(len(SPACES))] if generator.random() < 0.5 else "",
                PIECES[generator.integers(len(PIECES))],
                SPACES[generator.integers(len(SPACES))] if generator.random() < 0.5 else "",
                str(generator.integers(10**6)) if generator.random() < 0.7 else "",
            ]
        )
        for _ in range(cells)
    ]
    return [None if k % 97 == 0 else one for k, one in enumerate(made)]


def odd_columns() -> dict[str, pl.Series]:
    generator = np.random.default_rng(6)
    bits = generator.integers(0, 2**63, 20_000, dtype=np.int64)
    reals = bits.view(np.float64)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.1, 0.3, 5e-324, None]
    large = [2**64 - 1, 2**53 + 1, 0, None, 10, 28]
    return {
        "texts": pl.Series(odd_texts(20_000), dtype=pl.String),
        "reals": pl.Series([*reals.tolist(), *special], dtype=pl.Float64),
        "short": pl.Series([0.1, 0.3, 16777216.5, None, float("nan"), 1.0], dtype=pl.Float32),
        "large": pl.Series(large, dtype=pl.UInt64),
        "small": pl.Series([-128, 127, 0, 1, 5, None], dtype=pl.Int8),
        "decimals": pl.Series([Decimal("0.50"), Decimal("0.1"), Decimal("28.00"), None], dtype=pl.Decimal(30, 17)),
        "truths": pl.Series([True, False, None], dtype=pl.Boolean),
        "dates": pl.Series([datetime.date(2026, 1, 1), None], dtype=pl.Date),
        "times": pl.Series([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), None]),
        "bytes": pl.Series([b"a", b"1", None], dtype=pl.Binary),
        "lists": pl.Series([["a"], [], None], dtype=pl.List(pl.String)),
        "nothing": pl.Series([None, None], dtype=pl.Null),
        "categories": pl.Series(["a", "A", None, "1"], dtype=pl.Categorical),
    }


def require_same_codes(frame: pl.DataFrame, folder: Path, schema: dpf.Schema, policy: str) -> None:
    frame.write_parquet(folder / "odd.parquet")
    files = TableFiles(folder / "odd.parquet", schema, out_of_domain=policy)
    expected = files.read()
    engine, rows = opened(files)
    found = connection_of(engine).columns(f"select * from {rows.table.name}")
    for k, attribute in enumerate(schema):
        assert np.array_equal(np.ma.filled(found[f"c{k}"], 99), expected.columns[k]), attribute.name
        if attribute.name in expected.values:
            values = np.ma.filled(found[f"v{k}"].astype(float), np.nan)
            assert np.array_equal(values, expected.values[attribute.name], equal_nan=True), attribute.name
    engine.close()


@pytest.mark.parametrize(
    ("column", "policy"),
    [*((name, "missing" if k % 2 else "clamp") for k, name in enumerate(odd_columns())), ("reals", "clamp")],
)
def test_odd_cells_have_the_codes_that_the_reader_gives_them(column: str, policy: str, tmp_path: Path) -> None:
    """Texts of numbers, spaces, cases and unicode forms; numbers of all sizes; what is neither. 10^5 texts in all."""
    cells = odd_columns()[column]
    frame = pl.DataFrame({attribute.name: cells for attribute in ODD})
    require_same_codes(frame, tmp_path, dpf.Schema(ODD), policy)


GRIDS = [dpf.Numeric("x", 0, 100, bins=16), dpf.Numeric("x", 0, 90, bins=11), dpf.Numeric("x", -0.3, 0.7, bins=97)]
GRIDS += [dpf.Numeric("x", 1e6, 1e6 + 1e-3, bins=50), dpf.Numeric("x", -1e300, 1e300, bins=9)]
UNEVEN = [dpf.Numeric("x", 0, 9, cuts=[1, 2, 4, 8]), dpf.Numeric("x", 1e15, 1e15 + 8, bins=23)]


@pytest.mark.parametrize("attribute", [*GRIDS, *UNEVEN], ids=str)
def test_a_bin_is_the_number_of_cuts_at_or_below_whether_divided_or_compared(attribute: dpf.Numeric) -> None:
    cuts, (low, high) = np.array(attribute.interior_cuts), (attribute.lower, attribute.upper)
    steps = EvenSteps.of(low, high, attribute.interior_cuts)
    assert (steps is not None) == (attribute in GRIDS)
    assert steps is None or steps.is_exact == (attribute is GRIDS[0])
    inside = np.random.default_rng(3).uniform(low, high, 1000)
    edges = [np.nextafter(cuts, -np.inf), cuts, np.nextafter(cuts, np.inf)]
    numbers = np.concatenate([*edges, inside, [low, high, np.nextafter(low, -np.inf), -1e308, 1e308, np.inf, -np.inf]])
    connection = DuckDBConnection(threads=1)
    connection.upload("given", {"k": np.arange(len(numbers)), "x": numbers})
    found = connection.columns(f"select {bin_of('x', low, high, attribute.interior_cuts)} as bin from given order by k")
    assert found["bin"].tolist() == [int((cuts <= number).sum()) for number in numbers]
    connection.close()


def test_files_of_other_types_are_read_each_by_its_own(tmp_path: Path) -> None:
    schema = dpf.Schema([dpf.Numeric("x", 0, 100, cuts=[50], missing=True)])
    for k, cells in enumerate((["7", " 80"], [7, 80], [7.5, float("nan")])):
        pl.DataFrame({"x": cells}).write_parquet(tmp_path / f"{k}.parquet")
    files = TableFiles(tmp_path, schema)
    engine, rows = opened(files)
    found = answer_of(dpf.queries.Histogram(schema["x"]), engine, rows, {})
    assert found.tolist() == np.bincount(files.read().columns[0]).tolist() == [3, 2, 1]
    engine.close()


def test_cells_are_read_as_the_schema_says_that_they_are_written(tmp_path: Path) -> None:
    columns = [dpf.Numeric("day", 0, 30_000, bins=9, missing=True), dpf.Numeric("cost", 0, 9, bins=3, missing=True)]
    columns.append(dpf.Categorical("sex", ["female", "male"], missing=True))
    of_columns = {
        "day": {"date": ["%d.%m.%Y"], "date_unit": "days"},
        "cost": {"decimal": ",", "null": ["-99"], "symbols": ["EUR"]},
        "sex": {"labels": {"female": ["f", "w"]}},
    }
    schema = dpf.Schema(columns, read={"columns": of_columns})
    texts = {"day": ["02.01.1970", "x", None], "cost": ["EUR 2,5", "2.5", "-99 EUR"], "sex": ["w", "male", "?"]}
    for policy in ("clamp", "missing"):
        require_same_codes(pl.DataFrame(texts), tmp_path, schema, policy)
    stored = pl.DataFrame({**texts, "cost": [2.5, -99.0, 7.0]})
    require_same_codes(stored, tmp_path, schema, "clamp")
    day = datetime.datetime(1970, 1, 2, 6)
    for stored_day in (day, day.date(), day.replace(tzinfo=datetime.UTC)):
        require_same_codes(pl.DataFrame({**texts, "day": [stored_day, None, stored_day]}), tmp_path, schema, "clamp")
    exact = pl.DataFrame({**texts, "day": pl.Series([day, None, day], dtype=pl.Datetime("ns"))})
    exact.write_parquet(tmp_path / "odd.parquet")
    with pytest.raises(dpf.InputError, match="'day' has the type TIMESTAMP_NS, which cannot be read as dates"):
        opened(TableFiles(tmp_path / "odd.parquet", schema))


# Releases: those of memory.


def is_tabled(example: Any) -> bool:
    return all(one.query.has_tables for one in walk(example.miner.plan(example.schema)) if isinstance(one, Step))


EXAMPLES = {
    name: own[0]
    for name, brought in sorted(registry().miners.items())
    if (own := [one for one in brought.component.examples().values() if is_tabled(one)])
}


def frame_of(schema: dpf.Schema, rows: int) -> pl.DataFrame:
    generator, columns = np.random.default_rng(2), {}
    for attribute in schema:
        codes = generator.integers(0, attribute.size, rows)
        if isinstance(attribute, dpf.Numeric):
            cells = generator.uniform(attribute.lower, attribute.upper, rows)
            known = [None if c == attribute.missing_code else x for c, x in zip(codes, cells, strict=True)]
            columns[attribute.name] = pl.Series(known, dtype=pl.Float64)
        else:
            labels = [None if c == attribute.missing_code else attribute.labels[c] for c in codes.tolist()]
            columns[attribute.name] = pl.Series(labels, dtype=pl.String)
    return pl.DataFrame(columns)


def parquet_of(schema: dpf.Schema, rows: int, place: Path) -> TableFiles:
    frame_of(schema, rows).write_parquet(place)
    return TableFiles(place, schema)


def releases(results: dpf.Results) -> dict[str, Any]:
    """Return results without what names the engine's code, and the time."""
    return {**results.to_dict(), "plan": None, "about": None, "counted": None}


SOME = ("count", "dp-dilca", "dp-id3", "mean", "quantile", "serenade-es")  # of each room


@pytest.mark.parametrize("names", [SOME, tuple(EXAMPLES)], ids=["some", "all"])
def test_every_miner_of_additive_queries_has_the_releases_of_memory(names: tuple[str, ...], tmp_path: Path) -> None:
    engine = DuckDB(threads=1)
    for name in names:
        example = EXAMPLES[name]
        rows = example.schema.rows or example.schema.max_rows or 60
        study, files = study_of(example), parquet_of(example.schema, rows, tmp_path / "t.parquet")
        expected, found = study.run(files, seed=3), study.run(files, seed=3, engine=engine)
        assert releases(found) == releases(expected), name
    assert len(EXAMPLES) > 15
    assert names_of_tables(engine) == []  # each run gave its table back
    engine.close()


TREE = dpf.Schema(
    [dpf.Categorical(f"a{k}", list("xyz")) for k in range(4)]
    + [dpf.Numeric("age", 0, 90, bins=6, missing=True), dpf.Boolean("ill")]
)


def asked_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    columns = DuckDBConnection.columns
    monkeypatch.setattr(DuckDBConnection, "columns", lambda self, query: asked.append(query) or columns(self, query))
    return asked


def test_a_level_of_a_tree_is_one_query_that_names_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = dpf.Study(TREE, epsilon=100)
    study.add("tree", dpf.miner("dp-id3", target="ill", max_depth=3, epsilon=100))
    files = parquet_of(TREE, 4000, tmp_path / "t.parquet")
    expected, asked = study.run(files, seed=0), asked_of(monkeypatch)
    found = study.run(files, seed=0, engine=DuckDB(threads=1))
    assert str(found["tree"]) == str(expected["tree"])
    assert found["tree"].tree.depth == 3
    assert len(asked) <= 2 * 3 + 2
    assert all(word not in query for query in asked for word in ("age", "ill", "'x'", '"'))
    assert found.plan.engine is not None
    assert found.plan.engine.startswith("DuckDB ")


def test_the_medians_of_all_groups_come_from_few_queries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    towns = [f"town {k}" for k in range(40)]
    schema = dpf.Schema([dpf.Categorical("town", towns), dpf.Numeric("age", 0, 90, bins=9)])
    rows = pl.DataFrame({"town": [towns[k % 40] for k in range(400)], "age": [k % 91 for k in range(400)]})
    rows.write_parquet(tmp_path / "rows.parquet")
    study = dpf.Study(schema, epsilon=9)
    study.add("ages", dpf.miner("median", attribute="age", by="town", epsilon=9))
    expected, asked = study.run(dpf.table_from_frame(rows, schema), seed=1), asked_of(monkeypatch)
    # Ten groups at once: an age has 91 points.
    monkeypatch.setattr(quantile_miners, "MOST_SCORES", 919)
    found = study.run(TableFiles(tmp_path / "rows.parquet", schema), seed=1, engine=DuckDB(threads=1))
    assert found["ages"].to_dict() == expected["ages"].to_dict()
    # Each query tests for its own ten towns, and not for the other thirty.
    assert [text.count(" when c0 = ") for text in asked if "grouping sets" in text] == [10] * 4


# Refusals and failures.


def test_what_it_does_not_serve_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    files = parquet_of(TREE, 50, tmp_path / "t.parquet")
    engine = DuckDB(threads=1)
    study = dpf.Study(TREE, epsilon=1)
    study.add("one", dpf.miner("dp-additive", target="ill", epsilon=1))
    with pytest.raises(dpf.InputError, match=r"engine 'duckdb' gives out counts only, and step .* gathers"):
        study.run(files, seed=0, engine=engine)
    of_units = dpf.Study(TREE, epsilon=1, unit="person", rows_per_unit=2)
    of_units.add("one", dpf.miner("count", epsilon=1))
    with pytest.raises(dpf.InputError, match=r"t\.parquet: has no column 'person'"):
        of_units.run(TableFiles(tmp_path / "t.parquet", TREE, unit=of_units.plan().unit), seed=0, engine=engine)
    with pytest.raises(dpf.InputError, match=r"engine 'duckdb' reads tables itself; give the study dpf.TableFiles"):
        engine.load(files.read())
    text = "counts listed values only, and 'town' is open"
    for path, schema, said in (
        ("t.csv", TREE, "reads Parquet files of this machine, not"),
        ("t.parquet", dpf.Schema([dpf.Open("town")]), text),
        ("s3://bucket/t.parquet", TREE, "reads Parquet files of this machine, not s3://bucket/t.parquet"),
        ("t[1].parquet", TREE, "DuckDB reads such a name as a pattern"),
    ):
        place = path if "://" in path else tmp_path / path
        if "://" not in path and not (tmp_path / path).exists():
            (tmp_path / path).write_bytes((tmp_path / "t.parquet").read_bytes())
        with pytest.raises(dpf.InputError, match=said.replace("(", r"\(")):
            engine.open(TableFiles(place, schema))
    assert engine._opened is None or names_of_tables(engine) == []


def test_a_table_of_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine, rows = opened(parquet_of(TREE, 50, tmp_path / "t.parquet"))
    table = Crosstab(TREE.attributes[:2])
    monkeypatch.setattr(sql_engine, "MOST_CELLS", table.cells)
    (found,) = engine.tables(rows, [table])
    assert found.sum() == 50
    monkeypatch.setattr(sql_engine, "MOST_CELLS", table.cells - 1)
    with pytest.raises(dpf.InputError, match=f"tables of up to {table.cells - 1} cells, not {table.cells}$"):
        engine.tables(rows, [table])
    engine.close()


def test_an_error_quotes_no_cell_and_leaves_no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = DuckDB(threads=1)
    with pytest.raises(
        dpf.InputError, match=r"^DuckDB cannot read .* \(ConversionException\); the text of its error is not shown"
    ):
        connection_of(engine).rows("select cast(x as integer) from (values ('secret')) as t(x)")
    files = TableFiles(parquet_of(TREE, 50, tmp_path / "t.parquet").path, dpf.Schema(TREE.attributes, rows=51))
    with pytest.raises(DoesNotFit, match="the number of rows is not the schema's public rows = 51"):
        engine.open(files)
    assert names_of_tables(engine) == []
    run = DuckDBConnection.run

    def fails(self: DuckDBConnection, statement: str) -> None:
        run(self, statement)
        if "dpf_codes" in statement and "create" in statement:
            raise dpf.InputError("the disk is full")

    monkeypatch.setattr(DuckDBConnection, "run", fails)
    with pytest.raises(dpf.InputError, match="the disk is full"):
        engine.open(TableFiles(files.path, TREE))
    monkeypatch.undo()
    assert names_of_tables(engine) == []
    rows = engine.open(TableFiles(files.path, TREE))
    assert len(names_of_tables(engine)) == 1
    assert "50" not in repr(rows) + repr(rows.table)
    engine.drop(rows)
    assert names_of_tables(engine) == []


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(dpf.InputError, match=r"needs the package duckdb; install it with: pip install"):
        DuckDBConnection()


# Databases.


def study_of_ill(schema: dpf.Schema, **unit: Any) -> dpf.Study:
    study = dpf.Study(schema, epsilon=1, **unit)
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
    return study


def test_a_column_that_is_called_as_the_places_of_rows_is_not_taken_for_them(tmp_path: Path) -> None:
    """Else a person could have more rows than the bound."""
    schema, person = dpf.Schema([dpf.Boolean("ill")]), dpf.PrivacyUnit("person", 1)
    rows = pl.DataFrame({"ill": [True] * 9, "person": [1] * 9, "file_row_number": [0] * 9, "RowId": [0] * 9})
    rows.write_parquet(tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(f"create table t as select * from '{tmp_path}/t.parquet'")
    engine = DuckDB(threads=1)
    with pytest.raises(dpf.InputError, match="has a column 'file_row_number', which DuckDB takes for the places"):
        engine.open(TableFiles(tmp_path / "t.parquet", schema, unit=person))
    assert engine.number(engine.open(TableFiles(tmp_path / "t.parquet", schema, ordered=False))) == 9
    engine.close()
    engine = DuckDB(threads=1, database=tmp_path / "clinic.duckdb")
    with pytest.raises(NotOpened, match="t: its rows have no order, which samples and the choice of a unit's rows"):
        engine.open(dpf.DatabaseTable("t", schema, unit=person))
    engine.close()


def test_columns_whose_names_differ_in_case_are_told_apart(tmp_path: Path) -> None:
    """DuckDB does not tell such names apart, and would read the first of these columns for both."""
    schema, person = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("Ill")]), dpf.PrivacyUnit("person", 2)
    rows = pl.DataFrame(
        {"ILL": [None] * 9, "Person": [1] * 9, "ill": [True] * 9, "Ill": [False] * 9, "person": range(9)}
    )
    rows.write_parquet(tmp_path / "t.parquet")
    for unit in (dpf.PrivacyUnit(), person):
        counts = []
        for engine in (dpf.InMemory(), DuckDB(threads=1)):
            held = engine.open(TableFiles(tmp_path / "t.parquet", schema, unit=unit))
            counts.append([dpf.queries.Histogram(own).evaluate(engine, held).tolist() for own in schema])
            engine.close()
        assert counts == [[[0, 9], [9, 0]]] * 2


def test_a_database_is_opened_for_reading_and_leads_to_nothing_else(tmp_path: Path) -> None:
    """Neither its tables' names nor its views are those of other files, or of variables of this process."""
    place, other = tmp_path / "clinic.duckdb", tmp_path / "other"
    pl.DataFrame({"ill": [True]}).write_parquet(f"{other}.parquet")
    with duckdb.connect(str(place)) as connection:
        connection.execute("create table t as select true as ill")
        connection.execute(f"create view elsewhere as select * from '{other}.parquet'")
    before, schema, frame = place.read_bytes(), dpf.Schema([dpf.Boolean("ill")]), pl.DataFrame({"ill": [True]})
    assert frame.height == 1  # a variable of this name
    engine = DuckDB(threads=1, database=place)
    for name in (f"{other}.parquet", "elsewhere", "frame", "memory.t"):
        with pytest.raises(NotOpened, match="the database has no such table or view, or this connection may not read"):
            engine.open(dpf.DatabaseTable(name, schema))
    for statement in ("insert into t values (true)", "create table u (x int)", "set enable_external_access = true"):
        with pytest.raises(dpf.InputError, match="DuckDB cannot read or count this table"):
            connection_of(engine).run(statement)
    with pytest.raises(NotOpened, match="engine 'duckdb' with a database reads tables of that database, and no other"):
        engine.open(TableFiles(f"{other}.parquet", schema))
    assert engine.number(engine.open(dpf.DatabaseTable("main.t", schema))) == 1
    engine.close()
    assert place.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["clinic.duckdb", "other.parquet"]
    with pytest.raises(NotOpened, match="t: engine 'duckdb' was given no database; name its file"):
        DuckDB(threads=1).open(dpf.DatabaseTable("t", schema))
    with pytest.raises(NotOpened, match="there is no such file; a DuckDB database is expected"):
        DuckDB(database=tmp_path / "none").open(dpf.DatabaseTable("t", schema))
    with pytest.raises(NotOpened, match="cannot be opened as a DuckDB database, since it is damaged, of another"):
        DuckDB(database=f"{other}.parquet").open(dpf.DatabaseTable("t", schema))
    with pytest.raises(NotOpened, match=r"engine 'memory' cannot read tables of a database; give the study"):
        study_of_ill(schema).run(dpf.DatabaseTable("t", schema), seed=0)
    for wrong in ({"timeout": 0}, {"threads": 0}):
        with pytest.raises(dpf.InputError, match="must be"):
            DuckDB(**wrong)


def test_a_day_that_stands_for_none_is_in_no_period(tmp_path: Path) -> None:
    """As in memory: a text of `null`, without a format of dates."""
    days = ["2026-02-01", "2026-02-02", "2026-01-31", "2026-02-01", "2026-02-28"]
    pl.DataFrame({"ill": [True] * 5, "who": list("abcde"), "day": days}).write_parquet(tmp_path / "t.parquet")
    schema = dpf.Schema([dpf.Boolean("ill")], read={"columns": {"day": {"null": ["2026-02-01"]}}})
    unit = dpf.PrivacyUnit("who", 1, period="month", date="day").during("2026-02")
    engine, rows = opened(TableFiles(tmp_path / "t.parquet", schema, unit=unit))
    try:
        counted = answer_of(dpf.queries.Count(), engine, rows, {})
    finally:
        engine.close()
    assert counted == dpf.read_table(tmp_path / "t.parquet", schema, unit=unit).rows == 2


@pytest.mark.parametrize("last", ["2026-02-28", None])
def test_an_owner_who_would_rather_be_stopped_is_stopped_by_a_row_without_a_date(
    last: str | None, tmp_path: Path
) -> None:
    """As in memory, and only by such a row: a column of dates alone has no missing cell to refuse."""
    pl.DataFrame({"ill": [True] * 2, "who": ["a", "b"], "day": ["2026-02-01", last]}).write_parquet(
        tmp_path / "t.parquet"
    )
    unit, schema = (
        dpf.PrivacyUnit("who", 1, period="month", date="day").during("2026-02"),
        dpf.Schema([dpf.Boolean("ill")]),
    )
    stopped = pytest.raises(DoesNotFit, match="no dates") if last is None else contextlib.nullcontext()
    engine = DuckDB(threads=1)
    with stopped:
        rows = engine.open(TableFiles(tmp_path / "t.parquet", schema, unit=unit, out_of_domain="error"))
        assert answer_of(dpf.queries.Count(), engine, rows, {}) == 2
    engine.close()
