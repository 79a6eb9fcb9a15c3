"""The part of the engines' suite about traces of rows: engines that show any fail it, and honest ones pass."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpframework.tables.engine_base import Engine
from dpframework.verify.tables.block_tile_and_crosstab_engines import ByTables, Together
from dpframework.verify.tables.engine_output_watch import telling_lines
from dpframework.verify.tables.leak_conformance import LeakConformance


class Leaking(ByTables):
    """An engine that tells of a table what a test says."""

    name = "leaking"

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0

    def load(self, table: Any) -> Any:
        self.rows = table.rows
        self.tell()
        return super().load(table)

    def tell(self) -> None:
        """Tell nothing."""


class Logs(Leaking):
    """Logs how many rows there are."""

    def tell(self) -> None:
        logging.getLogger("leaking").info("%d rows", self.rows)


class Prints(Leaking):
    """Prints how many rows there are."""

    def tell(self) -> None:
        print(self.rows)


class Reports(Leaking):
    """Reports how many rows there were."""

    def counting_summary(self) -> str:
        return f"{self.rows} rows"


class LeavesAFile(Leaking):
    """Leaves a file for each table."""

    def tell(self) -> None:
        with tempfile.NamedTemporaryFile(delete=False, prefix="leaking-") as file:
            file.write(b"rows")


class LogsTimes(Leaking):
    """Logs how many rows there are, with a time."""

    def tell(self) -> None:
        logging.getLogger("leaking").info("loaded %d rows in %.6f s", self.rows, time.perf_counter())


class LogsRuns(Leaking):
    """Right: logs a random name, a time and its process."""

    def tell(self) -> None:
        logging.getLogger("leaking").info("run %s at %.6f in %d", uuid.uuid4().int, time.perf_counter(), os.getpid())


class WritesOutside(Leaking):
    """Writes to the descriptor of standard error, as C code does."""

    def tell(self) -> None:
        os.write(2, f"{self.rows:,} rows\n".encode())


class WritesToTheFirstStream(Leaking):
    """Writes to the stream that the process began with, as loggers do that were set up early."""

    def tell(self) -> None:
        assert sys.__stderr__ is not None
        sys.__stderr__.write(f"{self.rows} rows\n")


class Starts(Leaking):
    """Starts a process whose command everybody on the machine can see."""

    def tell(self) -> None:
        subprocess.run(["true", f"--rows={self.rows}"], check=True)


class Sends(Leaking):
    """Sends a number to a daemon that draws it on a dashboard."""

    def tell(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"rows", ("127.0.0.1", 8125))


class SendsToItsAddress(Sends):
    """Right: plans name the place."""

    address = "127.0.0.1:8125"


class Spills(Leaking):
    """Leaves a file that a library has written, which Python does not see."""

    def tell(self) -> None:
        pl.DataFrame({"rows": [self.rows]}).write_parquet(f"{tempfile.gettempdir()}/leaking.parquet")


class SpillsHere(Leaking):
    """Leaves such a file in the current folder."""

    def tell(self) -> None:
        pl.DataFrame({"rows": [self.rows]}).write_parquet("leaking.parquet")


class Cleans(Leaking):
    """Right: removes its file."""

    def tell(self) -> None:
        pl.DataFrame({"rows": [self.rows]}).write_parquet("leaking.parquet")
        os.remove("leaking.parquet")


class TellsAtItsEnd(Leaking):
    """Prints how many rows there were when it is closed."""

    def close(self) -> None:
        print(self.rows, "rows")
        super().close()


class ReportsMegabytes(Leaking):
    """Reports how much was read, rounded so that small tables are alike."""

    def counting_summary(self) -> str:
        return f"{self.rows / 50_000:.0f} MB were read"


class ShowsItself(Leaking):
    """Shows its rows, as classes of attrs do."""

    def __repr__(self) -> str:
        return f"ShowsItself(rows={self.rows})"


class ShowsHandles(Leaking):
    """Shows about how many rows a handle has, and where it is."""

    shown = "__repr__"

    def load(self, table: Any) -> Any:
        rows = super().load(table)
        text = f"<{table.rows:,} rows at {id(rows):#x}>"
        return type("Rows", (type(rows).__mro__[1],), {self.shown: lambda self: text})(rows)


class ShowsHandlesAsText(ShowsHandles):
    """The same for `str`."""

    shown = "__str__"


class ShowsHandlesInNotebooks(ShowsHandles):
    """The same for notebooks."""

    shown = "_repr_html_"


TESTS = [name for name in vars(LeakConformance) if name.startswith("test_")]
CAUGHT = {
    Logs: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Prints: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Reports: ["test_what_it_says_of_a_run_follows_from_no_row"],
    LeavesAFile: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    LogsTimes: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    WritesOutside: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    WritesToTheFirstStream: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Starts: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Sends: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Spills: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    SpillsHere: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    TellsAtItsEnd: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    ReportsMegabytes: ["test_what_it_says_of_a_run_follows_from_no_row"],
    ShowsItself: ["test_what_it_shows_of_itself_and_its_handles_follows_from_no_row"],
    ShowsHandles: ["test_what_it_shows_of_itself_and_its_handles_follows_from_no_row"],
    ShowsHandlesAsText: ["test_what_it_shows_of_itself_and_its_handles_follows_from_no_row"],
    ShowsHandlesInNotebooks: ["test_what_it_shows_of_itself_and_its_handles_follows_from_no_row"],
}


def failing(kind: type[Engine], folder: Path) -> dict[str, str]:
    """The sentences of the tests that fail, by their names."""

    class Suite(LeakConformance):
        @classmethod
        def build_engine(cls) -> Engine:
            return kind()

    Suite.engine = kind()
    found = {}
    for name in TESTS:
        (folder / name).mkdir()
        try:
            getattr(Suite(), name)(folder / name)
        except AssertionError as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("kind", CAUGHT, ids=lambda kind: kind.__name__)
def test_an_engine_that_tells_of_rows_fails_by_name(
    kind: type[Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "left"
    left.mkdir()
    outside = tmp_path / "suite"
    outside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(left))
    found = failing(kind, outside)
    assert list(found) == CAUGHT[kind]
    assert all("engine 'leaking'" in text for text in found.values())


@pytest.mark.parametrize(
    "kind", [ByTables, Together, Leaking, LogsRuns, SendsToItsAddress, Cleans], ids=lambda kind: kind.__name__
)
def test_an_engine_that_tells_nothing_passes(kind: type[Engine], tmp_path: Path) -> None:
    assert failing(kind, tmp_path) == {}


@pytest.mark.parametrize(
    ("few", "many", "telling"),
    [
        (["3 rows", "3 rows"], ["900 rows", "900 rows"], ["900 rows", "3 rows"]),
        (["3 rows", "3 rows"], ["4,321 rows", "4,321 rows"], ["4,321 rows", "3 rows"]),
        (["ok", "ok"], ["ok\nok", "ok\nok"], ["ok", "ok", "ok"]),
        (["begin", "begin"], ["begin large", "begin large"], ["begin large"]),
        (["run 1", "run 2"], ["run 3", "run 4"], []),
        (["run 7", "run 7"], ["run 3", "run 4"], ["run 7"]),
        (["run 3", "run 4"], ["run 7", "run 7"], ["run 7"]),
        (["run 7", "run 3"], ["run 7", "run 4"], []),
        (["0.1 s", "0.1 s"], ["0.2 s", "0.2 s"], []),
        (["at 0x7f2b", "at 0x7f2c"], ["at 0x7f2d", "at 0x7f2e"], []),
        (["", ""], ["", ""], []),
    ],
)
def test_a_line_that_follows_from_rows_is_told_from_one_that_differs_each_time(
    few: list[str], many: list[str], telling: list[str]
) -> None:
    assert telling_lines([one.splitlines() for one in few], [one.splitlines() for one in many]) == telling
