"""The attributes that derived columns read, and the place of derived columns among the attributes of a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpframework.facts.attributes import Attribute
from dpframework.facts.derived_columns import DerivedColumn, Input
from dpframework.facts.errors import InputError
from dpframework.facts.read_options import ReadOptions


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
        more += [] if column.name in given else [made]
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
