"""Frequencies: noisy counts of the cells of a table of up to three attributes, with their margins.

Everything here is post-processing of one release. The noise of each count has the same variance v. A margin is a table
of sums of cells. If the noise of the cells is independent, the noise of a sum of k cells has the variance k v. If the
total is exact, the noise of all s cells adds up to 0. Then, by symmetry, the noise of any two cells has the covariance
-v / (s - 1), and the noise of a sum of k cells has the variance k v (s - k) / (s - 1). The margin of a margin is also a
margin of the table, with the same variance. All margins have the same total.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.parameter_checks import finite_from_0
from dpframework.facts.value_checks import as_float
from dpframework.results.count_table_base import CountTable
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 50  # the largest number of rows of a printed table
_COLUMNS = 8  # the largest number of columns of a printed cross table; with more labels each cell has its own row


def _reach(variance: float) -> int:
    return math.ceil(Noisy.margin_of(variance))


def _as_counts(counts: ArrayLike) -> NDArray[Any]:
    array = np.array(counts)
    array.flags.writeable = False
    return array


@final
@attrs.frozen
class Frequencies(CountTable):
    """Noisy counts of rows, one for each cell of a table.

    Attributes
    ----------
    counts
        Released counts, or sums of released counts, with one axis for each attribute. They may be negative.
    variance
        The variance of the noise of each count.
    exact_total
        Whether the noise of all counts adds up to 0. K-norm noise does so if the number of rows is public.

    Examples
    --------
    >>> table = Frequencies(["sex", "ill"], [["F", "M"], ["no", "yes"]], [[410, 92], [385, 113]], variance=2)
    >>> print(table)
    sex  no   yes  all
    F    410  92   502
    M    385  113  498
    all  795  205  1000
    Columns: ill. With 95 % probability each count is within ±4 of the exact one, from the noise alone; 'all' adds up
    cells: the sum of a row is within ±5, of a column within ±5, and the total is within ±7.
    >>> print(table["M", "yes"], "|", table.margin("ill")["yes"], "|", table.difference(("M", "yes"), ("F", "yes")))
    113 ± 4 | 205 ± 5 | 21 ± 5
    """

    name_in_errors = "a table of frequencies"
    counts: NDArray[Any] = attrs.field(converter=_as_counts, eq=attrs.cmp_using(eq=np.array_equal))
    variance: float = attrs.field(converter=as_float, validator=finite_from_0("the variance of a count's noise"))
    exact_total: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    def __attrs_post_init__(self) -> None:
        """Refuse counts that are not one finite number for each cell."""
        self._require_counts()

    @property
    def total(self) -> Noisy:
        """The sum of all cells."""
        return Noisy(self.counts.sum(), self.variance_of_sum(self.counts.size))

    def variance_of_sum(self, cells: int) -> float:
        """Return the variance of the noise of a sum of `cells` counts."""
        if not self.exact_total:
            return self.variance * cells
        return self.variance * cells * (self.counts.size - cells) / max(self.counts.size - 1, 1)

    @property
    def _correlated(self) -> frozenset[int]:
        return frozenset([id(self)]) if self.exact_total else frozenset()

    def _variance_of_difference(self, one: tuple[int, ...], other: tuple[int, ...]) -> float:
        cells = self.counts.size
        return 2 * self.variance * (cells / (cells - 1) if self.exact_total else 1)

    def margin(self, *names: str) -> Frequencies:
        """Return the margin of some attributes, in the order of `names`: the sums over all other attributes.

        Raises
        ------
        InputError
            If a name is unknown or given twice, or if no name is given.
        """
        if not names or len(set(names)) < len(names):
            raise InputError("a margin needs at least one attribute, each named once")
        for name in names:
            if name not in self.names:
                raise InputError(f"there is no attribute {name!r} in this table; {nearest(name, self.names)}")
        kept = [self.names.index(name) for name in names]
        others = tuple(axis for axis in range(len(self.names)) if axis not in kept)
        summed = self.counts.sum(axis=others)
        order = np.argsort(np.argsort(kept))  # `summed` has its axes in the table's order, not in that of `names`
        cells = self.counts.size // max(summed.size, 1)
        labels, variance = [self.labels[k] for k in kept], self.variance_of_sum(cells)
        return Frequencies(names, labels, summed.transpose(order), variance, exact_total=self.exact_total)

    def cells(self) -> list[tuple[tuple[str, ...], float, float, float]]:
        """Return, for each cell, its labels, its count, and the ends of its 95 % interval. Negative ends become 0."""
        margin = Noisy.margin_of(self.variance)
        found = zip(itertools.product(*self.labels), self.counts.ravel().tolist(), strict=True)
        return [(labels, count, max(count - margin, 0.0), max(count + margin, 0.0)) for labels, count in found]

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each cell: its labels, count, low and high."""
        import polars as pl

        cells = self.cells()
        numbers = {name: [cell[k] for cell in cells] for name, k in {"count": 1, "low": 2, "high": 3}.items()}
        return pl.DataFrame(self._label_columns() | numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads. It also has the half-width of the 95 % intervals."""
        within = Noisy.margin_of(self.variance)
        return {**super().to_dict(), "exact_total": self.exact_total, "within": within}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Frequencies:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(*cls._fields_of(form), exact_total=form.get("exact_total", False))

    def draw(self, axes: Any) -> None:
        """Draw bars with intervals or, for several attributes, a heat map of the cells."""
        if len(self.names) == 1:
            places = range(len(self.labels[0]))
            counts = self.counts.tolist()
            below = [max(count - low, 0.0) for _, count, low, _ in self.cells()]
            above = [high - count for _, count, _, high in self.cells()]
            axes.barh(places, counts, xerr=[below, above], color="#0b5394", ecolor="0.5")
            axes.set_yticks(places, self.labels[0])
            axes.invert_yaxis()
            axes.set(xlabel="noisy count (rows)", ylabel=self.names[0])
            return
        *outer, across = self.labels
        rows = [", ".join(labels) for labels in itertools.product(*outer)]
        drawn = axes.imshow(self.counts.reshape(len(rows), len(across)), aspect="auto", cmap="Blues")
        axes.set_xticks(range(len(across)), across, rotation=45, ha="right")
        axes.set_yticks(range(len(rows)), rows)
        axes.set(xlabel=self.names[-1], ylabel=", ".join(self.names[:-1]))
        axes.figure.colorbar(drawn, ax=axes, label="noisy count (rows)")

    def _text_table(self) -> TextTable:
        """Return a cross table with sums if the last attribute has few labels, or else one row for each cell."""
        *outer, across = self.labels
        rows: list[Sequence[str]]
        if outer and len(across) <= _COLUMNS:
            rows = [(*self.names[:-1], *across, "all")]
            by_row = self.counts.reshape(-1, len(across))
            for labels, counts in zip(itertools.product(*outer), by_row, strict=True):
                rows.append((*labels, *(f"{count:.0f}" for count in counts), f"{counts.sum():.0f}"))
            down = by_row.sum(axis=0)
            rows.append(("all", *[""] * (len(outer) - 1), *(f"{count:.0f}" for count in down), f"{down.sum():.0f}"))
            sums = [_reach(self.variance_of_sum(len(cells))) for cells in (across, by_row)]
            total = f"within ±{_reach(self.total.variance)}" if self.total.variance else "exact"
            legend = (
                f"Columns: {self.names[-1]}. With 95 % probability each count is within ±{_reach(self.variance)} of "
                "the exact one, from the noise alone; 'all' adds up cells: the sum of a row is within "
                f"±{sums[0]}, of a column within ±{sums[1]}, and the total is {total}."
            )
        else:
            rows = [(*self.names, "count", "95 %")]
            for labels, count, low, high in self.cells():
                rows.append((*labels, f"{count:.0f}", f"[{math.floor(low)}, {math.ceil(high)}]"))
            legend = f"Brackets: 95 % intervals, from the noise alone. The sum of all cells is {self.total}."
        return TextTable(rows[0], rows[1 : _SHOWN + 1], len(rows) - _SHOWN - 1, legend)
