"""The privacy unit, which says whom a claim protects. Neighbouring tables differ by one unit.

A unit is one row, or a person with at most k rows. A column of ids tells to whom a row belongs, or the owner only
asserts k. Adding a person adds at most k rows. Replacing a person removes at most k rows and adds at most k others.
These two numbers may differ if the number of rows is secret, and are equal if it is public.

**Group privacy.** Take two tables that differ by one unit. Pair removed rows with added rows, until no removed row or
no added row is left. Each of the r pairs is a replacement. The s rows left over are added or removed, and r + s <= k.
So r + s changes lead from one table to the other, and each of them changes one row. Let a release lose at most R for a
replaced row, and at most A for an added or removed row. Then it loses at most r R + s A <= k max(R, A) in pure epsilon,
and (r sqrt(R) + s sqrt(A))^2 <= k^2 max(R, A) in zCDP (Bun and Steinke 2016, Proposition 1.9). This holds for every
mechanism. Noise is calibrated by this rule: a release that may lose epsilon for a unit may lose epsilon / k for a row,
and a release that may lose rho for a unit may lose rho / k^2 for a row. `docs/composition.md` derives the rules of
composition from this.

**A period.** A unit may be a person in one period (see `calendar_periods`). A run reads the rows of one period. So its
table holds units of that period with at most k rows each, and all of the above holds for this table. It has no rows of
other periods. So for neighbours that differ by a person in one period, the releases of all periods together lose no
more than the releases of that period. A person's whole history consists of one such unit for each period in which they
have rows. The loss for the history is at most the sum of the losses of these periods. (The releases of a period depend
on earlier releases and on the rows of that period, so their losses add up as in adaptive sequential composition.)
"""

from __future__ import annotations

from typing import Any, final

import attrs

from dpframework.facts.calendar_periods import Period, PeriodKind
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.facts.phrases import count_text
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import printable_name

MOST_UNIT_ROWS = 10**6  # the most rows that one unit may keep

#: The name of the assumption that no unit has more rows than a study says, where no column of ids bounds them.
ROWS_ASSERTED = "rows-per-unit-asserted"


def _as_kind(given: str | None) -> PeriodKind | None:
    return None if given is None else PeriodKind.parse(given)


