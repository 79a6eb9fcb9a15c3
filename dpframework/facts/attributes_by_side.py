"""The attributes of the left and the right side of a two-view table, given by the schema's views or by names."""

from __future__ import annotations

from collections.abc import Iterable

from dpframework.facts.attributes import Attribute, View
from dpframework.facts.column_read_options import ColumnOptions
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import named_once
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema


def attributes_of_side(schema: Schema, view: View, names: Iterable[str] | None = None) -> tuple[Attribute, ...]:
    """Return the attributes of one side: the named ones, or else the schema's view.

    Parameters
    ----------
    schema
        The table's schema.
    view
        The side whose attributes are wanted.
    names
        The names of the side's attributes, which may belong to any view or to none. By default the side has the
        attributes of the view, in column order.

    Raises
    ------
    InputError
        If a side has no attribute, or a name is unknown or given twice.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> schema = Schema([Boolean("wolf", view="left"), Boolean("fox"), Boolean("rain", view="right")])
    >>> [attribute.name for attribute in attributes_of_side(schema, View.LEFT)]
    ['wolf']
    >>> [attribute.name for attribute in attributes_of_side(schema, View.LEFT, ["rain", "fox"])]
    ['rain', 'fox']
    """
    side = schema.view(view) if names is None else tuple(schema[name] for name in names)
    if not side and names is None:
        raise InputError(f"the schema has no attribute of the {view} view; redescriptions need two views")
    if not side:
        raise InputError(f"{view} names no attribute; name one or more, or leave it out for the schema's {view} view")
    named_once(view, [attribute.name for attribute in side])
    return side


def attributes_of_views(schema: Schema) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
    """Return the attributes of the left and of the right view.

    Raises
    ------
    InputError
        If an attribute has no view, a view has no attribute, or the table has one row per unit.
    """
    if schema.per_unit is not None:
        raise InputError('columns derived per unit need the rows of one file, not of two views; leave per = "unit" out')
    for attribute in schema:
        if attribute.view is None:
            raise InputError(
                f"attribute '{attribute.name}' of the schema has no view; give each attribute view = 'left' or 'right'"
            )
    for view in View:
        if not schema.view(view):
            raise InputError(f"the schema has no attribute of the {view} view; a two-view table needs one")
    return schema.view(View.LEFT), schema.view(View.RIGHT)


def require_joinable(schema: Schema, id: str | None, unit: PrivacyUnit) -> None:  # noqa: A002
    """Refuse a schema whose two views cannot be joined, and a unit whose ids are not in the column that joins them.

    Parameters
    ----------
    schema
        The schema of the table.
    id
        The column of both views that joins their rows; None for rows that are matched by position.
    unit
        The unit that the table is to protect.

    Raises
    ------
    InputError
        If an attribute has no view, a view has no attribute, or the table has one row per unit. If the unit's ids are
        in another column than `id`. If the joining column is an attribute, and `[read]` has options for it.
    """
    unit.require_joined_by(id)
    attributes_of_views(schema)
    if id in schema and schema.read.of_column(id or "") != ColumnOptions():
        raise InputError(f"column '{id}' joins the views and is an attribute, so [read] must have no options for it")
