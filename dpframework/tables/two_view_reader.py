"""Two-view tables, whose rows are joined from left attributes in one file and right attributes in another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes_by_side import attributes_of_views, require_joinable
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit, InputError
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.tables.cell_notation_reader import as_written
from dpframework.tables.coded_table import Table
from dpframework.tables.ids import Ids, ids_in
from dpframework.tables.output_suppression import silenced
from dpframework.tables.plain_cell_series import Column, as_column
from dpframework.tables.sources import Source, after_first_rows, open_source, rows_changed
from dpframework.tables.table_builder import TableBuilder

if TYPE_CHECKING:
    import polars as pl


@silenced(streams=True)
@typechecked
def read_two_views(
    left_path: str | os.PathLike[str],
    right_path: str | os.PathLike[str],
    schema: Schema,
    *,
    id: str | None = None,  # noqa: A002
    out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP,
    unit: PrivacyUnit = ROW,
) -> Table:
    """Read a two-view table, with the left attributes from one file and the right attributes from another.

    Parameters
    ----------
    left_path, right_path
        Files as for `read_table`.
    schema
        The public facts about the table. Each attribute must have a view, and each view an attribute.
    id
        A column of both files that names each row once. Rows are joined where both files have the id, in the order of
        the left file. All other rows are left out, and so are rows without an id, or with an id that occurs twice in
        its file. Without `id`, rows are matched by position.
    out_of_domain
        As for `read_table`. "error" also refuses ids that are missing or occur twice, and files without a common id.
    unit
        The privacy unit to protect: a row, or whoever `id` names, who then has at most one row.

    Raises
    ------
    InputError
        If the unit's ids are not those that join the rows, or if a file cannot be read. Without `id`, also if the files
        differ in their number of rows.
    DoesNotFit
        If the rows break the schema's facts or are refused by the policy.
    """
    require_joinable(schema, id, unit)
    policy = OutOfDomain.parse(out_of_domain)
    views = attributes_of_views(schema)
    left_names, right_names = ([a.name for a in side if a.name in schema.column_names] for side in views)
    left = as_written(open_source(left_path, read=schema.read), schema)
    with after_first_rows():
        right = as_written(open_source(right_path, read=schema.read), schema)
    columns = join((left, left_names), (right, right_names), id, strict=policy is OutOfDomain.ERROR)
    sources = dict.fromkeys(left_names, left.name) | dict.fromkeys(right_names, right.name)
    builder = TableBuilder(schema, sources, policy)
    builder.add(columns)
    table = builder.table(unit)
    return table.with_units(range(table.rows)) if unit.groups_rows else table


def join(
    left: tuple[Source, Sequence[str]], right: tuple[Source, Sequence[str]], key_name: str | None, *, strict: bool
) -> dict[str, Column]:
    """Return columns of two sources, with rows matched by id, or by position if there is no id.

    With ids, one more row in a file changes the result by at most one row. If the row's id is new to the file, the
    result may gain a row. If the id is already there, the result may lose a row, since an id that occurs twice joins
    nothing.

    Parameters
    ----------
    left, right
        Each source, with the names of the columns to take.
    key_name
        The column of ids. None to match rows by position.
    strict
        Whether to refuse ids that are missing or occur twice, and sources without a common id.

    Raises
    ------
    InputError
        Where `read_two_views` raises it.
    DoesNotFit
        If `strict`, and the ids do not name each row once.
    """
    sides, keys = [], list[Ids]()
    for given, names in (left, right):
        all_names = list(dict.fromkeys(names if key_name is None else (*names, key_name)))
        given.require(all_names)
        source = given.fix(all_names)
        taken = source.take(names).items()
        sides.append({name: as_column(column, f"{source.name}: column '{name}'") for name, column in taken})
        if key_name is not None:
            keys.append(ids_in(source, key_name))
            # Ids are read separately from the columns, and the file may have changed in between.
            if {len(column) for column in sides[-1].values()} != {len(keys[-1])}:
                raise rows_changed(source.name)
    files = f"{left[0].name} and {right[0].name}"
    if key_name is None:
        if len({len(column) for side in sides for column in side.values()}) > 1:
            raise InputError(f"{files}: have different numbers of rows; give id, the column that joins them")
        return {**sides[0], **sides[1]}
    if strict:
        for (source, _), key in zip((left, right), keys, strict=True):
            what = f"{source.name}: the id column '{key_name}'"
            key.require_all(what)
            if key.series.n_unique() < len(key):
                raise DoesNotFit(id_twice(what))
    pairs = _match(*(key.series for key in keys))
    if strict and pairs.height == 0:
        raise DoesNotFit(no_common_id(files, key_name))
    left_rows, right_rows = pairs["left"], pairs["right"]
    return {name: column.take(left_rows) for name, column in sides[0].items()} | {
        name: column.take(right_rows) for name, column in sides[1].items()
    }


def _match(left: pl.Series, right: pl.Series) -> pl.DataFrame:
    """Return the pairs of row numbers, "left" and "right", of the ids that occur once on each side."""
    import polars as pl

    numbered = [
        pl.DataFrame({"id": ids}).with_row_index(view).filter(pl.col("id").is_not_null() & pl.col("id").is_unique())
        for view, ids in (("left", left), ("right", right))
    ]
    return numbered[0].join(numbered[1], on="id").sort("left")


def id_twice(what: str) -> str:
    """Return the sentence of an error about ids that occur twice in a view. `what` names the ids."""
    return f"{what} holds an id twice; each row needs an id of its own"


def no_common_id(files: str, column: str) -> str:
    """Return the sentence of an error about two views without a common id."""
    return f"{files}: have no id in common in the column '{column}'"
