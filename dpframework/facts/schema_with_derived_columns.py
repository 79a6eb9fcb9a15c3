"""How derived columns change a schema: which attributes they read, their order, and the schema of a table of units.

If a column is computed per unit, the table has one row for each privacy unit, and no longer one for each row of its
files (see `UnitRows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.derived_columns import DerivedColumn, Input
from dpframework.facts.errors import InputError
from dpframework.facts.read_options import ReadOptions

if TYPE_CHECKING:
    from dpframework.facts.schema import Schema


def without_derived(attributes: Sequence[Attribute], derive: Sequence[DerivedColumn]) -> tuple[Attribute, ...]:
    """Return the attributes that a file holds, which are all attributes except the derived columns."""
    derived = {column.name for column in derive}
    return tuple(attribute for attribute in attributes if attribute.name not in derived)


def inputs_of(
    attributes: Sequence[Attribute], derive: Sequence[DerivedColumn], read: ReadOptions
) -> Mapping[str, Input]:
    """Return each attribute that derived columns may read, by name, with the unit in which its dates are counted."""
    derived = {column.name for column in derive}
    columns = {a.name: read.of_column(a.name) for a in attributes if a.name not in derived}
    dates = {name: options.unit for name, options in columns.items() if options.is_date}
    return {attribute.name: (attribute, dates.get(attribute.name)) for attribute in attributes}


def with_derived(
    attributes: Sequence[Attribute], derive: Sequence[DerivedColumn], read: ReadOptions
) -> tuple[Attribute, ...]:
    """Return the attributes together with the derived columns. Derived columns that are not among them come last.

    Raises
    ------
    InputError
        If two derived columns have one name. If a derived column is among the attributes with other facts than its own,
        or before a column that it reads. If it reads an unknown column, has no public domain, or has options for
        reading it from a file.
    """
    derived = {column.name for column in derive}
    if len(derived) < len(derive):
        raise InputError("two derived columns have one name; names must differ")
    for name, _ in read.columns:
        if name in derived:
            raise InputError(f"[read.columns] column '{name}' is derived, so no file holds it; leave it out")
    given, more = {attribute.name: attribute for attribute in attributes}, list[Attribute]()
    places = {attribute.name: k for k, attribute in enumerate(attributes)}
    inputs = dict(inputs_of(without_derived(attributes, derive), derive, read))
    for column in derive:
        made = column.attribute(inputs)
        after = max(places.get(name, len(attributes)) for name in column.inputs)
        if column.name in places and after > places[column.name]:
            raise InputError(f"attribute '{column.name}' is listed before a column that it reads; list it after that")
        if given.get(column.name, made) != made:
            raise InputError(
                f"attribute '{column.name}' is listed and derived, with different facts; give the derived column "
                "another name, or list it only once"
            )
        if column.name not in given:
            more.append(made)
        inputs[column.name] = (made, None)
    return (*attributes, *more)


def with_inputs(
    kept: Sequence[Attribute], attributes: Sequence[Attribute], derive: Sequence[DerivedColumn]
) -> tuple[list[Attribute], tuple[DerivedColumn, ...]]:
    """Return the attributes and the derived columns that a schema with only some attributes needs.

    A wanted attribute that is derived is replaced by the attributes from which it is computed.

    Parameters
    ----------
    kept
        The wanted attributes, of which some may be derived.
    attributes, derive
        All attributes and all derived columns of the schema.
    """
    wanted, needed = {attribute.name for attribute in kept}, list[DerivedColumn]()
    for column in reversed(derive):
        if column.name in wanted:
            needed.insert(0, column)
            wanted.update(column.inputs)
    if not needed:
        return list(kept), ()
    known = {attribute.name for attribute in kept}
    more = [a for a in attributes if a.name in wanted and a.name not in known]
    made = {column.name for column in needed}
    return [a for a in (*kept, *more) if a.name not in made], tuple(needed)


@final
@attrs.frozen
class UnitRows:
    """How all rows of a privacy unit become one row: the schema of these rows, and the columns computed from them.

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

    A column that is not computed per unit is in the third list if it reads an earlier column with one cell per unit.

    Raises
    ------
    InputError
        If a column reads one column with a cell per row and another with a cell per unit.
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
