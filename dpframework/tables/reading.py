"""Read a private table from files, a dataframe or columns, as codes of the values and bins that its schema lists."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.facts.schema_with_derived_columns import UnitRows
from dpframework.tables.cell_notation_reader import as_written
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import EncodedColumn
from dpframework.tables.contribution_bounding import KEY_BYTES, RowChoice, number_units
from dpframework.tables.date_reader import rows_in
from dpframework.tables.ids import Ids, ids_in
from dpframework.tables.output_suppression import silenced
from dpframework.tables.plain_cell_series import as_column
from dpframework.tables.sources import Source, columns_as_source, open_source, rows_changed
from dpframework.tables.table_builder import TableBuilder

if TYPE_CHECKING:
    import polars as pl


def encode_bounded(
    schema: Schema,
    source: Source,
    policy: OutOfDomain,
    unit: PrivacyUnit,
    key: bytes | None,
    values: Collection[str] | None = None,
    mapped: bool = False,
) -> Table:
    """Return a table of a source's rows, encoded block by block. Each unit keeps at most `unit.rows` of its rows.

    If the schema has `per_unit`, the table has one row for each unit instead, made from all rows of the unit.
    """
    names_to_read(schema, unit)
    unit.require_span()
    source = as_written(source, schema.in_files, unit)
    builder = TableBuilder(schema, dict.fromkeys(schema.names, source.name), policy, values, mapped=mapped)
    if unit.id is None:
        add_blocks(builder, source, schema, unit, policy)
        return builder.table() if unit.period is None else builder.table(unit)
    own = secrets.token_bytes(KEY_BYTES) if key is None else key
    source, ids = with_ids(source, schema, unit, policy)
    if schema.per_unit is not None:
        if policy is OutOfDomain.ERROR:
            ids.require_all(f"{source.name}: the id column '{unit.id}'")
        builder.add({}, _columns_of_units(schema, schema.per_unit.select(schema.columns), source, ids, policy))
        return builder.table(unit, own)
    choice = RowChoice.of(ids, unit, policy=policy, source=source.name, key=own)
    add_rows(builder, source, schema, choice.rows, len(ids))
    table = builder.table(unit, own)
    return table.of_units(choice.codes, choice.places()) if unit.groups_rows else table


def add_blocks(builder: TableBuilder, source: Source, schema: Schema, unit: PrivacyUnit, policy: OutOfDomain) -> None:
    """Encode all rows of a source, or only those in the unit's period, block by block.

    Raises
    ------
    InputError
        If the source lacks a column.
    DoesNotFit
        If the policy refuses rows without a date, and there is such a row.
    """
    import polars as pl

    span = unit.require_span()
    for block in source.blocks(names_to_read(schema, unit)):
        if span is not None:
            inside = rows_in(span, block[unit.date or ""], policy, f"{source.name}: column '{unit.date}'")
            rows = pl.Series(np.flatnonzero(inside))
            block = {
                name: as_column(block[name], f"{source.name}: column '{name}'").take(rows)
                for name in schema.column_names
            }
        builder.add(block)


def add_rows(builder: TableBuilder, source: Source, schema: Schema, rows: pl.Series, number: int) -> None:
    """Encode some rows of a source, block by block.

    Parameters
    ----------
    builder
        The builder that encodes the rows.
    source, schema
        The source of the rows, and the schema whose columns are read.
    rows
        The positions of the rows, ascending.
    number
        How many rows the source is known to have.

    Raises
    ------
    InputError
        If the source now has another number of rows, so it has changed since it was first read.
    """
    positions, first = rows.to_numpy(), 0
    for block in source.blocks(schema.column_names):
        columns = {name: as_column(block[name], f"{source.name}: column '{name}'") for name in schema.column_names}
        length = len(next(iter(columns.values())))
        low, high = np.searchsorted(positions, (first, first + length))
        here = rows[low:high] - first
        builder.add({name: column.take(here) for name, column in columns.items()})
        first += length
    if first != number:
        raise rows_changed(source.name)


def with_ids(source: Source, schema: Schema, unit: PrivacyUnit, policy: OutOfDomain) -> tuple[Source, Ids]:
    """Return a source that can be read again, and the ids of its rows. Rows outside the unit's period get no id.

    Raises
    ------
    InputError
        If the source lacks a column, or the type of the id column cannot hold ids.
    DoesNotFit
        If the policy refuses rows without a date, and there is such a row.
    """
    names, span = names_to_read(schema, unit), unit.require_span()
    source.require(source_columns(schema))
    source.require(names, "the study's unit names it, so correct the unit, or the name in the table")
    source = source.fix(names)
    ids = ids_in(source, unit.id or "")
    if span is not None and unit.date is not None:
        where = f"{source.name}: column '{unit.date}'"
        inside = [rows_in(span, block[unit.date], policy, where) for block in source.blocks([unit.date])]
        ids = ids.only(np.concatenate(inside))
    return source, ids


def _columns_of_units(
    schema: Schema, rows: UnitRows, source: Source, ids: Ids, policy: OutOfDomain
) -> dict[str, EncodedColumn]:
    """Return columns with one row for each unit, made from all rows of the unit, in the order of units' first rows."""
    from dpframework.tables.unit_accumulators import ColumnEncoder, UnitColumns

    whose, number = number_units(ids)
    encoder, made = ColumnEncoder(rows.schema, source, policy), UnitColumns(rows, number)
    for here, encoded in encoder.blocks(len(ids)):
        made.add(whose[here], encoded)
    encoder.require_fit()
    return made.encode(schema)


