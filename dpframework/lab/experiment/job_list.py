"""The jobs of an experiment. Making them checks every plan, finds every file, and gives each cell a key.

The key is a hash of all that the cell's result depends on. A later run finds the finished cell by its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import final

import attrs

from dpframework.facts.errors import DPFrameworkError, InputError, PlanRefused
from dpframework.facts.files import file_digest
from dpframework.facts.schema import Schema
from dpframework.lab.experiment.experiment_contents_and_grid import (
    Cell,
    Experiment,
    NamedTables,
    canonical,
    digest,
    fill_in,
)
from dpframework.lab.experiment.input_tables import FileTable, Fold, GeneratedTable, rows_of
from dpframework.lab.experiment.job import BaselineRun, Job, MeasureRun, MinerRun, measure_of
from dpframework.lab.experiment.user_functions import Code, require_accepts
from dpframework.study.plugin_registry import GROUP, registry
from dpframework.study.table_place import require_read_for
from dpframework.version import __version__


def jobs_of(experiment: Experiment) -> list[Job]:
    """Return a job for each cell, in the order of `Experiment.cells`.

    Raises
    ------
    InputError
        If a miner cannot be planned, or a function or data file is missing.
    PlanRefused
        If a check refuses a plan. In that case no data file has been opened.
    """
    cells = list(experiment.cells())
    # Refuse functions that cannot be found, and parameters that they do not take.
    for data in experiment.data:
        if data.generator is not None:
            settings = {"seed": 0, **data.params, **{key: values[0] for key, values in data.grid.items()}}
            require_accepts(data.generator.load(), 0, settings, f"data '{data.name}': {data.generator}")
    for method in experiment.methods:
        if method.baseline is not None:
            settings = {"seed": 0, **method.params, **{key: values[0] for key, values in method.grid.items()}}
            settings |= {} if method.epsilon is None else {"epsilon": 1.0}
            require_accepts(method.baseline.load(), 1, settings, f"method '{method.name}': {method.baseline}")
    for use in experiment.measures:
        require_accepts(measure_of(use.measure), 1, use.params, f"measure '{use.measure}'")
    # No data file is opened before every plan has passed. But generated tables must be made to get their schemas.
    plans = _Plans(experiment)
    generators = {data.name for data in experiment.data if data.generator is not None}
    for cell in sorted(cells, key=lambda cell: cell.data in generators):
        plans.hash_of(cell)
    digests = {data.name: _digest_of(data) for data in experiment.data}
    of_methods = _method_versions(experiment)
    # The name of a built-in measure is enough, since each key also holds the version of dpframework.
    of_measures = {
        use.measure: use.measure.digest if isinstance(use.measure, Code) else use.measure for use in experiment.measures
    }
    return [
        _job(experiment, cell, plans.hash_of(cell), digests[cell.data], of_methods[cell.method], of_measures)
        for cell in cells
    ]


def _method_versions(experiment: Experiment) -> dict[str, str]:
    """Return the version of each method's code: for a miner its plugin's version, for a function its file's digest."""
    points = entry_points(group=GROUP)
    plugins = {point.name: f"{point.dist.name} {point.dist.version}" for point in points if point.dist is not None}
    versions = {}
    for method in experiment.methods:
        if method.baseline is not None:
            versions[method.name] = method.baseline.digest
        elif method.miner is not None:
            plugin = registry().miners[method.miner].plugin
            versions[method.name] = f"{method.miner} of {plugins.get(plugin, plugin)}"
    return versions


def _job(
    experiment: Experiment,
    cell: Cell,
    plan: str | None,
    source_digest: str,
    method_version: str,
    measure_versions: Mapping[str | Code, str],
) -> Job:
    data = experiment.data_set(cell.data)
    source = source_of(experiment, cell, source_digest)
    values = {**data.values, **cell.data_params}
    measures = tuple(
        MeasureRun(
            use.measure, use.name, fill_in(use.params, values, f"measure '{use.measure}' on data '{data.name}': ")
        )
        for use in experiment.measures
        if use.is_for(cell)
    )
    split = split_of(experiment, cell)
    seed = experiment.seed_for(cell)
    # The rows depend on a generator's seed. For a file, they depend on the options for reading it, and on the key that
    # chooses the rows of each unit.
    read_as: int | list[str | None]
    if isinstance(source, GeneratedTable):
        read_as = source.seed
    else:
        policy = source.data.out_of_domain
        read_as = [source.schema.fingerprint, None if policy is None else policy.value, source.data.id]
        read_as += [] if source.key is None else [canonical(source.unit.to_dict()), source.key.hex()]
    key = digest(
        {
            "cell": cell.to_dict(),
            "seed": seed,
            "plan": plan,
            "table": [source.digest, read_as],
            "split": None if split is None else attrs.asdict(split),
            "measures": [[str(m.measure), m.name, m.params, measure_versions[m.measure]] for m in measures],
            "code": method_version,
            "dpframework": __version__,
        }
    )
    return Job(cell, key, seed, source, split, method_run(experiment, cell), measures)


