"""Study files: data, privacy and steps in TOML, read without opening the data."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.encoding import OutOfDomain
from dpframework.errors import DPFrameworkError, InputError, nearest
from dpframework.privacy import Relation, exact, positive
from dpframework.registry import Registry
from dpframework.registry import registry as installed
from dpframework.schema import Schema, View
from dpframework.study import Study
from dpframework.table import Table, read_table, read_two_views

_TABLES = ("data", "privacy", "step")
_DATA_KEYS = ("path", "left", "right", "id", "schema", "out_of_domain")
_PRIVACY_KEYS = ("epsilon", "relation", "delta", "allow")
_STEP_KEYS = ("name", "miner", "epsilon", "params")
_UNSET = re.compile(r"\$(\w+|\{[^}]*\})")


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
        What to do with a value that the schema does not hold.
    """

    files: tuple[str, ...]
    folder: Path
    id: str | None = None
    out_of_domain: OutOfDomain = OutOfDomain.ERROR

    def paths(self) -> list[Path]:
        """Return the data files, all of which exist.

        Raises
        ------
        InputError
            If an environment variable in a path is not set, or a file does not exist.
        """
        paths = [_path(text, self.folder) for text in self.files]
        for path in paths:
            if not path.exists():
                raise InputError(f"{path}: there is no such data file")
        return paths

    def read(self, schema: Schema) -> Table:
        """Read the table; raise as `paths`, `read_table` and `read_two_views` do."""
        paths = self.paths()
        if len(paths) == 1:
            return read_table(paths[0], schema, out_of_domain=self.out_of_domain)
        left, right = paths
        return read_two_views(left, right, schema, id=self.id, out_of_domain=self.out_of_domain)


@final
@attrs.frozen
class StudyFile:
    """A study read from a file; its data has not been opened.

    Attributes
    ----------
    source
        The study file.
    data
        Where its table is.
    study
        The study that it describes, with every miner planned.
    """

    source: Path
    data: Data
    study: Study

    def read(self) -> Table:
        """Open the data: for a run, after the checks.

        Raises
        ------
        InputError
            If a file is missing or does not fit the schema; one sentence that names the study file too.
        """
        try:
            return self.data.read(self.study.schema)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None


def load_study(path: str | os.PathLike[str], registry: Registry | None = None) -> StudyFile:
    """Read a study file and plan every step; the data file need not exist.

    Parameters
    ----------
    path
        A TOML file with `[data]`, `[privacy]` and one `[[step]]` a miner.
    registry
        Where miners are looked up; by default what is installed.

    Raises
    ------
    InputError
        If the file cannot be read or does not describe a study: one sentence that names the file and the step or
        key, with the nearest known name where one is unknown.
    """
    path = Path(path)
    try:
        form = _toml(path)
        if "attribute" in form:
            raise InputError("looks like a schema; a study is expected, with [data], [privacy] and [[step]]")
        _refuse_unknown(form, _TABLES, "unknown table or key")
        data_form, privacy = _table(form, "data"), _table(form, "privacy")
        data = _data(data_form, path.parent)
        steps = _steps(form)
        schema = Schema.load(_path(_text(data_form, "schema", "[data] "), path.parent))
        if len(data.files) > 1:
            _require_views(schema)
        study = _study(privacy, schema)
        for step in steps:
            _add(study, step, registry or installed())
    except DPFrameworkError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"{path}:") else f"{path}: {text}") from None
    return StudyFile(path, data, study)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError("there is no such file; a study file in TOML is expected") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text; a study file in TOML is expected") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}") from None


def _path(text: str, folder: Path) -> Path:
    expanded = os.path.expandvars(text)
    unset = _UNSET.search(expanded)
    if unset is not None:
        name = unset.group(1).strip("{}")
        raise InputError(f"the path '{text}' uses the environment variable {name}, which is not set")
    return folder / os.path.expanduser(expanded)


def _data(form: Mapping[str, Any], folder: Path) -> Data:
    where = "[data] "
    _refuse_unknown(form, _DATA_KEYS, f"{where}unknown key")
    policy = OutOfDomain.ERROR
    if "out_of_domain" in form:
        policy = OutOfDomain.parse(_text(form, "out_of_domain", where))
    views = [key for key in ("left", "right", "id") if key in form]
    if "path" in form and views:
        raise InputError(f"{where}has both 'path' and '{views[0]}'; give path, or left and right")
    if views:
        files: tuple[str, ...] = (_text(form, "left", where), _text(form, "right", where))
        return Data(files, folder, _text(form, "id", where) if "id" in form else None, policy)
    if "path" not in form:
        raise InputError(f"{where}has no 'path'; give path, or left and right for two views")
    return Data((_text(form, "path", where),), folder, None, policy)


