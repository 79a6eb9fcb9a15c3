"""Jobs. A job holds all that a process needs to compute one cell of an experiment, which is one run of one method.

Its outcome is a finished cell or a failed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts.errors import DPFrameworkError, InputError, RunStopped, first_line, place_of_error
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.lab.evaluation.trial_record import Trial
from dpframework.lab.experiment.experiment_contents_and_grid import RESERVED, Cell
from dpframework.lab.experiment.input_tables import Fold, TableSource, rows_of
from dpframework.lab.experiment.user_functions import Code
from dpframework.study.plugin_registry import registry
from dpframework.study.study import Study
from dpframework.study.study_file import add_miner
from dpframework.tables.coded_table import Table


@final
@attrs.frozen
class MinerRun:
    """The run of a miner as the only step of a study.

    Attributes
    ----------
    name
        The name of the method, and of the step.
    miner
        The name of the miner.
    relation, delta, allow, unit
        The neighbouring relation, the delta, the allowed assumptions and the privacy unit, as in a study.
    """

    name: str
    miner: str
    relation: Relation
    delta: Fraction
    allow: tuple[str, ...]
    unit: PrivacyUnit

    def study(self, schema: Schema, cell: Cell) -> Study:
        """Return the study of a cell. Raises InputError if the miner's parameters are wrong."""
        assert cell.epsilon is not None
        study = Study(
            schema,
            epsilon=cell.epsilon,
            relation=self.relation,
            delta=self.delta,
            allow=self.allow,
            unit=self.unit.id,
            rows_per_unit=self.unit.rows,
        )
        add_miner(study, self.name, self.miner, {**cell.params, "epsilon": cell.epsilon}, registry())
        return study

    def run(self, table: Table, cell: Cell, seed: int) -> Any:
        """Return the miner's result."""
        return self.study(table.schema, cell).run(table, seed=seed)[self.name]


@final
@attrs.frozen
class BaselineRun:
    """The run of a function that mines the rows directly, without a plan.

    Attributes
    ----------
    name
        The name of the method.
    code
        The function.
    """

    name: str
    code: Code

    def run(self, table: Table, cell: Cell, seed: int) -> Any:
        """Return the function's result. The function gets a seed of 32 bits, as scikit-learn expects."""
        budget = {} if cell.epsilon is None else {"epsilon": float(cell.epsilon)}
        return self.code.load()(table, seed=seed >> 96, **budget, **cell.params)


@final
@attrs.frozen
class MeasureRun:
    """A measure to take of a cell's result.

    In the measure's parameters, placeholders have already been replaced by values of the cell's data set.

    Attributes
    ----------
    measure
        The name of a built-in measure, or another function.
    name
        A prefix of the names of the measured values. None for no prefix.
    params
        The parameters of the measure.
    """

    measure: str | Code
    name: str | None
    params: Mapping[str, Any]

    def take(self, trial: Trial) -> dict[str, float]:
        """Return the measured values by the names of the results' columns.

        Raises
        ------
        InputError
            If there is no such measure, if it refuses the trial, or if it returns anything other than numbers by name.
        """
        try:
            measured = measure_of(self.measure)(trial, **self.params)
        except InputError as error:
            raise InputError(f"measure '{self.measure}': {error}") from None
        if not isinstance(measured, Mapping):
            raise InputError(f"measure '{self.measure}' gave {type(measured).__name__}, not numbers by name")
        found = {}
        for key, value in measured.items():
            name = key if self.name is None else f"{self.name}.{key}"
            try:
                found[name] = float(value)
            except (TypeError, ValueError):
                kind = type(value).__name__
                raise InputError(f"measure '{self.measure}' gave {kind} for '{key}', not a number") from None
        return found


def measure_of(measure: str | Code) -> Callable[..., Mapping[str, float]]:
    """Return the function behind a measure's name or code.

    Raises
    ------
    InputError
        If there is no such measure.
    """
    if isinstance(measure, Code):
        return measure.load()
    from dpframework.lab.evaluation import experiment_measures

    return experiment_measures.measure(measure)


@final
@attrs.frozen
class Job:
    """A cell that is to be computed.

    Attributes
    ----------
    cell, key
        The coordinates of the cell, and the hash that names its finished result.
    seed
        The method's seed.
    source, split
        The source of the table, and the fold that is held out. `split` is None without cross-validation.
    method
        The run of the method.
    measures
        The measures to take.
    """

    cell: Cell
    key: str
    seed: int
    source: TableSource
    split: Fold | None
    method: MinerRun | BaselineRun
    measures: tuple[MeasureRun, ...]


@final
@attrs.frozen
class FinishedCell:
    """A computed cell.

    Attributes
    ----------
    cell, key
        The coordinates of the cell, and the hash that names its finished result.
    values
        The measured values by name.
    seconds
        The CPU seconds of the method, over all threads of its process.
    """

    cell: Cell
    key: str
    values: Mapping[str, float]
    seconds: float


@final
@attrs.frozen
class FailedCell:
    """A cell that could not be computed.

    Attributes
    ----------
    cell
        The coordinates of the cell.
    reason
        The reason in one sentence. It may quote values, since an experiment's results do not protect the data.
    """

    cell: Cell
    reason: str


def compute(job: Job) -> FinishedCell | FailedCell:
    """Run the method on the table and measure its result. If this fails, return the failure, so that other cells go on.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts. This ends the run, and is not a failure of the cell.
    """
    try:
        table, held_out = rows_of(job.source)
        if job.split is not None:
            if held_out is not None:
                raise InputError("the generator holds rows out already; leave out 'folds'")
            table, held_out = job.split.apply(table)
        started = time.process_time()
        result = job.method.run(table, job.cell, job.seed)
        seconds = time.process_time() - started
        epsilon = {} if job.cell.epsilon is None else {"epsilon": float(job.cell.epsilon)}
        trial = Trial(result, table, held_out, {**job.cell.params, **epsilon}, seconds)
        values: dict[str, float] = {}
        for measuring in job.measures:
            for name, value in measuring.take(trial).items():
                if name in values or name in RESERVED:
                    what = "two measures give it" if name in values else "it is the name of another column"
                    raise InputError(f"the value '{name}' is ambiguous: {what}; give the measure a name of its own")
                values[name] = value
    except Exception as error:
        if isinstance(error, RunStopped) and error.interrupted:
            raise KeyboardInterrupt from None
        return FailedCell(job.cell, _reason(error))
    return FinishedCell(job.cell, job.key, values, seconds)


def _reason(error: Exception) -> str:
    """Describe a failure in one sentence. If the error of a run that stopped has a cause, describe the cause."""
    if isinstance(error, DPFrameworkError) and error.__cause__ is None:
        return first_line(error)
    cause = error.__cause__ if isinstance(error, DPFrameworkError) and error.__cause__ is not None else error
    reason = first_line(cause)
    return f"{type(cause).__name__}{place_of_error(cause)}" + (f": {reason}" if reason else "")
