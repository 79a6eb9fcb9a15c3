"""The limits of inputs. Files come from strangers, so each limit is far above any real use and far below any harm.

`docs/security.md` lists the same limits, and a test compares them.
"""

from __future__ import annotations

from typing import Final

#: The most bytes of a TOML file, such as a study, a schema or an experiment. A million labels fit.
MOST_TOML_BYTES: Final = 1 << 24

#: The most bytes of a JSON file, such as a plan, results or a record of `verify`.
MOST_JSON_BYTES: Final = 1 << 26

#: The most parts of one TOML key; `[a.b.c]` has three. The time that Python needs to read a key grows with the square
#: of the number of its parts.
MOST_KEY_PARTS: Final = 16

#: How deep tables and lists may be nested in TOML.
MOST_NESTED: Final = 64

#: How deep lists and objects may be nested in JSON.
MOST_NESTED_JSON: Final = 400

#: How deep compositions may be nested in a plan.
MOST_PLAN_DEPTH: Final = 100

#: The most bytes of one line of CSV with all its cells. A line break within quotes does not end a line.
MOST_LINE_BYTES: Final = 1 << 24

#: The most bytes of one text in a table. A longer text is no label, number or id, and lies outside every domain.
MOST_CELL_BYTES: Final = 1 << 20

#: The most columns of a table.
MOST_COLUMNS: Final = 1 << 17

#: The most cells per byte of a Parquet file with more than `FREE_CELLS` cells. The limit is needed since a column in
#: which all cells are equal takes nearly no space.
MOST_CELLS_PER_BYTE: Final = 1 << 12

#: The most bytes of an Excel workbook after it is unpacked.
MOST_WORKBOOK_BYTES: Final = 1 << 32

#: The most cells from the first to the last cell of a sheet, including empty ones, since all of them are held in
#: memory.
MOST_SHEET_CELLS: Final = 1 << 26

#: A Parquet file with at most this many cells is read, however small the file is.
FREE_CELLS: Final = 1 << 27
