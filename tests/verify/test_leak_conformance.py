"""The part of the engines' suite about traces of rows: engines that show any fail it, and honest ones pass."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dpframework.tables.engine_base import Engine
from dpframework.verify.tables.engine_variants import ByTables, Together
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


TESTS = [name for name in vars(LeakConformance) if name.startswith("test_")]
CAUGHT = {
    Logs: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Prints: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
    Reports: ["test_what_it_says_of_a_run_follows_from_no_row"],
    LeavesAFile: ["test_it_prints_logs_and_leaves_nothing_of_rows"],
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


@pytest.mark.parametrize("kind", [ByTables, Together, Leaking], ids=lambda kind: kind.__name__)
def test_an_engine_that_tells_nothing_passes(kind: type[Engine], tmp_path: Path) -> None:
    assert failing(kind, tmp_path) == {}
