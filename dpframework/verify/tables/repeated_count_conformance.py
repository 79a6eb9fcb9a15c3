"""The part of the engines' suite on rows that are counted several times, while other things happen to them.

An engine may keep counts, try again after a failure, and read its files when it likes. None of this may show.
"""

from __future__ import annotations

import abc
import contextlib
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from dpframework.facts.errors import DPFrameworkError
from dpframework.queries import BoundedSum, Counting, JointHistogram, Query
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.engine_base import Engine
from dpframework.tables.in_process_engines import InMemory
from dpframework.verify.tables.engine_tables import (
    CASES,
    GROUP,
    JOINT,
    ODD,
    SCHEMA,
    difference,
    histograms,
    miscount,
    write,
    write_odd,
)
from dpframework.verify.tables.people_in_several_files_conformance import PeopleConformance

SEVERAL = (700, 600, 1_100)  # the rows of files that an engine may count as several blocks
LATEST = 2  # a function fails at its first call, or at a later one, up to this call


@attrs.define
class _Failing(Query):
    """Counts rows, and fails at one of its calls only, as if a worker were lost."""

    name = "failing"
    fails_at: int = 1
    calls: int = 0

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return the number of rows, or fail."""
        self.calls += 1
        if self.calls == self.fails_at:
            raise ConnectionError("a worker is lost")
        return np.array([block.rows], dtype=np.int64)


def _alike() -> dict[str, Query]:
    """Return queries that an engine which keeps counts may take for one another, by their names."""
    cost = ODD["cost"]
    return {
        "labels and costs": JointHistogram(ODD.attributes),
        "costs and labels": JointHistogram(ODD.attributes[::-1]),
        "the sum of costs": BoundedSum(cost),
        "the sum of costs from -1 to 1": BoundedSum(cost, lower=-1, upper=1),
        "the sum of costs from -1 to 2": BoundedSum(cost, lower=-1, upper=2),
        "the sum of costs less 7": BoundedSum(cost, centre=7),
    }


class RepeatedCountConformance(PeopleConformance, abc.ABC):
    """The tests that counts stay the same when they are counted again (see `EngineConformance`)."""

    def test_queries_that_are_alike_are_kept_apart(self, tmp_path: Path) -> None:
        """Columns in another order, and sums with other bounds, have counts of their own, whichever comes first."""
        files = write_odd(tmp_path, 300)
        right = {name: query.evaluate(InMemory(), InMemory().open(files)).tolist() for name, query in _alike().items()}
        for order in (list(right), list(right)[::-1]):
            rows = self._open(files)
            found = {name: _alike()[name].evaluate(self.engine, rows).tolist() for name in order}
            problem = difference(found, right)
            self._require(problem is None, f"after a query that is alike, {problem}")
            self.engine.drop(rows)

    def test_counts_that_are_overwritten_are_counted_anew(self, tmp_path: Path) -> None:
        """A query may write into the counts that it gets. The engine must not give these to the next query."""
        rows = self._open(write(tmp_path, (30, 12)))
        functions = [Counting(JOINT), Counting(JointHistogram(SCHEMA.attributes[:1]))]
        expected = [counts.copy() for counts in self.engine.counts(rows, functions)]
        for counts in self.engine.counts(rows, functions):
            if counts.flags.writeable:
                counts += 1
        again = self.engine.counts(rows, functions)
        same = all(np.array_equal(one, other) for one, other in zip(again, expected, strict=True))
        self._require(same, "counts that a query has overwritten are given to the next query; return copies")
        self.engine.drop(rows)

    def test_samples_and_derived_rows_have_caches_of_their_own(self, tmp_path: Path) -> None:
        """Counts that are kept for some rows are not given for a sample of them, nor after an attribute is derived."""
        rows = self._open(write(tmp_path, (40,)))
        part = self.engine.split(rows, SCHEMA["ward"])[0]
        for own in (rows, part):
            self.engine.cache_of(own)["mark"] = True
            made = {"an attribute is derived": self.engine.derive(own, GROUP, CASES)}
            if type(self.engine).sample is not Engine.sample:
                made["a sample is drawn"] = sample = self.engine.sample(own, lambda number: np.arange(number) % 2 == 0)
                self._require(
                    self.engine.related_caches(sample) is None,
                    "related_caches is given for a sample, which is no part of a whole",
                )
            for how, other in made.items():
                self._require(
                    "mark" not in self.engine.cache_of(other), f"cache_of gives the counts of rows from which {how}"
                )
        self.engine.drop(rows)

    @pytest.mark.parametrize("fails_at", range(1, LATEST + 1))
    def test_blocks_are_counted_once_though_one_fails(self, fails_at: int, tmp_path: Path) -> None:
        """If a function fails on one block, either the call fails, or every block is still counted exactly once."""
        files = write(tmp_path, SEVERAL)
        rows, found = self._open(files), None
        with contextlib.suppress(OSError, DPFrameworkError):
            found = _Failing(fails_at).evaluate(self.engine, rows).tolist()
        expected = [sum(SEVERAL)]
        self._require(found in (None, expected), f"after a block has failed once: {miscount(found, expected)}")
        self._require(self.engine.number(rows) == expected[0], "after a failure the rows are not those before")
        self.engine.drop(rows)

    def test_rows_stay_those_that_were_read(self, tmp_path: Path) -> None:
        """If files change during a run, all of its counts are still of the same rows."""
        if self.engine.reads_tables:
            pytest.skip("the suite cannot change a table of a database that is being read")
        rows = self._open(write(tmp_path / "same", (40, 3)))
        before = histograms(self.engine, rows)
        write(tmp_path / "same", (25, 18))
        self._require(
            histograms(self.engine, rows) == before, "files are read again for later counts, and may have changed"
        )
        self.engine.drop(rows)
