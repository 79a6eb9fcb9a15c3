"""The opaque private table, and reading it from CSV, Parquet or a dataframe onto the schema's public grid.

A table belongs to the data owner. Nothing here prints a row, a value or a count, in a repr or in an error.
"""

from __future__ import annotations

import collections
import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.schema import Numeric, Schema, View
from dpframework.facts.typechecks import typechecked
from dpframework.tables.encoding import OutOfDomain, as_series, code_dtype, encode_column, quietly

if TYPE_CHECKING:
    import polars as pl


def _locked(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: kernels share the table, and none may change it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _locked_codes(codes: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    return _locked(codes)


def _locked_values(values: Mapping[str, NDArray[np.float64]]) -> Mapping[str, NDArray[np.float64]]:
    return MappingProxyType({name: _locked(array) for name, array in values.items()})


@attrs.frozen(eq=False, repr=False)
class Table:
    """A private table as codes on its schema's grid. It has no length, and its repr shows no row.

    Make one with `read_table`, `read_two_views`, `table_from_frame` or `Table.from_codes`.

    Attributes
    ----------
    schema
        The public facts.
    codes
        Shape (attributes, rows), C-contiguous and read-only, of the smallest unsigned type that fits the
        attribute with most codes; row k holds the codes of the schema's attribute k.
    values
        The raw values of each numeric attribute, float64, shape (rows,), read-only, NaN where missing.
    """

    schema: Schema
    codes: NDArray[np.unsignedinteger] = attrs.field(converter=_locked_codes)
    values: Mapping[str, NDArray[np.float64]] = attrs.field(converter=_locked_values)

    def __repr__(self) -> str:
        """Show the schema's number of attributes only."""
        return f"Table({len(self.schema)} attributes; rows are private)"

    def __reduce__(self) -> tuple[type[Table], tuple[Schema, NDArray[Any], dict[str, NDArray[Any]]]]:
        """Pickle as the parts, so that an unpickled table is read-only again."""
        return Table, (self.schema, self.codes, dict(self.values))

    @classmethod
    @typechecked
    def from_codes(cls, schema: Schema, codes: ArrayLike, values: Mapping[str, ArrayLike] | None = None) -> Table:
        """Make a table of codes, for generators and tests.

        The row count is not compared with the schema's: a neighbouring table has one row more or fewer, or
        none.

        Parameters
        ----------
        schema
            The public facts.
        codes
            Whole numbers, shape (attributes, rows), row k in [0, size of attribute k). They are copied.
        values
            Raw values of every numeric attribute, shape (rows,) each, in agreement with the codes, NaN where
            missing; by default the middle of each bin. They are copied.

        Raises
        ------
        InputError
            If a shape, type or range is wrong; names the attribute.

        Examples
        --------
        >>> table = Table.from_codes(Schema([Numeric("age", 0, 10, bins=2)]), [[0, 1, 1]])
        >>> table
        Table(1 attributes; rows are private)
        >>> table.values["age"]
        array([2.5, 7.5, 7.5])
        """
        given = quietly(lambda: np.asarray(codes), "codes must be an array of shape (attributes, rows)")
        if given.ndim != 2 or given.shape[0] != len(schema):
            raise InputError(f"codes must have the shape (attributes, rows), here ({len(schema)}, rows)")
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise InputError("codes must be whole numbers")
        for attribute, column in zip(schema, given, strict=True):
            if bool(np.any((column < 0) | (column >= attribute.size))):
                raise InputError(f"codes of '{attribute.name}' must be from 0 to {attribute.size - 1}")
        numeric = [attribute for attribute in schema if isinstance(attribute, Numeric)]
        matrix = np.array(given, dtype=_matrix_dtype(schema), order="C")
        raw = {a.name: _bin_middles(a)[matrix[schema.index(a.name)]] for a in numeric}
        if values is not None:
            if set(values) != set(raw):
                raise InputError("values must hold one array for each numeric attribute and no others")
            raw = {a.name: _checked_values(a, values[a.name], matrix[schema.index(a.name)]) for a in numeric}
        return cls(schema, matrix, raw)


def require_public_counts(schema: Schema, rows: int, source: str) -> None:
    """Refuse a table that the schema's public facts on its rows are false of: claims may rest on them.

    Raises
    ------
    InputError
        If `rows` is not the schema's exact number, or above its bound; the table's own count is not shown.
    """
    if schema.rows is not None and rows != schema.rows:
        raise InputError(f"{source}: the number of rows is not the schema's public rows = {schema.rows}")
    if schema.max_rows is not None and rows > schema.max_rows:
        raise InputError(f"{source}: has more rows than the schema's public max_rows = {schema.max_rows}")


def _matrix_dtype(schema: Schema) -> np.dtype[np.unsignedinteger]:
    return code_dtype(max(attribute.size for attribute in schema))


def _bin_middles(attribute: Numeric) -> NDArray[np.float64]:
    """Return the middle of each bin, and NaN for the missing code."""
    edges = np.array([attribute.lower, *attribute.interior_cuts, attribute.upper])
    middles = edges[:-1] + np.diff(edges) / 2
    return np.append(middles, np.nan) if attribute.missing else middles


def _checked_values(attribute: Numeric, values: ArrayLike, codes: NDArray[np.unsignedinteger]) -> NDArray[np.float64]:
    where = f"values of attribute '{attribute.name}'"
    array = quietly(lambda: np.array(values, dtype=np.float64), f"{where} must be numbers")
    if array.shape != codes.shape:
        raise InputError(f"{where} must have one number a row")
    again = encode_column(attribute, array, source="values")
    if not np.array_equal(again.codes, codes):
        raise InputError(f"{where} do not lie in the bins of its codes")
    return array


@attrs.frozen(eq=False)
class Source:
    """A file or frame before it is encoded: what it is called, its columns, and how to read some of them."""

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[int]], Sequence[Any]]

    def take(self, names: Collection[str]) -> dict[str, Any]:
        """Return the columns of these names, in their order.

        Raises
        ------
        InputError
            If a column lacks or occurs twice, the table has no rows, or it cannot be read.
        """
        lacking = [name for name in names if name not in self.columns]
        if names and len(lacking) == len(names):
            # Perhaps a file without a header: its "names" are private cells, and must not be shown as hints.
            raise InputError(
                f"{self.name}: has none of the columns asked for, such as '{lacking[0]}'; "
                "its first line must name the columns, separated by commas"
            )
        if lacking:
            hint = nearest(lacking[0], self.columns)
            raise InputError(f"{self.name}: has no column '{lacking[0]}'; {hint}")
        counts = collections.Counter(self.columns)
        for name in names:
            if counts[name] > 1:
                raise InputError(f"{self.name}: column '{name}' occurs more than once; names must differ")
        taken = dict(zip(names, self.read([self.columns.index(name) for name in names]), strict=True))
        if any(len(column) == 0 for column in taken.values()):
            raise InputError(f"{self.name}: has no rows; at least one is needed")
        return taken


