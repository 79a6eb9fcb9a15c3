"""Columns that a public expression computes from other columns before any release, per row or per privacy unit."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Attribute, View, as_view
from dpframework.facts.column_read_options import DateUnit
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.public_lookup_tables import PublicTable, as_public_table
from dpframework.facts.toml import prefix_errors, refuse_unknown
from dpframework.facts.value_checks import (
    finite_number,
    plain_number,
    positive_count,
    printable_name,
    require_list,
    visible_text,
)

if TYPE_CHECKING:
    from dpframework.facts.expression_operands_and_domains import Cells, Operand, RowCells

#: The words that plans and reports add to the expression of a column with one cell per unit.
OF_UNITS = " of the rows of each unit"

#: A column that an expression reads, and the unit in which its dates are counted, or None if it holds no dates.
Input = tuple[Attribute, DateUnit | None]


class Per(enum.StrEnum):
    """Whether a derived column has one cell for each row or one for each privacy unit."""

    ROW = "row"
    UNIT = "unit"


def _per(given: Per | str) -> Per:
    if given not in tuple(Per):
        raise InputError(f"per is {given!r}; accepted are 'row' and 'unit'")
    return Per(given)


def _outside(given: OutOfDomain | str) -> OutOfDomain:
    policy = OutOfDomain.parse(given)
    if policy is OutOfDomain.ERROR:
        raise InputError("outside must be 'clamp' or 'missing': a run may not stop because of a row")
    return policy


def _numbers(given: Iterable[float] | None) -> tuple[float, ...]:
    return () if given is None else tuple(finite_number(cut, "each of its cuts") for cut in require_list(given, "cuts"))


def _texts(given: Iterable[str] | None) -> tuple[str, ...]:
    return (
        ()
        if given is None
        else tuple(visible_text(value, "each of its values") for value in require_list(given, "values"))
    )


def _bound(given: float | None) -> float | None:
    return None if given is None else finite_number(given, "a bound")


def _count(given: int | None) -> int | None:
    return None if given is None else positive_count(given, "bins")


@final
@attrs.frozen
class DerivedColumn:
    """A column with a public domain that is computed from other columns, in each row or from all rows of each unit.

    Attributes
    ----------
    name
        The column's name.
    value
        The expression (see `derive`).
    lower, upper
        The bounds of a result that is a number. By default they follow from the columns that the expression reads.
    bins, cuts
        The grid of a number, as for `Numeric`.
    values
        The list of labels, or of numbers that become labels; by default all labels that the expression may give.
    outside
        What a result outside the declared domain becomes: "clamp" for the nearest bound, or "missing". If `values`
        leaves out a label that the expression may give, only "missing" is accepted.
    view
        The side in a two-view table; by default the side of the columns that the expression reads, if all are on one
        side.
    lookup
        A public table in which the result of the expression is looked up, or None.
    per
        Whether the column has one cell for each row, or one for each privacy unit.

    Raises
    ------
    InputError
        If the expression cannot be read, or another value is not accepted.
    """

    name: str
    value: str
    lower: float | None = attrs.field(default=None, converter=_bound, kw_only=True)
    upper: float | None = attrs.field(default=None, converter=_bound, kw_only=True)
    bins: int | None = attrs.field(default=None, converter=_count, kw_only=True)
    cuts: tuple[float, ...] = attrs.field(default=(), converter=_numbers, kw_only=True)
    values: tuple[str, ...] = attrs.field(default=(), converter=_texts, kw_only=True)
    outside: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, converter=_outside, kw_only=True)
    view: View | None = attrs.field(default=None, converter=as_view, kw_only=True)
    lookup: PublicTable | None = attrs.field(default=None, converter=as_public_table, kw_only=True)
    per: Per = attrs.field(default=Per.ROW, converter=_per, kw_only=True)

    def __attrs_post_init__(self) -> None:
        printable_name(self.name, "a derived column's name")
        with prefix_errors(f"derived column '{self.name}': "):
            printable_name(self.value, "value")
            if not self.inputs and not self.per_unit:
                raise InputError(f"value '{self.value}' reads no column, so that it is the same in every row")

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that the expression reads."""
        return _names_in(self.value, self.per)

    @property
    def per_unit(self) -> bool:
        """Whether the column is computed from all rows of each unit."""
        return self.per is Per.UNIT

    def attribute(self, inputs: Mapping[str, Input]) -> Attribute:
        """Return this column as an attribute, given the attributes that its expression may read.

        Raises
        ------
        InputError
            If a column is unknown, the expression has no public domain, or the declared domain does not fit.
        """
        return self._make(inputs)[0]

    def cells(self, inputs: Mapping[str, Input], rows: RowCells) -> Cells:
        """Return the column's cells, one for each row or unit, before they are put on the grid. They are private.

        Parameters
        ----------
        inputs
            The attributes that the expression may read.
        rows
            For each of these attributes, its cells (see `dpframework.facts.expression_operands_and_domains`), shape
            (rows,). For a column per unit, the aggregates of each unit's rows (see
            `dpframework.facts.unit_aggregates`), shape (units,).

        Returns
        -------
        Cells
            Numbers (NaN where missing) or codes (-1 where missing), shape (rows,), or (units,) for columns per unit.
        """
        length = len(next(iter(rows.values())))
        import numpy as np

        with np.errstate(all="ignore"):
            return np.broadcast_to(self._make(inputs)[1].cells(rows), (length,))

    def _make(self, inputs: Mapping[str, Input]) -> tuple[Attribute, Operand]:
        for name in self.inputs:
            if name not in inputs:
                of_itself = "a column cannot read itself, so rename this one" if name == self.name else ""
                raise InputError(
                    f"derived column '{self.name}': reads the column '{name}', which is not in the schema before it; "
                    f"{of_itself or nearest(name, inputs)}"
                )
        from dpframework.facts.derived_column_domains_and_cells import make_column  # most schemas derive nothing

        return make_column(self, tuple((name, inputs[name]) for name in self.inputs))

    @property
    def definition(self) -> str:
        """The expression, its public table and its declared domain as text, for plans and reports."""
        named = ("name", "value", "lookup", "per")
        more = {key: value for key, value in self.to_dict().items() if key not in named}
        shown = [f"{key} {', '.join(map(str, v)) if isinstance(v, list) else v}" for key, v in more.items()]
        table = "" if self.lookup is None else f", looked up in {self.lookup}"
        per_unit = OF_UNITS if self.per_unit else ""
        return f"{self.name} = {self.value}{per_unit}{table}" + (f" ({'; '.join(shown)})" if shown else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the column in a JSON-safe form, with the keys of a file, defaults left out."""
        form: dict[str, Any] = {"name": self.name, "value": self.value}
        for key in ("lower", "upper", "bins"):
            found = getattr(self, key)
            if found is not None:
                form[key] = plain_number(float(found))
        if self.cuts:
            form["cuts"] = [plain_number(cut) for cut in self.cuts]
        if self.values:
            form["values"] = list(self.values)
        if self.outside is not OutOfDomain.CLAMP:
            form["outside"] = self.outside.value
        if self.view is not None:
            form["view"] = self.view.value
        if self.lookup is not None:
            form["lookup"] = self.lookup.to_dict()
        if self.per_unit:
            form["per"] = self.per.value
        return form

    @classmethod
    def from_dict(cls, form: object, position: int) -> DerivedColumn:
        """Read the output of `to_dict`. `position`, from 1, identifies a column without a name."""
        if not isinstance(form, Mapping):
            raise InputError(f"derived column number {position} must be a table, written as [[derive]]")
        where = f"derived column '{form['name']}': " if "name" in form else f"derived column number {position}: "
        # The functions that read a schema or study file replace each `table` by a `lookup` before they call this one.
        if "table" in form:
            raise InputError(
                f"{where}names the file of a public table, which is looked for beside the schema's file; load the "
                "schema from its file"
            )
        for key in ("key", "column"):
            if key in form:
                raise InputError(f"{where}has '{key}' without table; it names a column of a public table's file")
        refuse_unknown(form, [field.name for field in attrs.fields(cls)], f"{where}unknown key")
        for key in ("name", "value"):
            if not isinstance(form.get(key), str):
                raise InputError(f"{where}needs a '{key}', a text")
        return cls(**form)


def derived_columns(given: Iterable[Any]) -> tuple[DerivedColumn, ...]:
    """Return derived columns, or read them from the tables of a file, as the converter of an attrs field."""
    if given == ():
        return ()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError("each derived column must be written under its own [[derive]] heading, with two brackets")
    return tuple(
        one if isinstance(one, DerivedColumn) else DerivedColumn.from_dict(one, k)
        for k, one in enumerate(given, start=1)
    )


@typechecked
def derive(
    name: str,
    value: str,
    *,
    lower: float | None = None,
    upper: float | None = None,
    bins: int | None = None,
    cuts: Sequence[float] | None = None,
    values: Sequence[str] | None = None,
    outside: OutOfDomain | str = OutOfDomain.CLAMP,
    view: View | str | None = None,
    lookup: PublicTable | Mapping[str, Any] | None = None,
    per: str = "row",
) -> DerivedColumn:
    """Describe a column that is computed from other columns, per row or per unit, for `Schema(..., derive=[...])`.

    The expression reads cells after they were put into the schema's domain. So the domain of its results follows from
    the domains of these cells, and never from the rows. A result is missing if a cell that it needs is missing, or if
    it is undefined, such as x / 0. With `per="row"`, each row gives one row, so neighbouring tables stay neighbours.

    Parameters
    ----------
    name
        The column's name, which no other column may have.
    value
        The expression, written as in Python (see the page on the format of studies for all that it can say).
    lower, upper
        The bounds of a result that is a number. By default they follow from the columns that the expression reads.
    bins, cuts
        The grid of a number, as for `Numeric`; by default one bin for each of at most 32 whole numbers, else 16 bins.
    values
        The list of labels, or of numbers that become labels; by default all labels that the expression may give.
    outside
        What a number beyond the bounds becomes: "clamp" for the nearest bound, or "missing". If `values` leaves out a
        label that the expression may give, only "missing" is accepted.
    view
        The side in a two-view table; by default the side of the columns that are read, if all are on one side.
    lookup
        A public table, or a mapping, in which the expression's result is looked up. If it is not there, it is missing.
    per
        "row", or "unit" if the expression is `any`, `all`, `count`, `sum`, `min`, `max`, `first`, `last` or `mode` of
        all rows of a unit. The table then has one row per unit (see `dpframework.facts.unit_aggregates`).

    Raises
    ------
    InputError
        If the expression cannot be read, or another argument is not accepted.

    Examples
    --------
    >>> from dpframework.facts.attributes import Numeric
    >>> from dpframework.facts.schema import Schema
    >>> bmi = derive("bmi", "weight / (height / 100) ** 2", lower=10, upper=60, bins=10)
    >>> Schema([Numeric("weight", 30, 200, bins=17), Numeric("height", 120, 220, bins=10)], derive=[bmi])["bmi"].size
    10
    """
    return DerivedColumn(
        name, value, lower=lower, upper=upper, bins=bins, cuts=cuts, values=values, outside=outside, view=view,
        lookup=lookup, per=per,
    )  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _names_in(value: str, per: Per) -> tuple[str, ...]:
    # Imported only here, since most schemas derive nothing.
    if per is Per.UNIT:
        from dpframework.facts.unit_aggregates import aggregate

        return aggregate(value).inputs
    from dpframework.facts.expression_parser import names_in

    return names_in(value)
