"""Sources of rows, such as files, folders and dataframes. They are opened first and then read in blocks of rows."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.phrases import first_of
from dpframework.facts.read_options import PLAIN, ReadOptions
from dpframework.tables.csv_file import CsvFile
from dpframework.tables.parquet_files import ParquetFile
from dpframework.tables.path_pattern_expansion import DATABASES, KINDS, files_at, is_url, name_of
from dpframework.tables.plain_cell_series import Column, as_column, quietly
from dpframework.tables.reading_progress import tell

if TYPE_CHECKING:
    from dpframework.tables.excel_file import ExcelFile


@attrs.frozen(eq=False)
class Source:
    """Rows before they are encoded, with a name, the names of columns, and a function that reads columns.

    Attributes
    ----------
    name
        The name of the source in errors.
    columns
        The names of its columns.
    read
        A function that yields the columns at some positions, one block of rows after another.
    once
        Whether a second reading may give other rows, or another order, as for a lazy frame, which is run each time.
    """

    name: str
    columns: tuple[str, ...] = attrs.field(repr=False)  # not shown, since they are cells if the file has no header
    read: Callable[[Sequence[int]], Iterator[Sequence[Any]]] = attrs.field(repr=False)
    once: bool = False

    def blocks(self, names: Collection[str]) -> Iterator[dict[str, Any]]:
        """Return an iterator over blocks of rows, at least one. Each block holds the columns of these names, in order.

        Raises
        ------
        InputError
            If a column is absent or occurs twice. Later, during iteration, if the table cannot be read.
        """
        self.require(names)
        positions = [self.columns.index(name) for name in names]
        return (dict(zip(names, columns, strict=True)) for columns in self.read(positions))

    def take(self, names: Collection[str]) -> dict[str, Any]:
        """Return the whole columns of these names, in their order.

        Raises
        ------
        InputError
            Where `blocks` raises it.
        """
        blocks = list(self.blocks(names))
        if len(blocks) == 1:
            return blocks[0]
        return {name: whole_column([block[name] for block in blocks], f"{self.name}: '{name}'") for name in names}

    def fix(self, names: Collection[str]) -> Source:
        """Return a source that has these columns and gives the same rows in the same order whenever it is read."""
        if not self.once:
            return self
        taken = list(self.take(names).values())
        return Source(self.name, tuple(names), lambda positions: iter([[taken[k] for k in positions]]))

    def require(self, names: Collection[str], remedy: str = "correct the names in the schema or in the table") -> None:
        """Refuse a table in which one of these columns is absent or occurs twice.

        The sentence about absent columns ends with `remedy`.

        Raises
        ------
        InputError
            If a column is absent or occurs twice.
        """
        # The table's own names are not shown, since they are cells if the file has no header.
        lacking = [name for name in names if name not in self.columns]
        if names and len(lacking) == len(names):
            raise InputError(
                f"{self.name}: has none of the requested columns, such as '{lacking[0]}'; "
                "its first line must name the columns, with the separator of [read] in the schema (a comma by default)"
            )
        if lacking:
            all_of = first_of([f"'{name}'" for name in lacking], 8)
            what = f"column {all_of}" if len(lacking) == 1 else f"columns {all_of}"
            raise InputError(f"{self.name}: has no {what}; {remedy}")
        counts = collections.Counter(self.columns)
        for name in names:
            if counts[name] > 1:
                raise InputError(f"{self.name}: column '{name}' occurs more than once; rename all but one")


def rows_changed(name: str) -> InputError:
    """Return the error for a table that has changed when it is read again. `name` is what errors call the table."""
    return InputError(f"{name}: changed while it was read; read it again")


@contextlib.contextmanager
def after_first_rows() -> Iterator[None]:
    """Turn a `NotOpened` from the block into a plain InputError, since rows were read before the block.

    Whether the block is reached may depend on those rows. After a `NotOpened`, the ledger would let the run's approval
    be used again, as if no row had been seen.
    """
    try:
        yield
    except NotOpened as error:
        raise InputError(str(error)) from None


def whole_column(parts: Sequence[Any], where: str) -> Any:
    """Return a whole column, given its blocks. It becomes texts if the blocks have different types.

    Parameters
    ----------
    parts
        The blocks, each in a form that `as_column` takes.
    where
        The words that begin each error's message. They name the column.

    Raises
    ------
    InputError
        If a block is no column.
    """
    import polars as pl

    if all(isinstance(part, pl.Series) for part in parts) and len({part.dtype for part in parts}) == 1:
        return pl.concat(parts)
    columns = [as_column(part, where) for part in parts]
    series = [column.series for column in columns]
    kinds = {one.dtype for one in series} - {pl.Null}
    kind = kinds.pop() if len(kinds) == 1 else pl.String
    whole = pl.concat([one if one.dtype == kind else one.cast(kind) for one in series])
    if all(column.foreign is None for column in columns):
        return whole
    masks = [np.zeros(len(one), dtype=np.bool_) if one.foreign is None else one.foreign for one in columns]
    return Column(whole, np.concatenate(masks))


def open_source(
    data: Any,
    options: Mapping[str, str] | None = None,
    part: tuple[int, int] = (0, 1),
    read: ReadOptions | None = None,
) -> Source:
    """Return files or a dataframe as a `Source`.

    Parameters
    ----------
    data
        An eager or lazy dataframe, or one path or a list of paths. A path names a file, a folder (its Parquet files are
        read), or a pattern such as `"v-*.parquet"`. Or it is the URL of a database, or of a Parquet file that polars
        can open.
    options
        Options for opening URLs: polars' `storage_options`, or for a database the arguments of its driver's `connect`.
    part
        The part of the rows of each Parquet file that is read, as (k, n): number k of n equal parts, counted from 0.
    read
        The separator and the encoding of CSV files (by default commas and UTF-8), the sheet of an Excel workbook, and
        the table or the query of a database.

    Raises
    ------
    NotOpened
        If there is no such file, a file is named twice, its kind is not accepted, or the system refuses it.
    InputError
        If a file cannot be read, or if it cannot be opened after another file was opened.
    """
    places = [data] if isinstance(data, str | os.PathLike) else data
    if isinstance(places, list | tuple) and all(isinstance(place, str | os.PathLike) for place in places):
        return _of_files(places, options, part, read or PLAIN)
    return _of_frame(data)


def columns_as_source(columns: Mapping[str, Any], names: Sequence[str], source: str) -> Source:
    """Return a `Source` of some of the given columns.

    Raises
    ------
    InputError
        If these columns differ in length.
    """
    if len({len(columns[name]) for name in names}) > 1:
        raise InputError(f"{source}: the columns differ in length; give each one value per row")
    return Source(source, tuple(names), lambda positions: iter([[columns[names[k]] for k in positions]]))


def _of_frame(frame: Any) -> Source:
    import narwhals as nw

    accepted = "accepted are dataframes of polars, pandas and pyarrow"
    try:
        wrapped = nw.from_native(frame)
    except nw.exceptions.DuplicateError:
        raise InputError("frame: two columns have the same name; rename one of them") from None
    except TypeError:
        raise InputError(f"frame: {type(frame).__name__} is not a dataframe; {accepted}") from None
    if isinstance(wrapped, nw.LazyFrame):
        lazy = wrapped
        columns = quietly(lambda: tuple(lazy.collect_schema().names()), "frame: the lazy frame cannot be run")

        def read(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
            names = [columns[k] for k in positions]
            eager = quietly(lambda: lazy.select(names).collect(), "frame: the lazy frame cannot be run")
            yield [eager[name] for name in names]

        return Source("frame", columns, read, once=True)

    names = tuple(map(str, wrapped.columns))
    return Source("frame", names, lambda positions: iter([[wrapped[:, k] for k in positions]]))


def _of_files(
    places: Sequence[str | os.PathLike[str]],
    options: Mapping[str, str] | None,
    part: tuple[int, int],
    read_options: ReadOptions,
) -> Source:
    """Return the rows of files, one file after another. Each file must have the requested columns."""
    files = files_at(places)
    if not files:
        raise NotOpened("the list of files is empty; give at least one")
    first = _of_file(files[0], options, part, read_options)
    with after_first_rows():  # since opening a workbook reads all of its rows
        sources = [first, *(_of_file(file, options, part, read_options) for file in files[1:])]

    def read(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        names = [first.columns[k] for k in positions]
        # All files are checked for the columns before any of them is read.
        each = [source.blocks(names) for source in sources]
        return _in_turn(each, names)

    return Source(name_of(places, files), first.columns, read, once=any(source.once for source in sources))


def _in_turn(files: Sequence[Iterator[dict[str, Any]]], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield the blocks of one file after another, and report progress after each file."""
    tell(0, len(files))
    for done, blocks in enumerate(files, start=1):
        for block in blocks:
            yield [block[name] for name in names]
        tell(done, len(files))


