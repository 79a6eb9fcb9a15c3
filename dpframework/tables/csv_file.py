"""CSV files, read in blocks of whole lines, so that memory does not grow with the file.

All cells are read as texts. Their types are not guessed, since the schema states them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.input_limits import MOST_COLUMNS, MOST_LINE_BYTES
from dpframework.facts.read_options import ReadOptions
from dpframework.tables.reading_progress import tell_share

if TYPE_CHECKING:
    import polars as pl

BLOCK_BYTES = 1 << 22  # bytes of text in a block; the masks and columns made from them take about ten times this memory

_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", " ": "a space"}


@attrs.frozen(eq=False)
class CsvFile:
    """A CSV file, perhaps packed by gzip. Its first line that is not skipped names the columns.

    Attributes
    ----------
    path
        Where the file is.
    header
        The file's first line after the skipped ones, in UTF-8.
    columns
        The names of the columns in that line.
    read
        The separator, the encoding, and how many lines are skipped.
    """

    path: Path
    header: bytes = attrs.field(repr=False)  # not shown, since it is a row if the file names no columns
    columns: tuple[str, ...] = attrs.field(repr=False)
    read: ReadOptions

    @classmethod
    def open(cls, path: Path, read: ReadOptions) -> CsvFile:
        """Return the file, of which only the beginning has been read.

        Raises
        ------
        NotOpened
            If the system refuses the file.
        InputError
            If the file cannot be unpacked or decoded, has no line that names columns, or has too many columns.
        """
        first = next(_texts(path, read.encoding, read.skip), b"")
        if not first and read.skip:
            raise InputError(f"{path.name}: has no line below the {read.skip} lines that [read] skips; correct skip")
        if not first:
            raise InputError(
                f"{path.name}: is empty; save the table there again, with the names of its columns in the first line"
            )
        starts, _, _ = lines_of(first, read.separator)
        header = first[: starts[1]] if len(starts) > 1 else first
        try:
            lines = list(csv.reader(io.StringIO(header.decode(), newline=""), delimiter=read.separator))
            columns = tuple(lines[0])
        except (UnicodeDecodeError, csv.Error, IndexError):
            raise InputError(
                f"{path.name}: its first line is not a line of CSV in {_describe(read)}; say how the file is "
                "written in [read] of the schema (separator, encoding)"
            ) from None
        if len(lines) > 1:
            raise InputError(f"{path.name}: its lines end with carriage returns alone; save it with line feeds")
        if len(columns) > MOST_COLUMNS:
            raise InputError(f"{path.name}: has more than the {MOST_COLUMNS:,} columns that a table may have")
        return cls(path, header, tuple(map(in_one_line, columns)), read)

    def blocks(self, positions: Sequence[int]) -> Iterator[list[pl.Series]]:
        """Yield the columns at some positions, block by block.

        Raises
        ------
        InputError
            If the file is damaged or has changed, if a line is too long or has another number of fields than the first,
            if a quote begins within a field, or if the system refuses the file now. The sentence shows no cell.
        """
        begun = False
        for text in _texts(self.path, self.read.encoding, self.read.skip, refused=InputError):
            if begun:
                yield self._block(self.header + text, positions)
            elif not text.startswith(self.header):
                raise InputError(f"{self.path.name}: changed while it was read; read it again")
            else:
                begun = True
                yield self._block(text, positions)

    def _block(self, text: bytes, positions: Sequence[int]) -> list[pl.Series]:
        """Return the columns at some positions, read from the text of some lines. The first line is the header."""
        import polars as pl

        separator = self.read.separator
        starts, fields, blank = lines_of(text, separator)
        if int(np.diff(starts, append=len(text)).max()) > MOST_LINE_BYTES:
            raise _too_long(self.path)
        if _has_stray_quote(text, separator):
            raise InputError(
                f"{self.path.name}: a field holds a quote and does not begin with one; "
                "put quotes around such a field, and double the quotes in it"
            )
        # With one column a blank line is a row with a missing value. With several columns it is no row.
        blank = blank & (len(self.columns) > 1)
        if bool(np.any((fields != len(self.columns)) & ~blank)):
            raise InputError(
                f"{self.path.name}: a line has more or fewer fields than the first one; "
                f"quote each field that holds {_NAMES.get(separator, repr(separator))} or a line break"
            )
        order = sorted(positions)

        # If a cell is not UTF-8, the second reading changes such cells, and no others. An error of polars quotes cells,
        # so the error below must not be raised while that one is handled.
        frame = self._frame(text, order, "utf8")
        if frame is None:
            frame = self._frame(text, order, "utf8-lossy")
        if frame is None or frame.height != len(starts) - 1:
            raise InputError(
                f"{self.path.name}: cannot be read as CSV in {_describe(self.read)}; check its quotes and its encoding"
            )
        if bool(blank.any()):
            frame = frame.filter(pl.Series(~blank[1:]))
        return [frame.to_series(order.index(k)) for k in positions]

    def _frame(self, text: bytes, positions: list[int], encoding: Literal["utf8", "utf8-lossy"]) -> pl.DataFrame | None:
        """Return the columns at some positions as texts, or None if polars cannot read them."""
        import polars as pl

        try:
            return pl.read_csv(
                text, columns=positions, infer_schema=False, encoding=encoding, separator=self.read.separator
            )
        except MemoryError:
            raise
        except (Exception, pl.exceptions.PanicException):
            return None


def _describe(read: ReadOptions) -> str:
    return read.encoding.upper() if read.encoding.startswith("utf") else read.encoding


def in_one_line(name: str) -> str:
    r"""Return a column's name with a space in place of each line break, since names must fit on one line.

    Examples
    --------
    >>> in_one_line("income\n(in euros)")
    'income (in euros)'
    """
    return " ".join(part.strip() for part in name.splitlines()) if len(name.splitlines()) > 1 else name


def _texts(path: Path, encoding: str, skip: int, *, refused: type[InputError] = NotOpened) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, in pieces of whole lines, beginning with the line of names.

    A line break within quotes is text, so a piece grows until its quotes are closed. If the system refuses the file,
    the error is of the class `refused`. Once rows may have been read, this must not be `NotOpened`, which says that no
    row was read.
    """
    packed = path.name.lower().endswith(".gz")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            stream: Any = gzip.GzipFile(fileobj=file) if packed else file
            for text in _pieces(stream if encoding == "utf-8" else _Recoded(stream, encoding), skip, path):
                yield text
                # The size is 0 if the file was empty when it was opened, and was written to since then.
                tell_share(file.tell() / max(size, 1))
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path.name}: cannot be unpacked; a whole gzip file is expected") from None
    except UnicodeError:  # only UTF-16 without a byte order mark raises it
        remedy = "say how the file is written in [read] of the schema (encoding)"
        raise InputError(f"{path.name}: is not text in {encoding.upper()}; {remedy}") from None
    except OSError as error:
        raise refused(f"{path.name}: cannot be read: {error.strerror}") from None


