"""Excel sheets and tables of databases: each cell is read as a CSV file's, and nothing of the rows is told."""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
import zipfile
from pathlib import Path

import pytest
import xlsxwriter

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.read_options import ReadOptions
from dpframework.study.owner_allowed_data_places import VARIABLE
from dpframework.study.study_file import load_study
from dpframework.tables.database_row_reader import as_texts
from dpframework.tables.excel_file import _exact_cells

SECRET = "ZmlzaGVybWFu"
NAMES = ("pid", "age", "cost", "day", "ill")
ROWS = [
    (1, 34.5, "3,5", datetime.date(2024, 3, 1), True),
    (2, "abc", "NULL", datetime.date(2024, 3, 2), False),
    (2, 0.1, "1.234,5", None, True),
    (3, None, "7", datetime.datetime(2024, 3, 4, 12, 30), False),
    (4, 41, "-", datetime.date(2023, 12, 31), None),
]
SCHEMA = dpf.Schema(
    [
        dpf.Numeric("age", 0, 100, bins=50, missing=True),
        dpf.Numeric("cost", 0, 2000, bins=40, missing=True),
        dpf.Numeric("day", 2020, 2030, bins=3650, missing=True),
        dpf.Boolean("ill", missing=True),
    ],
    read={
        "decimal": ",",
        "thousands": ".",
        "null": ["NULL"],
        "columns": {"age": {"decimal": "."}, "day": {"date": "iso"}},
    },
)


def asking(**read: str) -> dpf.Schema:
    own = ReadOptions.of(read).over(SCHEMA.read)
    return dpf.Schema(SCHEMA.attributes, read=own)


def sheet_of(path: Path, rows=ROWS, names=NAMES, above: int = 0) -> Path:
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("notes").write(0, 0, "nothing")
        sheet, days = book.add_worksheet("visits"), book.add_format({"num_format": "dd.mm.yyyy"})
        for row, cells in enumerate([names, *rows], start=above):
            for column, cell in enumerate(cells, start=above):
                if isinstance(cell, datetime.date | datetime.time):
                    sheet.write_datetime(row, column, cell, days)
                elif cell is not None:
                    sheet.write(row, column, cell)
    return path


def base_of(path: Path, rows=ROWS) -> Path:
    with sqlite3.connect(path) as base:
        base.execute(f"create table visits ({', '.join(NAMES)})")
        plain = [[c.isoformat() if isinstance(c, datetime.date) else c for c in row] for row in rows]
        base.executemany("insert into visits values (?, ?, ?, ?, ?)", plain)
    base.close()
    return path


def text_of(path: Path) -> Path:
    lines = [";".join(NAMES)]
    spell = lambda c: "" if c is None else c.isoformat() if isinstance(c, datetime.date) else str(c)  # noqa: E731
    lines += [";".join(map(spell, row)) for row in ROWS]
    path.write_text("\n".join(lines))
    return path


def codes(table: dpf.Table) -> list[list[int]]:
    return [column.tolist() for column in table.codes]


@pytest.fixture
def expected(tmp_path: Path) -> list[list[int]]:
    found = codes(dpf.read_table(text_of(tmp_path / "t.csv"), asking(separator=";")))
    assert found[2].count(3650) == 1  # one day is missing
    return found


def test_a_sheet_is_read_as_a_csv_file_is(tmp_path, expected):
    for above in (0, 3):
        path = sheet_of(tmp_path / f"t{above}.xlsx", above=above)
        assert codes(dpf.read_table(path, asking(sheet="visits"))) == expected
    assert codes(dpf.read_table(path, asking(sheet="visits"), unit=dpf.PrivacyUnit("pid", 2))) == expected


def test_a_table_and_a_query_are_read_as_a_csv_file_is(tmp_path, expected):
    path = base_of(tmp_path / "t.sqlite")
    assert codes(dpf.read_table(path, asking(table="visits"))) == expected
    url = f"sqlite:///{path}"
    assert codes(dpf.read_table(url, asking(query="select * from visits;"))) == expected
    assert codes(dpf.read_table(url, asking(table="visits"), unit=dpf.PrivacyUnit("pid", 2))) == expected
    few = dpf.read_table(path, asking(query="with some as (select * from visits where pid = 2) select * from some"))
    assert few.rows == 2