def _of_file(file: str, options: Mapping[str, str] | None, part: tuple[int, int], read: ReadOptions) -> Source:
    if is_url(file):
        if read.of_database and not file.lower().endswith(".parquet"):
            return _of_database(file, f"table '{read.table}'" if read.table else "the query", read, options)
        name = file.rsplit("/", 1)[-1]
        far = ParquetFile.open(file, name, options, part)
        return Source(name, far.columns, far.blocks)
    path = Path(file)
    name = path.name
    if not name.lower().endswith(KINDS):
        raise NotOpened(f"{name}: is of an unknown kind; save it as one of {', '.join(KINDS)}")
    try:
        if path.stat().st_size == 0:
            raise InputError(
                f"{name}: is empty; save the table there again, with the names of its columns in the first line"
            )
        with path.open("rb"):
            pass
    except OSError as error:
        raise NotOpened(f"{name}: cannot be read: {error.strerror}") from None
    if name.lower().endswith(DATABASES):
        return _of_database(str(path), name, read)
    opened: CsvFile | ParquetFile | ExcelFile
    if name.lower().endswith(".parquet"):
        opened = ParquetFile.open(str(path), name, part=part)
    elif name.lower().endswith(".xlsx"):
        # Imported here because most tables are no workbooks.
        from dpframework.tables.excel_file import ExcelFile

        opened = ExcelFile.open(path, read)
    else:
        opened = CsvFile.open(path, read)
    return Source(name, opened.columns, opened.blocks)


def _of_database(place: str, name: str, read: ReadOptions, options: Mapping[str, str] | None = None) -> Source:
    from dpframework.tables.database_row_reader import SqlRows

    rows = SqlRows.open(place, name, read, options)
    return Source(name, rows.columns, rows.blocks, once=True)  # a database promises no order of rows
