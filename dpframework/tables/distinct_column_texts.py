"""The distinct texts of columns, each with its number of cells. Schema inference reads these in place of all cells."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.input_limits import MOST_CELL_BYTES
from dpframework.tables.plain_cell_series import as_numbers

if TYPE_CHECKING:
    import polars as pl

_FEW = 500  # up to this number of texts, a loop takes less time than a call of polars


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class DistinctCells:
    """The distinct texts of a column, stripped, without nulls and blanks, and how many cells hold each. All is private.

    Attributes
    ----------
    texts
        The distinct texts, in the order in which they first occur.
    counts
        How many cells hold each text, shape (texts,).
    numbers
        Each text as a number, NaN where it is no number, shape (texts,). A number must be written as programs write it,
        with a decimal point and without thousands separators.
    strange
        Which texts are no numbers, shape (texts,).
    missing
        Whether a cell of the column was null or blank.
    """

    texts: pl.Series
    counts: NDArray[np.int64]
    numbers: NDArray[np.float64]
    strange: NDArray[np.bool_]
    missing: bool

    @classmethod
    def of(cls, series: pl.Series) -> DistinctCells:
        """Return the distinct cells of a column of texts. A text that is too long for a label is left out."""
        short = series.set((series.str.len_bytes() > MOST_CELL_BYTES).fill_null(False), None)
        return distinct_cells({"": short})[""]

    @property
    def cells(self) -> int:
        """The number of cells that hold one of the texts."""
        return int(self.counts.sum())

    def number(self, which: Any) -> int:
        """Return how many cells hold a text that is selected by a mask of shape (texts,)."""
        return int(self.counts[np.asarray(which, dtype=np.bool_)].sum())

    def only(self, which: Any) -> DistinctCells:
        """Return the distinct cells whose texts are selected by a mask of shape (texts,)."""
        import polars as pl

        mask = np.asarray(which, dtype=np.bool_)
        if bool(mask.all()):
            return self
        texts = self.texts.filter(pl.Series(mask))
        return DistinctCells(texts, self.counts[mask], self.numbers[mask], self.strange[mask], self.missing)

    def among(self, texts: Collection[str]) -> NDArray[np.bool_]:
        """Return which of the texts are in a collection, shape (texts,)."""
        if len(self.texts) <= _FEW:
            return np.array([text in texts for text in self.texts.to_list()], dtype=np.bool_)
        return self.texts.is_in(list(texts)).to_numpy()

    def without(self, texts: Collection[str]) -> DistinctCells:
        """Return the distinct cells whose texts are not in a collection."""
        return self.only(~self.among(texts)) if texts else self

    def matching(self, pattern: str) -> NDArray[np.bool_]:
        """Return which texts a pattern occurs in, shape (texts,)."""
        if len(self.texts) <= _FEW:
            found = re.compile(pattern).search
            return np.array([found(text) is not None for text in self.texts.to_list()], dtype=np.bool_)
        return self.texts.str.contains(pattern).to_numpy()

    def head(self, most: int) -> DistinctCells:
        """Return the distinct cells with the first `most` texts."""
        return self.only(np.arange(len(self.texts)) < most)

    def by_frequency(self) -> list[str]:
        """Return the texts, the most frequent first, and equally frequent ones in alphabetical order."""
        pairs = zip(self.counts.tolist(), self.texts.to_list(), strict=True)
        return [text for _, text in sorted(pairs, key=lambda pair: (-pair[0], pair[1]))]


def distinct_cells(columns: Mapping[str, pl.Series]) -> dict[str, DistinctCells]:
    """Return the distinct cells of columns of texts. A column with a text that is too long for a label is left out.

    All columns go through each step together, since each step of polars has a fixed cost and there are many columns.

    Parameters
    ----------
    columns
        The columns by name, each a series of texts of shape (rows,).
    """
    import polars as pl

    if not columns:
        return {}
    frame = pl.DataFrame([series.alias(f"c{k}") for k, series in enumerate(columns.values())])
    distinct = frame.select_seq(pl.all().unique(maintain_order=True).implode())
    numbers_of_cells = frame.select_seq(pl.all().unique_counts().implode())
    parts = [distinct[name].item() for name in frame.columns]
    counts = [numbers_of_cells[name].item().to_numpy().astype(np.int64) for name in frame.columns]
    text = pl.col("text").str.strip_chars()
    long = pl.DataFrame({"text": pl.concat(parts)}).select_seq(
        text,
        size=pl.col("text").str.len_bytes().fill_null(0),
        empty=(text == "").fill_null(True),
        spaced=(text != pl.col("text")).fill_null(False),
    )
    texts, empty, spaced = long["text"], long["empty"].to_numpy(), long["spaced"].to_numpy()
    too_long = long["size"].to_numpy() > MOST_CELL_BYTES
    # To save time, only texts that polars cannot read go through `as_numbers`.
    plain = texts.cast(pl.Float64, strict=False)
    rest = plain.is_null().to_numpy()
    numbers, strange = plain.fill_null(math.nan).to_numpy(writable=True), np.zeros(len(texts), dtype=np.bool_)
    numbers[rest], strange[rest] = as_numbers(texts.filter(pl.Series(rest)))
    found, begin = {}, 0
    for name, own in zip(columns, counts, strict=True):
        place = slice(begin, begin := begin + len(own))
        if bool(too_long[place].any()):
            continue
        cells = DistinctCells(texts[place], own, numbers[place], strange[place], bool(empty[place].any()))
        cells = cells.only(~empty[place]) if cells.missing else cells
        found[name] = _merge(cells) if bool((spaced & ~empty)[place].any()) else cells
    return found


def _merge(cells: DistinctCells) -> DistinctCells:
    """Return the cells with each text once. After stripping, several texts may be equal."""
    places: dict[str, int] = {}
    to = np.array([places.setdefault(text, len(places)) for text in cells.texts.to_list()], dtype=np.int64)
    _, first = np.unique(to, return_index=True)
    counts = np.bincount(to, weights=cells.counts).astype(np.int64)
    texts = cells.texts.gather(first)
    return DistinctCells(texts, counts, cells.numbers[first], cells.strange[first], cells.missing)
