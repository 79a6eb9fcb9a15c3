"""The files of a table before any is opened: into which pieces they are cut, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.tables import cell_notation_reader, reading, sources
from dpframework.tables.unread_table_files import TableFiles, UnreadTable

URL = "https://example.org/c.csv"
SCHEMA = dpf.Schema([dpf.Boolean("ill")])
VIEWS = dpf.Schema([dpf.Boolean("ill", view="left"), dpf.Boolean("old", view="right")])


@attrs.frozen
class Opened:
    """A source of which only its name is asked."""

    name: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.parquet", "b.PARQUET", "d.csv"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("places", "number", "parts"),
    [
        (["a.parquet"], 1, {"a.parquet": 1}),
        (["a.parquet"], 3, {"a.parquet": 3}),
        (["b.PARQUET"], 3, {"b.PARQUET": 3}),
        (["d.csv"], 3, {"d.csv": 1}),
        ([URL], 3, {URL: 3}),
        (["a.parquet", "d.csv"], 3, {"a.parquet": 2, "d.csv": 1}),
        (["a.parquet", "b.PARQUET", "d.csv", URL], 4, {"a.parquet": 1, "b.PARQUET": 1, "d.csv": 1, URL: 1}),
        (["a.parquet", "b.PARQUET", "d.csv", URL], 5, {"a.parquet": 2, "b.PARQUET": 2, "d.csv": 1, URL: 2}),
    ],
)
def test_files_are_cut_until_there_are_enough_pieces(
    places: list[str], number: int, parts: dict[str, int], folder: Path
) -> None:
    found = TableFiles(places, SCHEMA, key=b"k").pieces(number)
    at = {name: name if name == URL else os.path.join(os.path.realpath(folder), name) for name in parts}
    assert [(os.path.realpath(one.file) if one.file != URL else URL, one.part, one.side) for one in found] == [
        (at[name], (k, few), 0) for name, few in parts.items() for k in range(few)
    ]
    assert all(one.file == URL or os.path.isabs(one.file) for one in found)
    assert {(one.how.path, one.how.key) for one in found} == {((), None)}


def test_pieces_of_the_left_view_come_first(folder: Path) -> None:
    files = TableFiles("a.parquet", VIEWS, right="d.csv", id="who", unit=dpf.PrivacyUnit("who"))
    assert files.views == (("a.parquet",), ("d.csv",))
    assert [(Path(one.file).name, one.part, one.side) for one in files.pieces(2)] == [
        ("a.parquet", (0, 2), 0),
        ("a.parquet", (1, 2), 0),
        ("d.csv", (0, 1), 1),
    ]
    assert files.sources_by(("l", "r")) == {"ill": "l", "old": "r"}
    whole = TableFiles("a.parquet", VIEWS)
    assert whole.views == (("a.parquet",),)
    assert whole.sources_by(("t",)) == {"ill": "t", "old": "t"}
    with pytest.raises(dpf.InputError, match="matched by their positions, which only one process can do"):
        TableFiles("a.parquet", VIEWS, right="d.csv").pieces(2)


@pytest.mark.parametrize("options", [None, {}, {"aws_region": "eu-west-1"}, (("aws_region", "eu-west-1"),)])
def test_options_of_a_place_are_pairs(options: Any) -> None:
    files = TableFiles("a.parquet", SCHEMA, key=b"secret", options=options)
    assert files.options == tuple(dict(options or {}).items())
    assert "aws_region" not in repr(files)  # it may be a password
    assert "secret" not in repr(files)


@pytest.mark.parametrize("options", [None, {"aws_region": "eu-west-1"}])
def test_options_of_a_place_go_to_whoever_reads_it(
    options: dict[str, str] | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def refuse(*_: object, options: Any = None, **__: object) -> None:
        raise dpf.InputError(f"not read: {options}")

    monkeypatch.setattr(reading, "read_table", refuse)
    files = TableFiles("a.parquet", SCHEMA, options=options)
    with pytest.raises(dpf.InputError) as error:
        files.read()
    assert str(error.value) == f"not read: {options}"
    monkeypatch.setattr(sources, "open_source", lambda *of: (given.append(of), Opened("of the file"))[1])
    monkeypatch.setattr(cell_notation_reader, "as_written", lambda source, *_: source)
    (piece,) = files.pieces(1)
    assert [piece.source(name).name for name in (None, "of the table")] == ["of the file", "of the table"]
    assert given == [([piece.file], options, (0, 1), SCHEMA.read)] * 2


def test_two_views_are_read_as_one_table(tmp_path: Path) -> None:
    pl.DataFrame({"who": [1, 2, 3], "ill": [True, False, True]}).write_parquet(tmp_path / "l.parquet")
    pl.DataFrame({"who": [3, 1, 2], "old": [True, True, False]}).write_parquet(tmp_path / "r.parquet")
    unit = dpf.PrivacyUnit("who")
    files = TableFiles(tmp_path / "l.parquet", VIEWS, right=tmp_path / "r.parquet", id="who", unit=unit)
    table = files.read()
    assert sorted(zip(*table.codes.tolist(), strict=True)) == [(0, 0), (1, 1), (1, 1)]


def test_each_attribute_is_in_the_only_source_or_in_that_of_its_view() -> None:
    table = UnreadTable(schema=VIEWS)
    assert table.sources_by(["t"]) == {"ill": "t", "old": "t"}
    assert table.sources_by(["l", "r"]) == {"ill": "l", "old": "r"}


def test_the_key_that_chooses_rows_is_not_shown_and_the_policy_is_parsed() -> None:
    table = UnreadTable(schema=SCHEMA, key=b"secret", out_of_domain="missing", values=["ill"])
    assert "secret" not in repr(table)
    assert table.out_of_domain is OutOfDomain.MISSING
    assert table.values == frozenset({"ill"})
