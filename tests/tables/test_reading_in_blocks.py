"""Reading in blocks, and of many files: the same table however its rows are cut."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import dpframework as dpf
from dpframework.facts.errors import DoesNotFit, NotOpened
from dpframework.facts.privacy_unit import ROW
from dpframework.study import load_study
from dpframework.tables import csv_file, parquet_files
from dpframework.tables.contribution_bounding import RowChoice
from dpframework.tables.reading_progress import watch_progress
from dpframework.tables.sources import open_source

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill", missing=True),
        dpf.Categorical("town", ["A", "B, C", "7"], missing=True),
        dpf.Numeric("age", 0, 100, bins=5, missing=True),
    ]
)
FRAME = pl.DataFrame(
    {
        "ill": ["yes", "0", "", "TRUE", "no", "1", "maybe"] * 9,
        "town": ["A", "B, C", "7.0", "", "a line\nbreak", 'a "quote"', " A"] * 9,
        "age": ["20", "1e1", "", "x", "-5", "99.5", "40"] * 9,
        "person": [str(k // 3) for k in range(63)],
    }
)


def same(one: dpf.Table, other: dpf.Table) -> bool:
    values = all(np.array_equal(one.values[name], other.values[name], equal_nan=True) for name in other.values)
    return values and set(one.values) == set(other.values) and np.array_equal(one.codes, other.codes)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 16)
    monkeypatch.setattr(parquet_files, "FEWEST_ROWS", 1)
    monkeypatch.setattr(parquet_files, "MOST_ROWS", 4)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("unit", [ROW, dpf.PrivacyUnit("person", 2)], ids=["rows", "units"])
def test_blocks_of_a_file_are_the_table(name: str, unit: dpf.PrivacyUnit, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        FRAME.write_parquet(path, row_group_size=10)
    else:
        text = FRAME.write_csv().encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else b"\xef\xbb\xbf\r\n" + text)
    whole = dpf.table_from_frame(FRAME, SCHEMA, unit=unit, key=b"k")
    read = dpf.read_table(path, SCHEMA, unit=unit, key=b"k")
    assert same(read, whole)
    if unit.groups_rows:
        assert np.array_equal(read.unit_codes, whole.unit_codes)  # type: ignore[arg-type]


CELLS = st.text(st.sampled_from('A7 ,"\n\r.é'), max_size=5).filter(lambda cell: cell.strip("\r\n") == cell)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=12),
    size=st.integers(1, 40),
    ending=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_csv_is_read_the_same_in_blocks_of_any_size(
    rows: list[tuple[str, str]],
    size: int,
    ending: str,
    last: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in (("town", "other"), *rows)]
    path = tmp_path / "t.csv"
    path.write_bytes((ending.join(lines) + ending * last).encode())
    schema = dpf.Schema([dpf.Categorical("town", ["A", "7"]), dpf.Categorical("other", ["A", "A,"], missing=True)])
    whole = dpf.read_table(path, schema)
    assert whole.codes.shape[1] == len(rows)
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", size)
    assert same(dpf.read_table(path, schema), whole)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rows", [0, 1, 63])
def test_a_mapped_table_is_the_same_and_leaves_no_file(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FRAME[:rows].write_parquet(tmp_path / "t.parquet")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "temporary").mkdir()
    mapped = dpf.read_table(tmp_path / "t.parquet", SCHEMA, mapped=True)
    assert not list((tmp_path / "temporary").iterdir())
    assert same(mapped, dpf.read_table(tmp_path / "t.parquet", SCHEMA))
    counts = dpf.queries.JointHistogram(SCHEMA.attributes)
    found = [counts.evaluate(engine, engine.load(mapped)).tolist() for engine in (dpf.Mapped(), dpf.InMemory())]
    assert found[0] == found[1]


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    FRAME.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "wb", buffering=0))  # noqa: SIM115
    with pytest.raises(
        dpf.InputError, match="temporary file cannot be written: No space left on device; name a folder"
    ):
        dpf.read_table(tmp_path / "t.parquet", SCHEMA, mapped=True)


def test_many_files_are_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "visits"
    (folder / "late").mkdir(parents=True)
    FRAME[:20].write_parquet(folder / "a.parquet")
    FRAME[20:21].with_columns(age=pl.lit(None), town=pl.lit("B, C")).write_parquet(folder / "b.parquet")
    FRAME[21:40].write_parquet(folder / "c.parquet")
    FRAME[40:].select("person", "age", "town", "ill").write_parquet(folder / "late" / "d.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    parts = [folder / name for name in ("a.parquet", "b.parquet", "c.parquet", "late/d.parquet")]
    rows = pl.concat([FRAME[:20], FRAME[20:21].with_columns(age=pl.lit(""), town=pl.lit("B, C")), FRAME[21:]])
    whole = dpf.table_from_frame(rows, SCHEMA)
    for place in (folder, str(folder / "**" / "*.parquet"), parts, [f"file://{part}" for part in parts]):
        assert same(dpf.read_table(place, SCHEMA), whole), place
    unit = dpf.PrivacyUnit("person", 2)
    assert same(
        dpf.read_table(folder, SCHEMA, unit=unit, key=b"k"), dpf.table_from_frame(rows, SCHEMA, unit=unit, key=b"k")
    )
    FRAME[:20].write_csv(tmp_path / "a.csv")
    assert same(dpf.read_table([tmp_path / "a.csv", *parts[1:]], SCHEMA), whole)


def test_a_column_of_several_files_keeps_its_type_or_is_text(tmp_path: Path) -> None:
    pl.DataFrame({"n": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"n": [3]}).write_parquet(tmp_path / "b.parquet")
    two = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    source = open_source(two)
    assert source.name == "a.parquet and 1 more file"
    assert source.take(["n"])["n"].to_list() == [1, 2, 3]
    pl.DataFrame({"n": [2.5]}).write_parquet(tmp_path / "b.parquet")
    assert open_source(two).take(["n"])["n"].to_list() == ["1", "2", "2.5"]


def test_files_that_are_not_there_or_lack_a_column_are_one_sentence(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    FRAME.drop("age").write_parquet(tmp_path / "b.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(dpf.InputError, match=r"^b\.parquet: has no column 'age'; correct the names"):
        dpf.read_table(tmp_path, SCHEMA)
    for place, sentence in [
        (tmp_path / "empty", "is a directory without Parquet files"),
        (tmp_path / "c*.parquet", "there is no such file"),
        ([], "the list of files is empty"),
        ([tmp_path / "a.parquet", tmp_path / "a.xlsx"], "there is no such file"),
    ]:
        with pytest.raises(NotOpened, match=sentence):
            dpf.read_table(place, SCHEMA)
    (tmp_path / "empty.parquet").write_bytes(b"")
    with pytest.raises(dpf.InputError, match=r"^empty\.parquet: is empty; save the table there again"):
        dpf.read_table(tmp_path / "empty.parquet", SCHEMA)
    with pytest.raises(dpf.InputError, match="nothing: cannot be read from its URL: there is no such file"):
        dpf.read_table("file:///not/there/nothing", SCHEMA)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("first", [True, False])
def test_what_is_refused_does_not_depend_on_the_order_of_the_rows(first: bool, tmp_path: Path) -> None:
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=5)])
    cells = {"ill": ["yes"] * 8 + ["maybe"], "age": ["x"] + ["20"] * 7 + ["200"]}
    frame = pl.DataFrame(cells)
    (frame if first else frame.reverse()).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DoesNotFit, match="'ill' holds values that are neither true nor false"):
        dpf.read_table(tmp_path / "t.parquet", schema, out_of_domain="error")
    with pytest.raises(DoesNotFit, match="'age' holds values that are not numbers"):
        dpf.read_table(tmp_path / "t.parquet", dpf.Schema([schema["age"]]), out_of_domain="error")


def test_a_file_that_changes_between_two_passes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    FRAME.write_csv(path)

    def longer(*given: object, **named: object) -> RowChoice:
        FRAME.vstack(FRAME).write_csv(path)
        return chosen(*given, **named)  # type: ignore[arg-type]

    chosen = RowChoice.of
    monkeypatch.setattr(RowChoice, "of", longer)
    with pytest.raises(dpf.InputError, match=r"^t\.csv: changed while it was read; read it again$"):
        dpf.read_table(path, SCHEMA, unit=dpf.PrivacyUnit("person", 2))


NUMBERS = dpf.Schema([dpf.Numeric("age", 0, 100, bins=5), dpf.Numeric("income", 0, 10, bins=2), dpf.Boolean("ill")])


@pytest.mark.parametrize(
    ("miner", "values"),
    [
        (dpf.miner("count", epsilon=1), set()),
        (dpf.miner("count", where={"below": ["age", 20]}, epsilon=1), set()),
        (dpf.miner("count", where={"not": {"below": ["age", 21]}}, epsilon=1), {"age"}),
        (dpf.miner("histogram", attribute="age", epsilon=1), set()),
        (dpf.miner("histogram", attribute="age", bins=7, epsilon=1), {"age"}),
        (dpf.miner("mean", attribute="income", epsilon=1), {"income"}),
        (dpf.miner("dp-id3", target="ill", epsilon=1), set()),
        (dpf.miner("dp-id3", target="ill", numeric="density", epsilon=1), {"age", "income", "ill"}),
    ],
    ids=lambda given: str(given) if isinstance(given, dpf.Miner) else "",
)
def test_only_values_that_a_miner_reads_are_kept(miner: dpf.Miner, values: set[str]) -> None:
    assert set(miner.values_read(NUMBERS) or ()) == values
    study = dpf.Study(NUMBERS, epsilon=1)
    study.add("step", miner)
    table = dpf.Table.from_codes(NUMBERS, [[0, 1, 2, 4], [0, 1, 1, 0], [0, 1, 1, 1]])
    one, other = (study.run(given, seed=1)["step"] for given in (table, table.with_values(values)))
    assert str(one) == str(other)


def test_a_miner_that_forgets_values_is_stopped_in_every_run() -> None:
    class Forgetful(type(dpf.miner("mean", attribute="age", epsilon=1))):  # type: ignore[misc]
        def values_read(self, schema: dpf.Schema) -> tuple[str, ...]:
            return ()

    study = dpf.Study(NUMBERS, epsilon=1)
    study.add("step", Forgetful("age", epsilon=1))
    table = dpf.Table.from_codes(NUMBERS, [[0, 1], [0, 1], [0, 1]])
    with pytest.raises(dpf.InputError, match=r"attribute 'age' has no raw values: .* names it in values_read"):
        study.run(table, seed=1)


def test_a_study_file_reads_many_files_and_keeps_the_values_that_it_needs(tmp_path: Path) -> None:
    NUMBERS.dump(tmp_path / "s.toml")
    frame = pl.DataFrame({"age": [20.0, 30.5], "income": [1.0, 2.0], "ill": [True, False]})
    for k in range(3):
        frame.write_parquet(tmp_path / f"{k}.parquet")

    def read(path: str) -> dpf.Table:
        (tmp_path / "study.toml").write_text(
            f'[data]\npath = {path}\nschema = "s.toml"\n[privacy]\nepsilon = 1\n'
            '[[step]]\nname = "mean"\nminer = "mean"\nepsilon = 1\nparams = { attribute = "income" }\n'
        )
        return load_study(tmp_path / "study.toml").read()

    assert list(read('"*.parquet"').values) == ["income"]
    for path, rows in [
        ('"*.parquet"', 6),
        ('"."', 6),
        ('["0.parquet", "1.parquet"]', 4),
    ]:
        assert read(path).codes.shape[1] == rows, path
    for path, sentence in [
        ("[]", r"\[data\] path must be a text, or a list of texts"),
        ('["a.csv", 3]', r"\[data\] path must be a text, or a list of texts"),
        ('["a.csv", ""]', r"\[data\] path must be a text, or a list of texts"),
        ('"a.parquet"\noptions = { key = "secret" }', r"\[data\] has options, and a study file cannot set"),
    ]:
        with pytest.raises(dpf.InputError, match=sentence):
            read(path)


def test_whoever_watches_is_told_of_files_and_never_of_rows(tmp_path: Path) -> None:
    for k, rows in enumerate((3, 0, 50)):
        pl.DataFrame({"ill": pl.Series([True] * rows, dtype=pl.Boolean)}).write_parquet(tmp_path / f"{k}.parquet")
    told: list[tuple[float, int]] = []
    with watch_progress(lambda *numbers: told.append(numbers)):
        dpf.read_table(tmp_path, dpf.Schema([dpf.Boolean("ill")]))
    assert list(dict.fromkeys(told)) == [(0, 3), (1, 3), (2, 3), (3, 3)]
    number = len(told)
    dpf.read_table(tmp_path, dpf.Schema([dpf.Boolean("ill")]))
    assert len(told) == number


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_whoever_watches_is_told_which_share_of_a_file_was_read_but_not_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(parquet_files, "MOST_ROWS", 1 << 14)
    frame, place = pl.DataFrame({"ill": np.arange(1 << 16) % 7 % 2 == 0}), tmp_path / f"0.{kind}"
    if kind == "parquet":
        frame.write_parquet(place)
    else:
        text = frame.write_csv().encode()
        place.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    other = tmp_path / f"1.{kind}"
    other.write_bytes(place.read_bytes())
    told: list[tuple[float, int]] = []
    with watch_progress(lambda *numbers: told.append(numbers)):
        dpf.read_table([place, other], dpf.Schema([dpf.Boolean("ill")]))
    done = [files for files, _ in told]
    assert done == sorted(done)
    assert (done[0], done[-1], {of for _, of in told}) == (0, 2, {2})
    for file in range(2):
        shares = {round(4 * (share - file)) / 4 for share in done}
        assert {1.0} | ({0.5} if kind == "csv" else set()) <= shares  # a small packed file is read at once
    if kind == "parquet":  # blocks have a public number of rows: their share of all tells how many there are
        assert set(done) == {0, 1, 2}
