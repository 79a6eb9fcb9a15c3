"""Checks of the columns of units: each unit gives one row, which must follow from the unit's own rows.

Neighbouring data differ by one unit with any number of rows. If each unit gives one row, and that row follows from the
unit's own rows in their order, then the tables of units differ by that one row. So every sensitivity that is declared
for one row holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.tables.derived_column_cells import with_derived
from dpframework.tables.unit_accumulators import UnitColumns
from dpframework.verify.tables.derivation_check_base import Columns, DerivationFindings, RowKinds, same_cells, some_rows

Aggregating: TypeAlias = Callable[[Schema, Columns, NDArray[np.intp], int], Columns]
"""A function that returns the columns of units.

Its arguments are the schema, the encoded rows, the number of each row's unit (-1 for a row without a unit), and the
number of units.
"""

# A table has fewer units than `MOST_UNITS`, a unit has at most `MOST_ROWS` rows, and a block has `BLOCK` rows.
MOST_UNITS, MOST_ROWS, BLOCK = 6, 5, 4
NOBODY = 0.1  # the share of rows that are repeated without a unit


def columns_of_units(schema: Schema, rows: Columns, whose: NDArray[np.intp], number: int) -> Columns:
    """Return the columns of units as readers of tables compute them, in blocks of 4 rows."""
    assert schema.per_unit is not None
    made = UnitColumns(schema.per_unit, number)
    for first in range(0, len(whose), BLOCK):
        here = slice(first, first + BLOCK)
        made.add(whose[here], some_rows(rows, here))
    return with_derived(schema, made.encode(schema))


@final
class UnitChecks(DerivationFindings):
    """Checks of the columns of units, on tables of a few units with a few rows each, and the findings so far.

    Parameters
    ----------
    schema
        A schema with columns of units.
    aggregating
        The function that computes these columns.
    """

    def __init__(self, schema: Schema, aggregating: Aggregating) -> None:
        super().__init__()
        self._schema, self._aggregating = schema, aggregating
        self._kinds = RowKinds(schema.in_files)

    def table(self, rng: np.random.Generator) -> None:
        """Check one table, and its two neighbours: with one more unit, and with one unit replaced by another."""
        units = [self._unit(rng) for _ in range(int(rng.integers(1, MOST_UNITS)))]
        more, place = self._unit(rng), int(rng.integers(len(units)))
        other = [more if k == place else unit for k, unit in enumerate(units)]
        order = rng.permutation(sum(map(len, units)))
        found = self._make(units, order, rng)
        places = np.sort(rng.integers(0, len(order) + 1, len(more)))
        # The rows of the other units stay in their order.
        with_more = np.insert(order, places, np.arange(len(order), len(order) + len(more)))
        neighbours = {
            Relation.ADD_OR_REMOVE_ONE: self._make([*units, more], with_more, rng),
            Relation.REPLACE_ONE: self._make(other, rng.permutation(sum(map(len, other))), rng),
        }
        for relation, changed in neighbours.items():
            if found is None or changed is None:
                continue
            for column in self._schema:
                self.check_change(relation, column, found, changed)

    def _unit(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return the kinds of a unit's rows, in their order."""
        return rng.integers(0, self._kinds.number, int(rng.integers(1, MOST_ROWS + 1)))

    def _make(
        self, units: Sequence[NDArray[np.intp]], order: NDArray[np.intp], rng: np.random.Generator
    ) -> Columns | None:
        """Check the columns of units of one table, and return them; None if the units give the wrong number of rows.

        Parameters
        ----------
        units
            The kinds of each unit's rows.
        order
            A permutation of all rows, which mixes the units. Within each unit, the rows still keep their own order.
        rng
            The generator that draws rows without a unit.
        """
        whose = np.repeat(np.arange(len(units)), [len(unit) for unit in units])[order]
        rows = np.empty(len(whose), dtype=np.intp)
        for number, unit in enumerate(units):
            rows[whose == number] = unit
        nobodys = rng.random(len(whose)) < NOBODY
        rows, whose = np.append(rows, rows[nobodys]), np.append(whose, np.full(int(nobodys.sum()), -1))
        # Each row without a unit comes right after the row that it repeats.
        mixed = np.argsort(np.append(np.arange(len(nobodys)), np.flatnonzero(nobodys)), kind="stable")
        found = self._aggregating(self._schema, self._kinds.columns(rows[mixed]), whose[mixed], len(units))
        if (lengths := {len(found[name].codes) for name in self._schema.names}) != {len(units)}:
            numbers = ", ".join(map(str, sorted(lengths)))
            self.add("rows", "", f"{numbers} rows are made from {len(units)} units: each unit must give one row")
            return None
        for number, unit in enumerate(units):
            alone = self._aggregating(self._schema, self._kinds.columns(unit), np.zeros(len(unit), dtype=np.intp), 1)
            for attribute in self._schema:
                name = attribute.name
                if len(alone[name].codes) == 1 and not same_cells(alone[name], 0, found[name], number):
                    says = f"'{name}' of a unit changes when {len(units) - 1} other units stand beside it"
                    self.add("unit", name, f"{says}: it must follow from the unit's own rows alone")
        for attribute in self._schema:
            self.check_domain(attribute, found)
        return found
