"""Checks of samples of units: an engine must take all rows of a unit or none, with one draw for each unit.

The claim of a step on a sample of units relies on this. Replays do not test it, since they draw their samples in
memory, and not on the engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Categorical
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.queries import Histogram
from dpframework.tables.coded_table import Table
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.unread_table_files import TableFiles

PEOPLE, MOST_ROWS, PARTS = 12, 5, 3
WHOSE = Categorical("whose", [str(k) for k in range(PEOPLE)])
PART = Categorical("part", [str(k) for k in range(PARTS)])


def assert_units_sampled(
    engine: Engine, *, tables: int = 8, seed: int = 0, source: Callable[[TableFiles], Any] | None = None
) -> None:
    """Fail if an engine's samples of made-up tables, or of their parts, do not take all rows of a person or none.

    The tables have 12 people with 1 to 5 rows each.

    Parameters
    ----------
    engine
        The engine that draws the samples.
    tables
        How many tables are sampled.
    seed
        The seed of the tables and the draws.
    source
        For an engine that reads tables itself: a function that returns the source which this engine opens in place of
        given files. By default the engine opens the files.

    Raises
    ------
    AssertionError
        If a sample holds some of a person's rows and not the others, is not drawn by one draw for each person, has more
        or fewer people than were drawn, or is not the sum of its parts.

    Examples
    --------
    >>> from dpframework.tables import InMemory
    >>> assert_units_sampled(InMemory())
    """
    rng = np.random.default_rng(seed)
    for _ in range(tables):
        whose = np.repeat(np.arange(PEOPLE), rng.integers(1, MOST_ROWS + 1, PEOPLE))
        rng.shuffle(whose)  # a person's rows may lie anywhere
        numbers = rng.permutation(PEOPLE)
        table = Table.from_codes(
            Schema([WHOSE, PART]), [whose, rng.integers(0, PARTS, len(whose))], unit=PrivacyUnit("person", MOST_ROWS)
        )
        rows = _open(engine, table.with_units(numbers[whose]), source)
        for where, part in [("a table", rows), *(("a part of one", own) for own in engine.split(rows, PART))]:
            problem = _problem(engine, part, rng)
            assert problem is None, f"engine '{engine.name}', {where}: {problem}"
        engine.drop(rows)


def _open(engine: Engine, people: Table, source: Callable[[TableFiles], Any] | None) -> Rows:
    """Return a handle of a table's rows on an engine. If the engine reads tables itself, it reads a file."""
    if not engine.reads_itself:
        return engine.load(people)
    import polars as pl

    assert people.unit_codes is not None
    columns = {
        one.name: pl.Series(codes).cast(pl.String) for one, codes in zip(people.schema, people.columns, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        pl.DataFrame({**columns, "person": people.unit_codes}).write_parquet(Path(folder) / "0.parquet")
        files = TableFiles(folder, people.schema, unit=people.unit)
        given: Any = files if source is None else source(files)
        return engine.open(given)


def _problem(engine: Engine, rows: Rows, rng: np.random.Generator) -> str | None:
    """Describe a problem with samples of some rows, None if there is none."""
    there = _count_people(engine, rows)
    present = int((there > 0).sum())
    for chosen in _draws(present, rng):
        asked: list[int] = []

        def draw(number: int, chosen: NDArray[np.bool_] = chosen, asked: list[int] = asked) -> NDArray[np.bool_]:
            asked.append(number)
            return np.resize(chosen, number)

        sample = engine.sample_units(rows, draw)
        counts = _count_people(engine, sample)
        if ((counts > 0) & (counts < there)).any():
            return "a sample holds some rows of a person, and not the others"
        if asked != [present]:
            return "a sample is not drawn by one draw for each person with a row there"
        if (counts > 0).sum() != chosen.sum() or (counts > there).any():
            return "a sample has more or fewer people than were drawn"
        parts = np.sum([_count_people(engine, part) for part in engine.split(sample, PART)], axis=0)
        if not np.array_equal(parts, counts):
            return "the parts of a sample are not its rows"
    return None


def _count_people(engine: Engine, rows: Rows) -> Any:
    return Histogram(WHOSE).evaluate(engine, rows)


def _draws(present: int, rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
    """Yield draws of all people, of none, of each alone, and of random ones, each as a truth value per person."""
    yield np.ones(present, dtype=bool)
    yield np.zeros(present, dtype=bool)
    yield from np.eye(present, dtype=bool)
    for _ in range(4):
        yield rng.random(present) < 0.5
