"""Classes whose fields are shown by nobody, since they hold private rows or what was found in them."""

from __future__ import annotations

import attrs


def hide_fields(_: type, fields: list[attrs.Attribute[object]]) -> list[attrs.Attribute[object]]:
    """Return the fields of a class, marked as not shown: the `field_transformer` of a class that holds rows.

    A class's own `__repr__` is not enough. Printers such as that of rich do not call it for a class of attrs: they show
    all fields that are not marked.

    Examples
    --------
    >>> @attrs.frozen(repr=False, field_transformer=hide_fields)
    ... class Cells:
    ...     cells: list[str]
    >>> attrs.fields(Cells).cells.repr
    False
    """
    return [field.evolve(repr=False) for field in fields]
