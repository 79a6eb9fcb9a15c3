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


def _locked(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
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
    """

    codes: NDArray[np.uint32] = attrs.field(converter=_locked)
    book: KeyBook

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.codes)

    def __getitem__(self, rows: slice) -> KeyColumn:
        """Return the keys of some rows in turn."""
        return KeyColumn(self.codes[rows], self.book)

    def take(self, index: NDArray[np.integer]) -> KeyColumn:
        """Return the keys of the rows at some positions."""
        return KeyColumn(self.codes.take(index), self.book)

    def texts(self) -> list[str | None]:
        """Return the key of each row, None for a row without one."""
        named = (None, *self.book.texts)
        return [named[code] for code in self.codes.tolist()]

    def counted(self) -> dict[str, int]:
        """Return how many rows have each key, for those that some row has."""
        counts, texts = np.bincount(self.codes, minlength=1), self.book.texts
        present = np.flatnonzero(counts[1:])
        return {texts[place]: int(counts[place + 1]) for place in present.tolist()}

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyColumn(rows are private)"

    def __reduce__(self) -> tuple[type[KeyColumn], tuple[Any, ...]]:
        """Pickle as the parts, so that an unpickled column is read-only again."""
        return KeyColumn, (np.asarray(self.codes), self.book)


def keys_of_texts(attribute: Open, given: Sequence[str | None]) -> KeyColumn:
    """Return the keys of texts, each as a cell would hold it, None where there is none."""
    book = KeyBook()
    codes = [book.number(None if text is None else attribute.key_of(text)) for text in given]
    return KeyColumn(np.array(codes, dtype=KEY_CODES), book)


def merged(counted: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of counts by key."""
    total: dict[str, int] = {}
    for one in counted:
        for key, count in one.items():
            total[key] = total.get(key, 0) + count
    return total
