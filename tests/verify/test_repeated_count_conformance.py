"""The part of the engines' suite on rows that are counted again: what caches, retries and late reads change."""

from __future__ import annotations

import copy
import functools
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.tables.crosstab_engine_base import GroupingEngine, SelectedRows, select_lineage
from dpframework.tables.engine_base import Engine, count_block
from dpframework.tables.in_process_engines import BlockEngine
from dpframework.verify.tables.block_tile_and_crosstab_engines import ByTables, Together
from dpframework.verify.tables.repeated_count_conformance import RepeatedCountConformance


class Partitions(BlockEngine):
    """Right: six blocks, as on a cluster."""

    name = "partitions"

    def __init__(self) -> None:
        super().__init__(blocks=6)

    def map(self, rows: Any, function: Any) -> list[Any]:
        return [function(block) for block in rows]


class Retries(Partitions):
    """Right: a block that failed is counted again, from the beginning."""

    def map(self, rows: Any, function: Any) -> list[Any]:
        found = []
        for block in rows:
            try:
                found.append(function(block))
            except OSError:
                found.append(function(block))
        return found


class KeepsCopies(Partitions):
    """Right: counts are kept for the rows and the function, and copies of them are returned."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def counts(self, rows: Any, functions: Any) -> Any:
        return [self.kept(rows, function).copy() for function in functions]

    def kept(self, rows: Any, function: Any) -> Any:
        key = id(rows), repr(function)
        if key not in self.known:
            self.known[key] = rows, super().counts(rows, [function])[0]
        return self.known[key][1]


class KeepsArrays(KeepsCopies):
    """The kept array itself is returned."""

    def counts(self, rows: Any, functions: Any) -> Any:
        return [self.kept(rows, function) for function in functions]


class SamplesACopy(Partitions):
    """The handle is copied with its cache, and then gets the rows of the sample."""

    def sample(self, rows: Any, drawn: Any) -> Any:
        sample = copy.copy(rows)
        sample[:] = [block.at(block.index[drawn(block.rows)]) for block in rows]
        sample.cache = rows.cache
        return sample


class SamplesAPart(Partitions):
    """A sample of a part is taken for the part."""

    def sample(self, rows: Any, drawn: Any) -> Any:
        sample: Any = super().sample(rows, drawn)
        sample.around = rows.around
        return sample


class DerivesInPlace(Partitions):
    """Rows with one more attribute keep their cache."""

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        derived: Any = super().derive(rows, attribute, cases)
        derived.cache = rows.cache
        return derived


class SkipsABlock(Partitions):
    """A block that cannot be counted is left out, if another can."""

    def counts(self, rows: Any, functions: Any) -> Any:
        found, last = [], None
        for block in rows:
            try:
                found.append(count_block(functions, block))
            except OSError as error:
                last = error
        if last is not None and not found:
            raise last
        return [np.asarray(functools.reduce(np.add, one)) for one in zip(*found, strict=True)]


class AddsAgain(Partitions):
    """After a failure all blocks are counted again, and added to what was there."""

    def counts(self, rows: Any, functions: Any) -> Any:
        added: list[Any] = [0] * len(functions)
        for last in (False, True):
            try:
                for block in rows:
                    added = [one + more for one, more in zip(added, count_block(functions, block), strict=True)]
                return [np.asarray(one) for one in added]
            except OSError:
                if last:
                    raise
        return []


class ReadsLater(Partitions):
    """Files are read at each count."""

    def open(self, files: Any) -> Any:
        rows: Any = super().open(files)
        rows.files = files
        return rows

    def map(self, rows: Any, function: Any) -> list[Any]:
        return super().map(super().open(rows.files) if hasattr(rows, "files") else rows, function)


class Grouping(GroupingEngine):
    """Right: counts cross tables of a block in memory."""

    name = "grouping"

    def load(self, table: Any) -> Any:
        return SelectedRows(list(dpf.InMemory().load(table)), table.schema)

    def tables(self, rows: Any, tables: Any) -> Any:
        return [self.one(rows, table) for table in tables]

    def one(self, rows: Any, table: Any) -> Any:
        return np.asarray(sum(table.count(select_lineage(block, rows.lineage)) for block in rows.table))


class KeepsTables(Grouping):
    """Cross tables are kept for some rows by a key that is too short."""

    def tables(self, rows: Any, tables: Any) -> Any:
        found = []
        for table in tables:
            key = "kept", self.key(table)
            if key not in rows.cache:
                rows.cache[key] = self.one(rows, table)
            found.append(rows.cache[key].reshape(table.shape).copy())
        return found

    def key(self, table: Any) -> Any:
        return table


class ForgetsTheOrder(KeepsTables):
    """The key is the set of columns."""

    def key(self, table: Any) -> Any:
        return frozenset(table.columns), table.summed


class ForgetsTheBounds(KeepsTables):
    """The key says that something is summed, and not what."""

    def key(self, table: Any) -> Any:
        return table.columns, table.summed is None


TESTS = [name for name in vars(RepeatedCountConformance) if name.startswith("test_")]
RIGHT = [Partitions, Retries, KeepsCopies, Grouping, KeepsTables, ByTables, Together, dpf.InMemory, dpf.Mapped]
PLANTED: dict[type[Engine], str] = {
    KeepsArrays: "counts that a query has overwritten are given to the next query",
    SamplesACopy: "cache_of gives the counts of rows from which a sample is drawn",
    SamplesAPart: "related_caches is given for a sample",
    DerivesInPlace: "cache_of gives the counts of rows from which an attribute is derived",
    SkipsABlock: r"after a block has failed once: 2,\d\d\d rows are counted of 2,400: rows are lost",
    AddsAgain: r"after a block has failed once: 2,\d\d\d rows are counted of 2,400: rows are counted twice",
    ReadsLater: "files are read again for later counts",
    ForgetsTheOrder: "after a query that is alike, costs and labels: as many rows as expected, but in other cells",
    ForgetsTheBounds: "after a query that is alike, the sum of costs from -1 to 1: ",
}


def failing(kind: type[Engine], folder: Path) -> list[str]:
    """The sentences of the tests that fail."""

    class Suite(RepeatedCountConformance):
        pass

    Suite.engine = kind()
    found = []
    for name in TESTS:
        test = getattr(Suite(), name)
        marks = [mark.args for mark in getattr(test, "pytestmark", [])]
        for k, given in enumerate([{marks[0][0]: tried} for tried in marks[0][1]] if marks else [{}]):
            place = folder / f"{name}-{k}"
            place.mkdir()
            assert "tmp_path" in inspect.signature(test).parameters
            try:
                test(tmp_path=place, **given)
            except AssertionError as error:
                found.append(str(error))
    return found


@pytest.mark.parametrize("kind", RIGHT, ids=lambda kind: kind.__name__)
def test_an_engine_whose_counts_stay_the_same_passes(kind: type[Engine], tmp_path: Path) -> None:
    assert failing(kind, tmp_path) == []


@pytest.mark.parametrize("kind", PLANTED, ids=lambda kind: kind.__name__)
def test_an_engine_whose_counts_change_is_named_with_its_mistake(kind: type[Engine], tmp_path: Path) -> None:
    found = failing(kind, tmp_path)
    assert len({re.sub(r"\d", "", text) for text in found}) == 1
    assert re.match(f"engine '{kind.name}': {PLANTED[kind]}", found[0]), found