def test_a_cell_of_a_sheet_is_the_same_text_whatever_stands_beside_it(tmp_path):
    cells = [1, 1.5, 0.1, "01067", True, "x", 1e300, -7, datetime.date(2024, 3, 1), datetime.time(9, 30), " a "]
    texts = [dpf.tables.sources.open_source(sheet_of(tmp_path / f"{k}.xlsx", [(cell, k)], ("x", "k"), 1),
                                            read=ReadOptions(sheet="visits")).take(["x"])["x"].to_list()
             for k, cell in enumerate(cells)]  # fmt: skip
    together = sheet_of(tmp_path / "all.xlsx", [(cell, k) for k, cell in enumerate(cells)], ("x", "k"))
    source = dpf.tables.sources.open_source(together, read=ReadOptions(sheet="visits"))
    assert source.take(["x"])["x"].to_list() == [text for (text,) in texts]
    assert [text for (text,) in texts][8:10] == ["2024-03-01 00:00:00", "09:30:00"]
    assert (texts[0], texts[3], texts[4]) == (["1"], ["01067"], ["true"])


def test_a_number_of_a_sheet_keeps_its_digits(tmp_path):
    cells = [1 / 3, 3.2e-12, 5e-324, -2.5e-10, 123456.7890123456, 1e21, -0.0, 7.0, "007", "0.1234567891", True, None]
    path = sheet_of(tmp_path / "t.xlsx", [(cell, k) for k, cell in enumerate(cells)], ("x", "k"))
    source = dpf.tables.sources.open_source(path, read=ReadOptions(sheet="visits"))
    found = source.take(["x"])["x"].to_list()
    assert [float(text) for text in found[:8]] == [
        float(f"{cell:.16G}") for cell in cells[:8]
    ]  # as the file holds them
    assert found[8:] == ["007", "0.1234567891", "true", None]
    people = sheet_of(tmp_path / "p.xlsx", [(0.12345678911, 1), (0.12345678912, 2)], ("pid", "age"))
    schema = dpf.Schema([dpf.Numeric("age", 0, 9, bins=9)], read={"sheet": "visits"})
    assert dpf.read_table(people, schema, unit=dpf.PrivacyUnit("pid", 1)).rows == 2


def test_a_row_of_empty_cells_is_none_and_the_first_sheet_is_read_by_default(tmp_path):
    path = sheet_of(tmp_path / "t.xlsx", [(None, None), (1, 2), (None, None), (3, None), (None, None)], ("a", "b"))
    schema = dpf.Schema([dpf.Numeric("b", 0, 9, bins=9, missing=True)], read={"sheet": "visits"})
    assert dpf.read_table(path, schema).rows == 2
    with pytest.raises(dpf.InputError, match="has none of the requested columns"):
        dpf.read_table(path, dpf.Schema(schema.attributes))  # the notes


def test_what_is_wrong_with_a_workbook_is_one_sentence_that_shows_no_cell(tmp_path):
    twice = sheet_of(tmp_path / "twice.xlsx", [(SECRET, 1)], ("age", "age"))
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(twice.read_bytes()[:-200])
    other = tmp_path / "other.xlsx"
    other.write_text(SECRET)
    damaged = tmp_path / "damaged.xlsx"
    with zipfile.ZipFile(twice) as old, zipfile.ZipFile(damaged, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry)[: 300 if "sheet2" in entry.filename else None])
    schema = dpf.Schema([dpf.Numeric("age", 0, 100, bins=4)], read={"sheet": "visits"})
    for path, says in [
        (twice, "column 'age' occurs more than once"),
        (broken, "cannot be read as an Excel workbook"),
        (other, "cannot be read as an Excel workbook"),
        (damaged, "cannot be read as an Excel workbook|the sheet is empty|column"),
    ]:
        with pytest.raises(dpf.InputError, match=says) as refused:
            dpf.read_table(path, schema)
        assert SECRET not in str(refused.value)
        assert refused.value.__context__ is None
    with pytest.raises(dpf.InputError, match=r"twice.xlsx: has no sheet 'visit'; correct sheet in \[read\]") as refused:
        dpf.read_table(twice, dpf.Schema(schema.attributes, read={"sheet": "visit"}))
    assert type(refused.value) is dpf.InputError  # its cells were counted before: a ledger records it


