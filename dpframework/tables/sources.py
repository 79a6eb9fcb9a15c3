"""Files and frames before they are encoded: CSV, Parquet and dataframes, opened and read column by column."""

from __future__ import annotations

import collections
import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.files import require_no_stream
from dpframework.tables.columns import quietly

if TYPE_CHECKING:
    import polars as pl


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
            If a column lacks or occurs twice, or the table cannot be read.
        """
        # The table's own names are not shown: of a file without a header, they are the cells of a row.
        lacking = [name for name in names if name not in self.columns]
        if names and len(lacking) == len(names):
            raise InputError(
                f"{self.name}: has none of the columns asked for, such as '{lacking[0]}'; "
                "its first line must name the columns, separated by commas"
            )
        if lacking:
            all_of = ", ".join(f"'{name}'" for name in lacking[:8]) + (", ..." if len(lacking) > 8 else "")
            what = f"column {all_of}" if len(lacking) == 1 else f"columns {all_of}"
            raise InputError(f"{self.name}: has no {what}; correct the names in the schema or in the table")
        counts = collections.Counter(self.columns)
        for name in names:
            if counts[name] > 1:
                raise InputError(f"{self.name}: column '{name}' occurs more than once; names must differ")
        return dict(zip(names, self.read([self.columns.index(name) for name in names]), strict=True))


def open_source(data: Any) -> Source:
    """Return a file (by its path) or an eager or lazy dataframe as a `Source`.

    Raises
    ------
    NotOpened
        If there is no such file, its kind is not accepted, or the system refuses it.
    InputError
        If it cannot be read.
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
    try:
        require_no_stream(path)
    except InputError as error:
        raise NotOpened(str(error)) from None
    if path.is_dir():
        raise NotOpened(f"{path}: is a directory; a file of the kind {', '.join(kinds)} is expected")
    if not path.exists():
        raise NotOpened(f"{path}: there is no such file")
    if not name.lower().endswith(kinds):
        raise NotOpened(f"{name}: is of an unknown kind; accepted are {', '.join(kinds)}")
    try:
        size = path.stat().st_size
        if size == 0:
            raise InputError(f"{name}: is empty; at least one row is needed")
        if name.lower().endswith(".parquet"):
            return _open_parquet(path)
        data = path.read_bytes()
    except OSError as error:
        raise NotOpened(f"{name}: cannot be read: {error.strerror}") from None
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

        def frame_of(encoding: Literal["utf8", "utf8-lossy"]) -> pl.DataFrame:
            return pl.read_csv(data, columns=order, infer_schema=False, encoding=encoding)

        try:
            frame = frame_of("utf8")
        except (Exception, pl.exceptions.PanicException):  # perhaps of a cell that is not UTF-8: no other cell changes
            frame = quietly(lambda: frame_of("utf8-lossy"), broken)
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