@final
@attrs.frozen
class PrivacyUnit:
    """The privacy unit of a claim, which is one row, or a bounded number of rows that belong together.

    Attributes
    ----------
    id
        The column whose values name units; None if each row is a unit, or the owner asserts how many rows a unit has.
        It is not an attribute of the schema. It is read to bound the rows that each unit keeps, and then dropped.
    rows
        The most rows of one unit. For a unit in a period, the most rows within one period.
    period
        The length of the periods, if a unit is a person in one period.
    date
        The column of dates, which say to which period each row belongs. It is read, and then dropped.
    span
        The period whose rows are read. The unit of a study has none, since its plan is the same for all periods.

    Examples
    --------
    >>> print(PrivacyUnit(), "|", PrivacyUnit("patient_id", 4), "|", PrivacyUnit(rows=4))
    one row | one patient_id, by at most 4 of its rows | one unit of at most 4 rows, as the owner asserts
    """

    id: str | None = None
    rows: int = 1
    period: PeriodKind | None = attrs.field(default=None, kw_only=True, converter=_as_kind)
    date: str | None = attrs.field(default=None, kw_only=True)
    span: Period | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if (self.period is None) != (self.date is None):
            raise InputError(
                "a unit in a period needs both the period's length (period) and the column of dates (date); give both, "
                "or neither"
            )
        if self.date is not None and not (isinstance(self.date, str) and self.date.strip()):
            raise InputError(f"date is {self.date!r}; give the name of the column of dates")
        if self.date is not None:
            printable_name(self.date, "the column of dates")
        if self.date is not None and self.date == self.id:
            raise InputError(f"'{self.date}' names both units and dates; give two columns")
        if self.id is not None and not (isinstance(self.id, str) and self.id.strip()):
            raise InputError(f"unit is {self.id!r}; give the name of the column whose values name units")
        if self.id is not None:
            printable_name(self.id, "the column that names units")
        if not is_whole_number(self.rows, most=MOST_UNIT_ROWS):
            raise InputError(
                f"rows_per_unit is {self.rows!r}; write how many rows of one unit are kept, from 1 to {MOST_UNIT_ROWS}"
            )

    @property
    def is_row(self) -> bool:
        """Whether each row is a unit."""
        return self.id is None and self.rows == 1 and self.period is None

    @property
    def asserted(self) -> bool:
        """Whether only the owner's assertion bounds the rows of a unit."""
        return self.id is None and not self.is_row

    @property
    def groups_rows(self) -> bool:
        """Whether ids name the unit of each row, and a unit may have several rows."""
        return self.id is not None and self.rows > 1

    def during(self, name: str) -> PrivacyUnit:
        """Return the unit for reading the rows of one period.

        Raises
        ------
        InputError
            If the unit has no periods, or no period has that name.

        Examples
        --------
        >>> PrivacyUnit("patient_id", 4, period="month", date="visited").during("2026-03").span.name
        '2026-03'
        """
        if self.period is None:
            raise InputError(
                f"period '{name}' is given, but the study protects {self} and has no periods; leave the period out"
            )
        return attrs.evolve(self, span=Period.parse(self.period, name))

    @property
    def template(self) -> PrivacyUnit:
        """The unit without its span, as a plan for all periods has it."""
        return self if self.span is None else attrs.evolve(self, span=None)

    @property
    def history(self) -> PrivacyUnit:
        """The unit of a person over all periods, of up to `MOST_UNIT_ROWS` rows. Without periods, the unit itself."""
        return self if self.period is None else PrivacyUnit(self.id, MOST_UNIT_ROWS)

    def require_span(self) -> Period | None:
        """Return the period whose rows are read, or None for a unit without periods.

        Raises
        ------
        InputError
            If the unit has periods, and `during` has not chosen the period that is read.
        """
        if self.period is not None and self.span is None:
            raise InputError(
                f"the study protects {self}, and reads one {self.period} at a time; say which, by --period or by "
                "unit=study.unit.during(...)"
            )
        return self.span

    def require_fits(self, schema: Schema) -> None:
        """Refuse ids or dates that are attributes of a schema, and derived columns that do not fit this unit."""
        if schema.per_unit is not None:
            column = schema.per_unit.columns[0].name
            if self.id is None:
                raise InputError(
                    f"derived column '{column}' is made of the rows of each unit, and no column of ids names units; "
                    "give the study's unit"
                )
            if self.rows > 1:
                raise InputError(
                    f"rows_per_unit is {self.rows}, and derived column '{column}' makes one row of all rows of a unit, "
                    "which costs as much as one row; leave rows_per_unit out"
                )
            self.require_fits(schema.in_files)
        if self.date in schema.names:
            raise InputError(
                f"date '{self.date}' is an attribute of the schema; dates are read only to find the rows of a "
                "period, so take it out of the schema"
            )
        if self.id in schema.names:
            raise InputError(
                f"unit '{self.id}' is an attribute of the schema; ids are read only to find the rows of a unit, so "
                "take it out of the schema"
            )

    def require_joined_by(self, ids: str | None, where: str = "") -> None:
        """Refuse two views that are joined by other ids than the unit's. `where` begins the sentence.

        Raises
        ------
        InputError
            If the unit has ids, and the rows are joined by other ids or by position.
        """
        if self.id not in (None, ids):
            by = "position" if ids is None else f"'{ids}'"
            raise InputError(
                f"{where}the rows of two views are joined by {by}, so one joined row may belong to two units of "
                f"'{self.id}'; join them by '{self.id}', or protect one row"
            )

    def __str__(self) -> str:
        if self.is_row:
            return "one row"
        within = "" if self.period is None else f" in one {self.period}"
        if self.id is None:
            return f"one unit{within} of at most {count_text(self.rows, 'row')}, as the owner asserts"
        by = f"at most {self.rows} of its rows" if self.rows > 1 else "one row"
        return f"one {self.id}{within}, by {by}"

    @property
    def who(self) -> str:
        """Who is protected, in words."""
        who = "each row" if self.is_row else "each person" if self.id is None else f"each {self.id}"
        return who if self.period is None else f"{who} in one {self.period}"

    @property
    def share(self) -> str:
        """A sentence in everyday words about the number of rows with which one person counts."""
        rows = "one row" if self.rows == 1 else f"at most {self.rows} rows"
        each = "" if self.period is None else f" in each {self.period}"
        if self.is_row:
            return "Each row counts alone, so a person with several rows counts several times."
        if self.id is None:
            return f"Nobody has more than {count_text(self.rows, 'row')}{each}, as the owner states."
        return f"Each {self.id} counts with {rows}{each}."

    def left_out(self, *, per_unit: bool) -> str:
        """Return a clause on the rows that are left out since they have no id, or since their unit has more rows.

        It is empty if every row counts.

        Parameters
        ----------
        per_unit
            Whether the table has one row for each unit, which is computed from all of the unit's rows.

        Examples
        --------
        >>> PrivacyUnit("patient", 4).left_out(per_unit=False)
        "rows without 'patient' are left out, and so are rows of one patient beyond 4"
        >>> PrivacyUnit("patient").left_out(per_unit=True)
        "rows without 'patient' are left out"
        """
        if self.id is None:
            return ""
        most = "" if per_unit else f", and so are rows of one {self.id} beyond {self.rows}"
        each = "" if per_unit or self.period is None else f" in each {self.period}"
        return f"rows without '{self.id}' are left out{most}{each}"

    @property
    def gap(self) -> str:
        """A clause about facts that a unit in a period leaves unprotected. It is empty for a unit without periods."""
        if self.period is None:
            return ""
        who = "somebody" if self.id is None else f"one {self.id}"
        return (
            f"a fact that shows in several {self.period}s is protected less than a fact that shows in one "
            f"{self.period}: over k {self.period}s, {who} loses k times as much, so that lasting facts, such as an "
            "illness or a home, may be learned in time"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form. For a unit without periods it has no keys about periods."""
        if self.period is None:
            return {"id": self.id, "rows": self.rows}
        return {"id": self.id, "rows": self.rows, "period": self.period.value, "date": self.date}


ROW = PrivacyUnit()

#: The name of the column of ids in the plan of an estimator's `fit` with `groups`.
GROUPS = "the groups of the fit"


def unit_of_groups(groups: object, rows: int) -> PrivacyUnit:
    """Return the unit of a fit, with or without scikit-learn's `groups`.

    Raises
    ------
    InputError
        If there are no groups, and a unit may have several rows.
    """
    unit = PrivacyUnit(None if groups is None else GROUPS, rows)
    if unit.asserted:
        raise InputError(f"rows_per_unit is {rows}, and nothing says to which unit a row belongs; give fit the groups")
    return unit


@final
@attrs.frozen
class UnitChange:
    """The largest change that one unit makes to the rows of a table.

    Attributes
    ----------
    rows
        The most rows by which neighbours differ. At most this many are added, or removed, or both if a unit is
        replaced.
    resizes
        Whether replacing a unit may change the number of rows, so that a row may be removed with no row added for it.
    """

    rows: int = 1
    resizes: bool = False


ONE_ROW = UnitChange()
