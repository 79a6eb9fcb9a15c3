"""The conformance suite of engines, which must all count the same.

Subclass it in a test module, and return an engine::

    class TestMine(EngineConformance):
        @classmethod
        def made(cls):
            return Mine()

Every result is compared with that of one block of rows in memory.
"""

from __future__ import annotations

import abc
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from dpframework.facts.attributes import Boolean, Categorical, Numeric
from dpframework.facts.cuts import Cut
from dpframework.facts.descriptions import Below, Cases, Equals
from dpframework.facts.errors import DPFrameworkError, InputError, NotOpened
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import Schema
from dpframework.queries import Histogram, JointHistogram, Query
from dpframework.tables.blocks import Block
from dpframework.tables.engines import Engine, InMemory, Rows
from dpframework.tables.files import TableFiles

SCHEMA = Schema(
    [
        Boolean("ill"),
        Categorical("ward", ["x", "y", "z"]),
        Numeric("age", 0, 100, bins=5, missing=True),
        Categorical("wide", [f"v{k}" for k in range(300)]),
    ]
)
GROUP = Categorical("group", ["ill", "young", "rest"])
CASES = Cases([Equals("ill", "true"), Below("age", 33.3)])
CUTS: tuple[Cut, ...] = (SCHEMA["ward"], CASES, (Equals("ward", "x"), Equals("ward", "z")), SCHEMA["wide"])
JOINT = JointHistogram(SCHEMA.attributes[:3])


class _Narrow(Query):
    """Counts rows in a type that wraps round."""

    name = "narrow"

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return the number of rows, in eight bits."""
        return np.array([block.rows]).astype(np.int8)


class _Telling(Query):
    """A function of blocks that fails, and quotes a cell."""

    name = "telling"

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Raise an error that quotes a row."""
        raise ValueError(f"saw {block.values('age')[:3]}")


def _write(folder: Path, sizes: tuple[int, ...]) -> TableFiles:
    rng = np.random.default_rng(len(sizes))
    for file, rows in enumerate(sizes):
        age = pl.Series(rng.uniform(-10, 110, rows).round(1)).set(pl.Series(rng.random(rows) < 0.1), None)
        ward, wide = rng.integers(0, 3, rows), rng.integers(0, 300, rows)
        frame = pl.DataFrame(
            {
                "ill": pl.Series(rng.random(rows) < 0.4, dtype=pl.Boolean),
                "ward": pl.Series(["xyz"[k] for k in ward], dtype=pl.String),
                "age": age.cast(pl.Float64),
                "wide": pl.Series([f"v{k}" for k in wide], dtype=pl.String),
            }
        )
        frame.write_parquet(folder / f"{file}.parquet")
    return TableFiles(folder, SCHEMA)


def _all_counts(engine: Engine, rows: Rows) -> list[Any]:
    """Return counts of the rows, of parts of them, of parts of parts, and by an attribute that is derived."""
    parts = [rows, *(part for cut in CUTS[:3] for part in engine.split(rows, cut))]
    parts += [inner for part in engine.split(rows, SCHEMA["ill"]) for inner in engine.split(part, CASES)]
    counts = [JOINT.evaluate(engine, part).tolist() for part in parts]
    derived = engine.derive(rows, GROUP, CASES)
    grouped = JointHistogram([GROUP, SCHEMA["ill"]])
    again = (derived, *engine.split(derived, GROUP), *engine.split(engine.split(derived, SCHEMA["ill"])[1], GROUP))
    return counts + [grouped.evaluate(engine, part).tolist() for part in again]


