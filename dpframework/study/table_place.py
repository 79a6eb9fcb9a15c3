"""The place of a table, read from `[data]` of a study file or `[[data]]` of an experiment file.

The data itself is not opened here.

A study file may come from anyone. So it may only name files in its own folder, or a place in the owner's configuration.
An experiment file names code that is run, so it must come from the person who runs it, and may name any file or URL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.attributes_by_side import attributes_of_views
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.path_containment import inner_path, require_inside
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.schema import Schema
from dpframework.facts.toml import expand, prefix_errors, refuse_unknown, require_text, resolve_path
from dpframework.facts.value_checks import as_pairs
from dpframework.study.owner_allowed_data_places import Place, owner_places
from dpframework.tables.path_pattern_expansion import DATABASES, files_of, is_url, require_once
from dpframework.tables.unread_database_table import require_table_name

if TYPE_CHECKING:
    from dpframework.run.miner_base_and_examples import Miner
    from dpframework.run.run_recorder_interface import Recorder
    from dpframework.tables.coded_table import Table
    from dpframework.tables.unread_database_table import DatabaseTable
    from dpframework.tables.unread_table_files import TableFiles

_ENGINES = 'name an entry of the owner\'s configuration with engine = "duckdb" or "postgres"'
_KEYS = ("path", "left", "right", "id", "schema", "out_of_domain")
#: The keys of the `[data]` table of a study file.
STUDY_KEYS = (*_KEYS, "place", "table", "order")
#: The keys of a `[[data]]` table of an experiment file.
EXPERIMENT_KEYS = (*_KEYS, "options")


@final
@attrs.frozen
class Data:
    """The place of a table: files, two files that hold the left and the right view, or a table in a database.

    Attributes
    ----------
    files
        Paths and patterns, as the study file has them. Or the file of the left and the file of the right view. Or names
        of tables in a database (see `in_database`).
    folder
        The folder of the study file. Relative paths start there.
    id
        The column by which two views are joined; None to match rows by position.
    out_of_domain
        What reading does with values outside the schema; None if the file does not say.
    two_views
        Whether `files` are the left and the right view.
    place
        The owner's place in which relative paths start; None for the study file's folder.
    unrestricted
        Whether the file comes from the person who runs it, as an experiment file does. Then it may have `options`, and
        paths may be absolute, URLs, or use environment variables as `$NAME`.
    options
        The options for opening a URL, if the file is unrestricted.
    in_database
        Whether `files` are names of tables or views in the database of the study's engine.
    order
        The column by which the rows of a table in a database are ordered; None for their stored order.
    """

    files: tuple[str, ...]
    folder: Path
    id: str | None = None
    out_of_domain: OutOfDomain | None = None
    two_views: bool = False
    place: Place | None = None
    unrestricted: bool = False
    options: tuple[tuple[str, str], ...] = attrs.field(factory=dict, converter=as_pairs, repr=False)
    in_database: bool = False
    order: str | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse paths that lead out of their folder."""
        self.shown()

    @classmethod
    def from_form(
        cls, form: Mapping[str, Any], folder: Path, where: str = "[data] ", *, unrestricted: bool = False
    ) -> Data:
        """Read the keys of a `[data]` table. Error messages begin with `where`.

        Raises
        ------
        InputError
            If a key is unknown, missing, of a wrong type, or contradicts another key. Or if a path in a study file
            leaves its folder, or the owner's configuration has no such place.
        """
        if "options" in form and not unrestricted:
            raise InputError(
                f"{where}has options, and a study file cannot set the options of a URL; the owner's configuration sets "
                "them (see 'place')"
            )
        refuse_unknown(form, EXPERIMENT_KEYS if unrestricted else STUDY_KEYS, f"{where}unknown key")
        given: dict[str, Any] = {"folder": folder, "unrestricted": unrestricted}
        if "out_of_domain" in form:
            given["out_of_domain"] = OutOfDomain.parse(require_text(form, "out_of_domain", where))
        if "place" in form:
            given["place"] = owner_places().place(require_text(form, "place", where))
            if given["place"].is_database:
                return cls._of_database(form, given, where)
        if "table" in form:
            return cls._in_database(form, given, where)
        if "order" in form:
            raise InputError(
                f"{where}has 'order', and no 'table' of a database; leave 'order' out, since files have an order"
            )
        views = [key for key in ("left", "right", "id") if key in form]
        if "path" in form and views:
            raise InputError(f"{where}has both 'path' and '{views[0]}'; give path, or left and right")
        if views:
            files: tuple[str, ...] = (require_text(form, "left", where), require_text(form, "right", where))
            if "options" in form:
                raise InputError(f"{where}has both 'left' and 'options'; the files of two views are not opened by URL")
            if "id" in form:
                given["id"] = require_text(form, "id", where)
            return cls(files, two_views=True, **given)
        if "path" not in form:
            raise InputError(f"{where}has no 'path'; give path, or left and right for two views")
        options = form.get("options", {})
        if not isinstance(options, Mapping) or not all(isinstance(text, str) for text in options.values()):
            raise InputError(f'{where}options must be a table of texts, such as {{ aws_region = "eu-west-1" }}')
        places = _texts(form, "path", where, ' such as ["2025.parquet", "2026.parquet"]')
        return cls(places, options=options, **given)

    @classmethod
    def _of_database(cls, form: Mapping[str, Any], given: Mapping[str, Any], where: str) -> Data:
        """Read the keys of a database in the owner's configuration. `[read]` names its table or a query."""
        for key in ("path", "left", "right", "id", "table", "order"):
            if key in form:
                raise InputError(
                    f"{where}has '{key}', and place '{form['place']}' is a database; name its table, or a query, in "
                    "[read] (table, query)"
                )
        return cls((given["place"].name,), **given)

    def require_written_as(self, read: ReadOptions) -> None:
        """Refuse options of `[read]` that do not fit the kind of data, such as a sheet for a CSV file.

        Raises
        ------
        InputError
            If `[read]` names a sheet, a table or a query and the data has none, or names no table or query for a
            database.
        """
        databases = (self.place is not None and self.place.is_database) or _end(self.files, DATABASES)
        if databases and not read.of_database:
            raise InputError("[data] is a database; name its table, or a query, in [read] (table, query)")
        if read.of_database and not databases and not self.unrestricted:
            what = "table" if read.table else "query"
            raise InputError(
                f"[read] has a {what}, and [data] is no database; give a file of SQLite ({', '.join(DATABASES)}), or "
                "the place of a database"
            )
        if read.sheet and not _end(self.files, (".xlsx",)):
            raise InputError("[read] has a sheet, and [data] is no Excel file (.xlsx); leave the sheet out")

    @classmethod
    def _in_database(cls, form: Mapping[str, Any], given: dict[str, Any], where: str) -> Data:
        """Read the keys of a table, or of two views, in the database of the engine."""
        for key in ("path", "left", "right", "place"):
            if key in form:
                raise InputError(f"{where}has both 'table' and '{key}'; a table is in the database of the engine")
        names = _texts(form, "table", where)
        if len(names) != (2 if "id" in form else 1):
            raise InputError(f"{where}table must be one name, or a list of the left and the right view, joined by 'id'")
        for name in names:
            require_table_name(name, f"{where}table")
        for key in ("id", "order"):
            given[key] = require_text(form, key, where) if key in form else None
        return cls(names, two_views="id" in form, in_database=True, **given)

    def shown(self) -> tuple[str, ...]:
        """Return the places of the files, without credentials, as plans and reports show them.

        Raises
        ------
        InputError
            If a path leaves its folder.
        """
        if self.in_database:
            return tuple(f"table {name}" for name in self.files)
        if self.place is not None:
            return tuple(self.place.shown(text, "[data] path") for text in self.files)
        if not self.unrestricted:
            for text in self.files:
                inner_path(text, self.folder, "[data] path")
        return self.files

    def places(self) -> list[str]:
        """Return the full paths, patterns and URLs of the data. The list is empty for a table in a database.

        Raises
        ------
        NotOpened
            If the file is unrestricted and uses an environment variable that is not set.
        """
        if self.in_database:
            return []
        if self.unrestricted:
            try:
                return [expand(text) if is_url(text) else str(resolve_path(text, self.folder)) for text in self.files]
            except InputError as error:
                raise NotOpened(str(error)) from None
        if self.place is not None:
            return [self.place.file_at(text, "[data] path") for text in self.files]
        return [str(inner_path(text, self.folder, "[data] path")) for text in self.files]

    @property
    def named(self) -> list[Path]:
        """The paths and patterns of the data on this machine. The files need not exist yet."""
        if self.in_database or (self.place is not None and self.place.is_url):
            return []
        return [(self.folder if self.place is None else Path(self.place.address)) / text for text in self.files]

    def paths(self) -> list[Path]:
        """Return the data files on this machine, in the order in which they are read. All of them exist.

        Raises
        ------
        NotOpened
            If a file does not exist, is not a regular file, is named twice, or a symbolic link leads out of its folder.
        """
        places = self.places()
        views = [[place] for place in places] if self.two_views else [places]  # one file may hold both views
        named = [[file for place in view for file in files_of(place)] for view in views]
        files = [file for view in named for file in view if not is_url(file)]
        if not self.unrestricted:
            folder = self.folder if self.place is None else Path(self.place.address)
            for file in files:
                require_inside(file, folder)
        for view in named:  # checked last, so that no message reveals files outside of the folder
            require_once(view)
        return [Path(file) for file in files]

    def require_local(self, why: str) -> None:
        """Refuse data at a URL. The error message ends with `why`."""
        if any(is_url(text) for text in (*self.files, *([] if self.place is None else [self.place.address]))):
            raise InputError(f"the data is at a URL, and {why}")

    def read(
        self,
        schema: Schema,
        unit: PrivacyUnit = ROW,
        key: bytes | None = None,
        values: Collection[str] | None = None,
        *,
        mapped: bool = False,
    ) -> Table:
        """Read the table for a privacy unit. This raises the errors of `paths`, `read_table` and `read_two_views`.

        Parameters
        ----------
        schema, unit, key, values, mapped
            As for `read_table`.
        """
        if self.in_database:
            raise NotOpened(f"table '{self.files[0]}' is read by an engine of its database; {_ENGINES}")
        files: Any = self.table_files(schema, unit, key, values)
        table: Table = files.read(mapped=mapped)
        return table

    def table_files(
        self, schema: Schema, unit: PrivacyUnit = ROW, key: bytes | None = None, values: Collection[str] | None = None
    ) -> TableFiles | DatabaseTable:
        """Return the files, or the table in a database, for an engine that reads data itself.

        Parameters
        ----------
        schema, unit, key, values
            As for `read_table`.

        Raises
        ------
        NotOpened
            If a file does not exist (see `paths`).
        """
        from dpframework.tables import DatabaseTable, TableFiles

        policy = self.out_of_domain or OutOfDomain.CLAMP
        if self.in_database:
            return DatabaseTable(
                self.files,
                schema,
                out_of_domain=policy,
                unit=unit,
                key=key,
                values=values,
                id=self.id,
                order=self.order,
            )
        self.paths()
        options: Iterable[tuple[str, str]] = ()
        if self.place is not None:
            options = self.place.options
        else:
            try:
                options = [(name, expand(text)) for name, text in self.options]
            except InputError as error:
                raise NotOpened(str(error)) from None
        given: dict[str, Any] = {"out_of_domain": policy, "unit": unit, "key": key, "values": values}
        if self.two_views:
            left, right = self.places()
            return TableFiles(left, schema, right=right, id=self.id, **given)
        return TableFiles(self.places(), schema, options=dict(options), **given)


