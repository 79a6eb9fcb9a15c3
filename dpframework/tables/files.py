"""The files of a table, described before any is opened, since other processes may read them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.tables.places import files_of, is_url, name_of
from dpframework.tables.silence import silenced

if TYPE_CHECKING:
    from dpframework.tables.table import Table
    from dpframework.tables.table_builder import RowFindings


def _places(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    several = [given] if isinstance(given, str | os.PathLike) else given
    return tuple(os.fspath(place) for place in several)


def _names(given: Collection[str] | None) -> frozenset[str] | None:
    return None if given is None else frozenset(given)


def _policy(given: OutOfDomain | str) -> OutOfDomain:
    return OutOfDomain.parse(given)


def _options(given: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((given or {}).items())


@final
@attrs.frozen
class TableFiles:
    """The files of one table and the way to read them, for an engine that reads them itself.

    Attributes
    ----------
    path
        As for `read_table`: a path, a pattern, a folder or a URL, or several.
    schema, out_of_domain, unit, key, values, options
        As for `read_table`.
    ordered
        Whether samples may be drawn, for which a database numbers the rows.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> TableFiles("visits/*.parquet", Schema([Boolean("smokes")])).path
    ('visits/*.parquet',)
    """

    path: tuple[str, ...] = attrs.field(converter=_places)
    schema: Schema
    out_of_domain: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, converter=_policy, kw_only=True)
    unit: PrivacyUnit = attrs.field(default=ROW, kw_only=True)
    key: bytes | None = attrs.field(default=None, kw_only=True, repr=False)
    values: frozenset[str] | None = attrs.field(default=None, converter=_names, kw_only=True)
    options: tuple[tuple[str, str], ...] = attrs.field(default=None, converter=_options, kw_only=True, repr=False)
    ordered: bool = attrs.field(default=True, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.schema.per_unit is not None:  # else whoever reads them says so
            self.unit.require_fits(self.schema)

    def read(self, *, mapped: bool = False) -> Table:
        """Read them here. Raise as `read_table` does."""
        from dpframework.tables.reading import read_table  # what reads, a plan does without

        return read_table(
            self.path,
            self.schema,
            out_of_domain=self.out_of_domain,
            unit=self.unit,
            key=self.key,
            values=self.values,
            options=dict(self.options) or None,
            mapped=mapped,
        )

    def files(self) -> list[str]:
        """Return the files and URLs, in the order of their rows.

        Raises
        ------
        NotOpened
            If there are none.
        """
        return [file for place in self.path for file in files_of(place)]

    @property
    def sources(self) -> dict[str, str]:
        """The name of each attribute's table in errors, as where one process reads it."""
        return dict.fromkeys(self.schema.names, name_of(self.path, self.files()))

    def pieces(self, number: int) -> list[Piece]:
        """Return parts of the table that can be read apart, in the order of its rows, files or parts of Parquet.

        Parameters
        ----------
        number
            How many there should be, at least: Parquet files are cut into equal parts until there are.

        Raises
        ------
        NotOpened
            If there are no such files.
        InputError
            If rows of several files may be one unit's: which of them it keeps cannot be told from one file.
        """
        if self.unit.period is not None:
            raise InputError(
                "a study with periods is read by one process, not file by file; choose another engine, such as memory"
            )
        if self.schema.read.of_database:
            raise InputError("a database is read by one process; choose another engine, such as memory")
        if self.unit.id is not None:
            raise InputError(
                f"the rows of one '{self.unit.id}' may lie in several files, so that files cannot be read apart; "
                "choose another engine, or a study whose unit is one row"
            )
        files = [file if is_url(file) else os.path.abspath(file) for file in self.files()]
        each = -(-number // len(files))
        parts = [(file, each if file.lower().endswith(".parquet") or is_url(file) else 1) for file in files]
        read = attrs.evolve(self, path=(), key=None)
        return [Piece(file, (k, n), read) for file, n in parts for k in range(n)]


@final
@attrs.frozen
class Piece:
    """A part of a table that is read by itself.

    Attributes
    ----------
    file
        A path or a URL.
    part
        Which of how many equal parts of its rows.
    how
        How it is read.
    """

    file: str
    part: tuple[int, int]
    how: TableFiles

    @silenced(streams=True)
    def read(self) -> tuple[Table, RowFindings]:
        """Return its rows and the findings about them, before anything is refused.

        Raises
        ------
        InputError
            If it cannot be read; one sentence that shows nothing of its rows.
        """
        from dpframework.tables.sources import open_source
        from dpframework.tables.table_builder import TableBuilder
        from dpframework.tables.written_cells import as_written

        schema = self.how.schema
        source = open_source([self.file], dict(self.how.options) or None, self.part, schema.read)
        source = as_written(source, schema, self.how.unit)
        builder = TableBuilder(
            schema, dict.fromkeys(schema.names, source.name), self.how.out_of_domain, self.how.values
        )
        for block in source.blocks(schema.column_names):
            builder.add(block)
        found = builder.found
        return builder.part(), found
