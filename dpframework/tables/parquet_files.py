"""Parquet files on this machine or at URLs that polars can open, read in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from dpframework.facts.errors import InputError, NotOpened, is_failure
from dpframework.facts.input_limits import FREE_CELLS, MOST_CELLS_PER_BYTE, MOST_COLUMNS
from dpframework.tables.path_pattern_expansion import is_url

if TYPE_CHECKING:
    import polars as pl

BLOCK_CELLS = 1 << 22  # about how many cells a block has
BLOCK_BYTES = 1 << 26  # about how many bytes the texts of a block may take
MOST_DIGITS = 38  # the most digits of a decimal number that polars holds
# Bounds on the rows of a block. Blocks of few rows are slow, since a row group is opened again for each block in it.
FEWEST_ROWS, MOST_ROWS = 1 << 14, 1 << 18

#: Types of polars that Parquet does not have, with words for their cells.
_NOTED = {"Duration": "lengths of time", **dict.fromkeys(("Int128", "UInt128"), "whole numbers of 128 bits")}
_UNNAMED_ZONE = "unable to parse time zone"  # in polars' error about a zone such as +05:30

T = TypeVar("T")
_REMEDY = "nothing was read; try again, or correct the owner's configuration"
_REASONS = {  # by the class of polars' error; the first class that matches is used
    FileNotFoundError: "there is no such file",
    PermissionError: "access is denied",
    ConnectionRefusedError: "the host refused the connection",
    ConnectionError: "the connection was lost",
    TimeoutError: "the host did not answer in time",
}
# Texts of other errors that mean a failed network. Status 416 is left out, since it means that the file is shorter than
# its footer says, so the file is damaged.
_UNANSWERED = re.compile(r"error sending request|non-2xx status code: (?!416)")


@attrs.frozen(eq=False)
class ParquetFile:
    """A Parquet file.

    Attributes
    ----------
    place
        A path or a URL.
    name
        The name of the file in errors.
    columns
        The names of its columns.
    options
        Options for opening a URL (see polars' `storage_options`).
    part
        The part of the rows that is read, as (k, n): number k of n equal parts, counted from 0.
    long
        The columns whose decimal numbers have more digits than can be read.
    zoned
        The columns of times in a zone other than UTC.
    noted
        For some columns, by name, what their cells are, such as lengths of time. The type of these columns is written
        only in a note that Arrow leaves in the file. A reader that does not know this note takes the cells for
        something else.
    """

    place: str
    name: str
    columns: tuple[str, ...]
    options: Mapping[str, str] | None = attrs.field(default=None, repr=False)  # may hold access keys
    part: tuple[int, int] = (0, 1)
    long: frozenset[str] = frozenset()
    zoned: frozenset[str] = frozenset()
    noted: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def open(
        cls, place: str, name: str, options: Mapping[str, str] | None = None, part: tuple[int, int] = (0, 1)
    ) -> ParquetFile:
        """Return the file, of which only the names and the types of the columns have been read.

        Raises
        ------
        NotOpened
            If the file is at a URL that cannot be reached. No rows have been seen then.
        InputError
            If the file is no Parquet file, or has too many columns.
        """
        unread = cls(place, name, (), options, part)
        types = unread._read(lambda: dict(unread._scan().collect_schema()), NotOpened, _REMEDY)
        if len(types) > MOST_COLUMNS:
            raise InputError(f"{name}: has more than the {MOST_COLUMNS:,} columns that a table may have")
        long = (name for name, kind in types.items() if (getattr(kind, "precision", None) or 0) > MOST_DIGITS)
        zoned = (name for name, kind in types.items() if (getattr(kind, "time_zone", None) or "UTC") != "UTC")
        kinds = {name: kind.base_type().__name__ for name, kind in types.items()}
        return attrs.evolve(
            unread,
            columns=tuple(types),
            long=frozenset(long),
            zoned=frozenset(zoned),
            noted={name: _NOTED[kind] for name, kind in kinds.items() if kind in _NOTED},
        )

    def require_short(self, names: Collection[str]) -> None:
        """Refuse columns whose decimal numbers have more digits than can be read.

        Raises
        ------
        InputError
            If one of the columns is such a column.
        """
        for name in names:
            if name in self.long:  # polars would fail on its rows
                raise InputError(
                    f"{self.name}: column '{name}' has decimal numbers of more than {MOST_DIGITS} digits, which cannot "
                    "be read from Parquet; write them as texts, or with fewer digits"
                )

    def blocks(self, positions: Sequence[int]) -> Iterator[list[pl.Series]]:
        """Yield the columns at some positions block by block, or one block without rows for an empty file.

        Raises
        ------
        InputError
            If the file is damaged or claims far more cells than it can hold, if a column has decimals of too many
            digits, or if the file's host stops answering. The message shows no cell.
        """
        import polars as pl
        import polars.selectors as of

        remedy = "some of its rows may have been read"  # so these errors are not `NotOpened`
        names = [self.columns[k] for k in positions]
        asked = self._scan().select(names)
        self.require_short(names)
        rows = self._read(lambda: int(self._scan().select(pl.len()).collect().item()), InputError, remedy)
        # A small file that claims to have very many cells is refused.
        with contextlib.suppress(OSError):  # the size of a file at a URL is not known
            if rows * len(names) > max(FREE_CELLS, MOST_CELLS_PER_BYTE * os.stat(self.place).st_size):
                raise InputError(
                    f"{self.name}: has far more cells than a file of its size can hold; write its rows anew"
                )
        most = min(max(BLOCK_CELLS // len(names), FEWEST_ROWS), MOST_ROWS)
        k, n = self.part
        first, end = rows * k // n, rows * (k + 1) // n
        for low in range(first, end, most) or [first]:
            number = min(most, end - low)
            frame = self._read(asked.slice(low, number).collect, InputError, remedy)
            if frame.height != number:
                raise InputError(self._broken)
            # A file may store a long text once, although many rows hold it. So the block is cut into parts whose texts
            # take little memory.
            size = sum(int(column.sum()) for column in frame.select(of.string().str.len_bytes().cast(pl.UInt64)))
            parts = min(frame.height, -(-size // BLOCK_BYTES))
            for part in frame.iter_slices(-(-frame.height // parts)) if parts > 1 else (frame,):
                yield [part[name] for name in names]

    def _read(self, action: Callable[[], T], kind: type[InputError], remedy: str) -> T:
        """Run an action that reads the file. If it fails, say whether the network or the file is the cause.

        Raises
        ------
        InputError
            If the action fails. The message is one sentence that shows no cell. If the network failed, the class of the
            error is `kind`.
        """
        from polars.exceptions import DuplicateError

        sentence, raised = self._broken, InputError
        try:
            return action()
        except MemoryError:
            raise
        except BaseException as error:  # polars panics at a zone without a name, and a panic is no `Exception`
            if not is_failure(error):
                raise
            reasons: list[str] = []
            # An error that is no `OSError` may come from the content of the file.
            if isinstance(error, OSError) and is_url(self.place):
                reasons += [reason for known, reason in _REASONS.items() if isinstance(error, known)]
                if _UNANSWERED.search(str(error)):
                    reasons.append("the host cannot be reached, or does not answer")
            if reasons:
                sentence, raised = f"{self.name}: cannot be read from its URL: {reasons[0]}; {remedy}", kind
            elif isinstance(error, DuplicateError):
                sentence = f"{self.name}: has two columns of the same name; rename one of them"
            elif _UNNAMED_ZONE in str(error):
                sentence = (
                    f"{self.name}: has a column of times in a zone without a name, such as +05:30; "
                    "write its times in UTC, or in a zone such as Europe/Berlin"
                )
        raise raised(sentence)  # outside of the handler, so that the new error shows nothing of the old one

    @property
    def _broken(self) -> str:
        return f"{self.name}: cannot be read as Parquet, since it is damaged or of another kind; save the table anew"

    def _scan(self) -> pl.LazyFrame:
        import polars as pl

        options = None if self.options is None else dict(self.options)
        return pl.scan_parquet(self.place, glob=False, hive_partitioning=False, storage_options=options)
