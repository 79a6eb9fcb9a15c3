"""The two kinds of noise on rows in the retention paper. They show which measures notice noise. Not private.

Source: Fletcher and Islam 2015, section 6.1. In the paper, one kind flattens the distribution of each attribute and all
joint distributions. The other kind preserves the distribution of each attribute and most of the joint distributions.
The paper gives these effects but no formulas, so the formulas here are our own. Of the joint distributions, our second
kind preserves only those with one named attribute, such as the class. In both kinds, every cell is hit (chosen for
a change) independently with the same probability, the level. With the same seed, a cell that is hit at one level is
also hit at every higher level. This noise gives no differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import encode_column

Cells = NDArray[np.float64]
Positions = NDArray[np.int64]
_Change: TypeAlias = "Callable[[Attribute, Cells, Positions, np.random.Generator], Cells]"


def uniform_noise(table: Table, level: float, *, seed: int, attributes: Iterable[str] | None = None) -> Table:
    """Return a table in which each cell is replaced, with probability `level`, by a random value of its attribute.

    All values of the attribute are equally likely, and a numeric value is drawn from its public range. A missing cell
    may be hit, and no cell becomes missing. At level 1 nothing of the table is left, and attributes are uniform and
    independent of each other.

    Parameters
    ----------
    table
        The rows.
    level
        The probability that a cell is hit, in [0, 1].
    seed
        The seed of the draws.
    attributes
        The names of the attributes that get noise; by default all. None of them may be open.

    Raises
    ------
    InputError
        If the level is not in [0, 1], or if an attribute is unknown or open. (Nobody lists the values of an open
        attribute.)
    """

    def redrawn(attribute: Attribute, column: Cells, hit: Positions, rng: np.random.Generator) -> Cells:
        if isinstance(attribute, Numeric):
            return rng.uniform(attribute.lower, attribute.upper, len(column))[hit]
        values = attribute.size - (attribute.missing_code is not None)
        return rng.integers(0, values, len(column))[hit].astype(np.float64)

    return _hit(table, level, seed, attributes, redrawn)


def distribution_preserving_noise(
    table: Table, level: float, *, seed: int, attributes: Iterable[str] | None = None, within: str | None = None
) -> Table:
    """Return a table in which the hit cells of each attribute are exchanged at random among each other.

    Every attribute keeps the exact number of rows of each value, and of missing cells. With `within`, the joint counts
    of each attribute with the attribute `within` stay the same, too. All other joint distributions approach
    independence as the level grows.

    Parameters
    ----------
    table, level, seed, attributes
        As for `uniform_noise`.
    within
        An attribute, such as the class, that keeps its cells. Cells of other attributes are then exchanged only among
        rows with the same value of this attribute. None to exchange among all rows.

    Raises
    ------
    InputError
        As `uniform_noise`.
    """
    groups = np.zeros(table.rows, dtype=np.int64) if within is None else table.columns[table.schema.index(within)]

    def exchange(attribute: Attribute, column: Cells, hit: Positions, rng: np.random.Generator) -> Cells:
        # The hit cells are sorted by group. The same cells in random order are sorted by group, too. So each cell is
        # paired with a cell of its own group.
        shuffled = rng.permutation(hit)
        given = np.empty(len(hit))
        given[np.argsort(groups[hit], kind="stable")] = column[shuffled[np.argsort(groups[shuffled], kind="stable")]]
        return given

    return _hit(table, level, seed, attributes, exchange)


def _hit(table: Table, level: float, seed: int, attributes: Iterable[str] | None, changed: _Change) -> Table:
    """Choose cells at random and change them: the values of numeric attributes, and the codes of all others."""
    if not 0 <= level <= 1:
        raise InputError(f"a level of noise must be from 0 to 1, not {level}")
    chosen = set(table.schema.names if attributes is None else [table.schema[name].name for name in attributes])
    codes, values = [column.copy() for column in table.columns], dict(table.values)
    for position, attribute in enumerate(table.schema):
        if attribute.name not in chosen:
            continue
        if isinstance(attribute, Open):
            raise InputError(f"attribute '{attribute.name}' is open, and gets no noise; give attributes without it")
        rng = np.random.default_rng([seed, position])
        hit = np.flatnonzero(rng.random(table.rows) < level)
        if isinstance(attribute, Numeric):
            column = table.values[attribute.name].copy()
            column[hit] = changed(attribute, column, hit, rng)
            values[attribute.name] = column
            codes[position][hit] = encode_column(attribute, column[hit], out_of_domain="error").codes
        else:
            codes[position][hit] = changed(attribute, codes[position].astype(np.float64), hit, rng)
    return Table(table.schema, codes, values, keys=table.keys)
