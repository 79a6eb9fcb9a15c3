"""The folder of an experiment, with one JSON file for each finished cell, and a lock while the experiment runs."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.output_overwrite_rule import IN_OWN_FOLDER
from dpframework.lab.experiment.experiment_contents_and_grid import Cell
from dpframework.lab.experiment.job import FinishedCell
from dpframework.ledger.sqlite_connection import connect, meaning
from dpframework.version import __version__

CELLS, LOCK = "cells", "lock"


@contextlib.contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """Make the folder if it does not exist, and hold its lock.

    Raises
    ------
    InputError
        If another process works in the folder, if it holds other files, or if it cannot be written.
    """
    require_ours(folder)
    try:
        (folder / CELLS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    # SQLite's lock is held until the connection is closed. The system drops it if the process is killed.
    lock = folder / LOCK
    try:
        connection = connect(lock, create=True, patience=0)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise InputError(
                f"{lock.parent}: another process is running an experiment here; wait until it has ended"
            ) from None
        raise meaning(error, lock, "lock") from None
    try:
        yield Store(folder)
    finally:
        connection.close()


def require_ours(folder: Path) -> None:
    """Refuse a folder that holds anything other than the results of an experiment.

    Raises
    ------
    InputError
        If the path is a file or a symbolic link, or if the folder holds other files.
    """
    if folder.is_symlink():
        raise InputError(f"{folder}: is a symbolic link; give the name of the folder that you mean")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: is a file; the results of an experiment need a folder")
    held = sorted(entry.name for entry in folder.iterdir())
    begun = held == [CELLS]  # an earlier run was killed before it took the lock
    if held and not begun and not {CELLS, LOCK} <= set(held):
        raise InputError(f"{folder}: holds other files, such as '{held[0]}'; give a new folder with --out")


@attrs.frozen
class Store:
    """The finished cells in a folder, each in a file named by its key."""

    folder: Path

    def _path(self, key: str) -> Path:
        return self.folder / CELLS / f"{key}.json"

    def keep(self, finished: FinishedCell, seed: int) -> None:
        """Write a finished cell, which is on the disk when this method returns.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        form = {
            "private": False,  # The run was seeded, and its result was measured against the rows.
            "dpframework": __version__,
            "cell": finished.cell.to_dict(),
            "seed": str(seed),
            # JSON has no NaN and no infinities, so they are written as texts.
            "values": {name: value if math.isfinite(value) else str(value) for name, value in finished.values.items()},
            "seconds": finished.seconds,
        }
        write_whole(self._path(finished.key), json.dumps(form, indent=1) + "\n", IN_OWN_FOLDER)

    def load_finished(self, cells: Iterable[tuple[str, Cell]]) -> dict[str, FinishedCell]:
        """Return, by key, the given cells that are finished. A cell whose file is incomplete does not count."""
        found = {}
        for key, cell in cells:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
                form = parsed_json(self._path(key).read_text(encoding="utf-8"))
                values = {str(name): float(value) for name, value in form["values"].items()}
                found[key] = FinishedCell(cell, key, values, float(form["seconds"]))
        return found

    def sweep(self) -> None:
        """Remove files that a killed process left unfinished."""
        for part in (*self.folder.glob(".*.part"), *(self.folder / CELLS).glob(".*.part")):
            part.unlink(missing_ok=True)
