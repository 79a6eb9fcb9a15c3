"""Checks of derived columns, whose cells must follow from their own row or unit and lie in their public domain.

Neighbouring tables differ by one row before columns are derived. If each row gives exactly one derived row, which
follows from that row alone, then the derived tables differ by one row, too. So every sensitivity holds for derived
columns as for other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.tables.derived_column_cells import with_derived
from dpframework.verify.tables.derivation_check_base import Columns, DerivationFindings, RowKinds, same_cells
from dpframework.verify.tables.row_independence_checks import TablesReport
from dpframework.verify.tables.unit_derivation_checks import Aggregating, UnitChecks, columns_of_units

Deriving: TypeAlias = Callable[[Schema, Columns], Columns]
"""A function of a schema and the encoded columns of some rows, which returns these columns and the derived ones."""

MOST_ROWS = 40  # a table has fewer rows than this


@final
@attrs.frozen
class DerivationReport(TablesReport):
    """The findings on derived cells: whether they follow from their own row or unit, and how their histograms change.

    Attributes
    ----------
    columns
        The derived columns.
    changes
        For each relation, by its name, the largest change of a derived column's histogram between neighbours: the sum
        of the absolute changes of its counts. Histograms declare a change of 1 under add-or-remove-one, and of 2 under
        replace-one.
    units
        Whether the schema has columns that are computed from all rows of a unit.
    """

    columns: tuple[str, ...]
    changes: Mapping[str, int]
    units: bool = False

    def __str__(self) -> str:
        """Write one line, and one more for each violation."""
        verdict = ("" if self.passed else "NOT ") + ("row by row and unit by unit" if self.units else "row by row")
        found = ", ".join(f"{change} under {relation}" for relation, change in self.changes.items())
        head = f"{', '.join(self.columns)}: {verdict} on {self.tables} tables; a histogram changed by at most {found}"
        return "\n  ".join((head, *self.violations))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        form = {"columns": list(self.columns), "tables": self.tables, "changes": dict(self.changes)}
        return {**form, "violations": list(self.violations), "passed": self.passed}


def check_derivation(
    schema: Schema,
    *,
    deriving: Deriving = with_derived,
    aggregating: Aggregating = columns_of_units,
    tables: int = 60,
    seed: int = 0,
) -> DerivationReport:
    """Derive the columns of made-up tables, of each of their rows alone, and of neighbours, and compare them.

    The rows are of all kinds that the schema allows if these are few, else of a sample with the ends of all domains.
    Columns of units are computed from 1 to 5 units with 1 to 5 rows each, and again from each unit alone. The units'
    rows lie in any order and in several blocks, and neighbours differ by one unit.

    Parameters
    ----------
    schema
        The schema, with its derived columns.
    deriving
        The function that computes the columns of single rows. By default the one that all readers of tables use.
    aggregating
        The function that computes the columns of units. By default the one that all readers of tables use, here on
        blocks of 4 rows.
    tables
        How many tables of several rows are tried, each with one neighbour under each relation.
    seed
        The seed of the tables.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Numeric
    >>> from dpframework.facts.derived_columns import derive
    >>> old = derive("old", "age >= 65 or ill")
    >>> print(check_derivation(Schema([Numeric("age", 0, 99, bins=3), Boolean("ill")], derive=[old])))
    old: row by row on 60 tables; a histogram changed by at most 1 under add-or-remove-one, 2 under replace-one
    """
    columns = tuple(column.name for column in schema.derivation)
    checking: list[_RowChecks | UnitChecks] = []
    if schema.per_unit is not None:
        checking.append(UnitChecks(schema, aggregating))
    checking += [_RowChecks(one, deriving) for one in dict.fromkeys((schema.in_files, schema)) if one.derive]
    rng = np.random.default_rng(seed)
    for one in checking:
        for _ in range(tables):
            one.table(rng)
    changes = {
        relation.value: max((one.changes[relation.value] for one in checking), default=0) for relation in Relation
    }
    violations = tuple(says for one in checking for says in one.violations.values())
    return DerivationReport(tables, violations, columns, changes, units=schema.per_unit is not None)


@final
class _RowChecks(DerivationFindings):
    """Checks of the columns that are derived from single rows, and the findings so far."""

    def __init__(self, schema: Schema, deriving: Deriving) -> None:
        super().__init__()
        self._schema, self._deriving = schema, deriving
        self._kinds = RowKinds(schema)
        self._alone: list[Columns | None] = []
        for kind in range(self._kinds.number):
            found = self._derive(np.array([kind]))
            self._alone.append(found)
            if found is None:
                continue
            for column in schema.derive:
                self.check_domain(schema[column.name], found)

    def _derive(self, kinds: NDArray[np.intp]) -> Columns | None:
        """Return the derived columns of some rows, or None if the number of rows changed."""
        found = self._deriving(self._schema, self._kinds.columns(kinds))
        if any(len(found[name].codes) != len(kinds) for name in self._schema.names):
            numbers = ", ".join(sorted({str(len(found[name].codes)) for name in self._schema.names}))
            self.add("rows", "", f"{numbers} rows are made from {len(kinds)} rows: each row must give one row")
            return None
        return found

    def table(self, rng: np.random.Generator) -> None:
        """Check one table, and the histograms of two neighbours of it."""
        # A cell that depends on all rows is found most easily in a small table, so about half have 1 or 2 rows.
        number = int(rng.integers(1, rng.choice([3, MOST_ROWS])))
        rows = rng.integers(0, self._kinds.number, number)
        other, row = rows.copy(), int(rng.integers(self._kinds.number))
        other[int(rng.integers(len(rows)))] = row
        neighbours = {Relation.ADD_OR_REMOVE_ONE: np.append(rows, row), Relation.REPLACE_ONE: other}
        found = self._derive(rows)
        self._compare(rows, found)
        for relation, changed in neighbours.items():
            made = self._derive(changed)
            self._compare(changed, made)
            if found is not None and made is not None:
                for column in self._schema.derive:
                    self.check_change(relation, self._schema[column.name], found, made)

    def _compare(self, rows: NDArray[np.intp], found: Columns | None) -> None:
        if found is None:
            return
        for column in self._schema.derive:
            for place, kind in enumerate(rows.tolist()):
                alone = self._alone[kind]
                if alone is not None and not same_cells(alone[column.name], 0, found[column.name], place):
                    says = f"'{column.name}' of a row changes when {len(rows) - 1} other rows stand beside it"
                    self.add("row", column.name, f"{says}: it must follow from its own row alone")
                    break
