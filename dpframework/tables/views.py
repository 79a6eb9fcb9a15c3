"""Two-view tables: left attributes from one file, right attributes from another, their rows joined."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpframework.facts.attributes import View
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.facts.typechecks import typechecked
from dpframework.tables.encoding import OutOfDomain, as_series
from dpframework.tables.reading import encoded_table
from dpframework.tables.sources import Source, open_source
from dpframework.tables.table import Table

if TYPE_CHECKING:
    import polars as pl


@typechecked
def read_two_views(
    left_path: str | os.PathLike[str],
    right_path: str | os.PathLike[str],
    schema: Schema,
    *,
    id: str | None = None,  # noqa: A002
    out_of_domain: OutOfDomain | str = OutOfDomain.ERROR,
) -> Table:
    """Read a two-view table: left attributes from one file, right attributes from another.

    Parameters
    ----------
    left_path, right_path
        Files as for `read_table`.
    schema
        The public facts; each attribute has a view, and each view an attribute.
    id
        A column of both files that names each row once: rows are joined where both files have the id, in the
        order of the left file, and the others are left out. Without it the rows are matched by position.
    out_of_domain
        As for `read_table`.

    Raises
    ------
    InputError
        If a file cannot be read or does not fit the schema, an id is missing or occurs twice, no id is in
        both files, or, without id, the files differ in their number of rows.
    """
    policy = OutOfDomain.parse(out_of_domain)
    for attribute in schema:
        if attribute.view is None:
            raise InputError(f"attribute '{attribute.name}' has no view; it needs 'left' or 'right' here")
    for view in View:
        if not schema.view(view):
            raise InputError(f"the schema has no attribute of the {view} view; a two-view table needs one")
    left, right = open_source(left_path), open_source(right_path)
    left_names, right_names = ([a.name for a in schema.view(view)] for view in View)
    columns = joined((left, left_names), (right, right_names), id)
    sources = dict.fromkeys(left_names, left.name) | dict.fromkeys(right_names, right.name)
    return encoded_table(schema, columns, sources, policy)


def joined(
    left: tuple[Source, Sequence[str]], right: tuple[Source, Sequence[str]], key_name: str | None
) -> dict[str, Any]:
    """Return the named columns of two sources, their rows matched by id, or by position where there is none.

    Raises
    ------
    InputError
        As `read_two_views`.
    """
    import polars as pl

    sides = []
    for source, names in (left, right):
        taken = source.take(list(dict.fromkeys([*names, *([] if key_name is None else [key_name])])))
        sides.append({name: as_series(column, _where(source, name)) for name, column in taken.items()})
    files = f"{left[0].name} and {right[0].name}"
    if key_name is None:
        if len({len(column) for side in sides for column in side.values()}) > 1:
            raise InputError(f"{files}: have different numbers of rows; name the column that joins them with id")
        return {**sides[0], **sides[1]}
    keys = []
    for (source, _), side in zip((left, right), sides, strict=True):
        key = _id_texts(side[key_name], _where(source, key_name))
        if bool((key == "").any()):
            raise InputError(f"{source.name}: the id column '{key_name}' has missing values; each row needs an id")
        if key.n_unique() < len(key):
            raise InputError(f"{source.name}: the id column '{key_name}' holds an id twice; each must differ")
        keys.append(key)
    pairs = (
        pl.DataFrame({"id": keys[0]})
        .with_row_index("left")
        .join(pl.DataFrame({"id": keys[1]}).with_row_index("right"), on="id")
        .sort("left")
    )
    if pairs.height == 0:
        raise InputError(f"{files}: have no id in common in the column '{key_name}'")
    return {
        name: side[name].gather(pairs[view])
        for view, side, names in zip(("left", "right"), sides, (left[1], right[1]), strict=True)
        for name in names
    }


def _where(source: Source, name: str) -> str:
    return f"{source.name}: column '{name}'"


def _id_texts(ids: pl.Series, where: str) -> pl.Series:
    """Return ids as texts that agree between a CSV and a Parquet file; missing ones are empty."""
    import polars as pl

    if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Object):
        raise InputError(f"{where} cannot be an id; accepted are numbers and texts")
    if ids.dtype.is_float():
        ids = ids.fill_nan(None)
    return ids.cast(pl.String).str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "$1").fill_null("")
