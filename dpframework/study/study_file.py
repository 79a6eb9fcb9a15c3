"""Study files. They describe data, privacy and steps in TOML, and are read without opening the data."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.derived_columns import derived_columns
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError, first_line, nearest
from dpframework.facts.path_containment import inner_path, require_inside
from dpframework.facts.privacy_losses import Amount, Relation, exact, positive
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.public_lookup_tables import with_tables
from dpframework.facts.schema import Schema, read_schema
from dpframework.facts.schema_with_derived_columns import extend
from dpframework.facts.toml import kind_of, prefix_errors, read_toml, refuse_unknown, require_table, require_text
from dpframework.study.owner_allowed_data_places import owner_places
from dpframework.study.plugin_registry import Registry, registry as installed
from dpframework.study.study import Study
from dpframework.study.table_place import Data, require_views, values_read
from dpframework.tables.coded_table import Table
from dpframework.tables.engine_base import Engine
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles

_TABLES = ("data", "read", "derive", "privacy", "step", "engine")
_PRIVACY_KEYS = ("epsilon", "relation", "delta", "allow", "unit", "rows_per_unit", "period", "date")
_STEP_KEYS = ("name", "miner", "epsilon", "share", "params")
_KEY_OF_STEP = "{} is a key of the step itself, not of its params; write it beside miner"
_NO_BUDGET = "has neither an epsilon nor a share of the budget; write epsilon = 0.5, or share = 0.5 for half of it"


@final
@attrs.frozen
class EngineChoice:
    """The name of an engine, or of an engine's entry in the owner's configuration.

    A study cannot give parameters to an engine, since they could say where rows or code are sent.

    Attributes
    ----------
    name
        The name that the study file or the command line uses.
    """

    name: str = "memory"

    @classmethod
    def from_form(cls, form: Any) -> EngineChoice:
        """Read an engine's name from a study file.

        Raises
        ------
        InputError
            If `form` is not a text. A table with parameters is refused, too.
        """
        if isinstance(form, Mapping):
            raise InputError(
                "engine is a table, and a study gives an engine no parameters or address; write [engine.NAME] into the "
                'owner\'s configuration, and engine = "NAME" here'
            )
        if not isinstance(form, str):
            raise InputError(f'engine must be a name, such as "mapped", not {kind_of(form)}')
        return cls(form)

    def make(self, registry: Registry | None = None) -> Engine:
        """Return the engine with this name, or the engine that the owner's entry of this name describes.

        Raises
        ------
        InputError
            If no engine and no entry has that name, or if the engine refuses the entry's parameters.
        """
        engines = (registry or installed()).engines
        if self.name in engines:
            plain: Engine = engines[self.name].component()
            return plain
        places = owner_places()
        if self.name not in places.engines:
            raise InputError(
                f"no engine is named '{self.name}'; {nearest(self.name, (*engines, *places.engines))}; the owner of "
                f"the data names others in {places.source}"
            )
        kind, parameters = places.engine(self.name)
        with prefix_errors(f"{places.source}: [engine.{self.name}] "):
            if kind not in engines:
                raise InputError(f"no engine is named '{kind}'; {nearest(kind, engines)}")
            component = engines[kind].component
            try:
                inspect.signature(component).bind(**parameters)
            except TypeError:
                takes = ", ".join(inspect.signature(component).parameters) or "nothing"
                raise InputError(f"engine '{kind}' takes {takes}, and is given {', '.join(parameters)}") from None
            made: Engine = component(**parameters)
        return made


@final
@attrs.frozen
class StudyFile:
    """A study that was read from a file. Its data has not been opened.

    Attributes
    ----------
    source
        The path of the study file.
    data
        The place of the study's table.
    study
        The study itself, with every miner planned.
    engine
        The engine that evaluates the study's counts; by default "memory".
    """

    source: Path
    data: Data
    study: Study
    engine: EngineChoice = attrs.field(factory=lambda: EngineChoice())

    def read(self, key: bytes | None = None, *, mapped: bool = False, period: str = "") -> Table:
        """Read the table for a run. Call this after the checks.

        Parameters
        ----------
        key
            The key that decides which rows of each privacy unit are kept (see `read_table`).
        mapped
            Whether to keep the table in a file instead of memory (see `Engine.mapped`).
        period
            The period whose rows are read; empty for a study without periods.

        Raises
        ------
        InputError
            If a file is missing or does not fit the schema. The message names the study file too.
        """
        with self._name_file():
            return self.data.read(self.study.schema, self.unit_of(period), key, self._values_read(), mapped=mapped)

    def unit_of(self, period: str) -> PrivacyUnit:
        """Return the privacy unit with which to read the table, in one period if `period` is not empty.

        Raises
        ------
        InputError
            If a period is given and the study has none, or no period has that name.
        """
        return self.study.unit.during(period) if period else self.study.unit

    def table_files(self, key: bytes | None = None, *, period: str = "") -> TableFiles | DatabaseTable:
        """Return the files or the table in a database, unopened, for an engine that reads data itself.

        Parameters
        ----------
        key, period
            As for `read`.

        Raises
        ------
        InputError
            If a file is missing.
        """
        with self._name_file():
            return self.data.table_files(self.study.schema, self.unit_of(period), key, self._values_read())

    @contextlib.contextmanager
    def _name_file(self) -> Iterator[None]:
        """Add the name of the study file to errors.

        The class of an error is kept, since callers treat some classes differently.
        """
        try:
            yield
        except InputError as error:
            error.args = (f"{self.source}: {error}",)
            raise

    def _values_read(self) -> Collection[str] | None:
        miners = self.study.miners
        return values_read(miners, miners, self.study.schema)


@typechecked
def load_study(path: str | os.PathLike[str], registry: Registry | None = None) -> StudyFile:
    """Read a study file, and plan every step. The data is not opened, and need not exist yet.

    Parameters
    ----------
    path
        A TOML file with `[data]`, `[privacy]` and one `[[step]]` per miner.
    registry
        The registry in which miners are looked up; by default the registry of all installed plugins.

    Raises
    ------
    InputError
        If the file cannot be read or does not describe a study. The message names the file and the step or key. If a
        name is unknown, the message also gives the nearest known name.
    """
    path = Path(path)
    with prefix_errors(f"{path}: "):
        form = read_toml(path, "a study file")
        if "attribute" in form:
            raise InputError("looks like a schema; a study is expected, with [data], [privacy] and [[step]]")
        refuse_unknown(form, _TABLES, "unknown table or key")
        data_form, privacy = require_table(form, "data"), require_table(form, "privacy")
        data = Data.from_form(data_form, path.parent)
        steps = _steps(form)
        schema_file = inner_path(require_text(data_form, "schema", "[data] "), path.parent, "[data] schema")
        require_inside(schema_file, path.parent)
        private = data.named
        schema = read_schema(schema_file, private)
        # Columns that the study derives may use columns that the schema derives.
        if "read" in form or "derive" in form:
            own = derived_columns(with_tables(form, path.parent, private).get("derive", ()))
            schema = extend(schema, form.get("read"), own)
        data.require_written_as(schema.in_files.read)
        if data.two_views:
            require_views(schema)
        study = _study(privacy, schema, data.out_of_domain)
        if data.two_views:
            study.unit.require_joined_by(data.id, "[privacy] ")
            if study.unit.period is not None:
                raise InputError(
                    "[privacy] a study of two views cannot protect a person in a period; leave out the period"
                )
        study.data = data.shown()
        for step in steps:
            _add(study, step, registry or installed())
        engine = EngineChoice.from_form(form["engine"]) if "engine" in form else EngineChoice()
    return StudyFile(path, attrs.evolve(data, out_of_domain=study.out_of_domain), study, engine)


def _study(form: Mapping[str, Any], schema: Schema, out_of_domain: OutOfDomain | None) -> Study:
    where = "[privacy] "
    refuse_unknown(form, _PRIVACY_KEYS, f"{where}unknown key")
    if "epsilon" not in form:
        raise InputError(f"{where}has no 'epsilon'; write the budget of the whole study, such as epsilon = 1")
    allow = form.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(name, str) for name in allow):
        raise InputError(f'{where}allow must be a list of texts, such as ["mcmc-converged"]')
    relation = require_text(form, "relation", where) if "relation" in form else Relation.ADD_OR_REMOVE_ONE
    unit, rows = form.get("unit"), form.get("rows_per_unit", 1)
    times: dict[str, Any] = {key: require_text(form, key, where) for key in ("period", "date") if key in form}
    try:
        PrivacyUnit(unit, rows, **times)  # checked first, for messages that name keys of the file
        return Study(
            schema,
            epsilon=positive(form["epsilon"]),
            relation=relation,
            delta=exact(form.get("delta", 0), "delta"),
            allow=allow,
            out_of_domain=out_of_domain,
            unit=unit,
            rows_per_unit=rows,
            **times,
        )
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def _steps(form: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps of a study file. Refuse steps with wrong names or keys."""
    steps = form.get("step", [])
    if not isinstance(steps, list):
        raise InputError("each step must be written under its own [[step]] heading, with two brackets")
    if not steps:
        raise InputError("has no step; add a [[step]] with a name, a miner and an epsilon")
    names: set[str] = set()
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, Mapping):
            raise InputError(f"step number {number} must be a table, written as [[step]]")
        name = require_text(step, "name", f"step number {number}: ")
        where = f"step '{name}': "
        if name in names:
            raise InputError(f"{where}this name is used twice; give each step its own")
        names.add(name)
        for key in step:
            if key not in _STEP_KEYS and nearest(key, _STEP_KEYS).startswith("known"):
                raise InputError(
                    f"{where}unknown key '{key}'; write parameters of the miner as params = {{ {key} = ... }}"
                )
        refuse_unknown(step, _STEP_KEYS, f"{where}unknown key")
        if "miner" not in step:
            raise InputError(f"{where}has no 'miner'; name a miner, such as one that `dpframework miners` lists")
        require_text(step, "miner", where)
        params = step.get("params", {})
        if not isinstance(params, Mapping):
            raise InputError(f'{where}params must be a table, such as {{ target = "income" }}, not {kind_of(params)}')
        if "epsilon" in params:
            raise InputError(f"{where}{_KEY_OF_STEP.format('epsilon')}")
        if "epsilon" in step and "share" in step:
            raise InputError(f"{where}has an epsilon and a share of the budget; give one of the two")
    return steps


