"""The base class of tables with a noisy count for each combination of labels."""

from __future__ import annotations

import abc
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.value_checks import as_texts
from dpframework.results.matrix import Matrix
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.result import DrawableResult, Tabular


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
