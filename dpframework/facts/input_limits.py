"""The limits of inputs. Files come from strangers, so each limit is far above all use and far below harm.

`docs/security.md` lists them, and a test compares.
"""

from __future__ import annotations

from typing import Final

#: Bytes of a file in TOML: a study, a schema or an experiment. A million labels fit in.
MOST_TOML_BYTES: Final = 1 << 24

#: Bytes of a file in JSON: a plan, results, a record of `verify`.
MOST_JSON_BYTES: Final = 1 << 26

#: Parts of one key of TOML, as in `[a.b.c]`: the time that Python takes grows with their square.
MOST_KEY_PARTS: Final = 16

#: Tables and lists within each other, in TOML.
MOST_NESTED: Final = 64

#: Lists and objects within each other, in JSON.
MOST_NESTED_JSON: Final = 400

#: Compositions within each other, in a plan.
MOST_PLAN_DEPTH: Final = 100

#: Bytes of one line of CSV, its cells together; a line break within quotes ends no line.
MOST_LINE_BYTES: Final = 1 << 24

#: Bytes of one text in a table: a longer one is no label, no number and no id, and counts as outside of every domain.
MOST_CELL_BYTES: Final = 1 << 20

#: Columns of a table.
MOST_COLUMNS: Final = 1 << 17

#: Cells for each byte of a Parquet file, once there are more than `FREE_CELLS`: a column of one value takes no space.
MOST_CELLS_PER_BYTE: Final = 1 << 12

#: Bytes of an Excel workbook, unpacked.
MOST_WORKBOOK_BYTES: Final = 1 << 32

#: Cells between the first and the last one of a sheet, also the empty ones: all of them are held.
MOST_SHEET_CELLS: Final = 1 << 26

#: The most cells of a Parquet file, however small it is.
FREE_CELLS: Final = 1 << 27