def open_source(data: Any) -> Source:
    """Return a file (by its path) or an eager or lazy dataframe as a `Source`.

    Raises
    ------
    InputError
        If there is no such file, its kind is not accepted, or it cannot be read.
    """
    if isinstance(data, str | os.PathLike):
        return _open_file(Path(data))
    return _open_frame(data)


def _open_frame(frame: Any) -> Source:
    import narwhals as nw

    accepted = "accepted are dataframes of polars, pandas and pyarrow"
    try:
        wrapped = nw.from_native(frame)
    except nw.exceptions.DuplicateError:
        raise InputError("frame: two columns have the same name; names must differ") from None
    except TypeError:
        raise InputError(f"frame: {type(frame).__name__} is not a dataframe; {accepted}") from None
    if isinstance(wrapped, nw.LazyFrame):
        lazy = wrapped
        columns = quietly(lambda: tuple(lazy.collect_schema().names()), "frame: the lazy frame cannot be run")

        def read(positions: Sequence[int]) -> Sequence[Any]:
            names = [columns[k] for k in positions]
            eager = quietly(lambda: lazy.select(names).collect(), "frame: the lazy frame cannot be run")
            return [eager[name] for name in names]

        return Source("frame", columns, read)
    return Source("frame", tuple(map(str, wrapped.columns)), lambda ks: [wrapped[:, k] for k in ks])


