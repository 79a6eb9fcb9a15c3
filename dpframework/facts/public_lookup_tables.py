"""Public tables, in which the cells of a column are looked up. Each key has one value.

A lookup is a join that neither adds nor drops rows. A key has at most one value, and a row whose key is not in the
table gets a missing cell. So each row gives one row, and its new cell follows from its own key. Neighbouring tables
therefore stay neighbours, and every sensitivity holds as before. The public table is part of the schema, and so of its
fingerprint and of every plan's hash.

Such a table is small, and everybody may know it. So its file is read as a whole, and errors may show its contents.
"""

from __future__ import annotations

import contextlib
import csv
import fnmatch
import functools
import glob
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, final

import attrs

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.canonical_cells import TRUTHS, Form, of_text
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.files import read_by_library, read_text
from dpframework.facts.path_containment import inner_path, require_inside
from dpframework.facts.toml import prefix_errors
from dpframework.facts.value_checks import finite_number, plain_number, visible_text

#: The value of a key.
Value: TypeAlias = str | float | bool

MOST_KEYS = 100_000  # of one public table
MOST_BYTES = 1 << 26  # of its Parquet or Excel file
PARQUET = ".parquet"


def _pairs(given: Mapping[Any, Any] | Sequence[tuple[Any, Any]]) -> tuple[tuple[str, Value], ...]:
    """Return pairs in the order of their keys, each key once, and values of one kind."""
    pairs = [(key, _value(value)) for key, value in (given.items() if isinstance(given, Mapping) else given)]
    if not pairs:
        raise InputError("has no key with a value; give at least one")
    if len(pairs) > MOST_KEYS:
        raise InputError(f"has more than {MOST_KEYS:,} keys; leave out those that no row has")
    if len({type(value) for _, value in pairs}) > 1:
        raise InputError("has values of several kinds; give only texts, only numbers or only truths")
    found: dict[Form, tuple[str, Value]] = {}
    for key, value in pairs:
        # Keys are compared as cells are, so 7 and 7.0 are the same key.
        form = of_text(visible_text(key, "each of its keys"))
        _, earlier = found.setdefault(form or "", (key.strip(), value))
        if earlier != value:
            values = f"'{earlier}' and '{value}'"
            raise InputError(f"has the key '{key.strip()}' twice, with {values}; a row would become two, so keep one")
    return tuple(sorted(found.values()))


def _value(given: Any) -> Value:
    match given:
        case bool():
            return given
        case int() | float():
            return finite_number(given, "each of its values") + 0.0
    return visible_text(given, "each of its values")


