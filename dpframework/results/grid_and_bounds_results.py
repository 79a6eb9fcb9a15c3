"""Results of adaptive searches: a grid of cells over two attributes, and bounds of one attribute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import finite_from_0, is_whole_number
from dpframework.facts.phrases import count_text
from dpframework.facts.value_checks import as_float, as_texts, finite_number
from dpframework.results.matrix import Matrix
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.result import DrawableResult, Tabular
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

_STRIP = {"figsize": (6, 1.5)}  # inches
MOST_SHOWN = 12  # the largest number of printed cells


def _edges(given: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(finite_number(edge, "an edge") for edge in one) for one in given)


def _cells(given: Iterable[Iterable[Iterable[int]]]) -> tuple[tuple[tuple[int, int], ...], ...]:
    return tuple(tuple((int(first), int(end)) for first, end in one) for one in given)


def _counts(given: Iterable[float]) -> tuple[float, ...]:
    return tuple(finite_number(count, "a count") for count in given)


@final
@attrs.frozen
class AdaptiveGrid(Tabular, DrawableResult):
    """Noisy counts of the cells of a grid over two numeric attributes. Cells are smaller where there are more rows.

    Attributes
    ----------
    names
        The names of the two attributes.
    edges
        For each attribute, the edges of its bins. A cell covers one or more consecutive bins of each attribute.
    cells
        For each cell and each attribute, the position of the cell's first bin, and 1 plus the position of its last bin.
        Cells do not overlap.
    counts
        The released counts, one for each cell. They may be negative.
    variance
        The variance of the noise of each count.
    """

    name_in_errors = "an adaptive grid"
    names: tuple[str, ...] = attrs.field(converter=as_texts)
    edges: tuple[tuple[float, ...], ...] = attrs.field(converter=_edges)
    cells: tuple[tuple[tuple[int, int], ...], ...] = attrs.field(converter=_cells)
    counts: tuple[float, ...] = attrs.field(converter=_counts)
    variance: float = attrs.field(converter=as_float, validator=finite_from_0("the variance of a count's noise"))

    def __attrs_post_init__(self) -> None:
        fits = len(self.names) == len(self.edges) == 2 and len(self.cells) == len(self.counts) > 0
        bins = [len(one) - 1 for one in self.edges]
        if not fits or any(
            len(cell) != 2 or not all(0 <= a < b <= n for (a, b), n in zip(cell, bins, strict=True))
            for cell in self.cells
        ):
            raise InputError("each cell of an adaptive grid needs two ranges of bins and one count")

    @property
    def ranges(self) -> list[tuple[tuple[float, float], ...]]:
        """The range of values of each cell, for each attribute."""
        return [tuple((own[a], own[b]) for (a, b), own in zip(cell, self.edges, strict=True)) for cell in self.cells]

    @property
    def per_bin(self) -> NDArray[np.float64]:
        """The counts by pairs of bins, shape (bins, bins), with each cell's rows spread evenly over its bins.

        Negative counts are replaced by 0.
        """
        shape = [len(one) - 1 for one in self.edges]
        found = np.zeros(shape)
        for cell, count in zip(self.cells, self.counts, strict=True):
            found[tuple(slice(a, b) for a, b in cell)] = max(count, 0.0) / math.prod(b - a for a, b in cell)
        return found

    def matrices(self) -> Sequence[Matrix]:
        """Return one matrix: a map with the first attribute from left to right and the second from bottom to top."""
        labels = [[f"{one[k]:g} to {one[k + 1]:g}" for k in range(len(one) - 1)] for one in self.edges]
        title = f"rows by {' and '.join(self.names)}, spread evenly within each cell"
        return [Matrix(title, labels[1][::-1], labels[0], self.per_bin.T[::-1].tolist())]

    def draw(self, axes: Any) -> None:
        """Draw each cell as a box. Cells with more rows for their size are darker."""
        from matplotlib.patches import Rectangle

        sizes = [math.prod(b - a for a, b in one) for one in self.ranges]
        density = [max(count, 0.0) / size for count, size in zip(self.counts, sizes, strict=True)]
        most = max(density) or 1.0
        for (x, y), dark in zip(self.ranges, density, strict=True):
            shade = str(1 - 0.85 * (dark / most) ** 0.5)
            axes.add_patch(Rectangle((x[0], y[0]), x[1] - x[0], y[1] - y[0], facecolor=shade, edgecolor="0.6", lw=0.4))
        axes.set(xlabel=self.names[0], ylabel=self.names[1])
        axes.set(xlim=(self.edges[0][0], self.edges[0][-1]), ylim=(self.edges[1][0], self.edges[1][-1]))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "names": list(self.names),
            "edges": [list(one) for one in self.edges],
            "cells": [[list(pair) for pair in cell] for cell in self.cells],
            "counts": list(self.counts),
            "variance": self.variance,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> AdaptiveGrid:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(form["names"], form["edges"], form["cells"], form["counts"], form["variance"])

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each cell: its ranges of values, and its noisy count."""
        import polars as pl

        ends = {
            f"{name} {word}": [one[k][side] for one in self.ranges]
            for k, name in enumerate(self.names)
            for side, word in enumerate(("from", "to"))
        }
        low, high = zip(*(Noisy(count, self.variance).interval() for count in self.counts), strict=True)
        return pl.DataFrame({**ends, "rows": list(self.counts), "low": list(low), "high": list(high)})

    def _text_table(self) -> TextTable:
        order = sorted(range(len(self.cells)), key=lambda k: -self.counts[k])[:MOST_SHOWN]
        rows = [(*(f"{a:g} to {b:g}" for a, b in self.ranges[k]), f"{self.counts[k]:.0f}") for k in order]
        more = f", the largest {MOST_SHOWN}" if len(self.cells) > MOST_SHOWN else ""
        within = Noisy.margin_of(self.variance)
        note = f"{len(self.cells)} cells{more}; each count is within ±{math.ceil(within)} (95 %), from the noise alone."
        return TextTable((*self.names, "rows"), rows, legend=note)