def _add(study: Study, step: Mapping[str, Any], registry: Registry) -> None:
    parameters = dict(step.get("params", {}))
    kind = registry.kind(step["miner"])
    if "share" in parameters and kind is not None and "share" not in attrs.fields_dict(kind):
        raise InputError(f"step '{step['name']}': {_KEY_OF_STEP.format('share')}")
    if "epsilon" in step:
        try:
            # The epsilon is read as an exact fraction, so that a miner that splits the epsilon cannot exceed it by
            # rounding.
            parameters["epsilon"] = positive(step["epsilon"])
        except InputError as error:
            raise InputError(f"step '{step['name']}': {error}") from None
    add_miner(study, step["name"], step["miner"], parameters, registry, step.get("share"))


def _lacks_budget(registry: Registry, kind: str, parameters: Mapping[str, Any]) -> bool:
    """Tell whether a miner's parameters are complete except for its budget."""
    if parameters.keys() & {"epsilon", "rho"}:
        return False
    try:
        registry.miner(kind, epsilon=1, **parameters)
    except InputError:
        return False
    return True


def add_miner(
    study: Study, name: str, kind: str, parameters: Mapping[str, Any], registry: Registry, share: Amount | None = None
) -> None:
    """Build a miner and add it to a study. If a plugin fails, the error is one sentence that names this step.

    Parameters
    ----------
    study
        The study to which the miner is added.
    name, kind
        The name of the step, and the name under which the miner is registered.
    parameters
        The parameters of the miner, including its epsilon.
    registry
        The registry in which miners are looked up.
    share
        The miner's share of the study's budget, in place of an epsilon.

    Raises
    ------
    InputError
        If there is no such miner, if it refuses the parameters or the schema, or if it fails in another way.
    """
    try:
        miner = registry.miner(kind, **parameters) if share is None else registry.share(share, kind, **parameters)
    except InputError as error:
        text = _NO_BUDGET if share is None and _lacks_budget(registry, kind, parameters) else error
        raise InputError(f"step '{name}': {text}") from None
    try:
        study.add(name, miner)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"step '{name}'") else f"step '{name}': {text}") from None
    except Exception as error:
        plugin = registry.miners[kind].plugin
        reason = first_line(error)
        raise InputError(
            f"step '{name}': miner '{kind}' of plugin '{plugin}' failed to plan with {type(error).__name__}"
            + (f" ({reason})" if reason else "")
        ) from None
