"""The folder of an experiment: finished cells are whole or not there, and one process at a time works in it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from dpframework.facts import InputError
from dpframework.lab.experiment.experiment_contents_and_grid import Cell
from dpframework.lab.experiment.finished_cell_store import CELLS, LOCK, Store, open_store, require_ours
from dpframework.lab.experiment.job import FinishedCell

CELL = Cell("adult", {}, "tree", {"max_depth": 2}, Fraction(1, 3), 1, None)
VALUES = {"error": 0.1, "gain": -math.inf, "left": math.inf}


def finished(key: str) -> FinishedCell:
    return FinishedCell(CELL, key, VALUES, 1.5)


def test_a_cell_that_is_kept_is_found_by_its_key(tmp_path: Path) -> None:
    with open_store(tmp_path / "out") as store:
        store.keep(finished("one"), 2**127)
        assert store.load_finished([("one", CELL), ("two", CELL)]) == {"one": finished("one")}
    form = json.loads((tmp_path / "out" / CELLS / "one.json").read_text())
    assert (form["private"], form["seed"], form["cell"]["epsilon"]) == (False, str(2**127), "1/3")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"values": 1, "seconds": 1}', '{"values": {"a": "x"}, "seconds": 1}'),
        '{"values": {"a": 1}, "seconds": 1' + "0" * 400 + "}",  # no float can hold it
    ],
)
def test_a_file_that_is_not_whole_is_no_finished_cell(tmp_path: Path, text: str) -> None:
    with open_store(tmp_path / "out") as store:
        (tmp_path / "out" / CELLS / "one.json").write_text(text)
        assert store.load_finished([("one", CELL)]) == {}


def test_what_is_no_number_is_measured_as_such(tmp_path: Path) -> None:
    with open_store(tmp_path / "out") as store:
        store.keep(FinishedCell(CELL, "one", {"error": math.nan}, 0.0), 1)
        (found,) = store.load_finished([("one", CELL)]).values()
        assert math.isnan(found.values["error"])


def test_one_process_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    busy = pytest.raises(InputError, match="another process is running an experiment here")
    with open_store(tmp_path / "out"), busy, open_store(tmp_path / "out"):
        pass
    with open_store(tmp_path / "out") as store:
        assert store == Store(tmp_path / "out")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    require_ours(tmp_path / "not there")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name, message in (("file", "is a file"), ("link", "symbolic link"), ("", "holds other files, such as 'file'")):
        with pytest.raises(InputError, match=message):
            require_ours(tmp_path / name)


@pytest.mark.parametrize("held", [(), (CELLS,), (CELLS, LOCK), (CELLS, LOCK, "table.csv")])
def test_a_folder_that_was_begun_is_ours(tmp_path: Path, held: tuple[str, ...]) -> None:
    for name in held:
        (tmp_path / name).mkdir()
    require_ours(tmp_path)


def test_what_a_killed_process_left_is_swept_and_cells_are_not(tmp_path: Path) -> None:
    with open_store(tmp_path / "out") as store:
        store.keep(finished("one"), 1)
        (tmp_path / "out" / ".table.csv.part").write_text("half")
        (tmp_path / "out" / CELLS / ".two.json.part").write_text("half")
        store.sweep()
        assert not list((tmp_path / "out").rglob("*.part"))
        assert list(store.load_finished([("one", CELL)])) == ["one"]
