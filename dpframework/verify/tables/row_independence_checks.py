"""Checks that tables are read row by row: no row changes how another row is read, or whether it is read.

A claim is about tables of codes. It carries over to the data only if neighbouring data sets are read as neighbouring
tables. So the codes of a row must follow from that row alone, and no row may stop the reading. A library that holds a
column as an array of one type breaks this easily, since one more cell may change the type of all cells.
"""

from __future__ import annotations

import abc
import csv
import datetime
import functools
import math
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.canonical_cells import of_text
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.tables.coded_table import Table
from dpframework.tables.reading import read_table, table_from_columns, table_from_frame

Cells: TypeAlias = Mapping[str, Sequence[Any]]
"""Columns of made-up cells, by name."""

MOST_ROWS = 4  # the most rows of a small table
# How many larger tables are read, and about how many rows these have. A reader may guess types from the first rows, or
# read in blocks. Its faults then show only in tables with more rows than those that it reads first.
LONG, MANY_ROWS = 2, 2_500
#: How often each of four rows occurs in each of two tables. A reader may treat rare cells differently.
OFTEN = ((600, 2, 12, 300), (2, 600, 300, 2))
SHOWN = 3  # this many violations of a reader are reported: those with the shortest texts


@final
@attrs.frozen
class Reader:
    """A way to read a table: from a frame or file to the encoded rows.

    Attributes
    ----------
    name
        The name of the reader in reports.
    hold
        A function that puts columns into a frame, or into a file at a path. If it raises an error, the library cannot
        hold such cells in one column. That is not the reader's fault, and the table is left out.
    read
        A function of the frame or file and a schema, which returns the encoded table.
    may_refuse
        Whether the reader may refuse rows with `DoesNotFit`, since the owner of the rows asserts that they fit.
    """

    name: str
    hold: Callable[[Cells, Path], Any]
    read: Callable[[Any, Schema], Table]
    may_refuse: bool = False


