"""Measure how near private distances are to exact ones, for `dpframework.lab.evaluation`. Not private.

In an evaluation, name this measure "dpframework_distance.evaluation:distances". Source: Battaglia, Celano and Pensa
2021, sections 4.1 and 4.2.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import final

import attrs

from dpframework.facts import InputError, nearest
from dpframework.lab.evaluation import Trial
from dpframework.lab.evaluation.distance_and_context_comparison import (
    adjust_for_chance,
    chance_f_score,
    f_score,
    l1,
    pearson,
)
from dpframework.lab.evaluation.trial_record import NOT_PRIVATE, find_once
from dpframework_distance.nonprivate import NONPRIVATE_CONTEXTS, dilca
from dpframework_distance.value_distances import LearnedDistances

#: For each way to choose contexts that DILCA without privacy lacks, the way that it takes instead.
_NONPRIVATE = {
    "auto": "max-dependency",
    "tree": "max-dependency",
    "none": "max-dependency",
    "baseline": "relevant-redundant",
    "baseline-mean-su": "mean-su",
    "common": "max-dependency",
}
_ANY_SIZE = ("mean-su", "relevant-redundant")


@final
@attrs.frozen
class DistanceQuality:
    """How near learned distances are to those of another result, as means over attributes. Not private.

    Attributes
    ----------
    f_score
        The F-score of each context, compared with the other result's context.
    adjusted_f_score
        The F-score adjusted for chance: 0 for random contexts, 1 for the same contexts.
    pearson
        The correlation of the matrices' upper triangles, for attributes with three or more values. NaN if there are
        none.
    l1
        The mean absolute difference of distances.
    """

    f_score: float
    adjusted_f_score: float
    pearson: float
    l1: float

    def to_dict(self) -> dict[str, float]:
        """Return the measures by name."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        """Write the measures."""
        return (
            f"contexts: F-score {self.f_score:.3f}, adjusted for chance {self.adjusted_f_score:.3f}\n"
            f"distances: Pearson {self.pearson:.3f}, L1 {self.l1:.4f}\n{NOT_PRIVATE}"
        )


def compare(found: LearnedDistances, true: LearnedDistances, *, any_size: bool = False) -> DistanceQuality:
    """Compare the distances and contexts of one result with those of another. Not private.

    Parameters
    ----------
    found, true
        Learned distances, for example with and without privacy. The attributes of `true` are compared.
    any_size
        Whether a random context may have any size (see `chance_f_score`), as the contexts of "mean-su"
        and "relevant-redundant" do.

    Raises
    ------
    InputError
        If `found` lacks an attribute.
    """
    others = len(true.schema) - 1
    raw = {name: f_score(found[name].context, true[name].context) for name in true}
    chance = {name: chance_f_score(len(true[name].context), others, any_size=any_size) for name in true}
    return DistanceQuality(
        f_score=_mean(raw.values()),
        adjusted_f_score=_mean(adjust_for_chance(raw[name], chance[name]) for name in true),
        pearson=_mean(pearson(found[n].matrix, true[n].matrix) for n in true if true[n].attribute.size > 2),
        l1=_mean(l1(found[name].matrix, true[name].matrix) for name in true),
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.fmean(known) if known else math.nan


def distances(trial: Trial, *, context: str | None = None, context_size: int | None = None) -> Mapping[str, float]:
    """Return "f_score", "adjusted_f_score", "pearson" and "l1" of distances, compared with DILCA's without privacy.

    Parameters
    ----------
    trial
        A trial whose result is a `LearnedDistances`.
    context, context_size
        The parameters of DILCA (see `dilca`). By default those of the method, or else "max-dependency" and 3. In place
        of "baseline" DILCA gets "relevant-redundant", in place of "baseline-mean-su" it gets "mean-su", and in place of
        other contexts that it lacks "max-dependency".

    Raises
    ------
    InputError
        If the result is of another kind, or a parameter is wrong.
    """
    found = trial.result
    if not isinstance(found, LearnedDistances):
        raise InputError(f"learned distances are needed, not {type(found).__name__}")
    asked = str(context or trial.parameters.get("context", "max-dependency"))
    nonprivate = _NONPRIVATE.get(asked, asked)
    if nonprivate not in NONPRIVATE_CONTEXTS:
        raise InputError(f"context {asked!r} is unknown; {nearest(asked, NONPRIVATE_CONTEXTS)}")
    size = int(trial.parameters.get("context_size", 3) if context_size is None else context_size)
    target = next(iter(found)) if len(found) == 1 else None
    among = found.schema.names
    true = find_once(
        trial.table,
        ("dilca", nonprivate, size, target, among),
        lambda: dilca(trial.table, context=nonprivate, context_size=size, target=target, attributes=among),
    )
    return compare(found, true, any_size=nonprivate in _ANY_SIZE).to_dict()
