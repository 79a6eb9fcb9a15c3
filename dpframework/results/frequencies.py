"""Frequencies, noisy counts of the cells of a table of up to three attributes, with sums of cells as margins.

Everything here is post-processing of one release, and costs no privacy. Each count has noise of the same variance v.
A margin is a table of sums of cells. Where the noise of cells is independent, a sum of k cells has the variance k v.
Where the total is exact, the noise of all s cells adds up to 0. Then any two cells have the covariance -v / (s - 1),
and a sum of k cells has the variance k v (s - k) / (s - 1). Margins of margins agree, also in their variances, and all
have the same total.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.parameters import finite_from_0
from dpframework.facts.value_checks import as_float, as_texts
from dpframework.results import frequency_views as views
from dpframework.results.matrix import Matrix
from dpframework.results.noisy_counts import Noisy
from dpframework.results.result import Drawn, Tabular
from dpframework.results.simplex import nearest_on_simplex
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl


def as_labels(labels: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the labels of each attribute of a table as tuples."""
    return tuple(as_texts(texts) for texts in labels)


def attribute_forms(names: Iterable[str], labels: Iterable[Iterable[str]]) -> list[dict[str, Any]]:
    """Return the attributes of a table in a JSON-safe form."""
    return [{"name": name, "labels": list(texts)} for name, texts in zip(names, labels, strict=True)]


def label_columns(names: Iterable[str], labels: Iterable[Iterable[str]]) -> dict[str, Any]:
    """Return polars columns with the labels of each cell of a table, by attribute."""
    import polars as pl

    cells = list(itertools.product(*labels))
    return {name: pl.Series([cell[k] for cell in cells], dtype=pl.String) for k, name in enumerate(names)}


def _as_counts(counts: ArrayLike) -> NDArray[Any]:
    array = np.array(counts)
    array.flags.writeable = False
    return array


