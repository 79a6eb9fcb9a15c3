"""The part of the engines' suite that looks for traces of rows in summaries, handles, printed lines, logs and files."""

from __future__ import annotations

import abc
import contextlib
import io
import logging
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpframework.tables.engine_base import Engine
from dpframework.verify.file_access_watch import watch_files
from dpframework.verify.tables.engine_tables import all_counts, write
from dpframework.verify.tables.people_conformance import PeopleConformance

CLOCK = 0.1  # how many seconds the clock of a file system may be behind


@contextlib.contextmanager
def _overhear() -> Iterator[list[str]]:
    """Yield a list that collects printed lines, and messages of level INFO or above, while the block runs."""
    heard: list[str] = []
    make_record, disabled, level = logging.getLogRecordFactory(), logging.root.manager.disable, logging.root.level

    def note(*given: Any, **more: Any) -> logging.LogRecord:
        record = make_record(*given, **more)
        heard.append(record.getMessage())
        return record

    printed = io.StringIO()
    logging.setLogRecordFactory(note)
    logging.disable(logging.NOTSET)
    logging.root.setLevel(min(level, logging.INFO))
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield heard
    finally:
        logging.root.setLevel(level)
        logging.disable(disabled)
        logging.setLogRecordFactory(make_record)
        heard += printed.getvalue().splitlines()


class LeakConformance(PeopleConformance, abc.ABC):
    """The tests that an engine reveals nothing about rows (see `EngineConformance`)."""

    @classmethod
    @abc.abstractmethod
    def build_engine(cls) -> Engine:
        """Return the engine that is tested."""

    def test_what_it_says_of_a_run_follows_from_no_row(self, tmp_path: Path) -> None:
        """The sentence of `counting_summary` is the same for few rows and for many, which have more distinct cells."""
        told = []
        for name, sizes in (("few", (3,)), ("many", (900, 1))):
            rows = self._open(write(tmp_path / name, sizes))
            all_counts(self.engine, rows)
            told.append(self.engine.counting_summary())
            self.engine.drop(rows)
        few, many = told
        self._require(
            few == many, f"the text of `counting_summary`, for reports, follows from the rows: '{few}' and '{many}'"
        )

    def test_a_handle_shows_no_row(self, tmp_path: Path) -> None:
        """A handle shows no number of rows, and is pickled without its rows."""
        rows = self._open(write(tmp_path, (4321,)))
        self._require("4321" not in repr(rows), "a handle shows the number of its rows")
        if not self.engine.gathers:
            size = len(pickle.dumps(getattr(rows, "lineage", ())))
            self._require(size < 1000, "a handle pickles with its rows")
        self.engine.drop(rows)

    def test_it_prints_logs_and_leaves_nothing_of_rows(self, tmp_path: Path) -> None:
        """The engine prints and logs the same for few rows and for many. After it is closed, it has left no file."""
        few, many = (self.source(write(tmp_path / str(rows), (rows, 1))) for rows in (3, 900))
        engine, told, began = self.build_engine(), [], time.time() - CLOCK
        with watch_files() as files:
            for source in (few, few, many):
                given: Any = source
                with _overhear() as heard:
                    rows = engine.open(given)
                    all_counts(engine, rows)
                    engine.drop(rows)
                told.append(heard)
            engine.close()
        once, again, other = told
        follows = [line for line in other if line not in once] if once == again else []
        self._require(not follows, f"what it prints or logs follows from the rows, as in {follows[:1]}")
        written = {Path(name) for name in files if Path(name).stat().st_mtime >= began}
        left = sorted(str(one) for one in written if not one.is_relative_to(tmp_path) and str(one) != engine.address)
        self._require(not left, f"after it is closed, a file is left that it wrote: {left[:1]}")
