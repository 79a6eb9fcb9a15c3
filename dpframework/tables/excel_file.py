"""Excel workbooks with a table in one sheet. Each cell is read as a text, by itself.

If a library guessed the type of a column, other rows would decide what a cell means. So every cell becomes the text
that a CSV file would hold, with dates in ISO 8601.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.files import read_by_library
from dpframework.facts.input_limits import MOST_COLUMNS, MOST_SHEET_CELLS, MOST_WORKBOOK_BYTES
from dpframework.facts.read_options import ReadOptions
from dpframework.tables.csv_file import in_one_line

if TYPE_CHECKING:
    import polars as pl


_PIECE: Final = 1 << 20  # bytes of a sheet that are searched together
_LONGEST_PLACE: Final = 64  # the most bytes of a cell's place, such as r="AB12", with spaces around the equals sign
_DAY_OF_TIMES = "1899-12-31 "  # the date that the reader puts before a time of day
_PLACE = re.compile(rb"\br\s*=\s*[\"']([A-Za-z]{0,3})([0-9]{1,7})[\"']")
#: Each entry is a pattern of cells' places, and a number of columns (or rows). A sheet has at most that number if no
#: pattern of an earlier entry occurs in it.
_COLUMNS = (
    (re.compile(rb"\br\s*=\s*[\"'][A-Za-z]{3}"), 16_384),
    (re.compile(rb"\br\s*=\s*[\"'][B-Zb-z][A-Za-z]"), 702),
    (re.compile(rb"\br\s*=\s*[\"'][Aa][A-Za-z]"), 52),
)
_ROWS = (
    (re.compile(rb"\br\s*=\s*[\"'][A-Za-z]*[0-9]{7}"), 1 << 20),
    (re.compile(rb"\br\s*=\s*[\"'][A-Za-z]*[0-9]{6}"), 999_999),
)


@attrs.frozen(eq=False)
class ExcelFile:
    """One sheet of an Excel workbook, read whole. The first row that is not skipped names the columns.

    Attributes
    ----------
    columns
        The names in that row.
    frame
        The cells below that row, as texts. Rows of empty cells are left out if there are several columns.
    """

    columns: tuple[str, ...] = attrs.field(repr=False)  # not shown, since they are cells if no row names the columns
    frame: pl.DataFrame = attrs.field(repr=False)

    @classmethod
    def open(cls, path: Path, read: ReadOptions) -> ExcelFile:
        """Read the sheet that the options name, or the first one.

        Raises
        ------
        NotOpened
            If the package that reads Excel is not installed.
        InputError
            If the file is no workbook, is too large, or has no such sheet, or the sheet is empty or has too many
            columns. The sentence shows no cell.
        """
        import polars as pl

        try:
            import fastexcel
        except ImportError:
            raise NotOpened(
                f"{path.name}: Excel files need the package fastexcel; "
                "install it with: pip install 'dpframework[excel]'"
            ) from None
        broken = f"{path.name}: cannot be read as an Excel workbook (.xlsx); save it anew, without a password"
        cells = read_by_library(lambda: _most_cells(path), broken)
        if cells > MOST_SHEET_CELLS:
            raise InputError(
                f"{path.name}: a sheet spans more than the {MOST_SHEET_CELLS:,} cells that are read; "
                "save its table alone, or as Parquet"
            )
        workbook = read_by_library(lambda: fastexcel.read_excel(path), broken)
        sheets = workbook.sheet_names
        if read.sheet and read.sheet not in sheets:
            # Cells have been counted by now, so this must not be `NotOpened`.
            raise InputError(f"{path.name}: has no sheet '{read.sheet}'; correct sheet in [read], or the workbook")
        sheet: Any = read.sheet or 0
        frame: pl.DataFrame = read_by_library(lambda: _cells_of(workbook, sheet), broken)
        if not frame.height:
            raise InputError(f"{path.name}: the sheet is empty; its first row must name the columns")
        if frame.width > MOST_COLUMNS:
            raise InputError(f"{path.name}: has more than the {MOST_COLUMNS:,} columns that a table may have")
        if frame.width > 1:
            frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        frame = frame[read.skip :]
        if not frame.height:
            raise InputError(
                f"{path.name}: the sheet has no rows below the {read.skip} rows that [read] skips; correct skip"
            )
        columns = tuple(in_one_line(name or "") for name in frame.row(0))
        return cls(columns, frame[1:].with_columns(pl.all().str.strip_prefix(_DAY_OF_TIMES)))

    def blocks(self, positions: Sequence[int]) -> Iterator[list[pl.Series]]:
        """Yield the columns at some positions, in one block."""
        yield [self.frame.to_series(k) for k in positions]


def _cells_of(workbook: Any, sheet: Any) -> pl.DataFrame:
    """Return the cells of a sheet as texts.

    The library writes numbers with at most nine decimals. So the sheet is loaded as numbers, too, and each number that
    was rounded in its text is written again with all of its digits.
    """
    import polars as pl

    texts, numbers = (
        workbook.load_sheet(sheet, header_row=None, dtypes=kind).to_polars() for kind in ("string", "float")
    )
    columns = []
    for text, number in zip(texts.iter_columns(), numbers.iter_columns(), strict=True):
        # Where the text or the cell is no number, the comparison is null.
        rounded = (text.cast(pl.Float64, strict=False) != number).fill_null(False)
        whole = number.cast(pl.String).zip_with(rounded, text) if bool(rounded.any()) else text
        columns.append(whole.alias(text.name))
    return pl.DataFrame(columns)


def _most_cells(path: Path) -> int:
    """Return the most cells that a sheet of the workbook spans up to its last row and column, empty cells included.

    A reader holds all of these cells, and even a small file may have a cell in the last row of the last column. The
    result is an upper bound. Where this bound would exceed `MOST_SHEET_CELLS`, the exact number is found instead.

    Raises
    ------
    InputError
        If the unpacked file is larger than a workbook may be.
    """
    most, size = 0, 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            is_sheet, columns, rows = False, 26, 99_999
            for k, text in enumerate(_pieces(archive, entry)):
                size += len(text)
                if size > MOST_WORKBOOK_BYTES:
                    raise InputError(
                        f"{path.name}: has, unpacked, more than the {MOST_WORKBOOK_BYTES >> 20:,} MiB that a workbook "
                        "may have; save its table as Parquet"
                    )
                is_sheet = b"worksheet" in text[:4096] if k == 0 else is_sheet
                if is_sheet:
                    columns, rows = _raise_limit(columns, _COLUMNS, text), _raise_limit(rows, _ROWS, text)
            cells = columns * rows if is_sheet else 0
            if cells > MOST_SHEET_CELLS:
                cells = _exact_cells(_pieces(archive, entry))
            most = max(most, cells)
    return most


def _raise_limit(known: int, patterns: Sequence[tuple[re.Pattern[bytes], int]], text: bytes) -> int:
    """Return the bound on a sheet's columns or rows, raised if a piece of the sheet shows a place beyond it."""
    for pattern, most in patterns:
        if most > known and pattern.search(text):
            return most
    return known


def _exact_cells(pieces: Iterator[bytes]) -> int:
    columns, rows = {b"A"}, 1
    for text in pieces:
        for letters, digits in _PLACE.findall(text):
            columns.add(letters)
            rows = max(rows, int(digits))
    widest = 0
    for letters in columns:
        column = 0  # the number of the column, where A is 1 and AA is 27
        for letter in letters.upper():
            column = 26 * column + letter - ord("A") + 1
        widest = max(widest, column)
    return rows * widest


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of one file of an archive in pieces.

    Each piece begins with the end of the piece before, so that the place of every cell is whole in some piece.
    """
    with archive.open(entry) as file:
        end = b""
        while data := file.read(_PIECE):
            yield end + data
            end = data[-_LONGEST_PLACE:]