@final
@attrs.frozen(cache_hash=True)
class PublicTable:
    """A public table that has one value for each of its keys.

    Nothing in it may come from the private table, since nothing protects what it says.

    Attributes
    ----------
    pairs
        Each key with its value, a text, a number or a truth, all of one kind. A mapping is accepted. Keys are compared
        by their canonical forms, as labels are, so that "7.0" and "7" are one key.

    Raises
    ------
    InputError
        If a key has two values, there is no key or more than `MOST_KEYS`, or values are of several kinds.

    Examples
    --------
    >>> table = PublicTable({"10115": "Berlin", "20095": "Hamburg"})
    >>> len(table.pairs), table.digest[:8]
    (2, '29b06df8')
    """

    pairs: tuple[tuple[str, Value], ...] = attrs.field(converter=_pairs, repr=False)

    @classmethod
    @typechecked
    def read(cls, path: str | os.PathLike[str], column: str, key: str | None = None) -> PublicTable:
        """Read a public table from a file: CSV in UTF-8, Parquet, or the first sheet of an Excel workbook.

        Parameters
        ----------
        path
            The file, whose first line names the columns. It is read as Parquet or Excel if its name ends in .parquet
            or .xlsx.
        column
            The column of values. A key with a blank value is left out. If all values are numbers, or all are true or
            false, they are read as such. Else all are texts. A text such as "007" is not a number.
        key
            The column of keys; by default the first.

        Raises
        ------
        InputError
            If the file cannot be read, lacks a column, or does not hold such a table.
        """
        return _read(Path(path), column, key)

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256, in hex, of its keys and values, whatever file they came from."""
        text = json.dumps(list(self.pairs), separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __str__(self) -> str:
        """Say how many keys the table has, and give its hash, which differs for other keys or values."""
        keys = "1 key" if len(self.pairs) == 1 else f"{len(self.pairs):,} keys"
        return f"a public table of {keys} with the SHA-256 {self.digest}"

    def to_dict(self) -> dict[str, Value]:
        """Return the pairs in a JSON-safe form."""
        return {key: plain_number(value) if type(value) is float else value for key, value in self.pairs}


def as_public_table(given: PublicTable | Mapping[str, Any] | None) -> PublicTable | None:
    """Return a public table, given as one or as a mapping, as the converter of an attrs field. None stays None."""
    if given is None or isinstance(given, PublicTable):
        return given
    if not isinstance(given, Mapping):
        raise InputError("lookup must be a table of keys and values, such as { a = 1, b = 2 }")
    with prefix_errors("its lookup "):
        return PublicTable(given)


def _read(path: Path, column: str, key: str | None) -> PublicTable:
    with prefix_errors(f"{path}: "):
        names, *cells = rows_of_public_file(path) or [[]]
        if any(len(row) != len(names) for row in cells):
            raise InputError(
                "has lines of different lengths; separate cells by commas, and put texts with commas in quotes"
            )
        if not names:
            raise InputError("is empty; its first line must name the columns")
        own = names[0] if key is None else key
        for name in (own, column):
            if names.count(name) != 1:
                if name in names:
                    raise InputError(f"has '{name}' twice; rename one of these columns")
                hint = nearest(name, names)
                more = "; name one of them with key or column" if hint.startswith("known") else ""
                raise InputError(f"has no column '{name}'; {hint}{more}")
        first, second = names.index(own), names.index(column)
        found = [(row[first], row[second]) for row in cells if of_text(row[second]) is not None]
        # All values are of one kind: truths or numbers if all are written as such, else texts.
        values: Sequence[Value] = [text.strip() for _, text in found]
        forms = [of_text(text) for _, text in found]
        truths = [text.strip().lower() in TRUTHS for _, text in found]
        if all(truths):
            values = [form == 1.0 for form in forms]
        elif not any(truths) and all(isinstance(form, float) for form in forms):
            values = [form for form in forms if form is not None]
        return PublicTable([(name, value) for (name, _), value in zip(found, values, strict=True)])


def rows_of_public_file(path: Path) -> list[list[str]]:
    """Return all rows of a public table, beginning with the names of its columns. Empty cells are empty texts.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix not in (PARQUET, ".xlsx"):
        rows = csv.reader(io.StringIO(read_text(path, "a public table in CSV")), strict=True)
        try:
            return [row for row in rows if row]
        except csv.Error as error:
            raise InputError(f"is not CSV: {error}") from None
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES >> 20} MiB; save only the columns of keys and values")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    if suffix == PARQUET:
        import polars as pl

        frame = read_by_library(lambda: pl.read_parquet(path), "cannot be read as Parquet; save it anew, or as CSV")
        return [frame.columns, *([_text(cell) for cell in row] for row in frame.iter_rows())]
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            "Excel files need the package fastexcel; install it with: pip install 'dpframework[excel]'"
        ) from None
    broken = "cannot be read as an Excel workbook (.xlsx); save it anew, without a password, or as CSV"
    sheet = read_by_library(lambda: fastexcel.read_excel(path).load_sheet(0, header_row=None, dtypes="string"), broken)
    cells = sheet.to_polars().iter_rows()
    return [[_text(cell) for cell in row] for row in cells if any(cell is not None for cell in row)]


def _text(cell: Any) -> str:
    """Return a cell as a CSV file would hold it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None or cell != cell else repr(cell) if isinstance(cell, float) else str(cell)


def with_tables(form: Mapping[str, Any], folder: Path, private: Iterable[Path]) -> Mapping[str, Any]:
    """Return the form of a schema or a study, with the contents of each public table that a derived column names.

    Parameters
    ----------
    form
        The contents of the file.
    folder
        The folder of the file, which must hold the public tables.
    private
        Paths and patterns of the private table's files, which are not accepted as public tables.

    Raises
    ------
    InputError
        If a path leads out of the folder or to the private table, or the file cannot be read.
    """
    derived = form.get("derive")
    if not isinstance(derived, list):
        return form
    places, read = [os.path.realpath(place) for place in private], []
    for entry in derived:
        if not isinstance(entry, Mapping) or "table" not in entry:
            read.append(entry)
            continue
        with prefix_errors(f"derived column '{entry.get('name')}': "):
            if "lookup" in entry:
                raise InputError("has both table and lookup; give one of the two")
            given = {name: entry.get(name) for name in ("table", "key", "column")}
            for name, value in given.items():
                if value is not None and not isinstance(value, str):
                    raise InputError(f"{name} must be a text")
            path = inner_path(str(given["table"]), folder, "table")
            require_inside(path, folder)
            if any(_is_of(path, place) for place in places):
                raise InputError(
                    f"table '{given['table']}' is the private table itself; a lookup needs one that anyone may know"
                )
            table = _read(path, str(given["column"] or entry.get("name")), given["key"])
        read.append({**{name: value for name, value in entry.items() if name not in given}, "lookup": table})
    return {**form, "derive": read}


def _is_of(path: Path, place: str) -> bool:
    """Tell whether a file belongs, or may come to belong, to a table that a path, a folder or a pattern names."""
    real = os.path.realpath(path)
    if fnmatch.fnmatchcase(real, place):
        return True
    for found in (place, *glob.glob(place, recursive=True)):
        within = real.startswith(os.path.join(os.path.realpath(found), ""))
        if within and path.suffix.lower() == PARQUET:  # all Parquet files of a folder are read
            return True
        # Several names may be links to one file.
        for file in (Path(found), *Path(found).rglob(f"*{PARQUET}")):
            with contextlib.suppress(OSError):
                if os.path.samefile(path, file):
                    return True
    return False
