"""Keys of open attributes for units whose rows lie in several pieces. A unit counts once for each of its keys.

The schema lists no values of an open attribute. Its keys are the texts in its cells. Which of a unit's rows is the
first with a key depends on all rows of the unit. So each piece of the table sends the keys of its rows, with their ids,
to buckets. A bucket stands for a group of ids, and hears of them from all pieces (see `shuffle_into_buckets`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.facts.unit import PrivacyUnit
from dpframework.tables.encoding import cells_of
from dpframework.tables.open_attribute_keys import NO_KEY, KeyBook, KeyColumn
from dpframework.tables.plain_cell_series import as_column
from dpframework.tables.sources import Source, rows_changed

if TYPE_CHECKING:
    import polars as pl


def find_keys_counted_once(schema: Schema, unit: PrivacyUnit) -> list[Open]:
    """Return the open attributes if units may have several rows, else an empty list.

    A unit of several rows counts once for each of its keys, so all of its rows must be known. With one row for each
    unit, all rows count.
    """
    return [one for one in schema if isinstance(one, Open)] if unit.groups_rows else []


def keys_in(source: Source, attributes: Sequence[Open], number: int) -> list[KeyColumn]:
    """Return the keys of all rows of a source, one column for each attribute.

    Raises
    ------
    InputError
        If the source cannot be read, or its number of rows is no longer `number`.
    """
    names = [attribute.name for attribute in attributes]
    books, parts = [KeyBook() for _ in names], [[np.zeros(0, dtype=np.uint32)] for _ in names]
    for block in source.blocks(names) if names else ():
        for attribute, book, codes in zip(attributes, books, parts, strict=True):
            where = f"{source.name}: attribute '{attribute.name}'"
            found = cells_of(attribute, as_column(block[attribute.name], where)).keys
            assert found is not None  # the cells of an open attribute have keys
            codes.append(book.codes(found))
    columns = [KeyColumn(np.concatenate(codes), book) for codes, book in zip(parts, books, strict=True)]
    if any(len(column) != number for column in columns):
        raise rows_changed(source.name)
    return columns


def keys_as_frames(column: KeyColumn) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a frame with the number of each row's key, and a frame with the keys of these rows by number."""
    import polars as pl

    numbers, codes = np.unique(np.append(column.codes, NO_KEY), return_inverse=True)
    named = (None, *column.book.texts)
    texts = [named[number] for number in numbers.tolist() if number != NO_KEY]
    return pl.DataFrame({"key": codes[:-1].astype(np.uint32)}), pl.DataFrame({"text": texts}, {"text": pl.String})


def keys_of_frames(codes: pl.DataFrame, texts: pl.DataFrame) -> KeyColumn:
    """Return the column of keys in the frames of `keys_as_frames`."""
    return KeyColumn(codes["key"].to_numpy(), KeyBook(texts["text"]))


def firsts_of_units(
    parts: Sequence[tuple[NDArray[np.int64], KeyColumn]], kept: NDArray[np.bool_], totals: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which of the kept rows are the first of their unit with their key, shape (rows,).

    Parameters
    ----------
    parts
        For each piece, the positions of its rows among all rows sorted by unit, and the keys of its rows.
    kept
        Which rows are kept, shape (rows,).
    totals
        How many rows each unit has.
    """
    book, codes = KeyBook(), np.zeros(len(kept), dtype=np.uint32)
    for places, column in parts:
        codes[places] = book.codes(column)
    rows, units = np.flatnonzero(kept), np.repeat(np.arange(len(totals)), totals)
    firsts, found = KeyColumn(codes[rows], book).of_units(units[rows]).firsts, np.zeros(len(kept), dtype=np.bool_)
    found[rows] = firsts
    return found