@final
@attrs.frozen
class Frequencies(Tabular, Drawn):
    """Noisy counts of rows, one for each cell of a table.

    Attributes
    ----------
    names
        The attributes.
    labels
        The labels of each attribute, in the order of its codes.
    counts
        Released counts, or sums of them, with one axis for each attribute. They may be negative.
    variance
        The variance of the noise of each count.
    exact_total
        Whether the noise of all counts adds up to 0, as K-norm noise does where the number of rows is public.

    Examples
    --------
    >>> table = Frequencies(["sex", "ill"], [["F", "M"], ["no", "yes"]], [[410, 92], [385, 113]], variance=2)
    >>> print(table)
    sex  no   yes  all
    F    410  92   502
    M    385  113  498
    all  795  205  1000
    Columns: ill. With 95 % probability each count is within ±4 of the exact one, from the noise alone; 'all' adds up
    cells, each sum of a row within ±5, of a column within ±5, the total within ±7.
    >>> print(table["M", "yes"], "|", table.margin("ill")["yes"])
    113 ± 4 | 205 ± 5
    """

    called = "a table of frequencies"
    names: tuple[str, ...] = attrs.field(converter=as_texts)
    labels: tuple[tuple[str, ...], ...] = attrs.field(converter=as_labels)
    counts: NDArray[Any] = attrs.field(converter=_as_counts, eq=attrs.cmp_using(eq=np.array_equal))
    variance: float = attrs.field(converter=as_float, validator=finite_from_0("the variance of a count's noise"))
    exact_total: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    def __attrs_post_init__(self) -> None:
        shape = tuple(map(len, self.labels))
        if len(self.names) != len(shape) or self.counts.shape != shape:
            raise InputError(f"counts of shape {self.counts.shape} are not one for each cell of {shape}")
        if self.counts.dtype.kind not in "if" or not np.isfinite(self.counts).all():
            raise InputError("counts must be finite numbers")

    def __getitem__(self, labels: str | tuple[str, ...]) -> Noisy:
        """Return the count of one cell, by the label of each attribute.

        Raises
        ------
        InputError
            If there is no such cell. The message names the nearest label.
        """
        wanted = (labels,) if isinstance(labels, str) else tuple(labels)
        if len(wanted) != len(self.names):
            raise InputError(f"a cell has one label for each of {', '.join(self.names)}, not {len(wanted)}")
        cell = []
        for name, known, label in zip(self.names, self.labels, wanted, strict=True):
            if label not in known:
                raise InputError(f"'{name}' has no label {label!r}; {nearest(str(label), known)}")
            cell.append(known.index(label))
        return Noisy(self.counts[tuple(cell)], self.variance)

    @property
    def total(self) -> Noisy:
        """The sum of all cells."""
        return Noisy(self.counts.sum(), self.variance_of_sum(self.counts.size))

    def variance_of_sum(self, cells: int) -> float:
        """Return the variance of the noise of a sum of `cells` counts."""
        if not self.exact_total:
            return self.variance * cells
        return self.variance * cells * (self.counts.size - cells) / max(self.counts.size - 1, 1)

    def margin(self, *names: str) -> Frequencies:
        """Return the frequencies of some attributes, in the order of `names`, as sums over the others.

        Raises
        ------
        InputError
            If a name is unknown or given twice, or none is given.
        """
        if not names or len(set(names)) < len(names):
            raise InputError("a margin is of one attribute or several, each named once")
        for name in names:
            if name not in self.names:
                raise InputError(f"there is no attribute {name!r} in this table; {nearest(name, self.names)}")
        kept = [self.names.index(name) for name in names]
        others = tuple(axis for axis in range(len(self.names)) if axis not in kept)
        summed = self.counts.sum(axis=others)
        order = np.argsort(np.argsort(kept))  # the axes that are left stand in the table's order
        cells = self.counts.size // max(summed.size, 1)
        labels, variance = [self.labels[k] for k in kept], self.variance_of_sum(cells)
        return Frequencies(names, labels, summed.transpose(order), variance, exact_total=self.exact_total)

    def nonnegative(self) -> NDArray[np.float64]:
        """Return the counts nearest to the released ones that are not negative and have the same total.

        "Nearest" is in squared distance. The same number is subtracted from all cells, and negative cells become 0.
        Margins of the result agree, too. In a table of many small cells, the result is nearer to the exact counts than
        the released counts are. The interval of a cell still belongs to its released count. If the total is not
        positive, all counts are 0.
        """
        flat = self.counts.ravel().astype(np.float64)
        return nearest_on_simplex(flat, max(flat.sum(), 0.0)).reshape(self.counts.shape)

    def cells(self) -> list[tuple[tuple[str, ...], float, float, float]]:
        """Return for each cell its labels, its count, and the ends of its 95 % interval, cut off at 0."""
        margin = Noisy.margin_of(self.variance)
        found = zip(itertools.product(*self.labels), self.counts.ravel().tolist(), strict=True)
        return [(labels, count, max(count - margin, 0.0), max(count + margin, 0.0)) for labels, count in found]

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with a row for each cell, its labels, count, low and high."""
        import polars as pl

        cells = self.cells()
        numbers = {name: [cell[k] for cell in cells] for name, k in {"count": 1, "low": 2, "high": 3}.items()}
        return pl.DataFrame(label_columns(self.names, self.labels) | numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads, with the margin of the 95 % intervals beside it."""
        return {
            "attributes": attribute_forms(self.names, self.labels),
            "counts": self.counts.tolist(),
            "variance": self.variance,
            "exact_total": self.exact_total,
            "within": Noisy.margin_of(self.variance),
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Frequencies:
        """See `Kept`."""
        attributes = form["attributes"]
        names, labels = [one["name"] for one in attributes], [one["labels"] for one in attributes]
        exact = form.get("exact_total", False)
        return cls(names, labels, form["counts"], form["variance"], exact_total=exact)

    def matrices(self) -> list[Matrix]:
        """Return the counts of two attributes as a matrix, and nothing for one attribute or three."""
        if len(self.names) != 2:
            return []
        rows, columns = self.labels
        return [Matrix(f"noisy counts of {' by '.join(self.names)}", rows, columns, self.counts.tolist())]

    def draw(self, axes: Any) -> None:
        """Draw bars with intervals, or a map of cells where there are several attributes."""
        views.draw(self, axes)

    def _text_table(self) -> TextTable:
        """Return a table with a row for each cell, or a cross table with sums if the last attribute has few labels."""
        return views.table(self)
