"""Matrices with labels, which reports show as heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import as_texts

LEVELS = 10  # the number of shades in a heat map


def _numbers(given: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in given)


@final
@attrs.frozen
class Matrix:
    """Numbers in rows and columns, with a label for each row and each column.

    Attributes
    ----------
    title
        The title above the matrix.
    rows, columns
        The labels.
    values
        The numbers, row by row.

    Examples
    --------
    >>> Matrix("counts", ["a", "b"], ["x"], [[0], [20]]).levels
    ((0,), (9,))
    """

    title: str
    rows: tuple[str, ...] = attrs.field(converter=as_texts)
    columns: tuple[str, ...] = attrs.field(converter=as_texts)
    values: tuple[tuple[float, ...], ...] = attrs.field(converter=_numbers)

    def __attrs_post_init__(self) -> None:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise InputError(f"the matrix '{self.title}' needs one number for each row and column")

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The shade of each cell, from 0 (for numbers of 0 or less) to `LEVELS` - 1 (for the largest number)."""
        most = max((value for row in self.values for value in row), default=0.0)
        scale = (LEVELS - 1) / most if most > 0 else 0.0
        return tuple(tuple(round(max(value, 0.0) * scale) for value in row) for row in self.values)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Each number as text: with two decimals if all numbers are between -1 and 1, and else as a whole number."""
        small = all(abs(value) <= 1 for row in self.values for value in row)
        return tuple(tuple(f"{value:.2f}" if small else f"{value:.0f}" for value in row) for row in self.values)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self), "values": [list(row) for row in self.values]}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Matrix:
        """Read the output of `to_dict`.

        Raises
        ------
        InputError
            If the form is not the output of `to_dict`.
        """
        try:
            read = cls(str(form["title"]), form["rows"], form["columns"], form["values"])
            finite = all(math.isfinite(value) for row in read.values for value in row)
        except (KeyError, TypeError, ValueError, OverflowError):
            finite = False
        if not finite:
            raise InputError("this is not a matrix that dpframework wrote")
        return read


def matrices_of(result: Any) -> Sequence[Matrix]:
    """Return the output of a result's method `matrices`, or an empty tuple if it has no such method."""
    found = getattr(result, "matrices", None)
    return tuple(found()) if callable(found) else ()
