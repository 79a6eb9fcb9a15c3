"""How a file is written, such as its separator, decimals, null texts and dates. These are public facts of its table."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, final

import attrs

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.column_read_options import ColumnOptions, null_texts
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.toml import prefix_errors, refuse_unknown, toml_key, toml_lines
from dpframework.facts.value_checks import printable_name, visible_text

#: The encodings of text files that can be read, by names that Python knows.
ENCODINGS = (
    "utf-8", "utf-16", "windows-1252", "latin-1", "iso-8859-15", "windows-1250", "iso-8859-2", "windows-1251",
    "cp437", "cp850", "mac-roman", "shift_jis", "gb18030", "big5", "euc-kr",
)  # fmt: skip
SEPARATORS = (",", ";", "\t", "|", ":", " ", "^", "~")
_COMMON = ("null", "decimal", "thousands", "date")
_OF_FILE = ("separator", "encoding", "skip", "sheet", "table", "query")
MOST_SKIPPED = 1000


def _separator(given: Any) -> str:
    if given not in SEPARATORS:
        shown = ", ".join(f"'{one}'" for one in SEPARATORS if one != "\t")
        raise InputError(f'separator {given!r} is unknown; accepted are {shown} and a tab ("\\t")')
    return str(given)


def _encoding(given: Any) -> str:
    name = str(given).lower()
    if name not in ENCODINGS:
        # The name may be another one for an accepted encoding, such as utf8, cp1252 or iso-8859-1.
        with contextlib.suppress(LookupError, ValueError):
            codec = codecs.lookup(name).name
            name = next((one for one in ENCODINGS if codecs.lookup(one).name == codec), name)
    if name not in ENCODINGS:
        raise InputError(f"encoding {given!r} is unknown; {nearest(name, ENCODINGS)}")
    return name


def _skip(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= MOST_SKIPPED:
        raise InputError(f"skip is {given!r}; write how many lines stand above the names, from 0 to {MOST_SKIPPED:,}")
    return given


def _sheet(given: Any) -> str:
    return printable_name(given, "sheet") if given != "" else ""


def _table(given: Any) -> str:
    return printable_name(given, "table") if given != "" else ""


def _query(given: Any) -> str:
    """Return an SQL query without a last semicolon. It must be a single statement, whose result is the table."""
    if not isinstance(given, str):
        raise InputError(f"query must be a text in SQL, not {type(given).__name__}")
    text = given.strip() and visible_text(given, "query").strip().removesuffix(";").rstrip()
    if ";" in text:
        raise InputError("query holds a semicolon; write one SELECT, without semicolons")
    return text


def _columns(given: Any) -> tuple[tuple[str, ColumnOptions], ...]:
    if not isinstance(given, Mapping | tuple):
        raise InputError("columns must be a table of tables, each written as [read.columns.NAME]")
    found = []
    for name, options in dict(given).items():
        with prefix_errors(f"column '{name}': "):
            found.append((str(name), ColumnOptions.of(options)))
    return tuple(found)


@final
@attrs.frozen
class ReadOptions:
    """How a table is written in its files, or where it is in a database.

    The value of a cell follows from the cell and these options alone.

    Attributes
    ----------
    separator
        The character between two fields of a CSV file.
    encoding
        The encoding of a CSV file, such as "windows-1252". A byte that is invalid in it becomes a replacement
        character.
    skip
        How many lines of a CSV file, or rows of a sheet, stand above the line or row that names the columns. Empty
        lines and rows do not count.
    sheet
        The name of the sheet of an Excel workbook; by default its first sheet.
    table, query
        The table of a database, or a SELECT whose result is the table. Without either no database is read.
    null
        Texts that stand for a missing value in every column.
    decimal, thousands
        The decimal sign, and the sign between thousands, in numbers that are written as texts, for every numeric column
        (see `ColumnOptions`). If a decimal comma or a sign between thousands is given, a text that is not written with
        these signs is no number.
    date
        The formats of those columns of dates that give no formats themselves.
    columns
        The options of single columns, by their names. They replace the file's options for that column, except that
        their `null` texts are added to the file's.

    Raises
    ------
    InputError
        If an option is unknown, or its value is not accepted.

    Examples
    --------
    >>> options = ReadOptions(separator=";", decimal=",", columns={"visit": {"date": "%d.%m.%Y"}})
    >>> options.of_column("visit").decimal, options.of_column("cost").is_date
    (',', False)
    >>> print(options.dumps(), end="")
    [read]
    separator = ";"
    decimal = ","
    <BLANKLINE>
    [read.columns.visit]
    date = ["%d.%m.%Y"]
    """

    separator: str = attrs.field(default=",", converter=_separator)
    encoding: str = attrs.field(default="utf-8", converter=_encoding)
    skip: int = attrs.field(default=0, converter=_skip)
    sheet: str = attrs.field(default="", converter=_sheet)
    table: str = attrs.field(default="", converter=_table)
    query: str = attrs.field(default="", converter=_query)
    null: tuple[str, ...] = attrs.field(default=(), converter=null_texts)
    decimal: str | None = None
    thousands: str | None = None
    date: tuple[str, ...] = ()
    columns: tuple[tuple[str, ColumnOptions], ...] = attrs.field(default=(), converter=_columns)

    def __attrs_post_init__(self) -> None:
        if self.table and self.query:
            raise InputError("has a table and a query; give one of the two")
        common = ColumnOptions(decimal=self.decimal, thousands=self.thousands, date=self.date)
        object.__setattr__(self, "date", common.date)
        for name, _ in self.columns:
            with prefix_errors(f"column '{name}': "):
                # This call raises if a column's options contradict those of the whole file.
                self.of_column(name)

    @property
    def is_plain(self) -> bool:
        """Whether all options have their defaults, as for a CSV file in UTF-8 with commas and plain cells."""
        return self == PLAIN

    @property
    def of_database(self) -> bool:
        """Whether the options name a table of a database, or an SQL query."""
        return bool(self.table or self.query)

    def of_column(self, name: str) -> ColumnOptions:
        """Return all options of a column: its own, and the file's where it has none. Null texts of both are joined."""
        own = dict(self.columns).get(name, ColumnOptions())
        decimal = own.decimal or self.decimal
        thousands = own.thousands or (None if self.thousands == decimal else self.thousands)
        date = own.date or (self.date if own.is_date else ())
        null = tuple(dict.fromkeys((*self.null, *own.null)))
        return attrs.evolve(own, null=null, decimal=decimal, thousands=thousands, date=date)

    def without(self, names: Collection[str]) -> ReadOptions:
        """Return the options without the options of some columns."""
        kept = {name: own for name, own in self.columns if name not in names}
        return self if len(kept) == len(self.columns) else attrs.evolve(self, columns=kept)

    def over(self, other: ReadOptions) -> ReadOptions:
        """Return the options of this object and, where this object gives none, the options of `other`."""
        given = {f.name: getattr(self, f.name) for f in attrs.fields(ReadOptions) if f.name != "columns"}
        given = {name: value for name, value in given.items() if value != getattr(PLAIN, name)}
        if {"table", "query"} & given.keys():
            other = attrs.evolve(other, table="", query="")
        columns = dict(other.columns)
        for name, own in self.columns:
            columns[name] = ColumnOptions.of({**columns.get(name, ColumnOptions()).to_dict(), **own.to_dict()})
        return attrs.evolve(other, **given, columns=columns)

    def require_columns(self, known: Collection[str], others: Collection[str] = ()) -> None:
        """Refuse options of a column that does not exist. Columns in `others` exist, too, but no error suggests them.

        Raises
        ------
        InputError
            If a column does not exist. The message names the nearest known one.
        """
        for name, _ in self.columns:
            if name not in known and name not in others:
                raise InputError(f"[read.columns] there is no column '{name}'; {nearest(name, known)}")

    def require_fit(self, attribute: Attribute) -> None:
        """Refuse options that an attribute of this kind cannot have.

        Raises
        ------
        InputError
            If there are options for dates of an attribute that is not numeric, options for labels of a numeric
            attribute, or a label that the attribute does not list.
        """
        own = dict(self.columns).get(attribute.name, ColumnOptions())
        where = f"[read.columns] column '{attribute.name}'"
        if own.is_date and not isinstance(attribute, Numeric):
            raise InputError(f"{where} holds dates, which become numbers; declare it numeric")
        if own.is_recoded and isinstance(attribute, Numeric):
            raise InputError(f"{where} becomes labels, and is declared numeric; declare it categorical")
        accepted = attribute.values if isinstance(attribute, Categorical) else ("false", "true")
        if isinstance(attribute, Categorical | Boolean):
            for label in own.targets:
                if label not in accepted:
                    raise InputError(
                        f"{where} becomes '{label}', which its values do not list; {nearest(label, accepted)}; "
                        "labels are written as { label = [texts in the file] }"
                    )

    def to_dict(self) -> dict[str, Any]:
        """Return the options in a JSON-safe form, with the keys of a file, defaults left out."""
        if self.is_plain:
            return {}
        form = {name: getattr(self, name) for name in _OF_FILE if getattr(self, name) != getattr(PLAIN, name)}
        common = ColumnOptions(**{name: getattr(self, name) for name in _COMMON})
        form |= {name: value for name, value in common.to_dict().items() if name in _COMMON}
        columns = {name: own.to_dict() for name, own in self.columns}
        return {**form, **({"columns": columns} if columns else {})}

    @classmethod
    def of(cls, given: Any) -> ReadOptions:
        """Return options, given as `ReadOptions`, as None for defaults, or as a mapping such as a `[read]` table.

        Raises
        ------
        InputError
            If a name is unknown (the message shows the nearest one), or a value is not accepted.
        """
        if given is None or isinstance(given, cls):
            return given or PLAIN
        if not isinstance(given, Mapping):
            raise InputError(f"read must be a table of options, written as [read], not {type(given).__name__}")
        refuse_unknown(given, [field.name for field in attrs.fields(cls)], "[read] unknown key")
        with prefix_errors("[read] "):
            return cls(**given)

    def dumps(self) -> str:
        """Return the options as the text of the `[read]` table of a file, which `of` reads back."""
        form = self.to_dict()
        columns = form.pop("columns", {})
        blocks = [f"[read]\n{toml_lines(form)}"] if form or columns else []
        blocks += [f"[read.columns.{toml_key(name)}]\n{toml_lines(own)}" for name, own in columns.items()]
        return "\n".join(blocks)

    def option_lines(self) -> Iterator[str]:
        """Yield one line for each option that is given, for plans and reports."""
        form = self.to_dict()
        columns = form.pop("columns", {})
        yield from toml_lines(form).splitlines()
        for name, own in columns.items():
            yield from (f"{name}: {line}" for line in toml_lines(own).splitlines())


#: A CSV file in UTF-8 with commas, and cells as programs write them.
PLAIN = ReadOptions()


def as_read_options(given: ReadOptions | Mapping[str, Any] | None) -> ReadOptions:
    """Convert a value to read options, for an attrs field (see `ReadOptions.of`)."""
    return ReadOptions.of(given)
