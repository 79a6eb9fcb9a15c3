"""The keys of open attributes on the private side: whose each row is, by a number, and the texts of the numbers.

Numbers are given as texts come, so they say something of the rows: they never leave this side. What does is a text with
its count, once a mechanism has chosen to show it, in the order of the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.open_attribute import Open

NO_KEY = 0
KEY_CODES = np.dtype(np.uint32)


def _lock(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    view = codes.view()
    view.flags.writeable = False
    return view


@final
class KeyBook:
    """The keys of a table with their numbers, given as texts come."""

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
        """Return the number of a key, a new one if it was not met before, and `NO_KEY` for none."""
        return NO_KEY if key is None else self._numbers.setdefault(key, len(self._numbers) + 1)

    def find(self, key: str | None) -> int:
        """Return the number of a key, `NO_KEY` for none and for one that was not met."""
        return NO_KEY if key is None else self._numbers.get(key, NO_KEY)

    def codes(self, column: KeyColumn) -> NDArray[np.uint32]:
        """Return the codes of a column in the numbers of this book."""
        numbers = np.array([NO_KEY, *map(self.number, column.book.texts)], dtype=KEY_CODES)
        return np.asarray(numbers[column.codes])

    def __len__(self) -> int:
        """Return how many keys there are (private)."""
        return len(self._numbers)

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyBook(rows are private)"

    def __reduce__(self) -> tuple[type[KeyBook], tuple[Any, ...]]:
        """Pickle as the keys."""
        return KeyBook, (self.texts,)


@final
@attrs.frozen(eq=False, repr=False)
class KeyColumn:
    """The keys of some rows.

    Attributes
    ----------
    codes
        A number for each row, shape (rows,), read-only: that of its key, or `NO_KEY`.
    book
        The keys by their numbers. Some of them may be no row's.
    firsts
        Which rows are the first of their unit with their key, shape (rows,), where the unit of each is known: these are
        counted. None counts all.
    """

    codes: NDArray[np.uint32] = attrs.field(converter=_lock)
    book: KeyBook
    firsts: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.codes)

    def __getitem__(self, rows: slice) -> KeyColumn:
        """Return the keys of some rows in turn."""
        return KeyColumn(self.codes[rows], self.book, None if self.firsts is None else self.firsts[rows])

    def take(self, index: NDArray[np.integer]) -> KeyColumn:
        """Return the keys of the rows at some positions."""
        return KeyColumn(self.codes.take(index), self.book, None if self.firsts is None else self.firsts.take(index))

    def of_units(self, units: NDArray[np.integer] | None) -> KeyColumn:
        """Return the keys of rows of some units, by their numbers, so that each unit counts once for each of its keys.

        Which rows count depends on the rows of each unit alone, and there is one for each of its keys.
        """
        if units is None:
            return attrs.evolve(self, firsts=None)
        pairs = units.astype(np.uint64) << np.uint64(32) | self.codes.astype(np.uint64)
        firsts = np.zeros(len(pairs), dtype=np.bool_)
        firsts[np.unique(pairs, return_index=True)[1]] = True
        return attrs.evolve(self, firsts=firsts)

    def texts(self) -> list[str | None]:
        """Return the key of each row, None for a row without one."""
        named = (None, *self.book.texts)
        return [named[code] for code in self.codes.tolist()]

    def counted(self) -> dict[str, int]:
        """Return how many rows have each key, or how many units, for those that some row has."""
        counted = self.codes if self.firsts is None else self.codes[self.firsts]
        counts, texts = np.bincount(counted, minlength=1), self.book.texts
        present = np.flatnonzero(counts[1:])
        return {texts[place]: int(counts[place + 1]) for place in present.tolist()}

    def cells(self, keys: Sequence[str | None]) -> NDArray[np.unsignedinteger]:
        """Return for each row the first place of its key among some, and their number where it is none of them.

        None is no row's key. It takes one pass over the rows, however many keys there are.
        """
        cell_of = np.full(len(self.book) + 1, len(keys), dtype=np.min_scalar_type(len(keys)))
        for k in range(len(keys) - 1, -1, -1):  # the first of two equal keys has the last word
            cell_of[self.book.find(keys[k])] = k
        cell_of[NO_KEY] = len(keys)
        return np.asarray(cell_of[self.codes])

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyColumn(rows are private)"

    def __reduce__(self) -> tuple[type[KeyColumn], tuple[Any, ...]]:
        """Pickle as the parts, so that an unpickled column is read-only again."""
        return KeyColumn, (np.asarray(self.codes), self.book, self.firsts)


def keys_of_texts(attribute: Open, given: Sequence[str | None]) -> KeyColumn:
    """Return the keys of texts, each as a cell would hold it, None where there is none."""
    book = KeyBook()
    codes = [book.number(None if text is None else attribute.key_of(text)) for text in given]
    return KeyColumn(np.array(codes, dtype=KEY_CODES), book)


def merge(counted: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of counts by key."""
    total: dict[str, int] = {}
    for one in counted:
        for key, count in one.items():
            total[key] = total.get(key, 0) + count
    return total
