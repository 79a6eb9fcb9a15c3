"""The distinct texts of a column with their numbers of cells, on which guesses cost less than on all cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl


@attrs.frozen(eq=False, repr=False)
class DistinctCells:
    """Texts, each with how many cells hold it. All of it is private.

    Attributes
    ----------
    texts
        In the order in which they occur first.
    counts
        How many cells hold each, shape (texts,).
    """

    texts: pl.Series
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, series: pl.Series) -> DistinctCells:
        """Return the distinct cells of a column of texts; null is one of them, where it occurs."""
        found = series.alias("text").to_frame().group_by("text", maintain_order=True).len("cells")
        return cls(found["text"], found["cells"].to_numpy().astype(np.int64))

    def stripped(self) -> DistinctCells:
        """Return the texts without space around them, and without null and blank ones."""
        import polars as pl

        text = pl.col("text").str.strip_chars()
        same = ((text == pl.col("text")) & (text != "")).fill_null(False)
        found = pl.DataFrame({"text": self.texts, "cells": self.counts}).select_seq(text, "cells", same=same)
        if found["same"].all():
            return self
        found = found.filter(text != "").drop("same")
        found = found.group_by("text", maintain_order=True).agg(pl.col("cells").sum())
        return DistinctCells(found["text"], found["cells"].to_numpy())

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.counts.sum())

    def number(self, which: Any) -> int:
        """Return how many cells hold the texts that a mask names, shape (texts,)."""
        return int(self.counts[np.asarray(which, dtype=np.bool_)].sum())

    def only(self, which: Any) -> DistinctCells:
        """Return the texts that a mask names, shape (texts,)."""
        import polars as pl

        mask = np.asarray(which, dtype=np.bool_)
        return DistinctCells(self.texts.filter(pl.Series(mask)), self.counts[mask])

    def without(self, texts: Any) -> DistinctCells:
        """Return all but some texts."""
        listed = list(texts)
        return self.only(~self.texts.is_in(listed).to_numpy()) if listed else self

    def head(self, most: int) -> DistinctCells:
        """Return the first texts."""
        return self if len(self.texts) <= most else DistinctCells(self.texts.head(most), self.counts[:most])

    def frame(self) -> pl.DataFrame:
        """Return the texts in the column `text` with their numbers in `count`, the most frequent first."""
        import polars as pl

        counts = pl.DataFrame({"text": self.texts, "count": self.counts})
        return counts.sort(["count", "text"], descending=[True, False])
