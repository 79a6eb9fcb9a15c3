"""The part of the engines' suite that looks for traces of rows in summaries, handles, printed lines, logs and files."""

from __future__ import annotations

import abc
import contextlib
import pickle
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpframework.tables.engine_base import Engine
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify.file_read_and_write_watch import watch_files
from dpframework.verify.tables.engine_output_watch import overhear, telling_lines
from dpframework.verify.tables.engine_tables import all_counts, write
from dpframework.verify.tables.people_in_several_files_conformance import PeopleConformance

LARGE = (60_000,)  # the rows of a file of some 100 kB and more
CLOCK = 0.1  # how many seconds the clock of a file system may be behind


class LeakConformance(PeopleConformance, abc.ABC):
    """The tests that an engine reveals nothing about rows (see `EngineConformance`)."""

    @classmethod
    @abc.abstractmethod
    def build_engine(cls) -> Engine:
        """Return the engine that is tested."""

    def test_what_it_says_of_a_run_follows_from_no_row(self, tmp_path: Path) -> None:
        """The sentence of `counting_summary` is the same for few rows and for many, which have more distinct cells."""
        for what, tables in (("counts", ((3,), (900, 1))), ("a number", ((3,), LARGE))):
            few, many = (self._summary(write(tmp_path / f"{what} {sizes[0]}", sizes), what) for sizes in tables)
            self._require(
                few == many, f"the text of `counting_summary`, for reports, follows from the rows: '{few}' and '{many}'"
            )

    def _summary(self, files: TableFiles, what: str) -> str | None:
        """Return what the engine says of a run that makes many counts, or that asks only for the number of rows."""
        rows = self._open(files)
        if what == "counts":
            all_counts(self.engine, rows)
        else:
            self.engine.number(rows)
        told = self.engine.counting_summary()
        self.engine.drop(rows)
        return told

    def test_a_handle_shows_no_row(self, tmp_path: Path) -> None:
        """A handle shows no number of rows, and is pickled without its rows."""
        rows = self._open(write(tmp_path, (4321,)))
        self._require("4321" not in repr(rows), "a handle shows the number of its rows")
        if not self.engine.gathers:
            size = len(pickle.dumps(getattr(rows, "lineage", ())))
            self._require(size < 1000, "a handle pickles with its rows")
        self.engine.drop(rows)

    def test_what_it_shows_of_itself_and_its_handles_follows_from_no_row(self, tmp_path: Path) -> None:
        """The engine and its handles are shown in the same words, whether a table has few rows or many."""
        few, many = ([self._shown(write(tmp_path / f"{rows}", (rows,))) for _ in range(2)] for rows in (987, 4321))
        follows = telling_lines(few, many)
        self._require(not follows, f"what a handle or the engine shows follows from the rows, as in {follows[:1]}")

    def _shown(self, files: TableFiles) -> list[str]:
        """Return the texts that show an engine and a handle, in a terminal and in a notebook."""
        rows = self._open(files)
        self.engine.number(rows)
        texts = [repr(rows), str(rows), repr(self.engine), str(self.engine)]
        texts += [str(one._repr_html_()) for one in (rows, self.engine) if hasattr(one, "_repr_html_")]
        self.engine.drop(rows)
        return texts

    def test_it_prints_logs_and_leaves_nothing_of_rows(self, tmp_path: Path) -> None:
        """What the engine prints, logs and runs is the same for few rows and for many. Once closed, it leaves no file.

        Each table is counted twice, so that times and names which differ each time can be ignored.
        """
        sources = [self.source(write(tmp_path / str(rows), (rows, 1))) for rows in (3, 900)]
        told: list[list[list[str]]] = [[], []]
        place, hosts, began = tmp_path / "left", set[str](), time.time() - CLOCK
        place.mkdir()
        for which in (0, 1, 0, 1):
            engine = self.build_engine()
            address = engine.address
            given: Any = sources[which]
            with _working_in(place), watch_files() as files, overhear() as heard:
                rows = engine.open(given)
                all_counts(engine, rows)
                engine.drop(rows)
                engine.close()
            told[which].append(heard.lines)
            hosts |= heard.hosts if address is None else set()
            written = {Path(name) for name in files if Path(name).stat().st_mtime >= began}
            outside = [one for one in written if not one.is_relative_to(tmp_path) and str(one) != address]
            left = sorted(map(str, (*outside, *(one for one in place.rglob("*") if one.is_file()))))
            self._require(not left, f"after it is closed, a file is left that it wrote: {left[:1]}")
        follows = telling_lines(*told)
        self._require(not follows, f"what it prints or logs follows from the rows, as in {follows[:1]}")
        self._require(
            not hosts,
            f"it sends to {', '.join(sorted(hosts))}, and its `address` is None: plans would not name the place",
        )


@contextlib.contextmanager
def _working_in(place: Path) -> Iterator[None]:
    """Make a folder the current one, and the one of temporary files, while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr(tempfile, "tempdir", str(place))
        patch.setenv("TMPDIR", str(place))
        yield
