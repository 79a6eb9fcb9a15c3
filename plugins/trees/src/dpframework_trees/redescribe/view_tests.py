"""The attributes of the two sides of redescriptions from trees, and the tests on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpframework.facts import Attribute, InputError, Schema, View, attributes_of_side
from dpframework_trees.splits import Candidates


def sides_of(
    schema: Schema, left: Iterable[str] | None = None, right: Iterable[str] | None = None
) -> dict[View, tuple[Attribute, ...]]:
    """Return the attributes of each side, which are named or by default taken from the schema's views.

    Parameters
    ----------
    schema
        The table's schema.
    left, right
        Names of the attributes of each side; by default those of the schema's views.

    Raises
    ------
    InputError
        If a side has no attribute, if a name is unknown or given twice, or if an attribute is on both sides. In the
        last case both trees could have the same test, which would be a match that says nothing.
    """
    sides = {
        view: attributes_of_side(schema, view, names)
        for view, names in zip((View.LEFT, View.RIGHT), (left, right), strict=True)
    }
    of_right = {attribute.name for attribute in sides[View.RIGHT]}
    for attribute in sides[View.LEFT]:
        if attribute.name in of_right:
            raise InputError(
                f"attribute '{attribute.name}' is on both sides and would match itself; name the attributes of left "
                "or of right without it"
            )
    return sides


def candidates_of_sides(schema: Schema, sides: Mapping[View, Iterable[Attribute]]) -> dict[View, Candidates]:
    """Return the binary tests on the attributes of each side."""
    return {
        view: Candidates.of_schema(schema, [attribute.name for attribute in side], multiway=False, cuts=True)
        for view, side in sides.items()
    }
