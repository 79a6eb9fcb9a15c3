"""The description of a table's files. Making it opens no file, so it can be passed to processes that read the files.

Tables of a database are described by the same options (see `UnreadTable` and `unread_database_table`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, final

import attrs

from dpframework.facts.attributes_by_side import attributes_of_views, require_joinable
from dpframework.facts.domain_policies import OutOfDomain, as_policy
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import as_names
from dpframework.tables.output_suppression import silenced
from dpframework.tables.path_pattern_expansion import files_at, is_url, name_of

if TYPE_CHECKING:
    from dpframework.tables.coded_table import Table
    from dpframework.tables.sources import Source
    from dpframework.tables.table_builder import RowFindings, TableBuilder


@attrs.frozen(kw_only=True)
class UnreadTable:
    """The options by which a table is read, wherever its rows are.

    Attributes
    ----------
    schema
        The public facts about the table.
    out_of_domain, unit, key, values
        As for `read_table`.
    id
        The column that joins two views (see `read_two_views`).
    ordered
        Whether samples may be drawn. If so, the rows need a fixed order, and a database numbers them in that order.
    placed
        Whether the place of each row within its unit may be asked for. If so, a database numbers the rows of each unit.
    """

    schema: Schema
    out_of_domain: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, converter=as_policy)
    unit: PrivacyUnit = ROW
    key: bytes | None = attrs.field(default=None, repr=False)
    values: frozenset[str] | None = attrs.field(default=None, converter=as_names)
    id: str | None = None
    ordered: bool = True
    placed: bool = True

    def sources_by(self, names: Sequence[str]) -> dict[str, str]:
        """Return, by attribute, the name that errors give to the table or the view that holds the attribute.

        `names` are the name of the only table, or the names of both views.
        """
        if len(names) == 1:
            return dict.fromkeys(self.schema.names, names[0])
        sides = attributes_of_views(self.schema)
        return {one.name: name for side, name in zip(sides, names, strict=True) for one in side}


def _places(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    several = [given] if isinstance(given, str | os.PathLike) else given
    return tuple(os.fspath(place) for place in several)


def _place(given: str | os.PathLike[str] | None) -> str | None:
    return None if given is None else os.fspath(given)


def _options(given: Mapping[str, str] | Iterable[tuple[str, str]] | None) -> tuple[tuple[str, str], ...]:
    return tuple(dict(given or ()).items())


@final
@attrs.frozen
class TableFiles(UnreadTable):
    """The files of one table and the way to read them, for an engine that reads them itself.

    Attributes
    ----------
    path
        As for `read_table`: a path, a pattern, a folder or a URL, or several.
    schema, options
        As for `read_table`.
    right
        For two views in separate files: the path of the right view, while `path` names the left view. `id` joins them.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> TableFiles("visits/*.parquet", Schema([Boolean("smokes")])).path
    ('visits/*.parquet',)
    """

    path: tuple[str, ...] = attrs.field(converter=_places)
    schema: Schema
    options: tuple[tuple[str, str], ...] = attrs.field(default=None, converter=_options, kw_only=True, repr=False)
    right: str | None = attrs.field(default=None, converter=_place, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.right is not None:
            if len(self.path) > 1:
                raise InputError("the left view has one path; give a folder or a pattern for several files")
            require_joinable(self.schema, self.id, self.unit)
        elif self.id is not None:
            raise InputError(
                f"id '{self.id}' joins two views, and only one is given; give the right view too, or leave id out"
            )
        if self.schema.per_unit is not None:  # else the unit is checked when the files are read
            self.unit.require_fits(self.schema)

    def read(self, *, mapped: bool = False) -> Table:
        """Read the files in this process. This raises the errors of `read_table`."""
        from dpframework.tables.reading import read_table  # imported here, since plans need no reader
        from dpframework.tables.two_view_reader import read_two_views

        if self.right is not None:
            left, policy = self.path[0], self.out_of_domain
            return read_two_views(left, self.right, self.schema, id=self.id, out_of_domain=policy, unit=self.unit)
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
            If there are no files, or a file is named twice.
        """
        return files_at(self.path)

    @property
    def views(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the table, or of the left and of the right view."""
        return (self.path,) if self.right is None else (self.path, (self.right,))

    @property
    def shown(self) -> tuple[str, ...]:
        """The names that errors give the table, or the left and the right view.

        They are the same as when one process reads all files.

        Raises
        ------
        NotOpened
            If there are no such files.
        """
        return tuple(name_of(places, files_at(places)) for places in self.views)

    @property
    def sources(self) -> dict[str, str]:
        """The name that errors give to the table of each attribute, the same as when one process reads all files."""
        return self.sources_by(self.shown)

    def builder(self, names: Sequence[str]) -> TableBuilder:
        """Return a builder of the table, or of a piece of it, whose errors call the files by these names."""
        from dpframework.tables.table_builder import TableBuilder

        return TableBuilder(self.schema, self.sources_by(names), self.out_of_domain, self.values)

    def pieces(self, number: int) -> list[Piece]:
        """Return parts of the table that can be read separately: files, or parts of Parquet files, in row order.

        Pieces of the left view come first. How a piece's rows are treated may depend on rows of other pieces (see
        `shuffle_of`).

        Parameters
        ----------
        number
            How many pieces each view should have at least. Parquet files are cut into equal parts to get so many.
            Other files are never cut.

        Raises
        ------
        NotOpened
            If there are no such files.
        InputError
            If only one process can read the rows.
        """
        if self.schema.in_files.read.of_database:
            raise InputError("only one process can read a database; choose another engine, such as memory")
        if self.right is not None and self.id is None:
            raise InputError(
                "the rows of two views are matched by their positions, which only one process can do; name the "
                "column that joins them, or choose another engine, such as memory"
            )
        read, found = attrs.evolve(self, path=(), key=None), list[Piece]()
        for side, places in enumerate(self.views):
            files = [file if is_url(file) else os.path.abspath(file) for file in files_at(places)]
            each = -(-number // len(files))
            for file in files:
                parts = each if file.lower().endswith(".parquet") or is_url(file) else 1
                found += [Piece(file, (k, parts), read, side) for k in range(parts)]
        return found


@final
@attrs.frozen
class Piece:
    """A part of a table that is read separately.

    Attributes
    ----------
    file
        A path or a URL.
    part
        The number of this part of the file, from 0, and the number of equal parts into which the file is cut.
    how
        The options by which the piece is read.
    side
        The number of the piece's view: 0 for the left view or the only one, 1 for the right view.
    """

    file: str
    part: tuple[int, int]
    how: TableFiles
    side: int = 0

    @silenced(streams=True)
    def read(self) -> tuple[Table, RowFindings]:
        """Return the piece's rows and the findings about them, before anything is refused.

        Raises
        ------
        InputError
            If the piece cannot be read. The message shows nothing of the rows.
        """
        from dpframework.tables.reading import add_blocks

        how, source = self.how, self.source()
        builder = how.builder([source.name])
        add_blocks(builder, source, how.schema, how.unit, how.out_of_domain)
        found = builder.found
        return builder.part(), found

    def source(self, name: str | None = None) -> Source:
        """Return the piece's rows as they are written.

        Parameters
        ----------
        name
            The name in errors: the whole table's name, or by default the file's.

        Raises
        ------
        InputError
            If the piece cannot be read.
        """
        from dpframework.tables.cell_notation_reader import as_written
        from dpframework.tables.sources import open_source

        schema = self.how.schema.in_files
        opened = open_source([self.file], dict(self.how.options) or None, self.part, schema.read)
        return as_written(opened if name is None else attrs.evolve(opened, name=name), schema, self.how.unit)