def names_to_read(schema: Schema, unit: PrivacyUnit) -> tuple[str, ...]:
    """Return the columns to read: the columns behind the attributes, and the columns of the unit's ids and dates.

    Raises
    ------
    InputError
        If the column of ids or of dates is an attribute.
    """
    unit.require_fits(schema)
    return (*source_columns(schema), *(name for name in (unit.id, unit.date) if name is not None))


def source_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns of files that are attributes of the schema, or from which attributes are derived."""
    if schema.per_unit is None:
        return schema.column_names
    return schema.per_unit.select(schema.columns).schema.column_names


@silenced(streams=True)
@typechecked
def table_from_columns(
    columns: Mapping[str, Any],
    schema: Schema,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP,
    unit: PrivacyUnit = ROW,
    key: bytes | None = None,
    source: str = "table",
) -> Table:
    """Encode columns of equal length as a private table.

    Parameters
    ----------
    columns
        One column for each attribute, by name, and the columns of the unit's ids and dates if it has any. Each is in a
        form that `encode_column` takes, shape (rows,).
    schema, out_of_domain, unit, key
        As for `read_table`.
    source
        The name of the table in errors.

    Raises
    ------
    InputError
        If a column is missing or does not fit its attribute, or the columns differ in length. The sentence shows
        nothing of the rows.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> table_from_columns({"smokes": [True, False]}, Schema([Boolean("smokes")]))
    Table(1 attributes; rows are private)
    """
    names = names_to_read(schema, unit)
    for name in names:
        if name not in columns:
            raise InputError(
                f"{source}: has no column '{name}'; give one for each attribute of the schema"
                + (", and the ids" if name == unit.id else ", and the dates" if name == unit.date else "")
            )
    whole = columns_as_source(columns, names, source)
    return encode_bounded(schema, whole, OutOfDomain.parse(out_of_domain), unit, key)


@silenced(streams=True)
@typechecked
def read_table(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    schema: Schema,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP,
    unit: PrivacyUnit = ROW,
    key: bytes | None = None,
    values: Collection[str] | None = None,
    options: Mapping[str, str] | None = None,
    mapped: bool = False,
) -> Table:
    r"""Read the schema's columns of files as a private table.

    Memory holds the codes of all rows, the raw values that are kept, and one block of rows.

    Parameters
    ----------
    path
        A file, a folder, a pattern, a URL, or a list of these, whose rows form one table. A file's name ends in .csv,
        .csv.gz, .parquet, .xlsx, .sqlite, .sqlite3 or .db. The first line of a CSV file names the columns. The file is
        in UTF-8 with commas, unless `schema.read` says otherwise. `schema.read` also names the sheet of a workbook, and
        the table or query of a database. In a folder, Parquet files are read in the order of their names. A pattern is
        like `"visits/2026-*.parquet"`. A URL names a Parquet file or a database ("postgresql+psycopg://host/name").
    schema
        The public facts about the table. Columns that the schema does not name are not read.
    out_of_domain
        How to treat a value outside the schema: "error", "clamp" or "missing".
    unit
        The privacy unit to protect, by default each row. If it names a column of ids, each unit keeps at most
        `unit.rows` of its rows. A row without an id is then left out, or refused if `out_of_domain` is "error". A unit
        with periods is read for one of them (`unit.during("2026-03")`). Rows with a date in another period, or without
        a date, are left out.
    key
        The secret key of the hash by which a unit's rows are chosen, at most 64 bytes. By default it is drawn anew.
        Give one only to repeat an experiment.
    values
        The numeric attributes whose raw values are kept beside their codes, 8 bytes each, by default all.
    options
        Options for opening a URL. For a Parquet file they are polars' `storage_options`, such as a region or a key. For
        a database they are arguments of the driver's `connect`, such as a user and a password.
    mapped
        Whether codes and values are kept in nameless temporary files, which are gone when the process ends.

    Raises
    ------
    InputError
        If the file cannot be read or does not fit the schema. The sentence shows nothing of its rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpframework.facts.attributes import Boolean, Numeric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "survey.csv")
    ...     _ = path.write_text("smokes,age\nyes,31\nno,57\n")
    ...     read_table(path, Schema([Boolean("smokes"), Numeric("age", 17, 90, bins=4)]))
    Table(2 attributes; rows are private)
    """
    source = open_source(path, options, read=schema.in_files.read)
    return encode_bounded(schema, source, OutOfDomain.parse(out_of_domain), unit, key, values, mapped)


@silenced(streams=True)
@typechecked
def table_from_frame(
    frame: Any,
    schema: Schema,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP,
    unit: PrivacyUnit = ROW,
    key: bytes | None = None,
) -> Table:
    """Encode the schema's columns of a dataframe as a private table.

    Parameters
    ----------
    frame
        A dataframe of polars (a lazy one is run), pandas or pyarrow.
    schema, out_of_domain, unit, key
        As for `read_table`.

    Raises
    ------
    InputError
        If the frame does not fit the schema. The sentence shows nothing of its rows.

    Examples
    --------
    >>> import polars as pl
    >>> from dpframework.facts.attributes import Boolean
    >>> table_from_frame(pl.DataFrame({"smokes": [True, False]}), Schema([Boolean("smokes")]))
    Table(1 attributes; rows are private)
    """
    return encode_bounded(schema, open_source(frame), OutOfDomain.parse(out_of_domain), unit, key)