@final
@attrs.frozen
class FoundBounds(Tabular, DrawableResult):
    """Released bounds of a numeric attribute beyond which few rows lie, with noisy counts of the rows.

    Attributes
    ----------
    attribute
        The name of the attribute.
    lower, upper
        The bounds. They are edges of the attribute's bins in the schema.
    below, within, above
        The noisy numbers of rows below the lower bound, between the bounds, and at or above the upper bound.
    variance
        The variance of the noise of each of these three counts.
    looks
        The number of releases of counts (looks) that led to the bounds.
    """

    name_in_errors = "bounds that were found"
    figure = _STRIP
    attribute: str
    lower: float = attrs.field(converter=as_float)
    upper: float = attrs.field(converter=as_float)
    below: float = attrs.field(converter=as_float)
    within: float = attrs.field(converter=as_float)
    above: float = attrs.field(converter=as_float)
    variance: float = attrs.field(converter=as_float, validator=finite_from_0("the variance of a count's noise"))
    looks: int

    def __attrs_post_init__(self) -> None:
        numbers = self.lower, self.upper, self.below, self.within, self.above
        if not (all(map(math.isfinite, numbers)) and self.lower < self.upper and is_whole_number(self.looks, 0)):
            raise InputError(
                "found bounds need two finite numbers, the lower one first, three finite counts, and a number of looks"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return attrs.asdict(self)

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> FoundBounds:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(str(form["attribute"]), *(form[name] for name in list(attrs.fields_dict(cls))[1:]))

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe of three rows: the noisy counts below, between and above the bounds."""
        import polars as pl

        ends = ((None, self.lower), (self.lower, self.upper), (self.upper, None))
        rows = [
            (*end, count, *Noisy(count, self.variance).interval())
            for end, count in zip(ends, (self.below, self.within, self.above), strict=True)
        ]
        names = ("from", "to", "rows", "low", "high")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float64), orient="row")

    def draw(self, axes: Any) -> None:
        """Draw the range between the bounds."""
        axes.plot([self.lower, self.upper], [0, 0], "|-", color="#0b5394")
        axes.set_yticks([0], [self.attribute])

    def _text_table(self) -> TextTable:
        within = math.ceil(Noisy.margin_of(self.variance))
        rows = [
            (f"below {self.lower:g}", f"{self.below:.0f}"),
            (f"from {self.lower:g} to {self.upper:g}", f"{self.within:.0f}"),
            (f"{self.upper:g} and more", f"{self.above:.0f}"),
        ]
        looked = f"found by {count_text(self.looks, 'look')}"
        legend = f"{looked}; each count is within ±{within} (95 %), from the noise alone."
        return TextTable((self.attribute, "rows"), rows, legend=legend)
