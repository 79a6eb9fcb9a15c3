"""The measures that an experiment can take of its runs. None of them is private."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from dpframework.facts.errors import InputError, nearest
from dpframework.lab.evaluation.class_prediction_quality import prediction_of
from dpframework.lab.evaluation.exact_redescription_quality import (
    match_redescriptions,
    redescription_quality,
    select_redescriptions,
)
from dpframework.lab.evaluation.pattern_retention_between_tables import Retention, class_counts, retention_of
from dpframework.lab.evaluation.sklearn_baselines import cart as learned_by_cart
from dpframework.lab.evaluation.trial_record import Measure, Trial, find_once
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.tables.coded_table import Table


def seconds(trial: Trial) -> Mapping[str, float]:
    """Return the CPU seconds of the run, as "seconds"."""
    return {"seconds": trial.seconds}


def tree(trial: Trial) -> Mapping[str, float]:
    """Return the number of leaves of a tree as "leaves", and its depth as "depth"."""
    model = _tree_of(trial, "leaves", "a tree")
    return {"leaves": float(model.leaves), "depth": float(model.depth)}


def prediction(
    trial: Trial,
    *,
    target: str | None = None,
    positive: str | None = None,
    rows: str = "held-out",
    cart: Mapping[str, Any] | None = None,
) -> Mapping[str, float]:
    """Return "accuracy", "f_measure" and "auc" of a tree, or of anything that predicts rows of a table.

    If the result is a table, the measures are those of a CART tree that is learned from that table.

    Parameters
    ----------
    trial
        The trial. Its result is a model, has a model as `tree`, or is a table.
    target
        The class attribute; by default the method's parameter of that name.
    positive
        See `prediction_of`.
    rows
        "held-out", or "table" for the rows that the result was mined from. On these rows a result looks better than it
        is.
    cart
        Settings of CART, for a table (see `dpframework.lab.evaluation.sklearn_baselines.cart`).

    Raises
    ------
    InputError
        If the result does not predict, the trial has no held-out rows, or a parameter is wrong.
    """
    if rows not in ("held-out", "table"):
        raise InputError(f"rows is {rows!r}; accepted are 'held-out' and 'table'")
    table = trial.table if rows == "table" else trial.held_out
    if table is None:
        raise InputError('held-out rows are needed; keep a fold apart, or set rows = "table"')
    model = getattr(trial.result, "tree", trial.result)
    if isinstance(model, Table):
        model = learned_by_cart(model, _target(trial, target), **(cart or {}))
    return prediction_of(model, table, _target(trial, target), positive=positive).to_dict()


def retention(trial: Trial, *, target: str | None = None, cart: Mapping[str, Any] | None = None) -> Mapping[str, float]:
    """Return "pattern_accuracy", "pattern_accuracy_loss", "psd", "pld" and "patterns" (their number).

    These compare an original table D with a modified table M (see
    `dpframework.lab.evaluation.pattern_retention_between_tables`). D is the trial's table. If the result is a table,
    the patterns are those that CART finds in D, and M is the result. If the result is a tree, the patterns are the
    tree's own, and its released counts stand for M.

    Parameters
    ----------
    trial
        The trial. Its result is a table of the same schema, or a tree.
    target
        The class attribute; by default the method's parameter of that name.
    cart
        Settings of CART, for a table (see `dpframework.lab.evaluation.sklearn_baselines.cart`).

    Raises
    ------
    InputError
        If the result is neither a table nor a tree, or a parameter is wrong.
    """
    if isinstance(trial.result, Table):
        patterns = learned_by_cart(trial.table, _target(trial, target), **(cart or {})).patterns()
        return retention_of(patterns, trial.table, trial.result).to_dict()
    model = _tree_of(trial, "leaf_counts", "a tree that releases the counts of its leaves")
    patterns = model.patterns()
    counts = class_counts(patterns, trial.table)
    return Retention(patterns, model.target.labels, counts, model.leaf_counts(), trial.table.rows).to_dict()


def redescriptions(trial: Trial, *, keep: str | float = "all") -> Mapping[str, float]:
    """Return the quality of redescriptions on the rows themselves (see `RedescriptionQuality.to_dict`).

    Parameters
    ----------
    trial
        The trial. Its result is a `Redescriptions`.
    keep
        The redescriptions to measure: "all", "trusted" or "pruned". Or a number: then only redescriptions whose noisy
        support is at least this number are measured.

    Raises
    ------
    InputError
        If the result is not a `Redescriptions`, or `keep` is wrong.
    """
    return redescription_quality(select_redescriptions(_redescriptions_of(trial), keep), trial.table).to_dict()


def recovery(
    trial: Trial,
    *,
    baseline: str,
    settings: Mapping[str, Any] | None = None,
    threshold: float = 0.8,
    keep: str | float = "all",
) -> Mapping[str, float]:
    """Return "recovered", "similarity" and "reference", from a reference set that was found without privacy.

    These are the share of the reference set that was recovered, the mean similarity, and the size of that set.

    Parameters
    ----------
    trial
        The trial. Its result is a `Redescriptions`.
    baseline
        The function that returns the non-private set, as "package.module:function". It takes a table and the settings,
        and is called once for each table.
    settings
        The settings of the baseline.
    threshold
        The least similarity at which a redescription counts as recovered (see `Matching`).
    keep
        As for `redescriptions`.

    Raises
    ------
    InputError
        If the result is not a `Redescriptions`, the baseline is not found, or a setting is wrong.
    """
    given = dict(settings or {})
    key = (baseline, json.dumps(given, sort_keys=True, default=str))
    reference: list[Redescription] = find_once(
        trial.table, key, lambda: list(load_function(baseline, "baseline")(trial.table, **given))
    )
    found = match_redescriptions(select_redescriptions(_redescriptions_of(trial), keep), reference, trial.table)
    return {"recovered": found.recovered(threshold), "similarity": found.mean, "reference": float(len(reference))}


def _tree_of(trial: Trial, attribute: str, what: str) -> Any:
    model = getattr(trial.result, "tree", trial.result)
    if not hasattr(model, attribute):
        raise InputError(f"{what} is needed, not {type(trial.result).__name__}")
    return model


def _redescriptions_of(trial: Trial) -> Redescriptions:
    if not isinstance(trial.result, Redescriptions):
        raise InputError(f"redescriptions are needed, not {type(trial.result).__name__}")
    return trial.result


def _target(trial: Trial, target: str | None) -> str:
    known = target if target is not None else trial.parameters.get("target")
    if known is None:
        raise InputError("the class attribute is unknown; name it as the measure's target")
    return str(known)


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "prediction": prediction,
        "recovery": recovery,
        "redescriptions": redescriptions,
        "retention": retention,
        "seconds": seconds,
        "tree": tree,
    }
)
"""The built-in measures, by short name."""


def measure(name: str) -> Measure:
    """Return a measure by its short name, or by "package.module:function".

    Raises
    ------
    InputError
        If there is no measure of that name. The message names the nearest name.

    Examples
    --------
    >>> from dpframework.lab.clinic import clinic_table
    >>> measure("seconds")(Trial(result=None, table=clinic_table(10), seconds=1.5))
    {'seconds': 1.5}
    """
    if ":" in name:
        return load_function(name, "measure")
    if name not in MEASURES:
        raise InputError(
            f"no measure is named '{name}' (other functions are given as package.module:function); "
            f"{nearest(name, MEASURES)}"
        )
    return MEASURES[name]


def load_function(path: str, what: str) -> Callable[..., Any]:
    """Return the function that "package.module:function" names.

    Raises
    ------
    InputError
        If the function cannot be imported, or is not callable. The message begins with `what`.
    """
    module, _, name = path.partition(":")
    try:
        found = importlib.import_module(module)
    except (ImportError, ValueError) as error:
        raise InputError(f"{what} '{path}': module '{module}' cannot be imported ({error})") from None
    function = getattr(found, name, None)
    if not callable(function):
        known = [known for known, thing in vars(found).items() if callable(thing) and not known.startswith("_")]
        raise InputError(f"{what} '{path}': '{module}' has no function '{name}'; {nearest(name, known)}")
    return function  # type: ignore[no-any-return]
