"""The privacy unit, which says whom a claim protects. Neighbouring tables differ by one unit.

A unit is one row, or whoever a column of ids names: a person with at most k rows. Then one unit more is at most k rows
more. One unit in place of another is at most k rows that leave and at most k that come, as many of each only where the
number of rows is public.

**Group privacy.** Take such neighbours, and pair as many of the rows that leave with rows that come as there are pairs:
r replacements, and a additions or removals of what is left over, with r + a <= k. They are a path of r + a tables, each
a neighbour of the next by one row. So what loses at most R for a replaced row and A for one that is added or removed
loses at most r R + a A <= k max(R, A) in pure epsilon, and (r sqrt(R) + a sqrt(A))^2 <= k^2 max(R, A) in zCDP (Bun and
Steinke 2016, Proposition 1.9). That needs nothing of the mechanism. Noise is calibrated with it: what may lose epsilon
for a unit may lose epsilon / k for a row, and rho / k^2. `docs/composition.md` derives the rules of composition anew.
"""

from __future__ import annotations

from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.parameters import is_whole_number
from dpframework.facts.schema import Schema
from dpframework.facts.values import printable_name

MOST_ROWS = 10**6  # of a unit

#: The assumption that no unit has more rows than a study says, where no column of ids bounds them.
ROWS_ASSERTED = "rows-per-unit-asserted"


@final
@attrs.frozen
class PrivacyUnit:
    """The privacy unit of a claim, which is one row, or a bounded number of rows that belong together.

    Attributes
    ----------
    id
        The column whose values name units; None if each row is a unit, or the owner asserts how many rows a unit has.
        It is no attribute of the schema. It is read to bound the rows that each unit keeps, and then dropped.
    rows
        The most rows of one unit.

    Examples
    --------
    >>> print(PrivacyUnit(), "|", PrivacyUnit("patient_id", 4), "|", PrivacyUnit(rows=4))
    one row | one patient_id, by at most 4 of its rows | one unit of at most 4 rows, as the owner asserts
    """

    id: str | None = None
    rows: int = 1

    def __attrs_post_init__(self) -> None:
        if self.id is not None and not (isinstance(self.id, str) and self.id.strip()):
            raise InputError(f"unit is {self.id!r}; give the name of the column whose values name units")
        if self.id is not None:
            printable_name(self.id, "the column that names units")
        if not is_whole_number(self.rows, most=MOST_ROWS):
            raise InputError(f"rows_per_unit is {self.rows!r}; a whole number from 1 to {MOST_ROWS} is needed")

    @property
    def is_row(self) -> bool:
        """Whether each row is a unit."""
        return self.id is None and self.rows == 1

    @property
    def asserted(self) -> bool:
        """Whether only the owner's assertion bounds the rows of a unit."""
        return self.id is None and self.rows > 1

    @property
    def groups_rows(self) -> bool:
        """Whether ids name the unit of each row, and a unit may have several rows."""
        return self.id is not None and self.rows > 1

    def require_no_attribute(self, schema: Schema) -> None:
        """Refuse ids that are an attribute of a schema."""
        if self.id in schema.names:
            raise InputError(f"unit '{self.id}' is an attribute of the schema; ids tell whose a row is, and no more")

    def require_joined_by(self, ids: str | None, where: str = "") -> None:
        """Refuse two views that are joined by other ids than the unit's. `where` begins the sentence.

        Raises
        ------
        InputError
            If there are no ids that join the rows, or they are not the unit's.
        """
        if self.id not in (None, ids):
            by = "position" if ids is None else f"'{ids}'"
            raise InputError(
                f"{where}the rows of two views are joined by {by}, and cannot be told apart by the unit '{self.id}'; "
                f"join them by '{self.id}', or protect one row"
            )

    def __str__(self) -> str:
        if self.is_row:
            return "one row"
        if self.id is None:
            return f"one unit of at most {self.rows} rows, as the owner asserts"
        return f"one {self.id}, by at most {self.rows} of its rows" if self.rows > 1 else f"one {self.id}, by one row"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {"id": self.id, "rows": self.rows}


ROW = PrivacyUnit()

#: The name of the column of groups in a fit's plan.
GROUPS = "the groups of the fit"


def unit_of_groups(groups: object, rows: int) -> PrivacyUnit:
    """Return the unit of a fit with scikit-learn's `groups`, or of one without.

    Raises
    ------
    InputError
        If there are no groups, and several rows of a unit.
    """
    unit = PrivacyUnit(None if groups is None else GROUPS, rows)
    if unit.asserted:
        raise InputError(f"rows_per_unit is {rows}, and nothing says whose a row is; give fit the groups")
    return unit


@final
@attrs.frozen
class UnitChange:
    """The largest change that one unit makes to the rows of a table.

    Attributes
    ----------
    rows
        The most rows by which neighbours differ: that many are added or removed, or leave while as many others come.
    resizes
        Whether replacing a unit may change the number of rows, so that a row may leave without another one coming.
    """

    rows: int = 1
    resizes: bool = False


ONE_ROW = UnitChange()
