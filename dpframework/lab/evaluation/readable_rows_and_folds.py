"""Columns, selected rows and cross-validation folds of a table that may be read freely. Not private."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError
from dpframework.tables.coded_table import Table, places_in_order
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.in_process_engines import InMemory


def columns_of(table: Table) -> Block:
    """Return all rows as one block of columns, on which descriptions can be evaluated. Not private."""
    (block,) = InMemory().load(table)
    return block


def select_rows(table: Table, rows: ArrayLike) -> Table:
    """Return the chosen rows as a table of their own.

    If the schema has a public row count, the new table's schema has the number of chosen rows instead.

    Parameters
    ----------
    table
        All rows.
    rows
        The positions of the chosen rows, or a mask of shape (all rows,).
    """
    chosen = np.asarray(rows) if np.size(rows) else np.empty(0, dtype=np.int64)
    columns = [column[chosen] for column in table.columns]
    values = {name: column[chosen] for name, column in table.values.items()}
    units = None if table.unit_codes is None else table.unit_codes[chosen]
    schema = table.schema if table.schema.rows is None else attrs.evolve(table.schema, rows=len(columns[0]))
    keys = {name: column.take(np.arange(table.rows)[chosen]) for name, column in table.keys.items()}
    places = None if units is None else places_in_order(units)
    return Table(schema, columns, values, table.unit, table.key, units, keys, places)


def folds(table: Table, number: int, *, seed: int) -> Iterator[tuple[Table, Table]]:
    """Yield, for each fold of a cross-validation, the table of all other rows and the table of the fold's rows.

    The rows of each table are in random order.

    Raises
    ------
    InputError
        If there are fewer than two folds, or fewer rows than folds.

    Examples
    --------
    >>> from dpframework.lab.clinic import clinic_table
    >>> [(train.rows, test.rows) for train, test in folds(clinic_table(10), 3, seed=0)]
    [(6, 4), (7, 3), (7, 3)]
    """
    if not 2 <= number <= table.rows:
        raise InputError(f"the number of folds must be from 2 to the number of rows, not {number}")
    parts = fold_positions(table.rows, number, seed)
    for k, held_out in enumerate(parts):
        others = np.concatenate([*parts[:k], *parts[k + 1 :]])
        yield select_rows(table, others), select_rows(table, held_out)


def fold_positions(rows: int, number: int, seed: int) -> list[NDArray[np.int64]]:
    """Return the positions of each fold's rows, in random order. The first folds may be one row larger."""
    return np.array_split(np.random.default_rng(seed).permutation(rows), number)