def method_run(experiment: Experiment, cell: Cell) -> MinerRun | BaselineRun:
    """Return the run of a cell's method."""
    method = experiment.method(cell.method)
    if method.baseline is not None:
        return BaselineRun(method.name, method.baseline)
    assert method.miner is not None
    terms = (experiment.relation, experiment.delta, experiment.allow, experiment.unit)
    return MinerRun(method.name, method.miner, *terms)


def source_of(experiment: Experiment, cell: Cell, source_digest: str) -> FileTable | GeneratedTable:
    """Return the source of a cell's table. A generator makes a new table for each repetition."""
    data = experiment.data_set(cell.data)
    if data.generator is not None:
        seed = experiment.shared_seed(cell, "table") >> 96
        return GeneratedTable(data.generator, source_digest, canonical(dict(cell.data_params)), seed)
    assert data.data is not None
    assert data.schema is not None
    if experiment.unit.id is None:
        return FileTable(data.data, data.schema, source_digest)
    key = experiment.shared_seed(cell, "rows of units").to_bytes(16, "big")
    return FileTable(data.data, data.schema, source_digest, experiment.unit, key)


def split_of(experiment: Experiment, cell: Cell) -> Fold | None:
    """Return the fold that a cell holds out, or None without cross-validation."""
    if experiment.folds is None or cell.fold is None:
        return None
    return Fold(experiment.folds, cell.fold, experiment.shared_seed(cell, "folds"))


def _digest_of(data: NamedTables) -> str:
    """Return a digest of the bytes of a data set's files, or of its generator's source."""
    if data.generator is not None:
        return data.generator.digest
    assert data.data is not None
    try:
        data.data.require_local("an experiment records the digest of its data; fetch the files first")
        return digest([file_digest(path).hex() for path in data.data.paths()])
    except InputError as error:
        raise InputError(f"data '{data.name}': {error}") from None


@final
@attrs.frozen
class _Plans:
    """The hashes of the cells' plans. Cells of equal schemas that differ only in repetition or fold share a plan."""

    _experiment: Experiment
    _hashes: dict[str, str] = attrs.field(factory=dict, init=False)
    _generated: dict[str, Schema] = attrs.field(factory=dict, init=False)

    def hash_of(self, cell: Cell) -> str | None:
        run = method_run(self._experiment, cell)
        if isinstance(run, BaselineRun):
            return None
        schema, unit = self._whole_schema(cell), self._experiment.unit
        split = split_of(self._experiment, cell)
        if split is not None and schema.rows is not None and unit.groups_rows:
            raise InputError(
                f"data '{cell.data}': its schema gives rows = {schema.rows}, and folds of whole units have other "
                "numbers of rows; give max_rows instead, or leave out 'folds'"
            )
        schema = schema if split is None else split.schema(schema)
        coordinates = {**cell.to_dict(), "repetition": None, "fold": None}
        known_by = digest(coordinates, schema.fingerprint)
        if known_by not in self._hashes:
            where = f"method '{cell.method}' on data '{cell.data}', epsilon {cell.epsilon}: "
            try:
                self._hashes[known_by] = run.study(schema, cell).checked_plan().hash
            except PlanRefused as error:
                raise PlanRefused(f"{where}{error}") from None
            except DPFrameworkError as error:
                reason = str(error).removeprefix(f"step '{run.name}': ")
                raise InputError(f"{where}{reason}") from None
        return self._hashes[known_by]

    def _whole_schema(self, cell: Cell) -> Schema:
        data = self._experiment.data_set(cell.data)
        if data.schema is not None:
            return data.schema
        known_by = digest(cell.data, dict(cell.data_params))
        if known_by not in self._generated:
            # The schema is public and does not depend on the seed, so the first repetition's table gives it.
            first = source_of(self._experiment, attrs.evolve(cell, repetition=1), _digest_of(data))
            try:
                table, held_out = rows_of(first)
            except InputError as error:
                raise InputError(f"data '{cell.data}': {error}") from None
            unit = self._experiment.unit
            try:
                require_read_for(unit, table.unit, table.key, None)
            except InputError:
                raise InputError(
                    f"data '{cell.data}': the experiment protects {unit}, but the generator made a table for "
                    f"{table.unit}; let the generator read its rows for the experiment's unit"
                ) from None
            if held_out is not None and self._experiment.folds is not None:
                raise InputError(f"data '{cell.data}': its generator holds rows out already; leave out 'folds'")
            self._generated[known_by] = table.schema
        return self._generated[known_by]
