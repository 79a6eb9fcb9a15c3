"""The test whether two descriptions overlap, which means that both may hold for one row. It reads only the schema."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Below, Description, KeyCodes
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema


@attrs.frozen(eq=False)
class _Grid:
    """A made-up table with one row for each cell of the schema's grid over a few attributes."""

    schema: Schema
    rows: int
    code_columns: Mapping[str, NDArray[np.int64]]
    value_columns: Mapping[str, NDArray[np.float64]]

    def codes(self, name: str) -> NDArray[Any]:
        return self.code_columns[name]

    def values(self, name: str) -> NDArray[np.float64]:
        return self.value_columns[name]

    def keys(self, name: str) -> KeyCodes:
        raise InputError(f"parts by keys of attribute '{name}' are not compared one by one; use Cases")


def _representatives(attribute: Attribute, thresholds: Sequence[float]) -> list[tuple[int, float]]:
    """Return one pair (code, raw value) for each cell into which grid and thresholds divide the attribute's domain.

    An open attribute has no grid, and descriptions of its keys are not compared.
    """
    if isinstance(attribute, Open):
        return [(0, math.nan)]
    if not isinstance(attribute, Numeric):
        return [(code, math.nan) for code in range(attribute.size)]
    points = sorted({attribute.lower, *attribute.interior_cuts, *thresholds})
    cells = [
        (int(np.searchsorted(attribute.interior_cuts, x, side="right")), x)
        for x in points
        if attribute.lower <= x <= attribute.upper
    ]
    return cells if attribute.missing_code is None else [*cells, (attribute.missing_code, math.nan)]


def first_overlap(
    descriptions: Sequence[Description], schema: Schema, most_cells: int = 1 << 20
) -> tuple[int, int] | None:
    """Return the positions of the first two descriptions that can hold for one row, or None if all are disjoint.

    The schema alone decides this: every cell of the grid over the attributes in the descriptions is tried.

    Raises
    ------
    InputError
        If the grid has more than `most_cells` cells.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> from dpframework.facts.logical_descriptions_of_rows import Equals
    >>> schema = Schema([Boolean("a"), Boolean("b")])
    >>> first_overlap([Equals("a", "true"), Equals("b", "true")], schema)
    (0, 1)
    """
    literals = [literal for d in descriptions for literal in d.literals()]
    names = sorted({literal.attribute for literal in literals})
    axes = [
        _representatives(
            schema[n], [test.threshold for test in literals if isinstance(test, Below) and test.attribute == n]
        )
        for n in names
    ]
    cells = math.prod(len(axis) for axis in axes)
    if cells > most_cells:
        raise InputError(
            f"parts over {len(names)} attributes span {cells} cells, too many to compare; use Cases instead"
        )
    product = list(itertools.product(*axes))
    grid = _Grid(
        schema,
        len(product),
        {n: np.array([cell[k][0] for cell in product], dtype=np.int64) for k, n in enumerate(names)},
        {n: np.array([cell[k][1] for cell in product]) for k, n in enumerate(names)},
    )
    masks = [d.holds(grid) for d in descriptions]
    for i, j in itertools.combinations(range(len(masks)), 2):
        if bool(np.any(masks[i] & masks[j])):
            return i, j
    return None
