"""Measure redescriptions by noisy counts, average two measurements, and compare an extension with what it extends."""

from __future__ import annotations

import attrs

from dpframework.redescriptions import Redescription
from dpframework.results import Noisy
from dpframework.run import PrivateTable
from dpframework_greedy.language import Redescribed
from dpframework_greedy.queries import BOTH, LEFT_ONLY, RIGHT_ONLY
from dpframework_greedy.scores import Score


def measure(table: PrivateTable, step: str, redescribed: Redescribed) -> Redescription:
    """Release the cells of a redescription, and return the redescription with these counts."""
    cells = table.release(step, redescribed=redescribed)
    variance = table.calibration(step).variance
    noisy = [Noisy(int(cell), variance) for cell in cells]
    left, right = redescribed.descriptions
    return Redescription(
        left,
        right,
        both=noisy[BOTH],
        left_only=noisy[LEFT_ONLY],
        right_only=noisy[RIGHT_ONLY],
        rows=table.schema.rows if table.schema.rows is not None else sum(noisy[1:], noisy[0]),
    )


def average(one: Redescription, again: Redescription) -> Redescription:
    """Return a redescription with the means of two measurements of it, whose noise has the same variance."""

    def mean(first: Noisy | None, second: Noisy | None) -> Noisy:
        assert first is not None  # all counts of `measure` are known
        assert second is not None
        return Noisy((first.value + second.value) / 2, (first.variance + second.variance) / 4)

    return attrs.evolve(
        one,
        both=mean(one.both, again.both),
        left_only=mean(one.left_only, again.left_only),
        right_only=mean(one.right_only, again.right_only),
        apart=mean(one.apart, again.apart),
        rows=mean(one.rows, again.rows),
    )


def is_better(one: Redescription, than: Redescription, score: Score) -> bool:
    """Tell whether a redescription `one` is better than the redescription `than` that it extends.

    It is better if its noisy Jaccard index is higher, and its supports are no further outside their bounds than before.
    """
    least, most = score.min_support, score.max_support
    supported = least is None or one.both.value >= min(least, than.both.value)
    bounded = most is None or (one.both + one.apart).value <= max(most, (than.both + than.apart).value)
    return one.jaccard > than.jaccard and supported and bounded
