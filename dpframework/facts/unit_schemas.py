"""The schema of a table with one row for each unit, which follows from the schema of the rows in its files."""

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
    """How the rows of a privacy unit in files become one row: their schema, and the columns computed from them.

    Attributes
    ----------
    schema
        The schema of the rows in files, with the columns that are derived in each of them.
    columns
        The columns that are computed from the rows of each unit. Their names differ.
    """

    schema: Schema
    columns: tuple[DerivedColumn, ...]

    def attributes(self) -> tuple[Attribute, ...]:
        """Return the columns as attributes.

        Raises
        ------
        InputError
            If two columns have one name, or a column reads an attribute that the rows lack or has no public domain.
        """
        if len({column.name for column in self.columns}) < len(self.columns):
            raise InputError("two derived columns have one name; names must differ")
        return tuple(column.attribute(self.schema.derivation_inputs) for column in self.columns)

    def select(self, attributes: Sequence[Attribute]) -> UnitRows:
        """Return only the columns of some attributes, in that order, and only the attributes that they read."""
        columns = {column.name: column for column in self.columns}
        kept = tuple(columns[attribute.name] for attribute in attributes)
        read = dict.fromkeys(name for column in kept for name in column.inputs)
        return UnitRows(self.schema.select(list(read) or [self.schema.column_names[0]]), kept)


def split_by_unit(
    derive: Sequence[DerivedColumn],
) -> tuple[list[DerivedColumn], list[DerivedColumn], list[DerivedColumn]]:
    """Return three lists of columns: computed in each row of a file, per unit, and in the row of each unit.

    A column that is not computed per unit is in the third list if it reads an earlier column of units.

    Raises
    ------
    InputError
        If a column reads columns of both kinds of rows.
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
                    f"derived column '{column.name}': reads '{others[0]}', which has a value for each row, beside "
                    f"'{next(name for name in column.inputs if name in names)}', which has one for each unit; first "
                    f"derive a column with per = \"unit\" from '{others[0]}', such as first({others[0]})"
                )
            after.append(column)
        else:
            of_rows.append(column)
            continue
        names.add(column.name)
    return of_rows, of_units, after


def unknown_attribute_text(name: str, names: Sequence[str], of_rows: Sequence[str]) -> str:
    """Return the message about an attribute that is not among `names`. `of_rows` are the attributes of single rows."""
    if name in of_rows:
        return (
            f"attribute {name!r} belongs to single rows, and the table has one row for each unit; derive a column of "
            f'units from it, such as first({name}) with per = "unit"'
        )
    return f"attribute {name!r} is not in the schema; {nearest(name, names)}"


def extend(schema: Schema, read: object, derive: Sequence[DerivedColumn]) -> Schema:
    """Return a schema with more options for reading, which override its own, and with more derived columns.

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
