"""Released marginals of a workload (a list of sets of attributes), with their standard errors.

Everything here is post-processing of releases. The counts are unbiased, so they may be negative, and they are not whole
numbers. The marginals agree: if you sum one marginal over some of its attributes, you get exactly the marginal of the
other attributes. The noise of cells is correlated, and partly cancels in sums of cells. So the stated error of a
smaller marginal is less than if the cells of the larger marginal had independent noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.parameter_checks import finite_from_0
from dpframework.facts.value_checks import as_float
from dpframework.results.count_table_base import CountTable
from dpframework.results.frequencies import Frequencies
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.result import DrawableResult, Tabular
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 40  # the largest number of rows of a printed table, and of bars in a plot


def _as_counts(counts: ArrayLike) -> NDArray[np.float64]:
    array = np.array(counts, dtype=np.float64)
    array.flags.writeable = False
    return array


def _as_residuals(given: Iterable[tuple[Iterable[str], float]]) -> tuple[tuple[tuple[str, ...], float], ...]:
    return tuple((tuple(names), float(variance)) for names, variance in given)


@final
@attrs.frozen
class MarginalTable(CountTable):
    """The marginal (contingency table) of some attributes, with an unbiased noisy count for each cell.

    Attributes
    ----------
    counts
        The noisy counts, with one axis for each attribute. They may be negative.
    variance
        The variance of the noise of each count.
    residuals
        The marginal is a sum of residuals, one for each subset of its attributes (see `queries.Residuals`). Each entry
        has a residual's attributes, and the noise variance of each single number of that residual. Empty if the
        variances are unknown.

    Examples
    --------
    >>> table = MarginalTable(["sex"], [["F", "M"]], [501.3, 498.2], variance=4)
    >>> print(table["F"])
    501 ± 5
    """

    name_in_errors = "a marginal"
    counts: NDArray[np.float64] = attrs.field(converter=_as_counts, eq=attrs.cmp_using(eq=np.array_equal))
    variance: float = attrs.field(converter=as_float, validator=finite_from_0("the variance of a count's noise"))
    residuals: tuple[tuple[tuple[str, ...], float], ...] = attrs.field(default=(), converter=_as_residuals)

    def __attrs_post_init__(self) -> None:
        if any(not set(names) <= set(self.names) or not 0 <= own < math.inf for names, own in self.residuals):
            raise InputError("residuals must be of a marginal's own attributes, each with a finite variance from 0 on")
        self._require_counts()

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise of each count, in rows."""
        return math.sqrt(self.variance)

    def total(self, **among: str | Iterable[str]) -> Noisy:
        """Return the sum of several cells, such as those of a range of ages, with the error of this sum.

        The noise of cells is correlated, so part of it cancels in the sum. The stated error takes this into account.

        Parameters
        ----------
        among
            For each attribute, by its name, one label or several labels. If an attribute is left out, all of its labels
            are summed.

        Raises
        ------
        InputError
            If the marginal has no such attribute or label, if a label is given twice, if a list of labels is empty, or
            if the variances of the residuals are not known.

        Examples
        --------
        >>> residuals = [([], 3), (["age"], 4)]
        >>> age = MarginalTable(["age"], [["child", "adult", "old"]], [3.0, 50.5, 21.5], 13 / 3, residuals)
        >>> print(age.total(age=["adult", "old"]))
        72 ± 6
        """
        if not self.residuals:
            raise InputError("the variances of this marginal's residuals are not known, so that no error can be stated")
        for name in among:
            if name not in self.names:
                raise InputError(f"the marginal has no attribute '{name}'; {nearest(name, self.names)}")
        chosen = [self._places(name, among.get(name)) for name in self.names]
        variance = 0.0
        for names, own in self.residuals:
            shares = [
                axis_share(len(labels), len(places), inside=name in names)
                for name, labels, places in zip(self.names, self.labels, chosen, strict=True)
            ]
            variance += own * math.prod(shares)
        return Noisy(float(self.counts[np.ix_(*chosen)].sum()), variance)

    @property
    def _correlated(self) -> frozenset[int]:
        # Every marginal has this number. Marginals of one miner share residuals, so their noise is correlated.
        return frozenset([0])

    def _variance_of_difference(self, one: tuple[int, ...], other: tuple[int, ...]) -> float:
        """Return the variance of the difference of two cells: the sum over residuals of 2 (variance - covariance).

        If the residual has an attribute with n values, its n numbers along this attribute add up to 0. By symmetry, the
        correlation of two of them is -1 / (n - 1). If the residual lacks the attribute, each of the n values gets 1 / n
        of the same number.
        """
        if not self.residuals:
            raise InputError("the variances of this marginal's residuals are not known, so that no error can be stated")
        variance = 0.0
        for names, own in self.residuals:
            alike = 1.0
            for name, labels, place, second in zip(self.names, self.labels, one, other, strict=True):
                if name not in names:
                    own /= len(labels) ** 2
                elif place != second:
                    alike /= 1 - len(labels)
            variance += 2 * own * (1 - alike)
        return variance

    def _places(self, name: str, given: str | Iterable[str] | None) -> list[int]:
        labels = self.labels[self.names.index(name)]
        wanted = labels if given is None else (given,) if isinstance(given, str) else tuple(given)
        for label in wanted:
            if label not in labels:
                raise InputError(f"attribute '{name}' has no label '{label}'; {nearest(label, labels)}")
        if not wanted or len(set(wanted)) < len(wanted):
            raise InputError(f"labels of '{name}' are given twice, or no label is given; give each once")
        return [labels.index(label) for label in wanted]

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each cell: its labels, count, standard error, low and high."""
        import polars as pl

        counts, margin = self.counts.ravel(), Noisy.margin_of(self.variance)
        numbers = {"count": counts, "standard error": np.full(len(counts), self.standard_error)}
        ends = {"low": counts - margin, "high": counts + margin}
        return pl.DataFrame(self._label_columns() | numbers | ends)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {**super().to_dict(), "residuals": [[list(names), own] for names, own in self.residuals]}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> MarginalTable:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(*cls._fields_of(form), form.get("residuals", ()))

    def draw(self, axes: Any) -> None:
        """Draw bars with intervals or, for several attributes, a heat map of the cells."""
        self._frequencies().draw(axes)

    def _text_table(self) -> TextTable:
        cells = zip(itertools.product(*self.labels), self.counts.ravel().tolist(), strict=True)
        rows = [(*labels, f"{count:.0f}") for labels, count in itertools.islice(cells, _SHOWN)]
        margin = math.ceil(Noisy.margin_of(self.variance))
        legend = f"With 95 % probability each count is within ±{margin} of the exact one, from the noise alone."
        return TextTable((*self.names, "count"), rows, self.counts.size - _SHOWN, legend)

    def _frequencies(self) -> Frequencies:
        return Frequencies(self.names, self.labels, self.counts, self.variance)


def axis_share(size: int, summed: Any, *, inside: bool) -> Any:
    """Return the factor that one attribute contributes to the variance of a sum of cells, for one residual.

    The variance is that of one number of the residual, times one factor for each attribute of the marginal. Let the
    attribute have n values, of which r are summed. If it is an attribute of the residual, the residual's n numbers
    along this axis add up to 0. By symmetry, the sum of r of them has r (n - r) / (n - 1) times the variance of one. If
    the residual lacks the attribute, each of the n values gets 1 / n of one number of the residual. The sum of r values
    then has r**2 / n**2 times the variance of that number.

    Parameters
    ----------
    size
        The number n of values of the attribute.
    summed
        The number r of summed values, or an array of such numbers.
    inside
        Whether the attribute is one of the residual's.
    """
    if inside:
        return summed * (size - summed) / max(size - 1, 1)
    return (summed / size) ** 2


def _as_tables(tables: Iterable[MarginalTable]) -> tuple[MarginalTable, ...]:
    return tuple(tables)


@final
@attrs.frozen
class MarginalTables(Tabular, DrawableResult):
    """The marginals of a workload, and of all subsets of its sets. Any two agree on their common attributes.

    Attributes
    ----------
    tables
        The marginals, sorted by their number of attributes.
    total
        The number of rows. Its variance is 0 if the number is public.

    Examples
    --------
    >>> sex = MarginalTable(["sex"], [["F", "M"]], [501.3, 498.2], variance=4)
    >>> tables = MarginalTables([sex], Noisy(999.5, 6))
    >>> tables["sex"] == sex, len(tables)
    (True, 1)
    """

    name_in_errors = "a workload of marginals"
    tables: tuple[MarginalTable, ...] = attrs.field(converter=_as_tables)
    total: Noisy

    def __len__(self) -> int:
        """Return the number of marginals."""
        return len(self.tables)

    def __iter__(self) -> Iterator[MarginalTable]:
        """Yield each marginal."""
        return iter(self.tables)

    def __getitem__(self, names: str | tuple[str, ...]) -> MarginalTable:
        """Return the marginal of one attribute or of several, with its axes in the order of `names`.

        Raises
        ------
        InputError
            If there is no such marginal.
        """
        wanted = (names,) if isinstance(names, str) else tuple(names)
        for one in self.tables:
            if len(one.names) == len(wanted) and set(one.names) == set(wanted):
                order = [one.names.index(name) for name in wanted]
                labels = [one.labels[axis] for axis in order]
                return MarginalTable(wanted, labels, one.counts.transpose(order), one.variance, one.residuals)
        known = [" by ".join(one.names) for one in self.tables]
        raise InputError(f"there is no marginal of {' by '.join(wanted)}; {nearest(' by '.join(wanted), known)}")

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each cell of each marginal.

        The columns are `marginal` (names joined by " by "), `cell` (labels joined by " by "), `count`, `standard
        error`, `low` and `high`. The unit of the last four is rows of the private table.
        """
        import polars as pl

        frames = []
        for one in self.tables:
            cells = [" by ".join(cell) for cell in itertools.product(*one.labels)]
            named = pl.DataFrame({"marginal": [" by ".join(one.names)] * len(cells), "cell": cells})
            frames.append(pl.concat([named, one.to_frame().drop(one.names)], how="horizontal"))
        return pl.concat(frames)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {"tables": [one.to_dict() for one in self.tables], "total": self.total.to_dict()}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> MarginalTables:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls([MarginalTable.read(one) for one in form["tables"]], Noisy.from_dict(form["total"]))

    def draw(self, axes: Any) -> None:
        """Draw the standard error of each marginal, in rows, with the largest errors first."""
        shown = sorted(self.tables, key=lambda one: -one.variance)[:_SHOWN]
        places = range(len(shown))
        axes.barh(places, [one.standard_error for one in shown], color="#0b5394")
        axes.set_yticks(places, [" by ".join(one.names) for one in shown])
        axes.invert_yaxis()
        axes.set(xlabel="standard error of a count (rows)")

    def _text_table(self) -> TextTable:
        rows = []
        for one in self.tables[:_SHOWN]:
            margin = math.ceil(Noisy.margin_of(one.variance))
            rows.append((" by ".join(one.names), f"{one.counts.size:,}", f"{one.standard_error:.3g}", f"±{margin}"))
        total = f"{self.total}" if self.total.variance else f"{self.total.value:.0f}, public"
        legend = (
            f"Errors in rows, from the noise alone. Number of rows: {total}. All marginals agree; counts are unbiased "
            "and may be negative."
        )
        return TextTable(("marginal", "cells", "standard error", "95 %"), rows, len(self) - _SHOWN, legend)
