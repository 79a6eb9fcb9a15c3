"""Checks of contribution bounding: one more unit must add at most k rows to a table and change no other row.

Here k is the number of rows to which each unit is bounded. A claim about units is about tables that differ by up to k
rows. It carries over to the data only if neighbouring data sets are read as such tables. So at most k rows of each unit
may be kept, and the choice must depend on the unit's own rows alone.

Rows are chosen by a private key. For each of several keys, the tables with and without a unit are compared. If one more
unit adds at most k rows under each key, then every release loses at most its claim under each key. The same then holds
for a random key, since averaging over the keys makes neighbouring tables no easier to tell apart. A release is replayed
as well: its density is averaged over the keys, once on the tables with the unit and once on those without it. The loss
is the largest difference of the logarithms of these two averages.
"""

from __future__ import annotations

import collections
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit, UnitChange
from dpframework.facts.schema import Schema
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Histogram
from dpframework.tables.coded_table import Table
from dpframework.tables.contribution_bounding import KEY_BYTES
from dpframework.tables.in_process_engines import InMemory
from dpframework.tables.reading import read_table, table_from_columns, table_from_frame
from dpframework.tables.reading_in_worker_pieces import read_in_pieces
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify.tables.neighbours import Universe
from dpframework.verify.tables.people_with_confusable_ids import ID_KINDS, Person, people_of
from dpframework.verify.tables.row_independence_checks import Cells, TablesReport, write_csv, write_parquet

MOST_ROWS = 9  # the most rows of a person
# The number of people in a larger table, and how many of them are left out in turn. All rows without an id are left out
# together, as if they were one of these people.
MANY, FEW = 2_500, 4
MISSING = 0.1  # the share of ids that are missing
KEYS = 4  # the number of private keys
PIECES, BUCKETS = 3, 2  # the pieces and buckets of a table that is read as if by several processes
CLAIM = 1  # the epsilon that the replayed release claims
FAR = 9  # outputs are tried this far beyond the counts of both tables, since the loss is largest there
ROUNDING = 1e-9  # how much more than the claim may be lost, since losses are rounded


@final
@attrs.frozen
class UnitReader:
    """A way to read a table for a unit: from a frame or file to the rows that are kept.

    Attributes
    ----------
    name
        The name of the reader in reports.
    hold
        A function that puts columns, the ids among them, into a frame, or into files at a path. If it raises an error,
        a frame or file cannot hold such ids. That is not the reader's fault, and the table is left out.
    read
        A function of the frame or files, a schema, a unit and a key, which returns the table. The same key must give
        the same table each time.
    """

    name: str
    hold: Callable[[Cells, Path], Any]
    read: Callable[[Any, Schema, PrivacyUnit, bytes], Table]


@final
@attrs.frozen
class BoundingReport(TablesReport):
    """The findings on bounding: whether one more person changed the rows of other people, or added too many rows.

    Attributes
    ----------
    unit
        The privacy unit that the tables were read for.
    readers
        The names of the readers.
    loss
        The largest loss of a release that claims epsilon 1, with its density averaged over the keys.
    """

    unit: PrivacyUnit
    readers: tuple[str, ...]
    loss: float

    def __str__(self) -> str:
        """Write one line for each violation; if there is none, one line that says so."""
        held = f"{self.unit}: each keeps its own rows, on {self.tables} tables ({', '.join(self.readers)})"
        return "\n".join(self.violations) or f"{held}; a claim of {CLAIM} lost {self.loss:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "unit": self.unit.to_dict(),
            "readers": list(self.readers),
            "tables": self.tables,
            "loss": self.loss,
            "violations": list(self.violations),
            "passed": self.passed,
        }


