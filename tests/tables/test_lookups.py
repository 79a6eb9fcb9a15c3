"""Lookups in public tables: one row gives one row, the domain is public, and the table is part of the plan."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts import public_lookup_tables
from dpframework.facts.public_lookup_tables import rows_of_public_file
from dpframework.study.study_file import load_study
from dpframework.verify import check_derivation

POSTCODE = dpf.Categorical("postcode", ["10115", "20095", "01067"], missing=True)
COLUMNS = [POSTCODE, dpf.Boolean("ill"), dpf.Numeric("age", 0, 99, bins=9)]
CSV = "plz,land,rain,town\n10115,Berlin,570,yes\n20095,Hamburg,770.5,yes\n01067,,,\n99999,Thuringia,1,no\n"
CELLS = {"postcode": ["20095", "10115", "01067", None], "ill": [True, False, True, False], "age": [0, 10, 20, 99]}


def schema_of(value: str = "postcode", **options) -> dpf.Schema:
    return dpf.Schema(COLUMNS, derive=[dpf.derive("d", value, **options)])


def cells_of(schema: dpf.Schema) -> list:
    """The derived cells of four rows, as Python has them, None where missing."""
    table, attribute = dpf.table_from_columns(CELLS, schema), schema["d"]
    if isinstance(attribute, dpf.Numeric):
        return [None if math.isnan(x) else x for x in table.values["d"].tolist()]
    return [attribute.labels[code] for code in table.columns[schema.index("d")].tolist()]


@pytest.mark.parametrize(
    ("value", "lookup", "expected"),
    [
        ("postcode", {"10115": "Berlin", "20095": "Hamburg"}, ["Hamburg", "Berlin", "missing", "missing"]),
        ("postcode", {"10115.0": 570, "20095": 770.5}, [770.5, 570, None, None]),
        ("postcode", {"10115": True, "01067": False}, ["missing", "true", "false", "missing"]),
        ("ill", {"true": "sick", "false": "well"}, ["sick", "well", "sick", "well"]),
        ("floor(age / 10)", {"0": "child", "1": "teen", "2": "teen"}, ["child", "teen", "teen", "missing"]),
        ("fill(postcode, '?')", {"?": 1, "10115": 0}, [None, 0, None, 1]),
        ("postcode", {"10115": True}, ["missing", "true", "missing", "missing"]),
        ("postcode", {"10115": "Berlin"}, ["missing", "Berlin", "missing", "missing"]),
    ],
)
def test_a_cell_is_what_the_table_says_of_its_key(value, lookup, expected):
    schema = schema_of(value, lookup=lookup)
    assert cells_of(schema) == expected
    found = check_derivation(schema, tables=20)
    assert found.passed, str(found)


def test_the_domain_is_what_keys_of_the_schema_lead_to():
    labels = schema_of(lookup={"10115": "Berlin", "20095": "Hamburg", "99999": "Thuringia"})["d"]
    assert labels == dpf.Categorical("d", ["Berlin", "Hamburg"], missing=True)
    numbers = schema_of(lookup={"10115": 570, "20095": 770.5, "99999": 1e6})["d"]
    assert (numbers.lower, numbers.upper, numbers.missing) == (570, 770.5, True)
    assert schema_of("ill", lookup={"true": "sick", "false": "well"})["d"].missing is False
    declared = schema_of(lookup={"10115": 570, "20095": 770.5}, lower=0, upper=700, bins=7)
    assert cells_of(declared) == [700, 570, None, None]
    listed = schema_of(lookup={"10115": "b", "20095": "h"}, values=["h", "b", "x"])
    assert cells_of(listed) == ["h", "b", "missing", "missing"]


@pytest.mark.parametrize(
    ("value", "lookup", "says"),
    [
        ("age", {"1": 2}, "may not be whole"),
        ("postcode", {"7": "x"}, "finds none of the cells' values, such as '10115'"),
        ("postcode", {}, "no key with a value"),
        ("postcode", {"7": 1, "7.0": 2}, "'7.0' twice, with '1.0' and '2.0'; a row would become two"),
        ("postcode", {"1": "a", "2": 3}, "several kinds"),
        ("postcode", {"1": math.inf}, "finite"),
        ("postcode", {" ": 1}, "must not be blank"),
        ("postcode", {"1": [1]}, "must be a text"),
        ("postcode", {str(k): k for k in range(100_001)}, "more than 100,000 keys"),
    ],
    ids=range(9),
)
def test_a_table_that_is_no_lookup_is_refused(value, lookup, says):
    with pytest.raises(dpf.InputError, match=says):
        schema_of(value, lookup=lookup)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "towns.csv").write_text(CSV)
    (tmp_path / "visits.csv").write_text("postcode,ill,age\n10115,true,3\n")
    schema = "\n".join(dpf.Schema(COLUMNS).dumps().splitlines())
    lookup = '\n[[derive]]\nname = "rain"\nvalue = "postcode"\ntable = "towns.csv"\n'
    (tmp_path / "schema.toml").write_text(schema + lookup)
    (tmp_path / "study.toml").write_text(
        """
        data = { path = "visits.csv", schema = "schema.toml" }
        privacy = { epsilon = 1 }
        [[derive]]
        name = "land"
        value = "postcode"
        table = "towns.csv"
        key = "plz"
        column = "land"
        [[step]]
        name = "h"
        miner = "histogram"
        epsilon = 1
        params = { attribute = "land" }
        """
    )
    return tmp_path


def test_a_study_and_its_schema_name_a_file_whose_content_is_in_the_plan(folder):
    study = load_study(folder / "study.toml").study
    inline = [
        dpf.derive("rain", "postcode", lookup={"10115": 570, "20095": 770.5, "99999": 1}),
        dpf.derive("land", "postcode", lookup=dpf.PublicTable.read(folder / "towns.csv", "land")),
    ]
    assert study.schema == dpf.Schema(COLUMNS, derive=inline)
    assert dpf.Schema.loads(study.schema.dumps()) == study.schema
    plan = study.plan()
    digest = study.schema.derive[1].lookup.digest
    says = f"land = postcode, looked up in a public table of 3 keys with the SHA-256 {digest}"
    assert plan.facts.derive[1] == says
    (folder / "towns.csv").write_text(CSV.replace("yes", "no"))  # a column that nobody looks up
    assert load_study(folder / "study.toml").study.plan().hash == plan.hash
    (folder / "towns.csv").write_text(CSV.replace("Hamburg", "Bremen"))
    assert load_study(folder / "study.toml").study.plan().hash != plan.hash


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"towns.csv"', '"../towns.csv"', "leaves its folder"),
        ('"towns.csv"', '"none.csv"', "there is no such file"),
        ('"towns.csv"', '"visits.csv"', "is the private table itself"),
        ('"towns.csv"', '"link.csv"', "is the private table itself"),
        ('"plz"', '"plc"', "no column 'plc'; did you mean 'plz'"),
        ('"plz"', "7", "key must be a text"),
        ('table = "towns.csv"', 'table = "towns.csv"\nlookup = { a = 1 }', "both table and lookup"),
        ('table = "towns.csv"', "lookup = 3", "'key' without table"),
        ('table = "towns.csv"\n        key = "plz"\n        column = "land"', "lookup = 3", "keys and values"),
    ],
)
def test_a_table_that_no_study_may_read_is_refused(folder, old, new, says):
    (folder / "link.csv").symlink_to(folder / "visits.csv")
    study = folder / "study.toml"
    study.write_text(study.read_text().replace(old, new))
    with pytest.raises(dpf.InputError, match=says):
        load_study(study)


@pytest.mark.parametrize("table", ["visits/a.parquet", "hard.parquet", "soft.parquet", "visits/b.parquet"])
@pytest.mark.parametrize(
    "path",
    ["visits", "v*", "visits/*.parquet", "visits/?.parquet", ["visits/a.parquet", "visits/b.parquet"], "."],
)
def test_no_file_of_the_private_table_is_looked_up_whatever_names_it(folder, path, table):
    """A row would get another row's cell: what one person has would count as often as there are rows."""
    (folder / "visits").mkdir()
    for name in ("a", "b"):
        pl.DataFrame({"plz": ["10115"], "land": ["ill"]}).write_parquet(folder / "visits" / f"{name}.parquet")
    (folder / "hard.parquet").hardlink_to(folder / "visits" / "a.parquet")
    (folder / "soft.parquet").symlink_to(folder / "visits" / "a.parquet")
    study = folder / "study.toml"
    study.write_text(study.read_text().replace('"visits.csv"', json.dumps(path)))
    load_study(study)  # towns.csv is none of them
    study.write_text(study.read_text().replace('"towns.csv"', f'"{table}"'))
    with pytest.raises(dpf.InputError, match="is the private table itself"):
        load_study(study)


