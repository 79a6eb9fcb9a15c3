"""Measures that the built-in ones leave out: of one pattern, and of what a tree says of another's patterns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts.logical_descriptions_of_rows import Equals, description_from_dict
from dpframework.lab.evaluation import Retention, Trial, cart, retention_of
from dpframework.lab.evaluation.pattern_retention_between_tables import class_counts
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.results import Pattern


def one_pattern(trial: Trial, *, pattern: Mapping[str, Any], label: str, target: str) -> Mapping[str, float]:
    """Return of one pattern how many rows of the result it covers, and the chi-squared distance of their classes.

    Parameters
    ----------
    trial
        Its result is a table made from the trial's.
    pattern
        The description X, as `Description.to_dict` writes it.
    label, target
        The class that it predicts, and the attribute.
    """
    kept = retention_of([Pattern(description_from_dict(pattern), Equals(target, label))], trial.table, trial.result)
    return {"support": float(kept.supports[0, 1]), "chi_squared": float(kept.label_distances[0])}


def told(trial: Trial, *, target: str) -> Mapping[str, float]:
    """Return what a tree tells of the patterns that CART finds in the rows: "told_pld" and "told_accuracy_loss".

    M is the table in which each row's class is spread as the tree says: what a reader who has the tree, and asks how
    the classes are distributed where a pattern of the true table holds, is answered. PSD is 0 then, for a tree says
    nothing of rows by other attributes than the class.

    Parameters
    ----------
    trial
        Its result predicts class probabilities.
    target
        The class attribute.
    """
    patterns, original = _patterns(trial.table, target)
    model, labels = getattr(trial.result, "tree", trial.result), trial.table.schema[target].labels
    probabilities = np.zeros((trial.table.rows, len(labels)))
    known = [labels.index(label) for label in getattr(model, "classes_", labels)]
    probabilities[:, known] = model.predict_proba(trial.table)
    columns = columns_of(trial.table)
    modified = np.array([probabilities[pattern.description.holds(columns)].sum(axis=0) for pattern in patterns])
    kept = Retention(patterns, labels, original, modified, trial.table.rows)
    return {"told_pld": kept.pld, "told_accuracy_loss": kept.accuracy_loss}


_KNOWN: dict[bytes, tuple[tuple[Pattern, ...], NDArray[np.float64]]] = {}


def _patterns(table: dpf.Table, target: str) -> tuple[tuple[Pattern, ...], NDArray[np.float64]]:
    """Return CART's patterns with their rows by class, learned once for the same rows: methods share folds."""
    key = hashlib.sha256(target.encode() + table.codes.tobytes()).digest()
    if key not in _KNOWN:
        patterns = cart(table, target).patterns()
        _KNOWN[key] = patterns, class_counts(patterns, table)
    return _KNOWN[key]