def check_bounding(
    schema: Schema, unit: PrivacyUnit, *, readers: Iterable[UnitReader] | None = None, tables: int = 9, seed: int = 0
) -> BoundingReport:
    """Read made-up tables of people with 1 to 9 rows each, read each table again without each person, and compare.

    The people's ids are easily mixed up: consecutive whole numbers beyond 2^53, decimal numbers, floats, texts that
    differ in case or at their end, bytes and UUIDs. Some people's ids are spelled in several ways. Each reader is
    tested up to the first table with a violation. The last table of a reader has 2,500 people and more than 10^4 rows,
    and is read again without each of a few people.

    Parameters
    ----------
    schema
        The schema of the tables.
    unit
        The privacy unit, with the column of its ids.
    readers
        The readers that are tested. By default `unit_readers()`, dpframework's own reading of lists, frames and files.
    tables
        How many tables of a few people each reader gets. The kinds of ids take turns. It takes 36 tables, four for each
        kind, to use all ids.
    seed
        The seed of the tables and the keys.

    Raises
    ------
    InputError
        If the unit has no id, or if a reader could hold none of the tables.
    """
    if unit.id is None:
        raise InputError("only units that a column of ids names can be bounded; give the unit an id")
    schema = attrs.evolve(schema, rows=None, max_rows=None)
    checked = tuple(unit_readers() if readers is None else readers)
    in_files = schema if schema.per_unit is None else Schema(schema.in_files.columns, read=schema.in_files.read)
    universe = Universe(in_files)
    wrong: list[str] = []
    number, loss = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for reader in checked:
            rng, tried = np.random.default_rng(seed), 0
            for what, people, few in _tables_of_people(universe, unit, tables, rng):
                if few is not None and not tried:
                    raise InputError(f"reader '{reader.name}' could hold none of the {tables} tables; give more tables")
                found = _compare(reader, people, schema, unit, Path(folder), rng, few=few)
                if found is None:
                    continue
                problems, lost = found
                tried, loss = tried + 1, max(loss, lost)
                wrong += [f"{reader.name}, {what}: {sentence}" for sentence in problems.values()]
                if problems:
                    break
            number += tried
    return BoundingReport(number, tuple(wrong), unit, tuple(one.name for one in checked), loss)


# Tables of people