def test_no_file_of_the_owners_place_is_looked_up(folder, monkeypatch):
    (folder / "places.toml").write_text(f'[data.hospital]\npath = "{folder}"\n')
    (folder / "places.toml").chmod(0o600)
    monkeypatch.setenv("DPFRAMEWORK_PLACES", str(folder / "places.toml"))
    study = folder / "study.toml"
    study.write_text(study.read_text().replace('path = "visits.csv"', 'place = "hospital", path = "visits.csv"'))
    load_study(study)
    study.write_text(study.read_text().replace('"towns.csv"', '"visits.csv"'))
    with pytest.raises(dpf.InputError, match="is the private table itself"):
        load_study(study)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("a,d\n1\n", "different lengths"),
        ('a,d\n"1,2\n', "is not CSV"),
        ("a,d,d\n1,2,3\n", "has 'd' twice"),
        ("a,d\n1,\n", "no key with a value"),
        ("a,d\n1,x\n1,y\n", "'1' twice"),
    ],
)
def test_a_file_that_is_no_lookup_is_refused_by_its_name(tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(dpf.InputError, match=says) as error:
        dpf.PublicTable.read(tmp_path / "t.csv", "d")
    assert "t.csv: " in str(error.value)


def test_the_kind_of_a_column_follows_from_all_its_cells(tmp_path):
    (tmp_path / "t.csv").write_text("k,number,code,truth,text\n1,2,007,yes,1\n2, 1e3 ,008,true,true\n3,-0,1,FALSE,x\n")
    read = {name: dpf.PublicTable.read(tmp_path / "t.csv", name, "k") for name in ("number", "code", "text")}
    assert [value for _, value in read["number"].pairs] == [2.0, 1000.0, 0.0]
    assert [value for _, value in read["code"].pairs] == ["007", "008", "1"]
    assert [value for _, value in read["text"].pairs] == ["1", "true", "x"]
    (tmp_path / "t.csv").write_text("k,truth\n1,true\n2,FALSE\n")
    assert dpf.PublicTable.read(tmp_path / "t.csv", "truth").pairs == (("1", True), ("2", False))


def test_a_file_is_named_where_there_is_a_folder():
    text = dpf.Schema(COLUMNS).dumps() + '[[derive]]\nname = "d"\nvalue = "postcode"\ntable = "towns.csv"\n'
    with pytest.raises(dpf.InputError, match="load the schema from its file"):
        dpf.Schema.loads(text)


def test_cells_of_parquet_are_written_as_a_csv_file_holds_them(tmp_path):
    frame = pl.DataFrame(
        {"a": [True, False, None], "b": [0.1, math.nan, None], "c": [7, None, -1], "d": ["x", "", None]}
    )
    frame.write_parquet(tmp_path / "t.parquet")
    assert rows_of_public_file(tmp_path / "t.parquet") == [
        ["a", "b", "c", "d"], ["true", "0.1", "7", "x"], ["false", "", "", ""], ["", "", "-1", ""]
    ]  # fmt: skip


def test_a_public_table_is_as_large_as_may_be_and_no_larger(tmp_path, monkeypatch):
    file = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(file)
    monkeypatch.setattr(public_lookup_tables, "MOST_BYTES", file.stat().st_size)
    assert rows_of_public_file(file) == [["a"], ["1"]]
    monkeypatch.setattr(public_lookup_tables, "MOST_BYTES", file.stat().st_size - 1)
    with pytest.raises(dpf.InputError, match="large"):
        rows_of_public_file(file)


def test_parquet_and_excel_files_are_the_same_tables_as_csv(tmp_path):
    frame = pl.DataFrame({"plz": [10115, 20095, 7], "land": ["Berlin", "Hamburg", None], "rain": [570.0, 770.5, 1]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    files = [tmp_path / "t.csv", tmp_path / "t.parquet"]
    if find_spec("xlsxwriter") and find_spec("fastexcel"):
        frame.write_excel(tmp_path / "t.xlsx")
        files.append(tmp_path / "t.xlsx")
    for column in ("land", "rain"):
        assert len({dpf.PublicTable.read(file, column).digest for file in files}) == 1
    for name in ("no.parquet", "no.xlsx"):
        with pytest.raises(dpf.InputError, match=r"no\.(parquet|xlsx): cannot be read: No such file"):
            dpf.PublicTable.read(tmp_path / name, "land")
        (tmp_path / name).write_bytes(b"PAR1 or not")
        with pytest.raises(dpf.InputError, match=r"no\.(parquet|xlsx): (cannot be read as|Excel files need)"):
            dpf.PublicTable.read(tmp_path / name, "land")