class _Recoded:
    """The text of a stream, encoded in UTF-8. A byte that is invalid in the stream's encoding becomes U+FFFD.

    Parameters
    ----------
    stream
        The stream to read from.
    encoding
        The encoding of the stream's bytes.
    """

    def __init__(self, stream: gzip.GzipFile | IO[bytes], encoding: str) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int) -> bytes:
        """Return the next bytes, from about `size` bytes of the stream. Return nothing at its end."""
        while data := self._stream.read(size):
            if text := self._decoder.decode(data):
                return text.encode("utf-8", "replace")
        return self._decoder.decode(b"", final=True).encode("utf-8", "replace")


def _too_long(path: Path) -> InputError:
    return InputError(
        f"{path.name}: a line is longer than the {MOST_LINE_BYTES >> 20} MiB that it may have; check its quotes"
    )


def _pieces(stream: gzip.GzipFile | IO[bytes] | _Recoded, skip: int, path: Path) -> Iterator[bytes]:
    """Yield pieces of whole lines after the first `skip`. Refuse a line that is too long."""
    rest, begun = b"", False
    # Each read is at least as long as the text left over, and doubles it. So even a long line takes linear time.
    while data := stream.read(max(BLOCK_BYTES, len(rest))):
        rest += data
        if not begun:
            rest = rest.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
            while skip and b"\n" in rest:
                rest, skip = rest[rest.index(b"\n") + 1 :].lstrip(b"\r\n"), skip - 1
            begun = bool(rest) and not skip
        end = _end_of_lines(rest) if begun else 0
        if end:
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > MOST_LINE_BYTES:
            raise _too_long(path)
    if rest and begun:
        yield rest


def _end_of_lines(text: bytes) -> int:
    """Return the end of the last whole line, 0 if there is none."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    breaks, _ = _outside(np.frombuffer(text, dtype=np.uint8), ",", quoted=True)
    ends = np.flatnonzero(breaks)
    return int(ends[-1]) + 1 if len(ends) else 0


def _outside(
    characters: NDArray[np.uint8], separator: str, *, quoted: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the line breaks and of the separators that stand outside of quotes."""
    breaks, commas = characters == ord("\n"), characters == ord(separator)
    if quoted:
        outside = ~np.logical_xor.accumulate(characters == ord('"'))
        breaks &= outside
        commas &= outside
    return breaks, commas


def _has_stray_quote(text: bytes, separator: str) -> bool:
    """Return whether a quote begins within a field, such as the quote after 5 in the field: 5" pipe.

    Readers disagree about such a quote. To most it is a character. Here it would begin a text that ends at the next
    quote, perhaps in another row. The rows between would then be one cell.
    """
    if b'"' not in text:
        return False
    characters = np.frombuffer(text, dtype=np.uint8)
    begins = np.flatnonzero(characters == ord('"'))[::2]
    before = characters[begins[begins > 0] - 1]
    # A quote right after another one is a doubled quote of a field that was quoted.
    allowed = (before == ord(separator)) | (before == ord("\n")) | (before == ord('"'))
    return not bool(allowed.all())


def lines_of(text: bytes, separator: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return where each line starts, its number of fields, and whether it is blank.

    polars fills short lines with nulls, reads blank lines as rows, and drops surplus fields of columns that are not
    asked for. All three would change the table silently, so lines are checked first. A line break or separator within
    quotes is text.
    """
    characters = np.frombuffer(text, dtype=np.uint8)
    breaks, commas = _outside(characters, separator, quoted=b'"' in text)
    ends = np.flatnonzero(breaks)
    if not len(ends) or ends[-1] != len(text) - 1:
        ends = np.append(ends, len(text))
    starts = np.concatenate([[0], ends[:-1] + 1])
    fields = np.add.reduceat(commas, starts, dtype=np.int64) + 1
    returns = (ends > starts) & (characters[ends - 1] == ord("\r"))
    return starts, fields, ends - starts == returns
