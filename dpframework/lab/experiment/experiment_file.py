"""The strict reading of experiment files. It reads schemas, but opens no data and runs no cell of the grid."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs

from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.facts.privacy_losses import Relation, decimal_text, exact, positive
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import read_schema
from dpframework.facts.toml import kind_of, prefix_errors, read_toml, refuse_unknown, require_text, resolve_path
from dpframework.lab.experiment.experiment_contents_and_grid import (
    RESERVED,
    Experiment,
    MeasureUse,
    Method,
    NamedTables,
    Summary,
    canonical,
)
from dpframework.lab.experiment.user_functions import Code
from dpframework.plan.nodes import NAME_CHARACTER
from dpframework.study.plugin_registry import registry
from dpframework.study.table_place import EXPERIMENT_KEYS, Data, require_views

_KEYS = (
    *("title", "seed", "repetitions", "repetitions_at", "folds"),
    *("epsilon", "relation", "delta", "allow", "unit", "rows_per_unit"),
)
_PARTS = ("data", "method", "measure", "table", "plot")
_GENERATOR_KEYS = ("generator", "params", "grid")
_METHOD_KEYS = ("name", "miner", "baseline", "params", "grid", "epsilon", "repetitions", "data")
_MEASURE_KEYS = ("measure", "name", "params", "methods", "data")
_SUMMARY_KEYS = ("name", "title", "where", "statistic")
_TABLE_KEYS = (*_SUMMARY_KEYS, "rows", "columns", "value")
_PLOT_KEYS = (*_SUMMARY_KEYS, "x", "y", "lines", "panels", "x_scale", "y_scale")
_FILE_NAME = re.compile(r"[\w.-]+")
_LONGEST_NAME = 200
_SCALES = ("linear", "log")


def load_experiment(path: str | os.PathLike[str], *, repetitions: int | None = None) -> Experiment:
    """Read an experiment file. Data files need not exist, and no cell of the grid is run.

    Parameters
    ----------
    path
        A TOML file with `[[data]]`, `[[method]]` and `[[measure]]` (see the page on experiment files).
    repetitions
        The number of repetitions to use instead of the file's numbers. The cells of a run with fewer repetitions are
        also cells of a run with more.

    Raises
    ------
    InputError
        If the file cannot be read or does not describe an experiment. The message names the file and the part or key.
        For an unknown name it suggests the nearest known one.
    """
    path = Path(path)
    with prefix_errors(f"{path}: "):
        return _experiment(read_toml(path, "an experiment file"), path, repetitions)


def _experiment(form: Mapping[str, Any], path: Path, repetitions: int | None) -> Experiment:
    if "step" in form or "privacy" in form:
        raise InputError("looks like a study; an experiment is expected, with [[data]], [[method]] and [[measure]]")
    if "attribute" in form:
        raise InputError("looks like a schema; an experiment is expected, with [[data]], [[method]] and [[measure]]")
    refuse_unknown(form, (*_KEYS, *_PARTS), "unknown table or key")
    folder = path.absolute().parent
    for part in ("data", "method", "measure"):
        if not form.get(part):
            raise InputError(f"has no [[{part}]]; an experiment needs at least one")
    unit = PrivacyUnit(form.get("unit"), form.get("rows_per_unit", 1))
    data = tuple(_data(part, where, folder, unit) for part, where in _read_named_parts(form, "data"))
    names = [one.name for one in data]
    methods = tuple(_method(part, where, folder, names) for part, where in _read_named_parts(form, "method"))
    at = _table(form, "repetitions_at", "") if repetitions is None else {}
    repetitions_at = {_epsilon(key, "repetitions_at: "): _whole(at, key, "repetitions_at: ") for key in at}
    if len(repetitions_at) < len(at):
        raise InputError("repetitions_at holds an epsilon twice")
    experiment = Experiment(
        source=path,
        title=require_text(form, "title", "") if "title" in form else path.stem,
        seed=_whole(form, "seed", "", default=0, least=0),
        repetitions=repetitions or _whole(form, "repetitions", "", default=1),
        repetitions_at=repetitions_at,
        folds=_whole(form, "folds", "", least=2) if "folds" in form else None,
        epsilon=_epsilons(form, ""),
        relation=Relation.parse(require_text(form, "relation", "")) if "relation" in form else _DEFAULT_RELATION,
        delta=exact(form.get("delta", 0), "delta"),
        allow=_texts(form, "allow", ""),
        unit=unit,
        data=data,
        methods=methods,
        measures=tuple(_measures(form, folder, names, [method.name for method in methods])),
        summaries=tuple(_summary(kind, *each) for kind in ("table", "plot") for each in _read_named_parts(form, kind)),
    )
    _require_consistent(experiment)
    return experiment


MOST_CELLS = 100_000
_DEFAULT_RELATION = Relation.ADD_OR_REMOVE_ONE


def _require_consistent(experiment: Experiment) -> None:
    """Refuse an experiment whose parts do not fit together, or that has no cells or too many."""
    for method in experiment.methods:
        if method.miner is not None and method.epsilon is None and not experiment.epsilon:
            raise InputError(f"method '{method.name}': has no epsilon; give the experiment epsilon = [...]")
    epsilons = {*experiment.epsilon, *(one for method in experiment.methods for one in method.epsilon or ())}
    for epsilon in experiment.repetitions_at:
        if epsilon not in epsilons:
            raise InputError(f"repetitions_at: nothing is run at epsilon {decimal_text(epsilon)}")
    columns = ("data", "method", *experiment.grid_names(), "epsilon", "repetition", "fold")
    cells = list(itertools.islice(experiment.cells(), MOST_CELLS + 1))
    if not cells:
        raise InputError("has no cell: no method is run on any data set")
    if len(cells) > MOST_CELLS:
        raise InputError(f"has more than {MOST_CELLS:,} cells; take fewer repetitions, folds, epsilons or parameters")
    every = [(cell, experiment.coordinates(cell)) for cell in cells]
    for summary in experiment.summaries:
        where = f"{summary.kind} '{summary.name}': "
        for name in (*summary.by, *summary.where):
            if name not in columns:
                raise InputError(f"{where}there is no coordinate '{name}'; {nearest(name, columns)}")
        chosen = [(cell, coordinates) for cell, coordinates in every if summary.selects(coordinates)]
        if not chosen:
            raise InputError(f"{where}its 'where' selects no cell")
        _refuse_mixed_values(summary, [coordinates for _, coordinates in chosen], where)


def _refuse_mixed_values(summary: Summary, chosen: Iterable[Mapping[str, Any]], where: str) -> None:
    """Refuse a summary if cells of one of its groups differ in anything other than repetition and fold."""
    groups: dict[str, Mapping[str, Any]] = {}
    for coordinates in chosen:
        others = {key: value for key, value in coordinates.items() if key not in ("repetition", "fold")}
        first = groups.setdefault(canonical([others[key] for key in summary.by if key in others]), others)
        for key, value in others.items():
            if value != first[key]:
                raise InputError(
                    f"{where}would mix several values of '{key}' ({_value_text(first[key])} and {_value_text(value)}); "
                    + ("put it in rows or columns" if summary.kind == "table" else "put it in lines or panels")
                    + ", or choose one value with 'where'"
                )


def _value_text(value: Any) -> str:
    return "none" if value is None else str(value)


def _read_named_parts(form: Mapping[str, Any], kind: str) -> list[tuple[Mapping[str, Any], str]]:
    """Return the parts under `[[kind]]`, each with the words that begin errors about it. Names must be unique."""
    found: dict[str, tuple[Mapping[str, Any], str]] = {}
    for number, part in enumerate(_read_parts(form, kind), start=1):
        name = require_text(part, "name", f"{kind} number {number}: ")
        # Tables and plots show the name, and drawing thousands of letters takes minutes.
        if len(name) > _LONGEST_NAME:
            raise InputError(f"{kind} number {number}: its name has more than {_LONGEST_NAME} characters; shorten it")
        if name in found:
            raise InputError(f"{kind} '{name}': this name is used twice; give each {kind} its own")
        found[name] = part, f"{kind} '{name}': "
    return list(found.values())


def _read_parts(form: Mapping[str, Any], kind: str) -> Sequence[Mapping[str, Any]]:
    parts = form.get(kind, [])
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise InputError(f"each {kind} must be written under its own [[{kind}]] heading, with two brackets")
    return parts


def _data(form: Mapping[str, Any], where: str, folder: Path, unit: PrivacyUnit) -> NamedTables:
    refuse_unknown(form, ("name", "values", *_GENERATOR_KEYS, *EXPERIMENT_KEYS), f"{where}unknown key")
    name, values = form["name"], _table(form, "values", where)
    if "generator" in form:
        refuse_unknown(form, ("name", "values", *_GENERATOR_KEYS), f"{where}with a generator, there can be no key")
        generator = Code(require_text(form, "generator", where), folder)
        params, grid = _parameters(form, where)
        return NamedTables(name, generator=generator, params=params, grid=grid, values=values)
    refuse_unknown(form, ("name", "values", *EXPERIMENT_KEYS), f"{where}without a generator, there can be no key")
    place = {key: value for key, value in form.items() if key in EXPERIMENT_KEYS}
    with prefix_errors(where):
        data = Data.from_form(place, folder, where, unrestricted=True)
        # Rows are not secret here, so an error is better than a wrong table.
        if data.out_of_domain is None:
            data = attrs.evolve(data, out_of_domain=OutOfDomain.ERROR)
        schema = read_schema(resolve_path(require_text(form, "schema", where), folder))
        unit.require_fits(schema)
        if data.two_views:
            require_views(schema, where)
            unit.require_joined_by(data.id)
    return NamedTables(name, data=data, schema=schema, values=values)


def _method(form: Mapping[str, Any], where: str, folder: Path, data: Sequence[str]) -> Method:
    refuse_unknown(form, _METHOD_KEYS, f"{where}unknown key")
    if ("miner" in form) == ("baseline" in form):
        raise InputError(f"{where}needs either a miner or a baseline")
    miner = require_text(form, "miner", where) if "miner" in form else None
    if miner is not None:
        if miner not in registry().miners:
            raise InputError(f"{where}no miner is named '{miner}'; {nearest(miner, registry().miners)}")
        # A [[method]] with a miner becomes a step of the same name. Only some characters may be in the names of a plan.
        name = form["name"]
        wrong = next((character for character in name if not re.fullmatch(NAME_CHARACTER, character)), None)
        if wrong is not None:
            raise InputError(
                f"{where}the name of a method with a miner cannot hold '{wrong}', since plans show this name; "
                "letters from A to Z, digits, spaces and . _ = + - are accepted"
            )
    params, grid = _parameters(form, where)
    return Method(
        form["name"],
        miner=miner,
        baseline=Code(require_text(form, "baseline", where), folder) if miner is None else None,
        params=params,
        grid=grid,
        epsilon=_epsilons(form, where) or None,
        repetitions=_whole(form, "repetitions", where) if "repetitions" in form else None,
        data=_among(form, "data", where, data),
    )


def _parameters(form: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Any]]]:
    """Return the fixed parameters, and the list of values of each parameter that varies."""
    params, grid = _table(form, "params", where), _table(form, "grid", where)
    for key in (*params, *grid):
        if key == "epsilon":
            raise InputError(f"{where}epsilon is a key of its own, not one of the parameters")
        if key == "seed":
            raise InputError(f"{where}seed is not a parameter; each cell is given its own")
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{where}grid: {key} must be a list of values, such as [1, 2, 3]")
        if key in params:
            raise InputError(f"{where}{key} is in params and in grid; give it once")
        if key in RESERVED:
            raise InputError(f"{where}grid: '{key}' is the name of a column of the results; it cannot vary")
        if len({canonical(value) for value in values}) < len(values):
            raise InputError(f"{where}grid: {key} holds a value twice")
    return params, grid


def _measures(
    form: Mapping[str, Any], folder: Path, data: Sequence[str], methods: Sequence[str]
) -> Iterable[MeasureUse]:
    for number, part in enumerate(_read_parts(form, "measure"), start=1):
        place = require_text(part, "measure", f"measure number {number}: ")
        where = f"measure '{place}': "
        refuse_unknown(part, _MEASURE_KEYS, f"{where}unknown key")
        if place == "seconds":
            raise InputError(
                f"{where}is always taken; remove this [[measure]], since tables and plots can show 'seconds' anyway"
            )
        yield MeasureUse(
            Code(place, folder) if ":" in place else place,
            name=require_text(part, "name", where) if "name" in part else None,
            params=_table(part, "params", where),
            methods=_among(part, "methods", where, methods),
            data=_among(part, "data", where, data),
        )


def _summary(kind: str, form: Mapping[str, Any], where: str) -> Summary:
    is_table = kind == "table"
    refuse_unknown(form, _TABLE_KEYS if is_table else _PLOT_KEYS, f"{where}unknown key")
    if not _FILE_NAME.fullmatch(form["name"]):
        raise InputError(f"{where}its name is used for a file; use letters, digits, dots, dashes and underscores")
    statistic = require_text(form, "statistic", where) if "statistic" in form else "mean"
    known = ("mean", "median", "quartiles")
    if statistic not in known:
        raise InputError(f"{where}statistic '{statistic}' is unknown; {nearest(statistic, known)}")
    key = "value" if is_table else "y"
    values = _texts(form, key, where)
    if not values:
        raise InputError(f"{where}has no '{key}'; name the measured value to show")
    if not is_table and len(values) > 1:
        raise InputError(f"{where}y has several measured values; make a plot for each")
    scales = {axis: form.get(axis, "linear") for axis in ("x_scale", "y_scale")}
    for axis, scale in scales.items():
        if scale not in _SCALES:
            raise InputError(f"{where}{axis} must be 'linear' or 'log'")
    title = require_text(form, "title", where) if "title" in form else form["name"]
    kept = {k: value if isinstance(value, list) else [value] for k, value in _table(form, "where", where).items()}
    if "epsilon" in kept:
        kept["epsilon"] = [_epsilon(value, where) for value in kept["epsilon"]]
    return Summary(
        kind,
        form["name"],
        title,
        values,
        rows=_texts(form, "rows" if is_table else "lines", where, default=("method",)),
        columns=_texts(form, "columns" if is_table else "panels", where),
        x=None if is_table else require_text(form, "x", where),
        statistic=statistic,
        where=kept,
        **scales,
    )


def _epsilons(form: Mapping[str, Any], where: str) -> tuple[Fraction, ...]:
    """Return the exact epsilons. There are none if the part has no key `epsilon`."""
    if "epsilon" not in form:
        return ()
    given = form["epsilon"] if isinstance(form["epsilon"], list) else [form["epsilon"]]
    found = tuple(_epsilon(value, where) for value in given)
    if not found or len(set(found)) < len(found):
        raise InputError(f"{where}epsilon must be a list of different numbers, such as [0.1, 1]")
    return found


def _epsilon(value: Any, where: str) -> Fraction:
    try:
        return positive(value)
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def _whole(form: Mapping[str, Any], key: str, where: str, *, default: int | None = None, least: int = 1) -> int:
    value: Any = form.get(key, default)
    if not is_whole_number(value, least):
        raise InputError(f"{where}{key} must be a whole number from {least} on")
    return value


def _table(form: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    table = form.get(key, {})
    if not isinstance(table, Mapping):
        raise InputError(f'{where}{key} must be a table, such as {{ target = "income" }}, not {kind_of(table)}')
    return table


def _texts(form: Mapping[str, Any], key: str, where: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a list of texts, which may be given as a single text."""
    if key not in form:
        return default
    given = form[key] if isinstance(form[key], list) else [form[key]]
    if not all(isinstance(text, str) for text in given):
        raise InputError(f"{where}{key} must be a text or a list of texts")
    return tuple(given)


def _among(form: Mapping[str, Any], key: str, where: str, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names that a key lists, all of which must be in `known`. Without the key, return None: all names."""
    names = _texts(form, key, where)
    for name in names:
        if name not in known:
            raise InputError(f"{where}{key}: there is no '{name}'; {nearest(name, known)}")
    return names if key in form else None