def _end(files: Collection[str], kinds: tuple[str, ...]) -> bool:
    """Tell whether at least one file's name has one of these endings."""
    return any(text.lower().endswith(kinds) for text in files)


def _texts(form: Mapping[str, Any], key: str, where: str, such: str = "") -> tuple[str, ...]:
    """Return the value of a key as a tuple of texts. It may be a text or a list of texts. `such` is for errors."""
    given = form[key]
    if not isinstance(given, list):
        return (require_text(form, key, where),)
    if not given or not all(isinstance(text, str) and text for text in given):
        raise InputError(f"{where}{key} must be a text, or a list of texts{such}")
    return tuple(given)


def values_read(miners: Mapping[str, Miner], steps: Collection[str], schema: Schema) -> frozenset[str] | None:
    """Return the attributes whose raw values at least one step may read (see `Miner.values_read`); None for all.

    A step without a miner may read the values of all attributes.
    """
    read: set[str] = set()
    for step in steps:
        names = miners[step].values_read(schema) if step in miners else None
        if names is None:
            return None
        read.update(names)
    return frozenset(read)


def require_views(schema: Schema, where: str = "[data] ") -> None:
    """Refuse a schema that does not fit two views.

    Raises
    ------
    InputError
        If an attribute has no view, or a view has no attribute.
    """
    with prefix_errors(f"{where}has left and right, but "):
        attributes_of_views(schema)


def require_read_for(unit: PrivacyUnit, read_for: PrivacyUnit, key: bytes | None, ledger: Recorder | None) -> None:
    """Refuse a table that was read for another unit or period, or with a key that is not the key of a resumable run.

    A table that was read for another unit may hold more rows of one unit than the study allows. With another key, a
    resumed run could choose other rows of a unit, and these could lie in other parts of a partition.
    """
    same = (read_for.id, read_for.period, read_for.date) == (unit.id, unit.period, unit.date)
    if not same or (unit.id is not None and read_for.rows > unit.rows):
        remedy = "unit=study.unit" if unit.period is None else "unit=study.unit.during(...)"
        raise InputError(f"the study protects {unit}, and the table was read for {read_for}; read it with {remedy}")
    span = read_for.require_span()
    if ledger is not None and ledger.period != ("" if span is None else span.name):
        raise InputError(
            f"the table was read for period '{span}', and the run is recorded for period '{ledger.period}'"
            if span is not None
            else f"the run is recorded for period '{ledger.period}', and the study has no periods"
        )
    if ledger is not None and ledger.resumable and key not in (None, ledger.key):
        raise InputError(
            "this run may be resumed, and then goes on with the same rows; read its table with key=run.key"
        )