def _tables_of_people(
    universe: Universe, unit: PrivacyUnit, tables: int, rng: np.random.Generator
) -> Iterator[tuple[str, _People, int | None]]:
    """Yield tables of a few people, and one of many.

    Each table comes with a text that names it, and with the number of people that are left out in turn. None stands for
    all people.
    """
    for turn in range(tables):
        kind = ID_KINDS[turn % len(ID_KINDS)]
        yield f"ids that are {kind}", _People.draw(universe, unit, people_of(kind, turn // len(ID_KINDS)), rng), None
    yield f"{MANY:,} people", _People.draw(universe, unit, [(k,) for k in range(MANY)], rng), FEW


@attrs.frozen(eq=False)
class _People:
    """The columns of people's rows in any order, and the number of each row's person (-1 for a row without an id)."""

    columns: dict[str, list[Any]]
    whose: NDArray[np.int64]

    @classmethod
    def draw(cls, universe: Universe, unit: PrivacyUnit, people: Sequence[Person], rng: np.random.Generator) -> _People:
        whose = np.repeat(np.arange(len(people)), rng.integers(1, MOST_ROWS + 1, len(people)))
        rng.shuffle(whose)
        whose[rng.random(len(whose)) < MISSING] = -1
        columns: dict[str, list[Any]] = {str(unit.id): [_spell(people, k, rng) for k in whose.tolist()]}
        table = universe.table(bytes(rng.integers(0, universe.kinds, len(whose)).tolist()))
        for attribute, codes in zip(universe.schema, table.columns, strict=True):
            values, keys = table.values.get(attribute.name), table.keys.get(attribute.name)
            if keys is not None:
                columns[attribute.name] = keys.texts()
            elif values is not None:
                columns[attribute.name] = [None if np.isnan(value) else float(value) for value in values]
            else:
                columns[attribute.name] = [
                    None if code == attribute.missing_code else attribute.cells[code] for code in codes
                ]
        return cls(columns, whose)

    def without(self, person: int) -> Cells:
        """Return the columns without one person's rows."""
        others = np.flatnonzero(self.whose != person)
        return {name: [cells[k] for k in others] for name, cells in self.columns.items()}


def _spell(people: Sequence[Person], whose: int, rng: np.random.Generator) -> Any:
    """Return one of the spellings of a person's id, None for a row without an id."""
    return None if whose < 0 else people[whose][int(rng.integers(len(people[whose])))]


# What one more person changes


def _compare(
    reader: UnitReader,
    people: _People,
    schema: Schema,
    unit: PrivacyUnit,
    folder: Path,
    rng: np.random.Generator,
    few: int | None = None,
) -> tuple[dict[str, str], float] | None:
    """Read a table with and without each person under several keys.

    Return the problems with the table by their kind, and the largest loss. None if the reader cannot hold the table.
    If `few` is given, only that many people are left out in turn, and only one key is tried.
    """
    keys = [rng.bytes(KEY_BYTES) for _ in range(KEYS if few is None else 1)]
    release = _Release.of(schema, unit)
    everyone = sorted(set(people.whose.tolist()))
    try:
        whole_held = reader.hold(people.columns, folder / "whole")
        held = {person: reader.hold(people.without(person), folder / f"without {person}") for person in everyone[:few]}
    except Exception:  # the library cannot hold such ids
        return None
    wrong: dict[str, str] = {}
    whole = [reader.read(whole_held, schema, unit, key) for key in keys]
    loss = 0.0
    if any(_units(table) not in (None, sum(person >= 0 for person in everyone)) for table in whole):
        wrong["units"] = "samples would draw several people as one, or one person as several"
    for person in held:
        number = int((people.whose == person).sum())
        left = [reader.read(held[person], schema, unit, key) for key in keys]
        who = "adding rows without an id" if person < 0 else f"adding a person with {number} rows"
        most = 0 if person < 0 else min(unit.rows, number)
        for one, other in zip(map(_rows, whole), map(_rows, left), strict=True):
            if other - one:
                wrong.setdefault("gone", f"{who} changes which rows others keep")
            elif (one - other).total() > most:
                wrong.setdefault("added", f"{who} adds {(one - other).total()} rows, and may add {most}")
        lost = release.loss(whole, left)
        loss = max(loss, lost)
        if lost > CLAIM + ROUNDING:
            wrong.setdefault("lost", f"{who} loses {lost:.3g} in a release that claims {CLAIM}, over {len(keys)} keys")
    return wrong, loss


def _units(table: Table) -> int | None:
    """Return how many units have rows in a table; None if its rows have no numbers of units."""
    return None if table.unit_codes is None else len(np.unique(table.unit_codes))


def _rows(table: Table) -> collections.Counter[bytes]:
    """Return how often each row occurs in a table."""
    return collections.Counter(row.tobytes() for row in np.ascontiguousarray(table.codes.T))


@attrs.frozen(eq=False)
class _Release:
    """A noisy histogram of the attribute with the most values, calibrated to claim epsilon 1 for a unit."""

    query: Histogram
    mechanism: DiscreteLaplace
    calibration: Any
    engine: InMemory

    @classmethod
    def of(cls, schema: Schema, unit: PrivacyUnit) -> _Release:
        query, mechanism = Histogram(max(schema, key=lambda attribute: attribute.size)), DiscreteLaplace(CLAIM)
        calibration = mechanism.calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE, by=UnitChange(unit.rows))
        return cls(query, mechanism, calibration, InMemory())

    def loss(self, whole: Sequence[Table], left: Sequence[Table]) -> float:
        """Return the largest loss between `whole` and `left`, with densities averaged over the tables of all keys.

        The loss is taken at outputs beyond the counts of both tables of a key, where the densities on the two differ
        most.
        """
        answers: list[list[tuple[int, ...]]] = []
        for tables in (whole, left):
            counts = [self.query.evaluate(self.engine, self.engine.load(table)) for table in tables]
            answers.append([tuple(np.asarray(one).tolist()) for one in counts])
        ones, others = map(collections.Counter, answers)
        largest = 0.0
        for one, other in sorted(set(zip(*answers, strict=True))):
            apart = np.sign(np.subtract(one, other))
            for output in (np.array(one) + FAR * apart, np.array(other) - FAR * apart):
                largest = max(largest, abs(self._density(ones, output) - self._density(others, output)))
        return largest

    def _density(self, answers: Mapping[tuple[int, ...], int], output: NDArray[Any]) -> float:
        """Return the logarithm of the density of an output, averaged over the keys."""
        logs = [
            math.log(number) + self.mechanism.log_density(np.array(answer), output, self.calibration)
            for answer, number in answers.items()
        ]
        return float(np.logaddexp.reduce(logs)) - math.log(sum(answers.values()))


# Readers


def unit_readers() -> tuple[UnitReader, ...]:
    """Return readers for all frames and files that dpframework reads for a unit.

    Examples
    --------
    >>> print(*(reader.name for reader in unit_readers()), sep=", ")
    csv, parquet, several files, in pieces, polars, pandas, pyarrow, columns
    """
    import polars as pl
    import pyarrow as pa

    def pieces(held: Any, schema: Schema, *, unit: PrivacyUnit, key: bytes) -> Table:
        return read_in_pieces(TableFiles(held, schema, unit=unit, key=key), PIECES, BUCKETS)

    def reader(name: str, hold: Callable[[Cells, Path], Any], read: Callable[..., Table]) -> UnitReader:
        return UnitReader(name, hold, lambda held, schema, unit, key: read(held, schema, unit=unit, key=key))

    return (
        reader("csv", write_csv, read_table),
        reader("parquet", write_parquet, read_table),
        reader("several files", _write_several, read_table),
        reader("in pieces", _write_pieces, pieces),
        reader("polars", lambda cells, _: pl.DataFrame(dict(cells)), table_from_frame),
        reader("pandas", _pandas, table_from_frame),
        reader("pyarrow", lambda cells, _: pa.table(dict(cells)), table_from_frame),
        reader("columns", lambda cells, _: cells, table_from_columns),
    )


def _pandas(cells: Cells, path: Path) -> Any:
    """Return a frame of Python objects, since pandas would round whole numbers where one is missing."""
    import pandas as pd

    return pd.DataFrame({name: pd.Series(list(column), dtype=object) for name, column in cells.items()})


def _write_pieces(cells: Cells, path: Path) -> list[Path]:
    """Write each third of the rows as a file, so that a person's rows lie in several files.

    The files are Parquet if a cell holds bytes, else CSV.
    """
    rows = len(next(iter(cells.values())))
    thirds = [
        {name: column[rows * k // PIECES : rows * (k + 1) // PIECES] for name, column in cells.items()}
        for k in range(PIECES)
    ]
    kind = write_parquet if any(isinstance(cell, bytes) for column in cells.values() for cell in column) else write_csv
    return [kind(third, path.with_name(f"{path.name} {k}")) for k, third in enumerate(thirds)]


def _write_several(cells: Cells, path: Path) -> list[Path]:
    """Write half of the rows as Parquet and half as CSV, so that a person's rows lie in both files."""
    if any(isinstance(cell, bytes) for column in cells.values() for cell in column):
        raise TypeError("a CSV file holds no bytes")
    half = len(next(iter(cells.values()))) // 2
    first = {name: column[:half] for name, column in cells.items()}
    second = {name: column[half:] for name, column in cells.items()}
    return [write_parquet(first, path), write_csv(second, path)]
