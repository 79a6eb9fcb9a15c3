"""The grid of an experiment, with its data sets, methods and measures. A cell is one run of one method.

There is one cell for each combination of data set, method, parameters, epsilon, repetition and fold. These are the
cell's coordinates. The seed of a cell is a hash of its coordinates and of the experiment's seed. So the results of a
cell do not depend on other cells, on their order, or on the process that computes them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.parameter_checks import require_known
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.lab.experiment.user_functions import Code
from dpframework.study.table_place import Data

#: Names of coordinates and columns that parameters and measured values cannot take.
RESERVED = ("data", "method", "epsilon", "repetition", "fold", "cell", "seconds", "private", "value", "measure")
_PLACEHOLDER = re.compile(r"\{([\w-]+)\}")


def canonical(form: Any) -> str:
    """Return JSON-safe content as a text that is the same on every machine."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def digest(*parts: Any) -> str:
    """Return the SHA-256, in hex, of JSON-safe parts."""
    return hashlib.sha256(canonical(list(parts)).encode()).hexdigest()


def seed_of(*parts: Any) -> int:
    """Return a seed for JSON-safe parts: the first 128 bits of their digest."""
    return int(digest(*parts)[:32], 16)


def combinations(params: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the fixed parameters with every combination of the grid's values, where the last key varies fastest.

    Examples
    --------
    >>> list(combinations({"target": "ill"}, {"max_depth": [1, 2]}))
    [{'target': 'ill', 'max_depth': 1}, {'target': 'ill', 'max_depth': 2}]
    """
    return ({**params, **dict(zip(grid, chosen, strict=True))} for chosen in itertools.product(*grid.values()))


def fill_in(form: Any, values: Mapping[str, Any], where: str) -> Any:
    """Replace each placeholder `{name}` in a parameter's texts by the value that a data set gives this name.

    A text that is just one placeholder becomes the value itself, which keeps its type.

    Raises
    ------
    InputError
        If the data set has no value of that name.

    Examples
    --------
    >>> fill_in({"target": "{class}", "max_depth": "{depth}"}, {"class": "income", "depth": 5}, "")
    {'target': 'income', 'max_depth': 5}
    """
    if isinstance(form, Mapping):
        return {key: fill_in(part, values, where) for key, part in form.items()}
    if isinstance(form, list | tuple):
        return [fill_in(part, values, where) for part in form]
    if not isinstance(form, str):
        return form

    def value(match: re.Match[str]) -> Any:
        name = match.group(1)
        if name not in values:
            raise InputError(f"{where}'{form}': the data set has no value '{name}'; {nearest(name, values)}")
        return values[name]

    whole = _PLACEHOLDER.fullmatch(form)
    return value(whole) if whole else _PLACEHOLDER.sub(lambda match: str(value(match)), form)


@final
@attrs.frozen
class NamedTables:
    """Tables under one name, from a file or from a generator.

    Attributes
    ----------
    name
        A name that is unique in the experiment.
    data, schema
        The location of the file, and its schema. None for a generator.
    generator
        A function `(*, seed, **params)` that returns a table, or a table and held-out rows. None for a file.
    params, grid
        The generator's fixed parameters, and the values of those that vary.
    values
        The values that replace `{name}` in the parameters of methods and measures on this data set. The generator's
        parameters also replace their names there.
    """

    name: str
    data: Data | None = None
    schema: Schema | None = None
    generator: Code | None = None
    params: Mapping[str, Any] = attrs.field(factory=dict)
    grid: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    values: Mapping[str, Any] = attrs.field(factory=dict)


@final
@attrs.frozen
class Method:
    """A method of the comparison, either a miner or a function that mines without dpframework.

    Attributes
    ----------
    name
        A name that is unique in the experiment.
    miner
        The name of a registered miner. None for a baseline.
    baseline
        A function `(table, *, seed, **params) -> result`, which also takes `epsilon` if the method has epsilons. None
        for a miner.
    params, grid
        The fixed parameters, and the values of those that vary.
    epsilon
        The method's own epsilons. If None, a miner has the experiment's epsilons, and a baseline has none.
    repetitions
        The method's own number of repetitions if it needs fewer than the experiment, such as 1 for a method that is not
        random. None for the experiment's number.
    data
        The names of the data sets on which the method is run; None for all.
    """

    name: str
    miner: str | None = None
    baseline: Code | None = None
    params: Mapping[str, Any] = attrs.field(factory=dict)
    grid: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    epsilon: tuple[Fraction, ...] | None = None
    repetitions: int | None = None
    data: tuple[str, ...] | None = None


@final
@attrs.frozen
class MeasureUse:
    """A measure with its parameters.

    Attributes
    ----------
    measure
        The name of a built-in measure, or another function.
    name
        A prefix of the names of the measured values, as in `name.accuracy`. None for no prefix.
    params
        The parameters of the measure.
    methods, data
        The names of the methods and of the data sets for which the measure is taken; None for all.
    """

    measure: str | Code
    name: str | None = None
    params: Mapping[str, Any] = attrs.field(factory=dict)
    methods: tuple[str, ...] | None = None
    data: tuple[str, ...] | None = None

    def is_for(self, cell: Cell) -> bool:
        """Tell whether the measure is taken of a cell."""
        return (self.methods is None or cell.method in self.methods) and (self.data is None or cell.data in self.data)


@final
@attrs.frozen
class Summary:
    """A table or plot of the results.

    Attributes
    ----------
    kind
        "table" or "plot".
    name
        The name of the file that the summary is written to, without prefix and ending.
    title
        The heading above the table or plot.
    values
        The names of the measured values that the summary shows. A plot shows one.
    rows, columns
        The coordinates that distinguish a table's rows and its columns. In a plot, `rows` distinguish the lines, and
        `columns` the panels.
    x
        The coordinate along a plot's horizontal axis; None for a table.
    statistic
        "mean", "median" or "quartiles".
    where
        For some coordinates, the values of the cells to keep. A cell that lacks the coordinate is kept.
    x_scale, y_scale
        "linear" or "log".
    """

    kind: str
    name: str
    title: str
    values: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    x: str | None = None
    statistic: str = "mean"
    where: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    x_scale: str = "linear"
    y_scale: str = "linear"

    @property
    def by(self) -> tuple[str, ...]:
        """All coordinates that distinguish the groups of the summary."""
        return (*self.rows, *self.columns, *(() if self.x is None else (self.x,)))

    def selects(self, coordinates: Mapping[str, Any]) -> bool:
        """Tell whether a cell with these coordinates is in the summary."""
        return all(
            coordinates.get(key) is None or any(coordinates[key] == value for value in wanted)
            for key, wanted in self.where.items()
        )


@final
@attrs.frozen
class Cell:
    """One run of one method, with its coordinates.

    Attributes
    ----------
    data, data_params
        The data set, and its generator's parameters.
    method, params
        The method, and its parameters on this data set.
    epsilon
        The exact epsilon of the method. None for a method without one.
    repetition, fold
        The numbers of the repetition and the fold, from 1. The fold is None without cross-validation.
    """

    data: str
    data_params: Mapping[str, Any]
    method: str
    params: Mapping[str, Any]
    epsilon: Fraction | None
    repetition: int
    fold: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form, with the exact epsilon as a text."""
        form = attrs.asdict(self, recurse=False)
        return form | {"epsilon": None if self.epsilon is None else str(self.epsilon)}

    def __str__(self) -> str:
        parts = [f"'{self.method}' on '{self.data}'"]
        if self.epsilon is not None:
            parts.append(f"epsilon {self.epsilon}")
        parts.append(f"repetition {self.repetition}")
        if self.fold is not None:
            parts.append(f"fold {self.fold}")
        return ", ".join(parts)


@final
@attrs.frozen
class Experiment:
    """The contents of an experiment file.

    Attributes
    ----------
    source
        The experiment file.
    title
        The title of the summary page.
    seed
        The seed from which all other seeds are derived.
    repetitions, folds
        The number of repetitions of each method, and the number of folds of a cross-validation, or None.
    repetitions_at
        The number of repetitions at each epsilon that has a number of its own.
    epsilon, relation, delta, allow, unit
        The epsilons of the grid, and the settings that all runs share, as in a study.
    data, methods, measures, summaries
        The parts of the file, in the order of the file.
    """

    source: Path
    title: str
    seed: int
    repetitions: int
    repetitions_at: Mapping[Fraction, int]
    folds: int | None
    epsilon: tuple[Fraction, ...]
    relation: Relation
    delta: Fraction
    allow: tuple[str, ...]
    unit: PrivacyUnit
    data: tuple[NamedTables, ...]
    methods: tuple[Method, ...]
    measures: tuple[MeasureUse, ...]
    summaries: tuple[Summary, ...]

    @property
    def tables(self) -> tuple[Summary, ...]:
        """The summaries that are tables."""
        return tuple(summary for summary in self.summaries if summary.kind == "table")

    @property
    def plots(self) -> tuple[Summary, ...]:
        """The summaries that are plots."""
        return tuple(summary for summary in self.summaries if summary.kind == "plot")

    def data_set(self, name: str) -> NamedTables:
        """Return the data set of that name; an unknown name is an `InputError`."""
        require_known(name, [data.name for data in self.data], "data set")
        return next(data for data in self.data if data.name == name)

    def method(self, name: str) -> Method:
        """Return the method of that name; an unknown name is an `InputError`."""
        require_known(name, [method.name for method in self.methods], "method")
        return next(method for method in self.methods if method.name == name)

    def cells(self) -> Iterator[Cell]:
        """Yield every cell in the order of the file, where repetitions and folds vary fastest."""
        for data in self.data:
            for data_params in combinations(data.params, data.grid):
                values = {**data.values, **data_params}
                for method in self.methods:
                    if method.data is not None and data.name not in method.data:
                        continue
                    epsilons: Sequence[Fraction | None] = self.epsilon if method.miner is not None else (None,)
                    if method.epsilon is not None:
                        epsilons = method.epsilon
                    folds: Sequence[int | None] = (None,) if self.folds is None else range(1, self.folds + 1)
                    for params in combinations(method.params, method.grid):
                        made = fill_in(params, values, f"method '{method.name}' on data '{data.name}': ")
                        # `itertools.product` would first list all repetitions, and a file may ask for very many.
                        for epsilon in epsilons:
                            for repetition in range(1, self._repetitions_of(method, epsilon) + 1):
                                for fold in folds:
                                    yield Cell(data.name, data_params, method.name, made, epsilon, repetition, fold)

    def _repetitions_of(self, method: Method, epsilon: Fraction | None) -> int:
        most = self.repetitions if epsilon is None else self.repetitions_at.get(epsilon, self.repetitions)
        return most if method.repetitions is None else min(most, method.repetitions)

    def grid_names(self) -> tuple[str, ...]:
        """Return the names of the parameters that vary: first those of data sets, then those of methods."""
        grids = [*(data.grid for data in self.data), *(method.grid for method in self.methods)]
        return tuple(dict.fromkeys(key for grid in grids for key in grid))

    def coordinates(self, cell: Cell) -> dict[str, Any]:
        """Return a cell's coordinates by the column names of the results. A coordinate that the cell lacks is None."""
        data, method = self.data_set(cell.data), self.method(cell.method)
        varied = {key: cell.params[key] for key in method.grid} | {key: cell.data_params[key] for key in data.grid}
        return {
            "data": cell.data,
            "method": cell.method,
            **{key: varied.get(key) for key in self.grid_names()},
            "epsilon": cell.epsilon,
            "repetition": cell.repetition,
            "fold": cell.fold,
        }

    def seed_for(self, cell: Cell) -> int:
        """Return the seed of a cell's method, 128 bits from the experiment's seed and the cell's coordinates."""
        return seed_of(self.seed, cell.to_dict())

    def shared_seed(self, cell: Cell, what: str) -> int:
        """Return a seed that all methods share in one repetition on a data set. `what` names the seed's use.

        So the results of different methods are paired: they come from the same rows and the same folds.
        """
        return seed_of(self.seed, what, cell.data, dict(cell.data_params), cell.repetition)
