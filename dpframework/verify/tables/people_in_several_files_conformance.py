"""The part of the engines' suite on people who have rows in several files."""

from __future__ import annotations

import abc
import functools
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.in_process_engines import InMemory
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify.tables.engine_tables import miscount
from dpframework.verify.tables.people_table_files import (
    TOWNS,
    people_counts,
    tables_of_people,
    write_views,
    write_visits,
)


def _half(generator: np.random.Generator, rows: int) -> NDArray[np.bool_]:
    """Draw each of some rows with probability 1/2, and return whether it is drawn."""
    return generator.random(rows) < 0.5


class PeopleConformance(abc.ABC):
    """The tests of columns and counts that depend on all rows of a person (see `EngineConformance`)."""

    engine: ClassVar[Engine]

    @classmethod
    def source(cls, files: TableFiles) -> TableFiles | DatabaseTable:
        """Return the source that the engine opens in place of some files.

        The suite of a database's engine copies the rows of the files into a table, and returns that table as a
        `DatabaseTable`. Name the table after the files' folder, so that errors name the folder.
        """
        return files

    def _open(self, files: TableFiles) -> Rows:
        given: Any = self.source(files)
        return self.engine.open(given)

    def _require(self, right: bool, problem: str) -> None:
        """Fail with a sentence about the engine's problem if `right` is false."""
        __tracebackhide__ = True
        assert right, f"engine '{self.engine.name}': {problem}"

    def _require_people(self, what: str, files: TableFiles, *, sampled: bool = True) -> None:
        """Compare the counts of a table of people, and of a sample of it, with those in memory."""
        memory, generators = InMemory(), [np.random.default_rng(1), np.random.default_rng(1)]
        expected, rows = memory.load(files.read()), self._open(files)
        # No sample is drawn from the second handle, so an engine may hold its rows in any order.
        pairs = {"": (rows, expected), " in any order": (self._open(attrs.evolve(files, ordered=False)), expected)}
        if sampled and type(self.engine).sample is not Engine.sample:
            samples = [
                engine.sample(own, functools.partial(_half, generator))
                for engine, own, generator in zip((self.engine, memory), (rows, expected), generators, strict=True)
            ]
            pairs[", a sample"] = samples[0], samples[1]
        for which, (own, right) in pairs.items():
            found = people_counts(self.engine, own, files.schema)
            for name, wanted in people_counts(memory, right, files.schema).items():
                if found[name] != wanted:
                    self._require(False, f"{what}{which}, {name}: {miscount(found[name], wanted)}")
        self.engine.drop(rows)

    def test_what_follows_from_the_rows_of_people_is_as_in_memory(self, tmp_path: Path) -> None:
        """The same private key keeps the same rows of each person, and columns are computed from the same rows."""
        self._skip_without_units()
        for what, files in tables_of_people(tmp_path):
            self._require_people(what, files)

    def test_a_person_counts_once_for_each_key(self, tmp_path: Path) -> None:
        """A person counts once for a key, even with several rows of this key in several files."""
        self._skip_without_units()
        if not (self.engine.gathers or type(self.engine).tally is not Engine.tally) or self.engine.groups:
            pytest.skip("the engine counts no keys")
        files = write_visits(tmp_path, TOWNS, PrivacyUnit("person", 5))
        self._require_people("keys of people", files, sampled=False)

    def test_two_views_are_joined_as_in_memory(self, tmp_path: Path) -> None:
        """Rows are joined if both views have their id exactly once, wherever the rows lie."""
        if self.engine.reads_tables or (self.engine.reads_files and not self.engine.joins_views):
            pytest.skip("the engine joins no files of two views")
        self._require_people("two views", write_views(tmp_path))

    def _skip_without_units(self) -> None:
        """Skip a test if the engine reads rows itself and bounds no units, since plans with ids refuse such engines."""
        if self.engine.reads_itself and not self.engine.bounds_units:
            pytest.skip("the engine bounds no units")
