"""The change between two answers of a query in every norm, and faults in the form of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.queries import Norm, PiecewiseScores, Query, QueryFacts

UNBOUNDED = 1e300  # a change that no noise covers, in place of infinity, which JSON does not have
SPREAD = "spread"
RISE, FALL = " rise", " fall"  # what follows the name of a norm


def measure(before: Any, after: Any, histograms: Sequence[int] = (), *, same_rows: bool = False) -> dict[str, float]:
    """Return the change between two answers, its rise and its fall, each in every norm (l2 squared), and its spread.

    The rise and the fall are the positive and the negative part of the change. The spread is the largest change of a
    coordinate minus the smallest. The keys of the result are the names in `MeasuredChange.norm`.

    Parameters
    ----------
    before, after
        The answers.
    histograms
        How many cells each histogram (or block) of the answers has, in order. Empty if the answers are not histograms.
        If the change does not have the same sum in all histograms, it is `UNBOUNDED` in the norm of histograms.
    same_rows
        Whether the change must add up to 0 in each histogram, because both tables have the same number of rows.
    """
    change = change_of(before, after)
    found = {SPREAD: float(np.ptp(change)) if change.size else 0.0}
    for name, part in (("", np.abs(change)), (RISE, np.maximum(change, 0)), (FALL, np.maximum(-change, 0))):
        found["l1" + name] = float(part.sum())
        found["squared-l2" + name] = float(np.square(part).sum())
        found["linf" + name] = float(part.max(initial=0.0))
    if not histograms:
        return found
    name, blocks = Norm.HISTOGRAMS.value, Norm.BLOCKS.value
    if len(change) != sum(histograms):
        return found | dict.fromkeys([one + part for one in (name, blocks) for part in ("", RISE, FALL)], UNBOUNDED)
    parts = np.split(change, np.cumsum(histograms)[:-1])
    for how, sides in (
        ("", map(np.abs, parts)),
        (RISE, (p.clip(0) for p in parts)),
        (FALL, ((-p).clip(0) for p in parts)),
    ):
        # In the norm of blocks, the change may have any sums.
        found[name + how] = found[blocks + how] = max(float(side.sum()) for side in sides)
    sums = {float(part.sum()) for part in parts}
    if len(sums) > 1 or (same_rows and sums != {0.0}):
        found[name] = UNBOUNDED
    return found


def change_or_failure(before: Any, answer: Callable[[], Any], norm: str = "l1") -> float:
    """Return the change from `before` to a new answer in a norm of `measure`; infinite if the new answer fails."""
    try:
        change = measure(before, answer())[norm]
    except Exception:  # the search reports the failure when it tries the same rows itself
        return math.inf
    return math.inf if math.isnan(change) else change


def coordinates_of(query: Query, answer: Any) -> Any:
    """Return an answer's coordinates: sensitivities bound how much these change. Piecewise scores stay as they are."""
    return answer if isinstance(answer, PiecewiseScores) else query.coordinates(answer)


def answer_problem(answer: Any, facts: QueryFacts) -> str | None:
    """Describe a fault in an answer, such as a wrong type, too many numbers, a fraction or NaN. None if it is right."""
    numbers = np.asarray(answer.scores if isinstance(answer, PiecewiseScores) else answer)
    if numbers.dtype.kind not in "biuf":
        return f"its answer holds values of type {numbers.dtype}, where a mechanism takes numbers"
    if not np.isfinite(numbers).all():
        return f"its answer holds {numbers[~np.isfinite(numbers)].flat[0]}, whose change no sensitivity can bound"
    if not isinstance(answer, PiecewiseScores):
        if facts.answer_length is not None and numbers.size > facts.answer_length:
            return f"its answer holds {numbers.size} numbers, and it declares answer_length = {facts.answer_length}"
        if facts.integer and numbers.dtype.kind == "f" and (numbers != np.rint(numbers)).any():
            return f"its answer holds {numbers[numbers != np.rint(numbers)].flat[0]:g}, and it declares whole numbers"
    return None


def change_of(before: Any, after: Any) -> NDArray[np.float64]:
    """Return the change between two answers, coordinate by coordinate."""
    if isinstance(before, PiecewiseScores):
        # Both are step functions on the public interval. Both are constant between consecutive breaks of the two
        # together.
        breaks = np.unique(np.concatenate([before.breaks, after.breaks]))
        middles = (breaks[:-1] + breaks[1:]) / 2
        return _at(after, middles) - _at(before, middles)
    return np.asarray(after, dtype=np.float64).ravel() - np.asarray(before, dtype=np.float64).ravel()


def _at(scores: PiecewiseScores, points: NDArray[np.float64]) -> NDArray[np.float64]:
    piece = np.clip(np.searchsorted(scores.breaks, points, side="right") - 1, 0, len(scores.scores) - 1)
    return np.asarray(scores.scores[piece])