def _require_views(schema: Schema) -> None:
    """Refuse a schema that cannot be of two files: a public fact, so that the checks need not wait for the run."""
    for attribute in schema:
        if attribute.view is None:
            raise InputError(
                f"[data] has left and right, but attribute '{attribute.name}' of the schema has no view; "
                'give each attribute view = "left" or view = "right"'
            )
    for view in View:
        if not schema.view(view):
            raise InputError(f"[data] has left and right, but the schema has no attribute of the {view} view")


def _study(form: Mapping[str, Any], schema: Schema) -> Study:
    where = "[privacy] "
    _refuse_unknown(form, _PRIVACY_KEYS, f"{where}unknown key")
    if "epsilon" not in form:
        raise InputError(f"{where}has no 'epsilon'")
    allow = form.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(name, str) for name in allow):
        raise InputError(f'{where}allow must be a list of texts, such as ["mcmc-converged"]')
    relation = _text(form, "relation", where) if "relation" in form else Relation.ADD_OR_REMOVE_ONE
    try:
        return Study(
            schema,
            epsilon=positive(form["epsilon"]),
            relation=relation,
            delta=exact(form.get("delta", 0), "delta"),
            allow=allow,
        )
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def _steps(form: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps, their names and keys checked."""
    steps = form.get("step", [])
    if not isinstance(steps, list):
        raise InputError("each step must be written under its own [[step]] heading, with two brackets")
    if not steps:
        raise InputError("has no step; add a [[step]] with a name, a miner and an epsilon")
    names: set[str] = set()
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, Mapping):
            raise InputError(f"step number {number} must be a table, written as [[step]]")
        name = _text(step, "name", f"step number {number}: ")
        where = f"step '{name}': "
        if name in names:
            raise InputError(f"{where}this name is used twice; give each step its own")
        names.add(name)
        _refuse_unknown(step, _STEP_KEYS, f"{where}unknown key")
        _text(step, "miner", where)
        params = step.get("params", {})
        if not isinstance(params, Mapping):
            raise InputError(f'{where}params must be a table, such as {{ target = "income" }}, not {_kind(params)}')
        if "epsilon" in params:
            raise InputError(f"{where}epsilon is a key of the step itself, not of its params")
    return steps


def _add(study: Study, step: Mapping[str, Any], registry: Registry) -> None:
    """Make a step's miner and add it, so that every failure of a plugin is one sentence about this step."""
    name, kind = step["name"], step["miner"]
    parameters = dict(step.get("params", {}))
    try:
        if "epsilon" in step:
            # Exact from the file on: a miner that splits it in three must not end above it by rounding.
            parameters["epsilon"] = positive(step["epsilon"])
        miner = registry.miner(kind, **parameters)
    except InputError as error:
        raise InputError(f"step '{name}': {error}") from None
    try:
        study.add(name, miner)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"step '{name}'") else f"step '{name}': {text}") from None
    except Exception as error:
        plugin = registry.miners[kind].plugin
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"step '{name}': miner '{kind}' of plugin '{plugin}' failed to plan with {type(error).__name__}"
            + (f" ({reason})" if reason else "")
        ) from None


def _table(form: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if key not in form:
        raise InputError(f"has no [{key}] table")
    table = form[key]
    if not isinstance(table, Mapping):
        raise InputError(f"'{key}' must be a table, written as [{key}], not {_kind(table)}")
    return table


def _text(form: Mapping[str, Any], key: str, where: str) -> str:
    if key not in form:
        raise InputError(f"{where}has no '{key}'")
    value = form[key]
    if not isinstance(value, str):
        raise InputError(f"{where}{key} must be a text, not {_kind(value)}")
    if not value.strip():
        raise InputError(f"{where}{key} must not be blank")
    return value


def _refuse_unknown(form: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    known = tuple(known)
    for key in form:
        if key not in known:
            raise InputError(f"{what} '{key}'; {nearest(key, known)}")


def _kind(value: object) -> str:
    """Name the type of a TOML value as people write it."""
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case datetime.date() | datetime.time():
            return "a date or time"
    return "a table"
