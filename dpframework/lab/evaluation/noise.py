"""The two kinds of noise on rows of the retention paper, to see which measures notice it. Not private.

Source: Fletcher and Islam 2015, section 6.1: noise that flattens the distributions of attributes and of several
attributes together, and noise that preserves those of attributes and most of several. We know only these effects and
not the paper's formulas, so the formulas here are our own. In both, every cell is hit independently with the same
probability, the level. With the same seed, a cell that is hit at one level is hit at every higher one. This is no
differential privacy: it bounds no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.lab.evaluation.table_folds import number_of_rows
from dpframework.tables.encoding import encode_column
from dpframework.tables.table import Table

Cells = NDArray[np.float64]
Positions = NDArray[np.int64]
_Change: TypeAlias = "Callable[[Attribute, Cells, Positions, np.random.Generator], Cells]"


def uniform_noise(table: Table, level: float, *, seed: int, attributes: Iterable[str] | None = None) -> Table:
    """Return a table in which each cell is, with some probability, drawn anew from all values of its attribute alike.

    At level 1 nothing of the table is left: attributes are uniform and independent of each other.

    Parameters
    ----------
    table
        The rows.
    level
        The probability, in [0, 1].
    seed
        The seed of the draws.
    attributes
        The names of the attributes that get noise; by default all. A numeric one is drawn from its public range. A
        missing cell may be hit, and no cell becomes missing.

    Raises
    ------
    InputError
        If the level is no probability, or an attribute is unknown.
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
    """Return a table in which the cells that are hit change places at random with others of their attribute.

    Every attribute keeps its values with their numbers of rows, exactly. With `within`, so does each attribute together
    with that one; other joint distributions drift towards independence, the more the higher the level.

    Parameters
    ----------
    table, level, seed, attributes
        As for `uniform_noise`.
    within
        An attribute, such as the class, which keeps its cells. Other cells change places among rows that have the same
        value of it.

    Raises
    ------
    InputError
        As `uniform_noise`.
    """
    number = number_of_rows(table)
    groups = np.zeros(number, dtype=np.int64) if within is None else table.columns[table.schema.index(within)]

    def exchange(attribute: Attribute, column: Cells, hit: Positions, rng: np.random.Generator) -> Cells:
        # The cells that are hit, and the same cells in random order, are both sorted by group. So each cell is paired
        # with one of its own group.
        shuffled = rng.permutation(hit)
        given = np.empty(len(hit))
        given[np.argsort(groups[hit], kind="stable")] = column[shuffled[np.argsort(groups[shuffled], kind="stable")]]
        return given

    return _hit(table, level, seed, attributes, exchange)


def _hit(table: Table, level: float, seed: int, attributes: Iterable[str] | None, changed: _Change) -> Table:
    """Choose some cells and change them, values of numeric attributes and codes of others."""
    if not 0 <= level <= 1:
        raise InputError(f"a level of noise must be from 0 to 1, not {level}")
    chosen = set(table.schema.names if attributes is None else [table.schema[name].name for name in attributes])
    codes, values = [column.copy() for column in table.columns], dict(table.values)
    for position, attribute in enumerate(table.schema):
        if attribute.name not in chosen:
            continue
        rng = np.random.default_rng([seed, position])
        hit = np.flatnonzero(rng.random(number_of_rows(table)) < level)
        if isinstance(attribute, Numeric):
            column = table.values[attribute.name].copy()
            column[hit] = changed(attribute, column, hit, rng)
            values[attribute.name] = column
            codes[position][hit] = encode_column(attribute, column[hit], out_of_domain="error").codes
        else:
            codes[position][hit] = changed(attribute, codes[position].astype(np.float64), hit, rng)
    return Table(table.schema, codes, values, keys=table.keys)
