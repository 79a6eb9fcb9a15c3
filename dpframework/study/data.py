"""Where a study's table is: the `[data]` of a study file, read without opening the data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.files import require_no_stream
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import Schema
from dpframework.facts.toml import (
    begun_with,
    refuse_unknown,
    required_text,
    resolved_path,
)
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.run.recording import Recorder

if TYPE_CHECKING:
    from dpframework.tables.table import Table

#: The keys of a `[data]` table.
DATA_KEYS = ("path", "left", "right", "id", "schema", "out_of_domain")


@final
@attrs.frozen
class Data:
    """Where a study's table is: one file, or one file a view.

    Attributes
    ----------
    files
        Paths as the study file writes them: one, or the left and the right view's.
    folder
        What relative paths are relative to: the study file's folder.
    id
        The column that joins two views; None to match rows by position.
    out_of_domain
        What to do with a value that the schema does not hold; None if the file does not say.
    """

    files: tuple[str, ...]
    folder: Path
    id: str | None = None
    out_of_domain: OutOfDomain | None = None

    @classmethod
    def from_form(cls, form: Mapping[str, Any], folder: Path, where: str = "[data] ") -> Data:
        """Read the keys of a `[data]` table; `where` begins the sentence of an error.

        Raises
        ------
        InputError
            If a key is unknown, lacks, contradicts another, or holds something else than it should.
        """
        refuse_unknown(form, DATA_KEYS, f"{where}unknown key")
        policy = None
        if "out_of_domain" in form:
            policy = OutOfDomain.parse(required_text(form, "out_of_domain", where))
        views = [key for key in ("left", "right", "id") if key in form]
        if "path" in form and views:
            raise InputError(f"{where}has both 'path' and '{views[0]}'; give path, or left and right")
        if views:
            files: tuple[str, ...] = (required_text(form, "left", where), required_text(form, "right", where))
            return cls(files, folder, required_text(form, "id", where) if "id" in form else None, policy)
        if "path" not in form:
            raise InputError(f"{where}has no 'path'; give path, or left and right for two views")
        return cls((required_text(form, "path", where),), folder, None, policy)

    def paths(self) -> list[Path]:
        """Return the data files, all of which exist.

        Raises
        ------
        NotOpened
            If an environment variable in a path is not set, or a file does not exist or is no regular one.
        """
        try:
            paths = [resolved_path(text, self.folder) for text in self.files]
            for path in paths:
                require_no_stream(path)
        except InputError as error:
            raise NotOpened(str(error)) from None
        for path in paths:
            if not path.exists():
                raise NotOpened(f"{path}: there is no such data file")
        return paths

    def read(self, schema: Schema, unit: PrivacyUnit = ROW, key: bytes | None = None) -> Table:
        """Read the table for a privacy unit; raise as `paths`, `read_table` and `read_two_views` do."""
        from dpframework.tables import read_table, read_two_views  # a plan does not wait for what reads

        paths, policy = self.paths(), self.out_of_domain or OutOfDomain.CLAMP
        if len(paths) == 1:
            return read_table(paths[0], schema, out_of_domain=policy, unit=unit, key=key)
        left, right = paths
        return read_two_views(left, right, schema, id=self.id, out_of_domain=policy, unit=unit)


def require_views(schema: Schema, where: str = "[data] ") -> None:
    """Refuse a schema that cannot be of two files: a public fact, so that the checks need not wait for the run.

    Raises
    ------
    InputError
        If an attribute has no view, or a view no attribute.
    """
    from dpframework.tables.views import sides_of

    with begun_with(f"{where}has left and right, but "):
        sides_of(schema)


def require_read_for(unit: PrivacyUnit, table: Table, ledger: Recorder | None) -> None:
    """Refuse a table that was read for another unit: its rows were not bounded so, or depend on each other.

    And one of other rows than a run that is resumed may go on with: a unit could have its rows in one part before, and
    other rows in another part after.

    Raises
    ------
    InputError
        If it is one.
    """
    read_for = table.unit
    if read_for.id != unit.id or (unit.id is not None and read_for.rows > unit.rows):
        raise InputError(
            f"the study protects {unit}, and the table was read for {read_for}; read it with unit=study.unit"
        )
    if ledger is not None and ledger.resumable and table.key not in (None, ledger.key):
        raise InputError(
            "this run may be resumed, and then goes on with the same rows; read its table with key=run.key"
        )


def grouped(table: Table, unit: PrivacyUnit) -> Table:
    """Return a table that says whose each row is, so that whole units can be sampled.

    Raises
    ------
    InputError
        If a unit may have several rows, and the table does not say whose they are.
    """
    if not unit.groups_rows or table.unit_codes is not None:
        return table
    if table.unit.rows > 1:
        raise InputError(
            f"the plan samples whole units, and the table does not say whose each row is; read it with its {unit.id}, "
            "or give Table.with_units"
        )
    return table.with_units(range(table.codes.shape[1]))
