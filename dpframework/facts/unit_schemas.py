"""The schema of a table with one row for each unit, beside the schema of its files' rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.derived_columns import DerivedColumn
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.read_options import ReadOptions

if TYPE_CHECKING:
    from dpframework.facts.schema import Schema


@final
@attrs.frozen
class UnitRows:
    """How the rows that files hold of a unit become its one row: their schema, and the columns made of them.

    Attributes
    ----------
    schema
        The schema of the rows in files, with the columns that are derived in each of them.
    columns
        The columns that are made of the rows of each unit, by name different.
    """

    schema: Schema
    columns: tuple[DerivedColumn, ...]

    def attributes(self) -> tuple[Attribute, ...]:
        """Return the attributes that the columns are.

        Raises
        ------
        InputError
            If a column reads what is not in the rows, or has no public domain.
        """
        if len({column.name for column in self.columns}) < len(self.columns):
            raise InputError("two derived columns have one name; names must differ")
        return tuple(column.attribute(self.schema.derivation_inputs) for column in self.columns)

    def select(self, attributes: Sequence[Attribute]) -> UnitRows:
        """Return the columns that some attributes are, in that order, and the rows that they are made of."""
        columns = {column.name: column for column in self.columns}
        kept = tuple(columns[attribute.name] for attribute in attributes)
        read = dict.fromkeys(name for column in kept for name in column.inputs)
        return UnitRows(self.schema.select(list(read) or [self.schema.column_names[0]]), kept)


def split_by_unit(
    derive: Sequence[DerivedColumn],
) -> tuple[list[DerivedColumn], list[DerivedColumn], list[DerivedColumn]]:
    """Return the columns that are derived in rows of files, of units, and in the rows of units.

    A column that is derived in a row is one of units if it reads a column of units that stands before it.

    Raises
    ------
    InputError
        If it reads columns of both kinds of rows.
    """
    of_rows, of_units, after = list[DerivedColumn](), list[DerivedColumn](), list[DerivedColumn]()
    names: set[str] = set()
    for column in derive:
        if column.per_unit:
            of_units.append(column)
        elif names.intersection(column.inputs):
            others = [name for name in column.inputs if name not in names]
            if others:
                raise InputError(
                    f"derived column '{column.name}': reads '{others[0]}', which is no column of units, beside "
                    f"'{next(name for name in column.inputs if name in names)}', which is one; write per = \"unit\" "
                    f"and what '{others[0]}' is for a unit, such as first({others[0]}), in a column before it"
                )
            after.append(column)
        else:
            of_rows.append(column)
            continue
        names.add(column.name)
    return of_rows, of_units, after


def unknown(name: str, names: Sequence[str], of_rows: Sequence[str]) -> str:
    """Return the sentence about an attribute that is not among some names. `of_rows` are the names of single rows."""
    if name in of_rows:
        return (
            f"attribute {name!r} is one of single rows, and the table has one row for each unit; derive a column of "
            f'units from it, such as first({name}) with per = "unit"'
        )
    return f"attribute {name!r} is not in the schema; {nearest(name, names)}"


def extend(schema: Schema, read: object, derive: Sequence[DerivedColumn]) -> Schema:
    """Return a schema with more options of reading, which go before its own, and more derived columns.

    Raises
    ------
    InputError
        As `Schema`.
    """
    files = schema.in_files
    options = files.read if read is None else ReadOptions.of(read).over(files.read)
    if schema.per_unit is None:
        return attrs.evolve(schema, read=options, derive=(*schema.derive, *derive))
    derived = (*schema.derivation, *derive)
    return attrs.evolve(schema, attributes=files.columns, read=options, derive=derived, per_unit=None)
