"""Schemas that an example's author did not think of.

A claim must hold for every schema that a miner plans. A declared sensitivity may depend on a schema's labels or bounds,
and be wrong for a schema unlike the examples: with missing cells, with more labels, with numbers below 0 or only above
it, with bins of different widths, or with a larger bound on the number of rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import attrs

from dpframework.facts.attributes import Attribute, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.verify.queries.attribute_variants import (
    VALUES,
    more_flags,
    one_of_each_kind,
    with_later_labels,
    with_many_bins,
    with_many_values,
    with_missing,
    with_negative,
    with_positive,
    with_shift,
    with_small,
    with_uneven_bins,
    with_value,
    with_wider,
)

FEW = 3  # a small public number of rows, or of units
MOST_ROWS = 60  # a larger public number of rows; a search can still list the rows
ROWS = 1_000  # the factor by which a public bound on the number of rows is enlarged
FAR = 123_456_789  # how far above 0 numbers are moved, in widths of their range: squares of such numbers are rounded
MOST_LONGER = 2  # how many attributes are given `VALUES` values, one at a time


def related_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield schemas that a miner may meet instead of an example's schema, each with a text that says how it differs.

    Nothing is yielded for a schema with derived columns, since their values follow from other columns.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in related_schemas(Schema([Boolean("ill"), Categorical("ward", ["x", "y"])])):
    ...     print(how, [attribute.size for attribute in other])
    on the example's schema with missing cells [3, 3]
    on the example's schema with one more value [2, 3]
    on the example's schema with 300 values of ward [2, 300]
    """
    if schema.derivation:
        return
    changes: dict[str, Callable[[Attribute], Attribute]] = {
        "with missing cells": with_missing,
        "with one more value": with_value,
        "with numbers below 0": with_negative,
        "with numbers above 0 only": with_positive,
        "with bins of other widths": with_uneven_bins,
    }
    for how, changed in changes.items():
        try:
            attributes = tuple(attribute if isinstance(attribute, Open) else changed(attribute) for attribute in schema)
        except InputError:  # such as bounds that become equal as floating-point numbers
            continue
        if attributes != schema.attributes:
            yield f"on the example's schema {how}", attrs.evolve(schema, attributes=attributes)
    categorical = [attribute for attribute in schema if isinstance(attribute, Categorical)]
    for longer in categorical[:MOST_LONGER]:
        attributes = tuple(with_many_values(own) if own is longer else own for own in schema)
        yield (
            f"on the example's schema with {VALUES} values of {longer.name}",
            attrs.evolve(schema, attributes=attributes),
        )
    if schema.max_rows is not None and schema.rows is None:
        yield (
            f"on the example's schema with {ROWS:,} times as many rows",
            attrs.evolve(schema, max_rows=ROWS * schema.max_rows),
        )


def further_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield more schemas like those of `related_schemas`: some differ in one attribute only, others in several ways.

    If all attributes are changed in the same way, equal attributes stay equal. Then a query that uses the range of the
    wrong attribute shows no mistake.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in further_schemas(Schema([Numeric("age", 0, 8, bins=2), Numeric("pay", 0, 8, bins=2)])):
    ...     print(how, [attribute.lower for attribute in other], [attribute.missing for attribute in other])
    on the example's schema with missing cells of pay alone [0.0, 0.0] [False, True]
    on the example's schema with a wider range of pay alone [0.0, -16.0] [False, False]
    on the example's schema with another attribute of each kind [0.0, 0.0, 0.0] [False, False, False]
    on the example's schema with missing cells and numbers below 0 [-16.0, -16.0] [True, True]
    on the example's schema with missing cells and numbers above 0 [16.0, 16.0] [True, True]
    on the example's schema with 300 bins of age [0.0, 0.0] [False, False]
    on the example's schema with other sizes of numbers [0.0, 0.0] [False, False]
    """
    listed = [own for own in schema if not isinstance(own, Open)]
    if schema.derivation or not listed:
        return
    numeric = [own for own in listed if isinstance(own, Numeric)]
    last, wide = listed[-1], numeric[-1] if numeric else None
    tried: list[tuple[str, Callable[[], list[Attribute]]]] = []

    def replaced(old: Attribute, new: Attribute) -> list[Attribute]:
        return [new if own is old else own for own in schema]

    def of_each(*changes: Callable[[Attribute], Attribute]) -> list[Attribute]:
        made = list(schema)
        for change in changes:
            made = [own if isinstance(own, Open) else change(own) for own in made]
        return made

    if len(listed) > 1 and not last.missing:
        tried.append((f"with missing cells of {last.name} alone", lambda: replaced(last, with_missing(last))))
    if wide is not None and len(numeric) > 1:
        tried.append((f"with a wider range of {wide.name} alone", lambda: replaced(wide, with_wider(wide))))
    tried.append(("with another attribute of each kind", lambda: [*schema, *one_of_each_kind(listed, schema.names)]))
    if numeric:
        tried.append(("with missing cells and numbers below 0", lambda: of_each(with_missing, with_negative)))
        tried.append(("with missing cells and numbers above 0", lambda: of_each(with_missing, with_positive)))
        tried.append(
            (f"with {VALUES} bins of {numeric[0].name}", lambda: replaced(numeric[0], with_many_bins(numeric[0])))
        )
        tried.append(("with other sizes of numbers", lambda: of_each(with_small)))
    if flags := more_flags(listed, schema.names):
        tried.append((f"with {len(flags)} more attributes of {flags[0].size} values", lambda: [*schema, *flags]))
    if (later := of_each(with_later_labels)) != list(schema):
        tried.append(("with other numbers in labels", lambda: later))
    for how, changed in tried:
        with contextlib.suppress(InputError):  # such as bounds that become equal as floating-point numbers
            yield f"on the example's schema {how}", attrs.evolve(schema, attributes=tuple(changed()))


def schemas_of_other_sizes(schema: Schema, unit: int) -> Iterator[tuple[str, Schema]]:
    """Yield copies of a schema with other public numbers of rows: one more, few, and twice as many.

    A bound may be right only for even numbers of rows, or only for one number. If the schema has no public number of
    rows, no copy is yielded.

    Parameters
    ----------
    schema
        The schema of an example.
    unit
        The number of rows of a privacy unit. Each schema has room for three of them.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in schemas_of_other_sizes(Schema([Boolean("ill")], rows=40), 1):
    ...     print(how, other.rows)
    on the example's schema with 41 rows 41
    on the example's schema with 3 rows 3
    on the example's schema with 60 rows 60
    """
    if schema.rows is None:
        return
    for rows in dict.fromkeys((schema.rows + 1, FEW * unit, min(2 * schema.rows, MOST_ROWS))):
        if rows != schema.rows and FEW * unit <= rows <= MOST_ROWS:
            with contextlib.suppress(InputError):  # such as a `max_rows` below this number
                yield f"on the example's schema with {rows} rows", attrs.evolve(schema, rows=rows)


def far_schema(schema: Schema) -> Schema | None:
    """Return a schema whose numeric ranges keep their width, and lie `FAR` widths above 0.

    Rounding changes the squares of such numbers by up to about the square of the width. The result is None if
    the schema has no numeric attribute or has derived columns, or if bounds become equal as floating-point numbers.
    """
    if schema.derivation or not any(isinstance(own, Numeric) for own in schema):
        return None
    try:
        return attrs.evolve(schema, attributes=tuple(with_shift(own, FAR) for own in schema))
    except InputError:  # the bounds become equal as floating-point numbers
        return None