class EngineConformance(abc.ABC):
    """The tests that every engine must pass. One engine serves all tests of the class, and is closed after them."""

    engine: ClassVar[Engine]

    @classmethod
    @abc.abstractmethod
    def made(cls) -> Engine:
        """Return the engine that is tested."""

    @classmethod
    def setup_class(cls) -> None:
        """Make the engine."""
        cls.engine = cls.made()

    @classmethod
    def teardown_class(cls) -> None:
        """Close it."""
        cls.engine.close()

    @pytest.mark.parametrize("sizes", [(40,), (7, 0, 90), (0,)], ids=["a file", "three files", "no rows"])
    def test_counts_are_those_of_one_block_in_memory(self, sizes: tuple[int, ...], tmp_path: Path) -> None:
        """Counts agree for all rows, parts, parts of parts, and derived attributes."""
        files, memory = _write(tmp_path, sizes), InMemory()
        rows, expected = self.engine.open(files), memory.open(files)
        assert self.engine.number(rows) == memory.number(expected) == sum(sizes)
        assert _all_counts(self.engine, rows) == _all_counts(memory, expected)
        self.engine.drop(rows)

    def test_many_functions_are_counted_in_one_call(self, tmp_path: Path) -> None:
        """Each as if it were alone, in integers of 64 bits, of all rows, of a part, and of several together."""
        rows = self.engine.open(_write(tmp_path, (30, 12)))
        for part in (rows, self.engine.split(rows, SCHEMA["wide"])[0]):
            alone = [Histogram(attribute).evaluate(self.engine, part) for attribute in SCHEMA]
            together = self.engine.counts(part, [Histogram(attribute).count for attribute in SCHEMA])
            assert [one.tolist() for one in together] == [one.tolist() for one in alone]
            assert {one.dtype for one in together} == {np.dtype(np.int64)}
        parts = [rows, *self.engine.split(rows, SCHEMA["wide"])[:3]]
        asked = [(part, [Histogram(attribute).count for attribute in SCHEMA][k:]) for k, part in enumerate(parts)]
        expected = [[one.tolist() for one in self.engine.counts(*own)] for own in asked]
        assert [[one.tolist() for one in own] for own in self.engine.counts_of(asked)] == expected
        self.engine.drop(rows)

    def test_a_sample_is_the_one_that_is_drawn(self, tmp_path: Path) -> None:
        """A sample of rows, parts or samples follows the draws in the rows' order, and stays the same."""
        if type(self.engine).sample is Engine.sample:
            pytest.skip("the engine draws no samples; plans that have one are refused")
        files, found = _write(tmp_path, (40, 0, 25)), []
        for engine in (InMemory(), self.engine):
            generator = np.random.default_rng(1)

            def drawn(rows: int, generator: np.random.Generator = generator) -> NDArray[np.bool_]:
                return generator.random(rows) < 0.6

            rows = engine.open(files)
            first, second = engine.sample(rows, drawn), engine.sample(engine.split(rows, SCHEMA["ill"])[0], drawn)
            parts = engine.split(engine.sample(first, drawn), CASES)
            derived = engine.derive(second, GROUP, CASES)
            again = [JOINT.evaluate(engine, one).tolist() for one in (first, second, first, *parts)]
            found.append([*again, JointHistogram([GROUP]).evaluate(engine, derived).tolist()])
            del first
            found[-1] += [JOINT.evaluate(engine, part).tolist() for part in parts]
            engine.drop(rows)
        assert found[0] == found[1], f"engine '{self.engine.name}' samples other rows than those that were drawn"

    def test_rows_of_two_tables_are_kept_apart_and_one_can_be_dropped(self, tmp_path: Path) -> None:
        """The other table counts as before."""
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        files = _write(tmp_path / "a", (5, 6)), _write(tmp_path / "b", (20,))
        first, second = map(self.engine.open, files)
        parts = self.engine.split(second, SCHEMA["ill"])
        before = [JOINT.evaluate(self.engine, part).tolist() for part in parts]
        self.engine.drop(first)
        assert [JOINT.evaluate(self.engine, part).tolist() for part in parts] == before
        del parts
        assert self.engine.number(second) == 20
        self.engine.drop(second)

    def test_counts_that_could_wrap_round_are_refused(self, tmp_path: Path) -> None:
        """They are refused (see `counts.wide`), and the rows can be counted afterwards."""
        rows = self.engine.open(_write(tmp_path, (9,)))
        with pytest.raises(InputError):
            _Narrow().evaluate(self.engine, rows)
        assert self.engine.number(rows) == 9
        self.engine.drop(rows)

    def test_a_failure_does_not_end_the_engine(self, tmp_path: Path) -> None:
        """A query that fails stops its run, and the engine serves the next."""
        rows = self.engine.open(_write(tmp_path, (9, 4)))
        with pytest.raises((ValueError, DPFrameworkError)) as caught:
            _Telling().evaluate(self.engine, rows)
        if not self.engine.gathers:  # its rows are elsewhere: there they stay
            assert "saw" not in str(caught.value)
        assert self.engine.number(rows) == 13
        self.engine.drop(rows)

    def test_files_that_do_not_fit_are_refused_as_in_memory(self, tmp_path: Path) -> None:
        """In the same words, whichever file it is."""
        _write(tmp_path, (9, 4))
        files = TableFiles(tmp_path, SCHEMA, out_of_domain=OutOfDomain.ERROR)
        few = TableFiles(tmp_path, Schema(SCHEMA.attributes, rows=12))
        none = TableFiles(tmp_path / "none.parquet", SCHEMA)
        for refused in (files, few, none):
            said = []
            for engine in (InMemory(), self.engine):
                with pytest.raises(InputError) as caught:
                    engine.open(refused)
                said.append((type(caught.value), str(caught.value)))
            assert said[0] == said[1]
        assert said[0][0] is NotOpened

    def test_a_handle_shows_no_row(self, tmp_path: Path) -> None:
        """It shows no number of rows and no code, and pickles without its rows."""
        rows = self.engine.open(_write(tmp_path, (4321,)))
        assert "4321" not in repr(rows)
        if not self.engine.gathers:
            assert len(pickle.dumps(getattr(rows, "lineage", ()))) < 1000
        self.engine.drop(rows)
