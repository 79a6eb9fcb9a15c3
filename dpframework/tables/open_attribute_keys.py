"""The private keys of open attributes, stored as a number for each row and a text for each number.

The key of a row is the text in its cell. The schema lists no values of an open attribute, so any text may occur.

Numbers are given in the order in which texts are met. This order says something about the rows, so numbers are never
released. Only texts and their counts may be released, sorted by text, after a mechanism has chosen which to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.open_attribute import Open

NO_KEY = 0  # the number for a row without a key
KEY_CODES = np.dtype(np.uint32)


# `growing_column_arrays.read_only` does the same. It is not imported, so that planning does not load that module.
def _lock(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    view = codes.view()
    view.flags.writeable = False
    return view


@final
class KeyBook:
    """The keys of a table, numbered from 1 in the order in which they are met."""

    __slots__ = ("_numbers", "_texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._numbers = {text: k for k, text in enumerate(texts, start=NO_KEY + 1)}
        self._texts: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys so far, in the order of their numbers."""
        if len(self._texts) != len(self._numbers):
            self._texts = tuple(self._numbers)
        return self._texts

    def number(self, key: str | None) -> int:
        """Return the number of a key, and `NO_KEY` for None. A key that the book lacks gets the next number."""
        return NO_KEY if key is None else self._numbers.setdefault(key, len(self._numbers) + 1)

    def find(self, key: str | None) -> int:
        """Return the number of a key, or `NO_KEY` for None and for a key that is not in the book."""
        return NO_KEY if key is None else self._numbers.get(key, NO_KEY)

    def codes(self, column: KeyColumn) -> NDArray[np.uint32]:
        """Return a column's codes, renumbered as in this book. Keys that the book lacks are added to it."""
        numbers = np.array([NO_KEY, *map(self.number, column.book.texts)], dtype=KEY_CODES)
        return np.asarray(numbers[column.codes])

    def __len__(self) -> int:
        """Return how many keys there are (private)."""
        return len(self._numbers)

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyBook(rows are private)"

    def __reduce__(self) -> tuple[type[KeyBook], tuple[Any, ...]]:
        """Pickle the keys alone."""
        return KeyBook, (self.texts,)


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class KeyColumn:
    """The keys of some rows.

    Attributes
    ----------
    codes
        The number of each row's key, or `NO_KEY`, shape (rows,), read-only.
    book
        The keys by their numbers. Some keys may belong to no row.
    firsts
        Whether each row is the first row of its unit with this key, shape (rows,). Only such rows are counted. If units
        are not known, this is None, and all rows are counted.
    """

    codes: NDArray[np.uint32] = attrs.field(converter=_lock)
    book: KeyBook
    firsts: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.codes)

    def __getitem__(self, rows: slice) -> KeyColumn:
        """Return the keys of a slice of the rows."""
        return KeyColumn(self.codes[rows], self.book, None if self.firsts is None else self.firsts[rows])

    def take(self, index: NDArray[np.integer]) -> KeyColumn:
        """Return the keys of the rows at some positions."""
        return KeyColumn(self.codes.take(index), self.book, None if self.firsts is None else self.firsts.take(index))

    def of_units(self, units: NDArray[np.integer] | None) -> KeyColumn:
        """Return the keys with each row's unit taken into account, so that each unit counts once for each of its keys.

        Which row of a unit counts for a key depends on that unit's rows alone.

        Parameters
        ----------
        units
            The number of each row's unit, shape (rows,). None to count all rows.
        """
        if units is None:
            return attrs.evolve(self, firsts=None)
        # One number for each pair of a unit and a key. `np.unique` finds the first row of each pair.
        pairs = units.astype(np.uint64) << np.uint64(32) | self.codes.astype(np.uint64)
        firsts = np.zeros(len(pairs), dtype=np.bool_)
        firsts[np.unique(pairs, return_index=True)[1]] = True
        return attrs.evolve(self, firsts=firsts)

    def texts(self) -> list[str | None]:
        """Return the key of each row, None for a row without a key."""
        named = (None, *self.book.texts)
        return [named[code] for code in self.codes.tolist()]

    def count_keys(self) -> dict[str, int]:
        """Return how many rows have each key. Only `firsts` count, if known. Keys without such a row are left out."""
        counted = self.codes if self.firsts is None else self.codes[self.firsts]
        counts, texts = np.bincount(counted, minlength=1), self.book.texts
        present = np.flatnonzero(counts[1:])
        return {texts[place]: int(counts[place + 1]) for place in present.tolist()}

    def cells(self, keys: Sequence[str | None]) -> NDArray[np.unsignedinteger]:
        """Return for each row the first position of its key in `keys`, or `len(keys)` if it is not there.

        A None in `keys` matches no row. This takes one pass over the rows, however many keys there are.
        """
        cell_of = np.full(len(self.book) + 1, len(keys), dtype=np.min_scalar_type(len(keys)))
        for k in range(len(keys) - 1, -1, -1):  # backwards, so that the first of two equal keys is written last
            cell_of[self.book.find(keys[k])] = k
        cell_of[NO_KEY] = len(keys)
        return np.asarray(cell_of[self.codes])

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyColumn(rows are private)"

    def __reduce__(self) -> tuple[type[KeyColumn], tuple[Any, ...]]:
        """Pickle the arguments of the class, so that an unpickled column is read-only again."""
        return KeyColumn, (np.asarray(self.codes), self.book, self.firsts)


def keys_of_texts(attribute: Open, given: Sequence[str | None]) -> KeyColumn:
    """Return the keys of some cells, given as texts, None for a missing cell."""
    book = KeyBook()
    codes = [book.number(None if text is None else attribute.key_of(text)) for text in given]
    return KeyColumn(np.array(codes, dtype=KEY_CODES), book)


def add_counts(counted: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of each key's counts in all mappings, by key."""
    total: dict[str, int] = {}
    for one in counted:
        for key, count in one.items():
            total[key] = total.get(key, 0) + count
    return total
