"""DuckDB reads the columns of a Parquet file as other engines do, or refuses them before it reads a row."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.privacy_unit import ROW
from dpframework.tables.duckdb_engine import DuckDB
from dpframework.tables.unread_table_files import TableFiles

duckdb = pytest.importorskip("duckdb", reason="the extra 'database' is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra 'test' is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="the extra 'test' is not installed")

ROW_COUNT = 40
EVENING = [datetime.datetime(2024, 3, 31, 20) + datetime.timedelta(minutes=10 * k) for k in range(ROW_COUNT)]
MONTHLY = dpf.PrivacyUnit("who", 2, period="month", date="when").during("2024-03")


def write(folder: Path, **columns: object) -> Path:
    pq.write_table(pa.table({"ill": pa.array([True, False] * (ROW_COUNT // 2)), **columns}), folder / "t.parquet")
    return folder / "t.parquet"


def count(path: Path, schema: dpf.Schema, unit: dpf.PrivacyUnit = ROW) -> tuple[int, float]:
    """Return the rows that memory reads, and the rows that DuckDB counts with noise that is nearly always 0."""
    expected = dpf.read_table(path, schema, unit=unit, key=b"k").rows
    engine = DuckDB(threads=1)
    study = dpf.Study(schema, epsilon=100, unit=unit.id, rows_per_unit=unit.rows, period=unit.period, date=unit.date)
    study.add("rows", dpf.miner("count", epsilon=100))
    return expected, study.run(TableFiles(path, schema, unit=unit, key=b"k"), seed=1, engine=engine)["rows"].value


def test_days_are_those_of_memory_or_refused(tmp_path: Path) -> None:
    schema, whose = dpf.Schema([dpf.Boolean("ill")]), pa.array(list(range(ROW_COUNT)))
    for unit, zone in (("us", None), ("ms", None), ("us", "UTC")):
        path = write(tmp_path, who=whose, when=pa.array(EVENING, pa.timestamp(unit, tz=zone)))
        expected, found = count(path, schema, MONTHLY)
        assert expected == round(found) == 24
    for unit, zone, why in (
        ("ns", None, "column 'when' has the type TIMESTAMP_NS, which cannot be read as dates"),
        ("us", "Europe/Berlin", "column 'when' has times in a zone, which DuckDB reads in UTC; use engine 'memory'"),
    ):
        path = write(tmp_path, who=whose, when=pa.array(EVENING, pa.timestamp(unit, tz=zone)))
        with pytest.raises(dpf.InputError, match=why):
            count(path, schema, MONTHLY)


def test_times_in_a_zone_are_refused_only_where_they_are_read_as_dates(tmp_path: Path) -> None:
    path = write(tmp_path, when=pa.array(EVENING, pa.timestamp("us", tz="Europe/Berlin")))
    years = dpf.Numeric("when", 2020, 2030, bins=10)
    with pytest.raises(dpf.InputError, match="column 'when' has times in a zone, which DuckDB reads in UTC"):
        count(path, dpf.Schema([years], read={"columns": {"when": {"date": "iso"}}}))
    expected, found = count(path, dpf.Schema([years]))  # as numbers, all cells are outside of the domain
    assert expected == round(found) == ROW_COUNT


def test_lengths_of_time_are_no_numbers_and_no_ids(tmp_path: Path) -> None:
    path = write(tmp_path, stay=pa.array([datetime.timedelta(seconds=k) for k in range(ROW_COUNT)]))
    why = "column 'stay' has lengths of time, which DuckDB takes for something else; use engine 'memory' or 'mapped'"
    with pytest.raises(dpf.InputError, match=why):
        count(path, dpf.Schema([dpf.Numeric("stay", 0, 100, bins=4)]))
    with pytest.raises(dpf.InputError, match=r"'stay' has the type Duration; ids are numbers"):
        dpf.read_table(path, dpf.Schema([dpf.Boolean("ill")]), unit=dpf.PrivacyUnit("stay", 1))
    with pytest.raises(dpf.InputError, match=why):
        DuckDB(threads=1).open(TableFiles(path, dpf.Schema([dpf.Boolean("ill")]), unit=dpf.PrivacyUnit("stay", 1)))


def test_numbers_of_128_bits_are_no_bytes(tmp_path: Path) -> None:
    path, schema = tmp_path / "t.parquet", dpf.Schema([dpf.Numeric("n", 0, 9, bins=3, missing=True)])
    pl.DataFrame({"n": pl.Series([1, 5, None]).cast(pl.Int128)}).write_parquet(path)
    assert dpf.read_table(path, schema).columns[0].tolist() == [0, 1, 3]
    with pytest.raises(
        dpf.InputError, match="column 'n' has whole numbers of 128 bits, which DuckDB takes for something"
    ):
        DuckDB(threads=1).open(TableFiles(path, schema))


def test_ids_of_very_many_digits_are_refused_and_not_rounded_to_one_person(tmp_path: Path) -> None:
    path = write(tmp_path, who=pa.array([Decimal(10) ** 50 + k for k in range(ROW_COUNT)], pa.decimal256(60, 0)))
    files = TableFiles(path, dpf.Schema([dpf.Boolean("ill")]), unit=dpf.PrivacyUnit("who", 1))
    for read in (files.read, lambda: DuckDB(threads=1).open(files)):
        with pytest.raises(dpf.InputError, match="column 'who' has decimal numbers of more than 38 digits"):
            read()


def test_a_column_without_any_id_leaves_all_rows_out(tmp_path: Path) -> None:
    expected, found = count(
        write(tmp_path, who=pa.nulls(ROW_COUNT)), dpf.Schema([dpf.Boolean("ill")]), dpf.PrivacyUnit("who", 2)
    )
    assert expected == round(found) == 0


def test_a_zone_without_a_name_is_no_damage(tmp_path: Path) -> None:
    path = write(tmp_path, when=pa.array(EVENING, pa.timestamp("us", tz="+05:30")))
    with pytest.raises(dpf.InputError, match=r"has a column of times in a zone without a name, such as \+05:30; write"):
        dpf.read_table(path, dpf.Schema([dpf.Boolean("ill")]))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(dpf.InputError, match="since it is damaged or of another kind"):
        dpf.read_table(damaged, dpf.Schema([dpf.Boolean("ill")]))
    pq.write_table(pa.table([[True], [False]], names=["ill", "ill"]), path)
    with pytest.raises(dpf.InputError, match="has two columns of the same name; rename one of them"):
        dpf.read_table(path, dpf.Schema([dpf.Boolean("ill")]))
    pl.DataFrame({"ill": [True]}).write_parquet(path)
    assert dpf.read_table(path, dpf.Schema([dpf.Boolean("ill")])).rows == 1
