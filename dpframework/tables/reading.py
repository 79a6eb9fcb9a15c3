"""Reading a private table onto its schema's public grid, from a file, a frame or columns."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframework.facts.errors import DoesNotFit, InputError
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import MOST_ROWS, Schema
from dpframework.facts.typechecks import typechecked
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.tables.columns import as_column
from dpframework.tables.contributions import KEY_BYTES, kept_rows, unit_codes
from dpframework.tables.encoding import encode_column
from dpframework.tables.sources import open_source
from dpframework.tables.table import Table, matrix_dtype


def require_public_counts(schema: Schema, rows: int, source: str) -> None:
    """Refuse a table that the schema's public facts on its rows are false of: claims may rest on them.

    Raises
    ------
    DoesNotFit
        If `rows` is not the schema's exact number, or above its bound or the most that any table may have; the
        table's own count is not shown.
    """
    if rows > MOST_ROWS:
        raise DoesNotFit(f"{source}: has more rows than the {MOST_ROWS:,} that a table may have", kind="max_rows")
    if schema.rows is not None and rows != schema.rows:
        found = f"the number of rows is not the schema's public rows = {schema.rows}"
        raise DoesNotFit(f"{source}: {found}", kind="rows")
    if schema.max_rows is not None and rows > schema.max_rows:
        raise DoesNotFit(
            f"{source}: has more rows than the schema's public max_rows = {schema.max_rows}", kind="max_rows"
        )


def encoded_table(
    schema: Schema,
    columns: Mapping[str, Any],
    sources: Mapping[str, str],
    policy: OutOfDomain | str,
    unit: PrivacyUnit = ROW,
    key: bytes | None = None,
) -> Table:
    """Encode columns of equal length; `sources` says for each attribute what errors call its table."""
    rows = len(columns[schema.names[0]])
    everywhere = " and ".join(dict.fromkeys(sources[name] for name in schema.names))
    require_public_counts(schema, rows, everywhere)
    codes = np.empty((len(schema), rows), dtype=matrix_dtype(schema))
    values = {}
    for k, attribute in enumerate(schema):
        name = attribute.name
        column = encode_column(attribute, columns[name], out_of_domain=policy, source=sources[name])
        codes[k] = column.codes
        if column.values is not None:
            values[name] = column.values
    return Table(schema, codes, values, unit, key)


def bounded(
    schema: Schema,
    columns: Mapping[str, Any],
    source: str,
    policy: OutOfDomain,
    unit: PrivacyUnit,
    key: bytes | None,
) -> Table:
    """Encode columns of one source, of each privacy unit the rows that are kept; its ids are among the columns."""
    sources = dict.fromkeys(schema.names, source)
    if unit.id is None:
        return encoded_table(schema, columns, sources, policy)
    own = secrets.token_bytes(KEY_BYTES) if key is None else key
    taken = {name: as_column(columns[name], f"{source}: column '{name}'") for name in (*schema.names, unit.id)}
    rows = kept_rows(taken[unit.id], unit, policy=policy, source=source, key=own)
    kept = {name: taken[name].take(rows) for name in schema.names}
    table = encoded_table(schema, kept, sources, policy, unit, own)
    return table.with_units(unit_codes(taken[unit.id], rows)) if unit.groups_rows else table


def names_to_read(schema: Schema, unit: PrivacyUnit) -> tuple[str, ...]:
    """Return the columns to read: the attributes, and the one that names units.

    Raises
    ------
    InputError
        If that one is an attribute.
    """
    unit.require_no_attribute(schema)
    return schema.names if unit.id is None else (*schema.names, unit.id)


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
        One column an attribute, by name, and the unit's ids; each as `encode_column` takes it, shape (rows,).
    schema, out_of_domain, unit, key
        As for `read_table`.
    source
        What errors call the table.

    Raises
    ------
    InputError
        If a column is missing or does not fit its attribute, or the columns differ in length; one sentence that
        shows nothing of its rows.

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
                + (", and the ids" if name == unit.id else "")
            )
    lengths = {len(columns[name]) for name in names}
    if len(lengths) > 1:
        raise InputError(f"{source}: the columns differ in length; give one value a row in each")
    return bounded(schema, columns, source, OutOfDomain.parse(out_of_domain), unit, key)


@typechecked
def read_table(
    path: str | os.PathLike[str],
    schema: Schema,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP,
    unit: PrivacyUnit = ROW,
    key: bytes | None = None,
) -> Table:
    r"""Read the schema's columns of a CSV or Parquet file as a private table.

    Parameters
    ----------
    path
        A file that ends in .csv, .csv.gz (UTF-8, comma-separated, the first line names the columns) or
        .parquet.
    schema
        The public facts; columns that it does not name are not read.
    out_of_domain
        What to do with a value that the schema does not hold: "error", "clamp" or "missing".
    unit
        Whom the table is to protect: where it names a column of ids, each unit keeps at most `unit.rows` of its rows,
        and a row without an id is left out ("error" refuses it). By default each row is a unit.
    key
        What the rows are chosen by, at most 64 bytes; by default drawn anew. Give one only to repeat an experiment.

    Raises
    ------
    InputError
        If the file cannot be read or does not fit the schema; one sentence that shows nothing of its rows.

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
    policy, names = OutOfDomain.parse(out_of_domain), names_to_read(schema, unit)
    source = open_source(path)
    return bounded(schema, source.take(names), source.name, policy, unit, key)


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
        If the frame does not fit the schema; one sentence that shows nothing of its rows.

    Examples
    --------
    >>> import polars as pl
    >>> from dpframework.facts.attributes import Boolean
    >>> table_from_frame(pl.DataFrame({"smokes": [True, False]}), Schema([Boolean("smokes")]))
    Table(1 attributes; rows are private)
    """
    policy, names = OutOfDomain.parse(out_of_domain), names_to_read(schema, unit)
    source = open_source(frame)
    return bounded(schema, source.take(names), source.name, policy, unit, key)