def _open_file(path: Path) -> Source:
    name = path.name
    kinds = (".csv", ".csv.gz", ".parquet")
    if path.is_dir():
        raise InputError(f"{path}: is a directory; a file of the kind {', '.join(kinds)} is expected")
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if not name.lower().endswith(kinds):
        raise InputError(f"{name}: is of an unknown kind; accepted are {', '.join(kinds)}")
    try:
        size = path.stat().st_size
        if size == 0:
            raise InputError(f"{name}: is empty; at least one row is needed")
        if name.lower().endswith(".parquet"):
            return _open_parquet(path)
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    if name.lower().endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{name}: cannot be unpacked; a whole gzip file is expected") from None
    return _open_csv(name, data)


def _open_parquet(path: Path) -> Source:
    import polars as pl

    broken = f"{path.name}: cannot be read as Parquet; the file is damaged or of another kind"
    columns = quietly(lambda: tuple(pl.read_parquet_schema(path)), broken)

    def read(positions: Sequence[int]) -> Sequence[pl.Series]:
        names = [columns[k] for k in positions]
        frame = quietly(lambda: pl.read_parquet(path, columns=names, glob=False), broken)
        return [frame[name] for name in names]

    return Source(path.name, columns, read)


def _open_csv(name: str, data: bytes) -> Source:
    """Read a CSV file in UTF-8 as texts; every type is the schema's to say, so none is guessed."""
    import polars as pl

    data = data.removeprefix(b"\xef\xbb\xbf")
    data = data.lstrip(b"\r\n")
    if not data:
        raise InputError(f"{name}: is empty; at least one row is needed")
    starts, fields, blank = _csv_lines(data)
    header = data[: starts[1]] if len(starts) > 1 else data
    try:
        columns = tuple(next(csv.reader(io.StringIO(header.decode(), newline=""))))
    except (UnicodeDecodeError, csv.Error, StopIteration):
        raise InputError(f"{name}: its first line is not a line of CSV in UTF-8") from None
    # With one column a blank line is a missing value; with more it is no row at all.
    blank = blank & (len(columns) > 1)
    if bool(np.any((fields != len(columns)) & ~blank)):
        raise InputError(
            f"{name}: a line has more or fewer fields than the first one; "
            "quote each field that holds a comma or a line break"
        )
    broken = f"{name}: cannot be read as CSV in UTF-8; check its quotes and its encoding"

    def read(positions: Sequence[int]) -> Sequence[pl.Series]:
        order = sorted(positions)
        frame = quietly(lambda: pl.read_csv(data, columns=order, infer_schema=False), broken)
        if frame.height != len(starts) - 1:
            raise InputError(broken)
        if bool(blank.any()):
            frame = frame.filter(pl.Series(~blank[1:]))
        return [frame.to_series(order.index(k)) for k in positions]

    return Source(name, columns, read)