def with_last_cell_at(path: Path, place: str, columns: int) -> Path:
    """Write a small sheet whose last cell says that it stands at a place far away."""
    names = tuple(f"c{column}" for column in range(columns))
    small = sheet_of(path.with_name("small.xlsx"), [(1,)], names)
    with zipfile.ZipFile(small) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry).replace(b'r="A2"', f'r="{place}"'.encode()))
    return path


def test_a_small_workbook_that_spans_all_cells_is_refused(tmp_path):
    for place in ("XFD1048576", "BM1048576", "XFD4097"):
        path = with_last_cell_at(tmp_path / "t.xlsx", place, 1)
        assert path.stat().st_size < 1 << 14
        with pytest.raises(dpf.InputError, match="spans more than the 67,108,864 cells"):
            dpf.read_table(path, SCHEMA)


def test_a_workbook_that_is_far_larger_unpacked_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dpframework.tables.excel_file.MOST_WORKBOOK_BYTES", 1 << 20)
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(sheet_of(path), "a", compression=zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/more.xml", b" " * (1 << 21))
    assert path.stat().st_size < 1 << 14
    with pytest.raises(dpf.InputError, match="has, unpacked, more than the 1 MiB that a workbook may have"):
        dpf.read_table(path, SCHEMA)


def test_a_sheet_that_the_quick_bounds_would_refuse_is_measured_exactly(tmp_path, monkeypatch):
    """They say 52 columns by 99,999 rows, and it has 27 by 37,000: a little below and above the limit here."""
    path = with_last_cell_at(tmp_path / "t.xlsx", "AA37000", 30)
    schema = dpf.Schema([dpf.Numeric("c26", 0, 9, bins=9)], read={"sheet": "visits"})
    monkeypatch.setattr("dpframework.tables.excel_file.MOST_SHEET_CELLS", 30 * 37_000)
    assert dpf.read_table(path, schema).rows == 1
    monkeypatch.setattr("dpframework.tables.excel_file.MOST_SHEET_CELLS", 27 * 37_000 - 1)
    with pytest.raises(dpf.InputError, match="a sheet spans more than"):
        dpf.read_table(path, schema)


@pytest.mark.parametrize(
    "query",
    [
        "delete from visits",
        "insert into visits values (1, 2, 3, 4, 5)",
        "drop table visits",
        "attach database 'other.db' as o",
        "select load_extension('x') as age, 1 as cost, 1 as day, 1 as ill",
        "select age from visits",  # a column lacks
        "pragma table_info(visits)",
        "select 1) t where age in (select age from",
    ],
)
def test_a_query_only_asks(tmp_path, query):
    path = base_of(tmp_path / "t.db")
    before = hashlib.sha256(path.read_bytes()).digest()
    for place in (path, f"sqlite:///{path}"):
        with pytest.raises(dpf.InputError) as refused:
            dpf.read_table(place, asking(query=query))
        assert "abc" not in str(refused.value)
    assert hashlib.sha256(path.read_bytes()).digest() == before


def test_a_file_of_sqlite_tells_its_tables_only(tmp_path):
    """A table-valued pragma is a SELECT, and changes or tells settings: only the authorizer stops it."""
    path = base_of(tmp_path / "t.db")
    query = "select 1 as age, name as cost, 1 as day, 1 as ill from pragma_table_info('visits')"
    with pytest.raises(dpf.InputError, match="refuses what"):
        dpf.read_table(path, asking(query=query))
    assert dpf.read_table(path, asking(query="select *, max(age, 1) from visits where exists (select 1)")).rows == 5


def test_rows_that_stop_a_query_are_not_told(tmp_path, monkeypatch):
    """The absolute value of the smallest number is an error of SQLite, on that row only."""
    monkeypatch.setattr("dpframework.tables.database_row_reader.BLOCK_ROWS", 4)
    rows = [(k, k, k, None, True) for k in range(9)] + [(1, -(2**63), SECRET, None, True)]
    path = base_of(tmp_path / "t.sqlite", rows)
    query = "select abs(age) as age, cost, day, ill from visits"
    with pytest.raises(dpf.InputError, match="the database could not answer; some of its rows") as refused:
        dpf.read_table(path, asking(query=query))
    assert refused.value.__context__ is None
    assert type(refused.value) is dpf.InputError  # rows were seen: a ledger records it


def test_what_no_database_is_asked_for_is_said(tmp_path):
    path = base_of(tmp_path / "t.sqlite")
    with pytest.raises(dpf.InputError, match=r"t.sqlite: is a database; name its table, or a query, in \[read\]"):
        dpf.read_table(path, SCHEMA)
    with pytest.raises(dpf.InputError, match="the URL of the database cannot be used") as refused:
        dpf.read_table(f"nothing://me:{SECRET}@host/base", asking(table="visits"))
    assert SECRET not in str(refused.value)
    with pytest.raises(dpf.InputError, match="the database cannot be reached; nothing was read") as unreached:
        dpf.read_table(f"sqlite:///{tmp_path}/none/t.sqlite", asking(table="visits"))
    assert {type(one.value).__name__ for one in (refused, unreached)} == {"NotOpened"}
    with pytest.raises(dpf.InputError, match="has a table and a query"):
        ReadOptions(table="a", query="select 1")
    with pytest.raises(dpf.InputError, match="query holds a semicolon"):
        ReadOptions(query="select 1; drop table visits")
    with pytest.raises(dpf.InputError, match="only one process can read a database"):
        dpf.TableFiles(path, asking(table="visits")).pieces(2)


def test_cells_that_text_cannot_hold_are_read_with_replacements():
    assert as_texts(["a\ud800", b"\xff1", float("nan"), 2**70]).to_list() == ["a?", "�1", None, str(2**70)]


STUDY = """
[data]
{data}
schema = "s.toml"
[privacy]
epsilon = 1
allow = [{allow}]
{read}
[[step]]
name = "ages"
miner = "histogram"
epsilon = 1
params = {{ attribute = "age" }}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    base_of(tmp_path / "t.sqlite")
    sheet_of(tmp_path / "t.xlsx")
    text_of(tmp_path / "t.csv")
    (tmp_path / "s.toml").write_text(dpf.Schema([SCHEMA["age"]]).dumps())
    (tmp_path / "places.toml").write_text(
        f'[data.hospital]\ndatabase = "sqlite:///{tmp_path}/t.sqlite"\noptions = {{ isolation_level = "DEFERRED" }}\n'
    )
    (tmp_path / "places.toml").chmod(0o600)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "places.toml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(folder: Path, data: str, read: str, allow: str = "") -> dpf.StudyPlan:
    (folder / "study.toml").write_text(STUDY.format(data=data, read=read, allow=allow))
    return load_study(folder / "study.toml").study.plan()


def test_a_study_with_a_query_assumes_that_its_rows_are_the_units_own(folder):
    table = checked(folder, 'path = "t.sqlite"', '[read]\ntable = "visits"')
    assert not table.refusals()
    query = checked(folder, 'path = "t.sqlite"', '[read]\nquery = "select * from visits"')
    assert [finding.code for finding in query.refusals()] == ["DP005"]
    assert "'rows-from-query'" in str(query.refusals()[0])
    allowed = checked(folder, 'path = "t.sqlite"', '[read]\nquery = "select * from visits"', '"rows-from-query"')
    assert not allowed.refusals()
    other = checked(folder, 'path = "t.sqlite"', '[read]\nquery = "select * from  visits"', '"rows-from-query"')
    assert len({table.hash, query.hash, allowed.hash, other.hash}) == 4
    assert "select * from visits" in str(allowed.content()["schema"])


@pytest.mark.parametrize(
    ("data", "read", "says"),
    [
        ('path = "t.csv"', 'table = "visits"', r"\[read\] has a table, and \[data\] is no database"),
        ('path = "t.csv"', 'sheet = "visits"', r"\[read\] has a sheet, and \[data\] is no Excel file"),
        ('path = "t.sqlite"', 'separator = ","', r"\[data\] is a database; name its table, or a query"),
        ('place = "hospital"', 'separator = ","', r"\[data\] is a database; name its table, or a query"),
        (
            'place = "hospital"\npath = "t"',
            'table = "visits"',
            r"\[data\] has 'path', and place 'hospital' is a database",
        ),
    ],
)
def test_a_study_that_asks_for_what_its_data_has_not_is_refused_before_it_is_opened(folder, data, read, says):
    with pytest.raises(dpf.InputError, match=says):
        checked(folder, data, f"[read]\n{read}")


def test_the_owners_database_is_shown_without_what_connects_to_it(folder, capsys):
    plan = checked(folder, 'place = "hospital"', '[read]\ntable = "visits"')
    (shown,) = plan.data
    assert shown == f"sqlite:///{folder}/t.sqlite (place 'hospital')"
    assert main(["run", "study.toml", "--out", "out", "--seed", "1"]) == 0
    for entry, says in (
        ("postgresql://me:secret@h/b", "database holds credentials"),
        ("t.db", "database must be a URL"),
    ):
        (folder / "places.toml").write_text(f'[data.hospital]\ndatabase = "{entry}"\n')
        with pytest.raises(dpf.InputError, match=says) as refused:
            checked(folder, 'place = "hospital"', '[read]\ntable = "visits"')
        assert "secret" not in str(refused.value)


def test_a_sheet_goes_from_infer_to_results_in_three_commands(folder, capsys):
    assert main(["schema", "infer", "t.xlsx", "--sheet", "visits", "--open", "cost", "--out", "s2.toml"]) == 0
    assert 'sheet = "visits"' in Path("s2.toml").read_text()
    assert main(["schema", "infer", "t.sqlite", "--query", "select * from visits", "--out", "s3.toml"]) == 0
    assert 'query = "select * from visits"' in Path("s3.toml").read_text()
    for path, schema in (("t.xlsx", "s2.toml"), ("t.sqlite", "s3.toml")):
        text = STUDY.format(data=f'path = "{path}"', read="", allow='"schema-inferred-from-data", "rows-from-query"')
        Path("study.toml").write_text(text.replace("s.toml", schema))
        assert main(["run", "study.toml", "--out", f"out-{path}", "--seed", "1"]) == 0
    for option, path in (("--sheet", "t.csv"), ("--table", "t.xlsx")):
        assert main(["schema", "infer", path, option, "visits"]) == 2
        assert option in capsys.readouterr().err


def test_rows_above_the_names_of_a_sheet_are_found_and_skipped(tmp_path, expected):
    titles = [(), ("of 2024", None), NAMES, *ROWS]
    path = sheet_of(tmp_path / "t.xlsx", titles, ("Report",), above=2)
    draft = dpf.draft_schema(path, read={"sheet": "visits"})
    assert draft.schema.read.skip == 2
    assert set(draft.schema.names) <= set(NAMES)
    assert codes(dpf.read_table(path, asking(sheet="visits", skip=2))) == expected
    with pytest.raises(dpf.InputError, match="no rows below the 99 rows that"):
        dpf.read_table(path, asking(sheet="visits", skip=99))


def test_rows_stay_with_their_people_where_a_query_gives_them_in_another_order_each_time(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        base.execute("create table visits (who, ill)")
        base.executemany("insert into visits values (?, ?)", [(k % 2, k % 2) for k in range(200)])
    base.close()
    read = ReadOptions(query="select who, ill from visits order by random()")
    schema = dpf.Schema([dpf.Boolean("ill")], read=read)
    table = dpf.read_table(tmp_path / "t.sqlite", schema, unit=dpf.PrivacyUnit("who", 100))
    assert table.unit_codes is not None
    assert [len(set(table.columns[0][table.unit_codes == person].tolist())) for person in (0, 1)] == [1, 1]


def test_the_cells_of_a_sheet_are_those_up_to_its_last_row_and_column() -> None:
    assert _exact_cells(iter([b'<c r="C7"/><c r="A9"/>', b'<c r="AA3"/>'])) == 9 * 27
    assert _exact_cells(iter([])) == 1
    columns = (b"A", b"Z", b"AA", b"az", b"XFD")
    assert [_exact_cells(iter([b'<c r="%s1"/>' % one])) for one in columns] == [1, 26, 27, 52, 16384]
