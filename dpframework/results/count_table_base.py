"""The base class of tables with a noisy count for each combination of labels."""

from __future__ import annotations

import abc
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.value_checks import as_texts
from dpframework.results.matrix import Matrix
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.result import DrawableResult, Tabular
from dpframework.results.simplex_projection import nearest_on_simplex, round_to_sums


def as_labels(labels: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the labels of each attribute as a tuple."""
    return tuple(as_texts(texts) for texts in labels)


def labels_of_key(key: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels in `table[key]`. A single label may be given without a tuple.

    Raises
    ------
    InputError
        If a label is not text.
    """
    labels = (key,) if isinstance(key, str) or not isinstance(key, Iterable) else tuple(key)
    for label in labels:
        if not isinstance(label, str):
            raise InputError(f"{label!r} is not a label; labels are text, such as {str(label)!r}")
    return labels


def _are_whole(numbers: NDArray[Any]) -> bool:
    """Tell whether all numbers are whole, and from 0 on."""
    known = numbers.dtype.kind in "iuf" and bool(((numbers >= 0) & (numbers < 2**53)).all())
    return known and bool((numbers == np.floor(numbers)).all())


@attrs.frozen
class CountTable(Tabular, DrawableResult):
    """Noisy counts of the cells of a contingency table. The noise of all counts has the same variance.

    Attributes
    ----------
    names
        The names of the attributes.
    labels
        The labels of each attribute, in the order of its codes.
    """

    names: tuple[str, ...] = attrs.field(converter=as_texts)
    labels: tuple[tuple[str, ...], ...] = attrs.field(converter=as_labels)

    if TYPE_CHECKING:

        @property
        def counts(self) -> NDArray[Any]:
            """The counts, with one axis for each attribute. Each subclass has this field."""

        @property
        def variance(self) -> float:
            """The variance of the noise of each count. Each subclass has this field."""

    def _require_counts(self) -> None:
        """Refuse counts that are not one finite number for each cell."""
        shape = tuple(map(len, self.labels))
        if len(self.names) != len(shape) or self.counts.shape != shape:
            raise InputError(f"counts have the shape {self.counts.shape}, not {shape}; give one count for each cell")
        if self.counts.dtype.kind not in "if" or not np.isfinite(self.counts).all():
            raise InputError("counts must be finite numbers")

    def __getitem__(self, labels: str | tuple[str, ...]) -> Noisy:
        """Return the count of one cell. The key has the label of each attribute, in the order of `names`.

        If the noise of cells is correlated, subtracting two counts assumes the correlation for which the variance is
        largest. `difference` uses the actual correlation.

        Raises
        ------
        InputError
            If there is no such cell. The message names the nearest label.
        """
        return Noisy(self.counts[self._cell(labels)], self.variance, correlated=self._correlated)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Yield the labels of each cell, as `table[labels]` takes them. The last attribute changes fastest."""
        yield from itertools.product(*self.labels)

    def __contains__(self, labels: str | tuple[str, ...]) -> bool:
        """Tell whether there is a cell with these labels."""
        wanted = labels_of_key(labels)
        return len(wanted) == len(self.names) and all(map(operator.contains, self.labels, wanted))

    def difference(self, one: str | tuple[str, ...], other: str | tuple[str, ...]) -> Noisy:
        """Return the count of the cell `one` minus the count of the cell `other`, with the error of this difference.

        Parameters
        ----------
        one, other
            The labels of each cell, as in `table[...]`.

        Raises
        ------
        InputError
            If there is no such cell, or if it is not known how the noise of two cells is correlated.
        """
        first, second = self._cell(one), self._cell(other)
        variance = 0.0 if first == second else self._variance_of_difference(first, second)
        return Noisy(self.counts[first] - self.counts[second], variance)

    @property
    @abc.abstractmethod
    def _correlated(self) -> frozenset[int]:
        """A number for this table if the noise of its cells is correlated (see `Noisy`)."""

    @abc.abstractmethod
    def _variance_of_difference(self, one: tuple[int, ...], other: tuple[int, ...]) -> float:
        """Return the variance of the difference of two cells, each given by its place along each attribute."""

    def _cell(self, labels: str | tuple[str, ...]) -> tuple[int, ...]:
        """Return the place of a cell along each attribute."""
        wanted = labels_of_key(labels)
        if len(wanted) != len(self.names):
            raise InputError(f"a cell has one label for each of {', '.join(self.names)}, not {len(wanted)}")
        cell = []
        for name, known, label in zip(self.names, self.labels, wanted, strict=True):
            if label not in known:
                raise InputError(f"'{name}' has no label {label!r}; {nearest(label, known)}")
            cell.append(known.index(label))
        return tuple(cell)

    def nonnegative(self) -> NDArray[np.float64]:
        """Return the counts that are nearest to the released counts, are not negative, and have the same total.

        Distances are squared distances. In effect the same number is subtracted from all cells, and negative results
        become 0. Margins of the result agree with each other, but not with other tables. In a table of many small
        cells, the result is closer to the exact counts than the released counts are. But the counts are biased: on
        average, counts of cells with few rows become too large, and others too small, by the same amount in total.
        Confidence intervals are still about the released counts. If the total is not positive, all returned counts are
        0.
        """
        flat = self.counts.ravel().astype(np.float64)
        return nearest_on_simplex(flat, max(flat.sum(), 0.0)).reshape(self.counts.shape)

    def whole(self) -> NDArray[np.int64]:
        """Return the `nonnegative` counts, rounded to whole numbers by largest remainders. They are biased, too."""
        exact = self.nonnegative()
        return round_to_sums(exact.reshape(1, -1), np.array([round(float(exact.sum()))])).reshape(exact.shape)

    def fit_to_sums(self, sums: Mapping[str, ArrayLike], groups: Mapping[str, str] | None = None) -> NDArray[np.int64]:
        """Return nearby whole counts from 0 on, with given sums over groups of the first attribute's labels.

        The sums are public facts, such as the number of people in each region, or the whole counts of another released
        table, such as that of the states of which the labels are counties. The nearest counts with these sums that are
        not negative are rounded by largest remainders. They are biased as those of `nonnegative` are.

        Parameters
        ----------
        sums
            For each group its sum: one whole number, or whole counts with one axis for each further attribute.
        groups
            The group of each label of the first attribute. By default each label is a group of its own.

        Raises
        ------
        InputError
            If a label has no group, a group has no sum, or a sum is not whole, is negative or has another shape.

        Examples
        --------
        >>> from dpframework.results.frequencies import Frequencies
        >>> towns = Frequencies(["town"], [["Oslo", "Bergen", "Rome"]], [63, -2, 40], variance=2)
        >>> towns.fit_to_sums({"Norway": 60, "Italy": 41}, {"Oslo": "Norway", "Bergen": "Norway", "Rome": "Italy"})
        array([60,  0, 41])
        """
        labels = self.labels[0]
        group_of = dict(zip(labels, labels, strict=True)) if groups is None else groups
        places: dict[str, list[int]] = {}
        for place, label in enumerate(labels):
            if label not in group_of:
                raise InputError(f"label {label!r} of '{self.names[0]}' has no group; give one for each label")
            places.setdefault(group_of[label], []).append(place)
        if set(places) != set(sums):
            (wrong, *_) = sorted(set(places) ^ set(sums))
            lacks = "sum" if wrong in places else f"label of '{self.names[0]}'"
            raise InputError(f"group {wrong!r} has no {lacks}; give one sum for each group, and for no other")
        found = np.empty(self.counts.shape, np.int64)
        for group, own in places.items():
            wanted, counts = np.asarray(sums[group]), self.counts[own].astype(np.float64)
            if wanted.shape not in ((), counts.shape[1:]) or not _are_whole(wanted):
                shape = f", or such numbers of shape {counts.shape[1:]}" if counts.ndim > 1 else ""
                raise InputError(f"the sum of group {group!r} is no whole number from 0 on{shape}")
            rows = counts.reshape(1, -1) if wanted.ndim == 0 else counts.reshape(len(own), -1).T
            each = wanted.astype(np.int64).reshape(-1, 1)
            fitted = round_to_sums(nearest_on_simplex(rows, each.astype(np.float64)), each[:, 0])
            found[own] = (fitted if wanted.ndim == 0 else fitted.T).reshape(counts.shape)
        return found

    def matrices(self) -> list[Matrix]:
        """Return the counts as one matrix if the table has two attributes, or else no matrix."""
        if len(self.names) != 2:
            return []
        rows, columns = self.labels
        return [Matrix(f"noisy counts of {' by '.join(self.names)}", rows, columns, self.counts.tolist())]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        attributes = zip(self.names, self.labels, strict=True)
        return {
            "attributes": [{"name": name, "labels": list(texts)} for name, texts in attributes],
            "counts": self.counts.tolist(),
            "variance": self.variance,
        }

    @staticmethod
    def _fields_of(form: Mapping[str, Any]) -> tuple[list[str], list[list[str]], Any, Any]:
        """Return the names, labels, counts and variance of the output of `to_dict`."""
        attributes = form["attributes"]
        names, labels = [one["name"] for one in attributes], [one["labels"] for one in attributes]
        return names, labels, form["counts"], form["variance"]

    def _label_columns(self) -> dict[str, Any]:
        """Return one polars column for each attribute, with its label in each cell."""
        import polars as pl

        cells = list(itertools.product(*self.labels))
        return {name: pl.Series([cell[k] for cell in cells], dtype=pl.String) for k, name in enumerate(self.names)}
