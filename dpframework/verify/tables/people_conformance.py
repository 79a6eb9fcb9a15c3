"""The part of the engines' suite that is about people, each with rows in several files."""

from __future__ import annotations

import abc
import functools
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from dpframework.facts.unit import PrivacyUnit
from dpframework.tables.database_table import DatabaseTable
from dpframework.tables.engines import Engine, InMemory, Rows
from dpframework.tables.files import TableFiles
from dpframework.verify.tables.engine_tables import miscount
from dpframework.verify.tables.engine_units import TOWNS, people_counts, tables_of_people, write_views, write_visits


def _half(generator: np.random.Generator, rows: int) -> NDArray[np.bool_]:
    """Return a draw of about half of some rows."""
    return generator.random(rows) < 0.5


class PeopleConformance(abc.ABC):
    """The tests of columns and counts that depend on all rows of a person (see `EngineConformance`)."""

    engine: ClassVar[Engine]

    @classmethod
    def source(cls, files: TableFiles) -> TableFiles | DatabaseTable:
        """Return the source that the engine opens in place of some files. A database's test copies their rows there.

        Name a `DatabaseTable` after the files' folder, so that errors name it.
        """
        return files

    def _open(self, files: TableFiles) -> Rows:
        given: Any = self.source(files)
        return self.engine.open(given)

    def _require(self, right: bool, problem: str) -> None:
        """Fail with a sentence about the engine."""
        __tracebackhide__ = True
        assert right, f"engine '{self.engine.name}': {problem}"

    def _require_people(self, what: str, files: TableFiles, *, sampled: bool = True) -> None:
        """Compare the counts of a table of people with those in memory: as it is, in any order, and of a sample."""
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
        """The same rows of each person are kept by the same key, and columns are made of the same rows."""
        self._skip_without_units()
        for what, files in tables_of_people(tmp_path):
            self._require_people(what, files)

    def test_a_person_counts_once_for_each_key(self, tmp_path: Path) -> None:
        """Where a person keeps several rows, in several files, and some have the same key."""
        self._skip_without_units()
        if not (self.engine.gathers or type(self.engine).tally is not Engine.tally) or self.engine.groups:
            pytest.skip("the engine counts no keys")
        files = write_visits(tmp_path, TOWNS, PrivacyUnit("person", 5))
        self._require_people("keys of people", files, sampled=False)

    def test_two_views_are_joined_as_in_memory(self, tmp_path: Path) -> None:
        """Rows are joined where both views have an id once, wherever the rows lie."""
        if self.engine.reads_tables or (self.engine.reads_files and not self.engine.joins_views):
            pytest.skip("the engine joins no files of two views")
        self._require_people("two views", write_views(tmp_path))

    def _skip_without_units(self) -> None:
        """Skip a test for an engine that reads rows itself and bounds no unit's: plans with ids refuse it."""
        if self.engine.reads_itself and not self.engine.bounds_units:
            pytest.skip("the engine bounds no units")