@attrs.frozen
class TablesReport(abc.ABC):
    """The findings on made-up tables.

    Attributes
    ----------
    tables
        How many tables were read, each together with neighbours of it.
    violations
        The violations that were found, one sentence for each, with made-up cells.
    """

    tables: int
    violations: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether there are no violations."""
        return not self.violations

    @abc.abstractmethod
    def __str__(self) -> str:
        """Write the verdict and the findings."""


@final
@attrs.frozen
class ReadingReport(TablesReport):
    """The findings on reading: whether one row changed how other rows were read.

    Attributes
    ----------
    readers
        The names of the readers.
    """

    readers: tuple[str, ...]

    def __str__(self) -> str:
        """Write one line, and one more for each violation."""
        verdict = "row by row" if self.passed else "NOT row by row"
        head = f"{', '.join(self.readers)}: {verdict} on {self.tables} pairs of tables each"
        return "\n  ".join((head, *self.violations))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self), "passed": self.passed}


def check_reading(
    schema: Schema, *, readers: Iterable[Reader] | None = None, tables: int = 200, seed: int = 0
) -> ReadingReport:
    """Read made-up tables with and without one more row, and compare the rows that they share.

    Parameters
    ----------
    schema
        The schema of the tables. Its public row counts are ignored, since one more row may violate them.
    readers
        The readers to check. By default `built_in_readers()`, for all frames and files that dpframework reads.
    tables
        How many pairs of small tables each reader gets.
    seed
        The seed of the cells.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> print(check_reading(Schema([Boolean("ill")]), readers=[built_in_readers()[0]], tables=20))
    csv: row by row on 20 pairs of tables each
    """
    schema = attrs.evolve(schema, rows=None, max_rows=None)
    checked = built_in_readers() if readers is None else tuple(readers)
    violations: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for reader in checked:
            rng = random.Random(seed)
            found: list[str] = []
            for number in range(tables + LONG):
                rows, more = _draw_rows(schema, rng)
                if number >= tables:
                    rows = (rows or [more]) * (MANY_ROWS // len(rows or [more]))
                place = rng.randrange(len(rows) + 1)
                wrong = _compare(reader, schema, rows, more, place, Path(folder))
                if wrong is not None:
                    found.append(wrong)
            found += _compare_alone(reader, schema, Path(folder))
            violations |= dict.fromkeys(sorted(found, key=len)[:SHOWN])
    return ReadingReport(tables, tuple(violations), tuple(reader.name for reader in checked))


Row: TypeAlias = tuple[Any, ...]


def _compare(reader: Reader, schema: Schema, rows: Sequence[Row], more: Row, place: int, folder: Path) -> str | None:
    """Describe how one more row changes the reading of other rows.

    None if it changes nothing, or if the reader cannot hold such rows.
    """
    held: list[Any] = []
    for table in (list(rows), [*rows[:place], more, *rows[place:]]):
        columns = {name: [row[k] for row in table] for k, name in enumerate(schema.names)}
        try:
            held.append(reader.hold(columns, folder / f"{len(held)}"))
        except Exception:  # the library cannot hold such cells
            return None
    read: list[Table] = []
    for what, one in zip((f"the rows {list(rows)}", f"the row {more} beside {list(rows)}"), held, strict=True):
        try:
            read.append(reader.read(one, schema))
        except DoesNotFit:
            if not reader.may_refuse:
                return f"{reader.name}: {what} stops the reading"
            return None
        except Exception as error:
            return f"{reader.name}: {what} stops the reading ({type(error).__name__})"
    if [table.rows for table in read] != [len(rows), len(rows) + 1]:
        return f"{reader.name}: of {len(rows)} rows {read[0].rows} are read, and {read[1].rows} with one more row"
    shared = np.delete(np.arange(len(rows) + 1), place)
    for k, attribute in enumerate(schema):
        codes = _read_of(read[0], k).tolist(), _read_of(read[1], k)[shared].tolist()
        same = codes[0] == codes[1]
        if attribute.name in read[0].values:
            values = read[0].values[attribute.name], read[1].values[attribute.name][shared]
            same = same and np.array_equal(*values, equal_nan=True)
        if not same:
            cells = [row[k] for row in rows[:MOST_ROWS]]
            return (
                f"{reader.name}: '{attribute.name}' of {cells} is read as {codes[0]}, but as {codes[1]} "
                f"beside {more[k]!r}"
            )
    return None


def _compare_alone(reader: Reader, schema: Schema, folder: Path) -> list[str]:
    """Describe the rows that are read differently alone and in a table.

    A cell may be rare in one table and frequent in the other. This reveals a reader that merges rare cells, whether its
    threshold is a number up to 600 or a share from 1/100 to 3/5. In a third table, each column has texts of all forms,
    such as 0.5 and 0,5. This reveals a reader that guesses one form for a whole column.
    """
    inside = [tuple(_cell_inside(attribute, k) for attribute in schema) for k in range(len(OFTEN[0]))]
    texts = [[*dict.fromkeys(cell for cell in _wild(one) if isinstance(cell, str))] for one in schema]
    odd = [tuple(own[k % len(own)] for own in texts) for k in range(max(map(len, texts)))]
    found = []
    for rows, times in ((inside, OFTEN), (odd, ([1] * len(odd),))):
        alone = [_read(reader, schema, [row], folder) for row in rows]
        for often in times:
            numbers = [k for k, number in enumerate(often) for _ in range(number)]
            random.Random(0).shuffle(numbers)
            together = _read(reader, schema, [rows[k] for k in numbers], folder)
            if together is None or together.rows != len(numbers):
                continue  # the library cannot hold such cells, or `_compare` has found that rows are left out
            for k, one in enumerate(alone):
                wrong = None if one is None or one.rows != 1 else _differ(schema, one, together, numbers.index(k))
                if wrong is not None:
                    name, codes = wrong
                    cell = rows[k][schema.names.index(name)]
                    found.append(
                        f"{reader.name}: '{name}' of {cell!r} is read as {codes[0]}, but as {codes[1]} in a table of "
                        f"{len(numbers)} rows, {often[k]} of them equal to it"
                    )
    return found


def _differ(schema: Schema, alone: Table, together: Table, place: int) -> tuple[str, tuple[Any, Any]] | None:
    """Return the first attribute that is read differently for a row alone and in a table, and both codes."""
    for k, name in enumerate(schema.names):
        codes = _read_of(alone, k)[0], _read_of(together, k)[place]
        same = codes[0] == codes[1]
        if name in alone.values:
            same = same and np.array_equal(alone.values[name][:1], together.values[name][[place]], equal_nan=True)
        if not same:
            return name, codes
    return None


def _wild(attribute: Attribute) -> list[Any]:
    """Return cells of all types for an attribute."""
    return [cell for pool in _pools(attribute) for cell in pool]


def _read(reader: Reader, schema: Schema, rows: Sequence[Row], folder: Path) -> Table | None:
    """Return rows as a reader reads them. None if the library cannot hold such cells, or the reader refuses them."""
    columns = {name: [row[k] for row in rows] for k, name in enumerate(schema.names)}
    try:
        return reader.read(reader.hold(columns, folder / "0"), schema)
    except Exception:  # `_compare` reports what stops the reading
        return None


def _cell_inside(attribute: Attribute, number: int) -> Any:
    """Return a cell in an attribute's domain. Numbers below 4 give different cells, if the domain has so many."""
    match attribute:
        case Numeric():
            edges = attribute.edges
            return float(edges[number % (len(edges) - 1)])
        case Boolean():
            return number % 2 == 0
        case Categorical():
            return attribute.values[number % len(attribute.values)]
    return ("Rome", "Ulm", "Bonn", "Kiel")[number % 4]