def _csv_lines(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return where each line of a CSV file starts, its number of fields, and whether it is blank.

    polars fills short lines with nulls, reads blank lines as rows, and drops surplus fields of columns that
    are not asked for: all three would change the table silently. A line break or comma within quotes counts
    as text.
    """
    characters = np.frombuffer(data, dtype=np.uint8)
    breaks, commas = characters == ord("\n"), characters == ord(",")
    if b'"' in data:
        outside = ~np.logical_xor.accumulate(characters == ord('"'))
        breaks &= outside
        commas &= outside
    ends = np.flatnonzero(breaks)
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    fields = np.add.reduceat(commas, starts, dtype=np.int64) + 1
    returns = (ends > starts) & (characters[ends - 1] == ord("\r"))
    return starts, fields, ends - starts == returns


def _encoded(
    schema: Schema, columns: Mapping[str, Any], sources: Mapping[str, str], policy: OutOfDomain | str
) -> Table:
    """Encode columns of equal length; `sources` says for each attribute what errors call its table."""
    rows = len(columns[schema.names[0]])
    everywhere = " and ".join(dict.fromkeys(sources[name] for name in schema.names))
    require_public_counts(schema, rows, everywhere)
    codes = np.empty((len(schema), rows), dtype=_matrix_dtype(schema))
    values = {}
    for k, attribute in enumerate(schema):
        name = attribute.name
        column = encode_column(attribute, columns[name], out_of_domain=policy, source=sources[name])
        codes[k] = column.codes
        if column.values is not None:
            values[name] = column.values
    return Table(schema, codes, values)


@typechecked
def table_from_columns(
    columns: Mapping[str, Any],
    schema: Schema,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.ERROR,
    source: str = "table",
) -> Table:
    """Encode columns of equal length as a private table.

    Parameters
    ----------
    columns
        One column an attribute, by name; each as `encode_column` takes it, shape (rows,).
    schema, out_of_domain
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
    >>> from dpframework.facts.schema import Boolean
    >>> table_from_columns({"smokes": [True, False]}, Schema([Boolean("smokes")]))
    Table(1 attributes; rows are private)
    """
    for name in schema.names:
        if name not in columns:
            raise InputError(f"{source}: has no column '{name}'; {nearest(name, columns)}")
    lengths = {len(columns[name]) for name in schema.names}
    if len(lengths) > 1:
        raise InputError(f"{source}: the columns differ in length; give one value a row in each")
    return _encoded(schema, columns, dict.fromkeys(schema.names, source), out_of_domain)


@typechecked
def read_table(
    path: str | os.PathLike[str], schema: Schema, *, out_of_domain: OutOfDomain | str = OutOfDomain.ERROR
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

    Raises
    ------
    InputError
        If the file cannot be read or does not fit the schema; one sentence that shows nothing of its rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpframework.facts.schema import Boolean
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "survey.csv")
    ...     _ = path.write_text("smokes,age\nyes,31\nno,57\n")
    ...     read_table(path, Schema([Boolean("smokes"), Numeric("age", 17, 90, bins=4)]))
    Table(2 attributes; rows are private)
    """
    policy = OutOfDomain.parse(out_of_domain)
    source = open_source(path)
    return _encoded(schema, source.take(schema.names), dict.fromkeys(schema.names, source.name), policy)


@typechecked
def table_from_frame(frame: Any, schema: Schema, *, out_of_domain: OutOfDomain | str = OutOfDomain.ERROR) -> Table:
    """Encode the schema's columns of a dataframe as a private table.

    Parameters
    ----------
    frame
        A dataframe of polars (a lazy one is run), pandas or pyarrow.
    schema, out_of_domain
        As for `read_table`.

    Raises
    ------
    InputError
        If the frame does not fit the schema; one sentence that shows nothing of its rows.

    Examples
    --------
    >>> import polars as pl
    >>> from dpframework.facts.schema import Boolean
    >>> table_from_frame(pl.DataFrame({"smokes": [True, False]}), Schema([Boolean("smokes")]))
    Table(1 attributes; rows are private)
    """
    policy = OutOfDomain.parse(out_of_domain)
    source = open_source(frame)
    return _encoded(schema, source.take(schema.names), dict.fromkeys(schema.names, source.name), policy)


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
    return _encoded(schema, columns, sources, policy)


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
