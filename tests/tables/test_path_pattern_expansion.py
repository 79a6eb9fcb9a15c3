"""No row of a file is read twice: it would count twice, and a claim about one row would hold for twice its loss."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.errors import NotOpened
from dpframework.study.study_file import load_study
from dpframework.tables.path_pattern_expansion import files_at

SCHEMA = dpf.Schema([dpf.Boolean("a")])
STUDY = """
[data]
path = {path}
schema = "s.toml"
[privacy]
epsilon = 1
relation = "add-or-remove-one"
allow = ["one-row-per-person", "noisy-result"]
[[step]]
name = "n"
miner = "count"
epsilon = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two files, a link of either kind to one of them, and a folder with another."""
    for name in ("d.parquet", "e.parquet", "f/g.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pl.DataFrame({"a": [True, False]}).write_parquet(tmp_path / name)
    os.symlink(tmp_path / "d.parquet", tmp_path / "symbolic.parquet")
    os.link(tmp_path / "d.parquet", tmp_path / "hard.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TWICE = [
    ["d.parquet", "d.parquet"],
    ["d.parquet", "./d.parquet"],
    ["d.parquet", "f/../d.parquet"],
    ["d.parquet", "symbolic.parquet"],
    ["d.parquet", "hard.parquet"],
    ["[de].parquet", "e.parquet", "d.parquet"],
    ["*.parquet"],  # the links, too
    ["f", "f/g.parquet"],
    ["f/g.parquet", "f/*"],
    ["f/**"],  # a folder, and what is in it
]


def read(places: list[str]) -> Any:
    return dpf.read_table(places, SCHEMA)


def files(places: list[str]) -> Any:
    return dpf.TableFiles(places, SCHEMA).files()


def pieces(places: list[str]) -> Any:
    return dpf.TableFiles(places, SCHEMA).pieces(2)


def lazily(places: list[str]) -> Any:
    return dpf.DuckDB(threads=1).open(dpf.TableFiles(places, SCHEMA))


URLS_OF_ONE_FILE = [
    ("d.parquet", "file://{here}/d.parquet"),
    ("file://{here}/symbolic.parquet", "file://{here}/%64.parquet"),
    ("s3://bucket/d.parquet", "s3a://bucket/f/../d.parquet"),
    ("http://h.example/d.parquet", "https://reader@H.example:443/d.parquet"),
]


@pytest.mark.parametrize("places", URLS_OF_ONE_FILE, ids=" ".join)
def test_a_file_that_two_urls_name_is_refused(folder: Path, places: tuple[str, str]) -> None:
    with pytest.raises(NotOpened, match="its rows would count twice"):
        files_at([place.format(here=folder) for place in places])


def test_urls_of_two_files_are_two_files() -> None:
    others = ["https://h.example/e.parquet", "https://h.example/d.parquet?v=2", "https://h.example:8443/d.parquet"]
    places = ["https://h.example/d.parquet", *others]
    assert files_at(places) == places


def test_a_folder_has_its_files_whatever_the_case_of_their_ending(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.PARQUET", "c.Parquet", "_d.PARQUET", "e.csv"):
        pl.DataFrame({"a": [True]}).write_parquet(tmp_path / name)
    assert [Path(file).name for file in files_at([tmp_path])] == ["a.parquet", "b.PARQUET", "c.Parquet"]
    assert dpf.read_table(tmp_path, SCHEMA).rows == 3


@pytest.mark.parametrize("opened", [read, files, pieces, lazily], ids=lambda opened: opened.__name__)
@pytest.mark.parametrize("places", TWICE, ids=" ".join)
def test_a_file_that_is_named_twice_is_refused(folder: Path, places: list[str], opened: Callable[..., Any]) -> None:
    if opened is lazily:
        pytest.importorskip("duckdb")
    with pytest.raises(NotOpened, match=r"would be read twice.*, and its rows would count twice; name each file once"):
        opened(places)


def test_files_that_are_named_once_are_read(folder: Path) -> None:
    assert files_at(["f", "d.parquet", "e.parquet"]) == ["f/g.parquet", "d.parquet", "e.parquet"]
    assert read(["f", "d.parquet", "e.parquet"]).rows == 6


@pytest.mark.parametrize(
    "other",
    ["s3://b/v/a.parquet", "s3://B/v/a.parquet", "s3://b/v//a.parquet", "s3://b/v/./a.parquet", "s3://b/%76/a.parquet"],
)
def test_a_url_that_is_named_twice_is_refused(other: str) -> None:
    first, different = "s3://b/v/a.parquet", "s3://b/v/c.parquet"
    assert files_at([first, different]) == [first, different]
    with pytest.raises(NotOpened, match="would be read twice"):
        files_at([first, different, other])


def test_a_study_that_names_its_file_twice_is_refused_before_it_runs(folder: Path) -> None:
    (folder / "s.toml").write_text('[[attribute]]\nname = "a"\nkind = "boolean"\n')
    for path, twice in (('["d.parquet", "hard.parquet"]', True), ('["d.parquet", "e.parquet"]', False)):
        (folder / "study.toml").write_text(STUDY.format(path=path))
        data = load_study(folder / "study.toml").data
        if twice:
            with pytest.raises(NotOpened, match=r"hard\.parquet: would be read twice, also as .*d\.parquet"):
                data.paths()
        else:
            assert len(data.paths()) == 2


def test_one_file_may_hold_both_views(folder: Path) -> None:
    views = dpf.Schema([dpf.Boolean("a", view="left"), dpf.Boolean("b", view="right")])
    pl.DataFrame({"id": [1, 2], "a": [True, False], "b": [True, True]}).write_parquet(folder / "both.parquet")
    given = dpf.TableFiles("both.parquet", views, right="both.parquet", id="id")
    assert given.read().rows == 2
    assert len(given.pieces(1)) == 2