def _read_of(table: Table, position: int) -> NDArray[Any]:
    """Return the code that was read for an attribute in each row, or the text if the schema lists no values."""
    keys = table.keys.get(table.schema.names[position])
    return table.columns[position] if keys is None else np.array(keys.texts(), dtype=object)


# Cells


def _draw_rows(schema: Schema, rng: random.Random) -> tuple[list[Row], Row]:
    """Return some rows, whose columns mostly have cells of one type each, and one more row with cells of any type."""
    number = rng.randrange(MOST_ROWS + 1)
    columns, more = [], []
    for attribute in schema:
        pools = _pools(attribute)
        wild = [cell for pool in pools for cell in pool]
        pool = rng.choice([*pools, wild])
        columns.append([rng.choice(pool) for _ in range(number)])
        more.append(rng.choice([None, rng.choice(pool), rng.choice(wild)]))
    return [tuple(column[k] for column in columns) for k in range(number)], tuple(more)


def _pools(attribute: Attribute) -> list[list[Any]]:
    """Return lists of cells for an attribute, one for each type, inside and outside of its domain and at its edges."""
    numbers, texts = list[float](), list[str]()  # cells that matter for the attribute, such as its bounds and labels
    match attribute:
        case Numeric():
            numbers = [attribute.lower, *attribute.interior_cuts[:3], attribute.upper]
            numbers += [attribute.lower - 1, attribute.upper + 1]
            texts = ["1", "0.5", "0,5"]
        case Boolean():
            numbers, texts = [0, 1], ["true", "False", "YES", "n", "t", "f", "no"]
        case Categorical():
            texts = [*attribute.values[:6]]
            numbers = [form for form in map(of_text, texts) if isinstance(form, float)]
        case Open():
            numbers = [3, 2.5, 1e30]
            texts = ["Rome", " rome", "New  York", "cafe\u0301", "caf\xe9", "other", "a\nb"]
    whole = [int(number) for number in numbers if float(number).is_integer()]
    floats = [float(number) for number in numbers]
    return [
        [*whole, 0, 1, -1],
        [*whole, 2**53 + 1, 10**16 + 1, 2**62],
        [*floats, 0.0, -0.0, 1.0, 2.5],
        [*floats, 0.1, 1e16, math.inf, -math.inf, math.nan],
        [float(np.float32(number)) for number in (*floats, 0.1)],
        [*texts, *(f"{number!r}" for number in floats), *(f" {number}" for number in whole), "1", "1.0", "-0.0"],
        [*texts, "", " ", "1e3", "+1", "01", "nan", "inf", "1e16", "10000000000000001", "another"],
        [True, False],
        [Decimal("1.0"), Decimal("0.1"), Decimal("-0"), 10**30, None],
        [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12), b"1", [1], {"a": 1}],
    ]


# Readers


def built_in_readers(out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP) -> tuple[Reader, ...]:
    """Return readers for all frames and files that dpframework reads, with one policy for cells out of domain.

    Examples
    --------
    >>> print(*(reader.name for reader in built_in_readers()), sep=", ")
    csv, parquet, parquet of pandas, polars, pandas, pyarrow, columns
    """
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    frame = functools.partial(table_from_frame, out_of_domain=out_of_domain)
    file = functools.partial(read_table, out_of_domain=out_of_domain)
    columns = functools.partial(table_from_columns, out_of_domain=out_of_domain)
    may_refuse = OutOfDomain.parse(out_of_domain) is OutOfDomain.ERROR
    return (
        Reader("csv", write_csv, file, may_refuse),
        Reader("parquet", write_parquet, file, may_refuse),
        Reader("parquet of pandas", _parquet_of_pandas, file, may_refuse),
        Reader("polars", lambda cells, _: pl.DataFrame(dict(cells)), frame, may_refuse),
        Reader("pandas", lambda cells, _: pd.DataFrame(dict(cells)), frame, may_refuse),
        Reader("pyarrow", lambda cells, _: pa.table(dict(cells)), frame, may_refuse),
        Reader("columns", lambda cells, _: cells, columns, may_refuse),
    )


def write_csv(cells: Cells, path: Path) -> Path:
    """Write columns as a CSV file, and return its path."""
    path = path.with_suffix(".csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(cells)
        writer.writerows(zip(*cells.values(), strict=True))
    return path


def write_parquet(cells: Cells, path: Path) -> Path:
    """Write columns as a Parquet file, and return its path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = path.with_suffix(".parquet")
    pq.write_table(pa.table({name: list(column) for name, column in cells.items()}), path)
    return path


def _parquet_of_pandas(cells: Cells, path: Path) -> Path:
    import pandas as pd

    path = path.with_suffix(".parquet")
    pd.DataFrame({name: list(column) for name, column in cells.items()}).to_parquet(path)
    return path
