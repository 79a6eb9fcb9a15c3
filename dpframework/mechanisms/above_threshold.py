"""The above-threshold mechanism (sparse vector technique): find the first count that reaches a public threshold.

Source: Dwork, Naor, Reingold, Rothblum and Vadhan 2009; Lyu, Su and Li 2017, Algorithm 1 with one positive outcome. The
threshold gets noise once, and each count gets noise of its own. The position of the first noisy count that reaches the
noisy threshold is released. No number is released. All noise is integer Laplace noise of one scale s.

**The loss is (C + S) / s.** Here C is the largest change of a count between neighbours, and S is the spread: the most
by which the changes of two counts differ. *Proof.* Let count j change by d_j from a table to its neighbour, and let R
be the largest d_j. Let position i be released on the first table. On the neighbour, raise the noise of the threshold by
R. No count has risen by more than R, so every count before i still misses the threshold. Also raise the noise of count
i by R - d_i, which is 0 or more. Then count i still reaches the threshold. Integer Laplace noise that is shifted by x
loses at most abs(x) / s. So the first shift costs at most C / s and the second at most S / s, whatever the noise of the
other counts is. If no count reaches the threshold, the first shift is enough.

If an added row raises each count by 0 or 1, then C and S are 1, and the loss is 2 / s, however many counts are
compared. Half of it pays for the threshold, and half for the released count. This loss is attained in the limit. Let
three counts be far above the threshold, and let the fourth be far below it. Let the added row raise the first three.
When position 4 is released nevertheless, the noise of the threshold and of count 4 is most likely far up in its tail.
To release position 4 after the row is added, both of these draws have to be larger by 1.

There are known wrong variants (Lyu, Su and Li 2017, section 3). They leave out the noise of the threshold or of the
counts, continue after the first position without paying for it, or release the noisy count that was compared. The tests
in `tests/mechanisms/test_above_threshold.py` detect each of them.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.parameter_checks import whole_number
from dpframework.facts.privacy_losses import ByRelation
from dpframework.mechanisms.base import Calibration, Preview, PureMechanism
from dpframework.mechanisms.randomness import Randomness
from dpframework.queries.base import Norm, QueryFacts

_TAIL = 60  # `log_density` sums over noisy thresholds up to this many scales beyond the counts and the threshold
_LARGEST = 1 << 40  # the largest absolute value of a threshold


@final
@attrs.frozen
class AboveThreshold(PureMechanism):
    """Releases the position of the first count that reaches a public threshold, or the last position if none does.

    Noise is added to the threshold and to each count before they are compared. The last coordinate of the answer is
    ignored, since its position stands for "no count reaches the threshold".

    Attributes
    ----------
    threshold
        The public threshold, a whole number.

    Examples
    --------
    >>> AboveThreshold("0.5", threshold=100).threshold
    100
    """

    name: ClassVar[str] = "above-threshold"
    norm: ClassVar[Norm] = Norm.LINF
    selects: ClassVar[bool] = True
    in_score_order: ClassVar[bool] = False  # the first count above the threshold wins, however high later counts are
    needs_length: ClassVar[bool] = False
    threshold: int = attrs.field(default=0, validator=whole_number(-_LARGEST, _LARGEST))

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse real-valued answers, and all answers that every mechanism refuses."""
        if not facts.integer:
            return "compares integer counts, and the query's answer is not integer"
        return super().misfit(facts)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return C + S: the largest change of a count plus the spread of the counts (see the module)."""
        declared = facts.sensitivity(Norm.LINF)
        assert declared is not None  # `misfit` refuses other queries
        one, two = declared.change, declared.spread
        return ByRelation(_sum(one.add_or_remove_one, two.add_or_remove_one), _sum(one.replace_one, two.replace_one))

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> int:
        """Return the position of the first count that reaches the threshold.

        Noise is drawn for all counts, so that the time of a draw reveals nothing.
        """
        counts = calibration.on_lattice(answer).ravel()[:-1]
        noise = randomness.discrete_laplace(counts.size + 1, calibration.lattice_scale)
        reached = np.flatnonzero(counts + noise[1:] >= self.threshold + noise[0])
        return int(reached[0]) if reached.size else counts.size

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of a position. The probability is a sum over all values of the noisy threshold."""
        counts = calibration.on_lattice(answer).ravel()[:-1] - self.threshold
        chosen, scale = int(output), calibration.lattice_scale
        if not 0 <= chosen <= counts.size:
            return -math.inf
        looked_at = counts[: chosen + 1]
        earlier, times = np.unique(looked_at[:chosen], return_counts=True)
        last = looked_at[-1] if chosen < counts.size else None

        def log_weights(noisy: NDArray[np.int64]) -> NDArray[np.float64]:
            """Return, for each value of the noisy threshold, the log-probability of this value and the position."""
            logs = -np.abs(noisy) / scale + math.log(math.tanh(1 / (2 * scale)))
            for count, number in zip(earlier, times, strict=True):
                logs += number * _log_at_most(noisy - count - 1, scale)
            return logs if last is None else logs + _log_at_most(last - noisy, scale)  # noise is symmetric

        # Far from 0 and from all counts, the log-probability changes by the same amount from one value to the next. So
        # the values there, which may be billions, are added up by a formula.
        bends, reach = np.unique(np.append(looked_at, 0)), math.ceil(_TAIL * scale)
        gaps = np.flatnonzero(np.diff(bends) > 2 * reach)
        starts, stops = bends[np.append(0, gaps + 1)] - reach, bends[np.append(gaps, -1)] + reach
        sums = [_log_sum(log_weights(np.arange(start, stop))) for start, stop in zip(starts, stops, strict=True)]
        for start, stop in zip(stops[:-1], starts[1:], strict=True):
            slope = times[earlier > start].sum() - np.sign(start) - int(last is not None and start > last)
            ends = log_weights(np.array([start, stop - 1]))
            sums.append(float(ends.max()) + _log_geometric_sum(abs(int(slope)) / scale, int(stop - start)))
        return _log_sum(np.array(sums))

    def preview(self, calibration: Calibration) -> Preview:
        """Bound how far a count may lie on the wrong side of the threshold (Lyu, Su and Li 2017, Theorem 1).

        Let m be the number of draws of noise: one for the threshold, and one for each count. Each draw exceeds
        s ln(m / 0.05) in absolute value with a probability of at most 0.05 / m, apart from the rounding of integer
        noise. Twice this bound covers the noise of the threshold and of a count together.
        """
        scale, size = float(calibration.scale), calibration.facts.answer_length
        if size is None:
            return Preview(math.nan, math.nan, f"noise of scale {scale:.3g}; the number of counts is not known")
        within = 2.0 * math.ceil(scale * math.log(20 * max(size, 2)))
        text = (
            f"the released count is above the threshold - {within:.3g}, and counts before it are below the threshold + "
            f"{within:.3g} (95 %)"
        )
        return Preview(2 * scale, within, text)


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def _log_sum(logs: NDArray[np.float64]) -> float:
    """Return the logarithm of a sum of numbers whose logarithms are given."""
    most = logs.max()
    return float(most + math.log(np.exp(logs - most).sum()))


def _log_geometric_sum(fall: float, number: int) -> float:
    """Return log of the sum of exp(-k * fall) for k = 0, ..., `number` - 1."""
    return math.log(number) if fall == 0 else math.log(-math.expm1(-fall * number)) - math.log(-math.expm1(-fall))


def _log_at_most(bound: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """Return log Pr[k <= bound] for integer Laplace noise k.

    With q = exp(-1 / scale), Pr[k <= bound] is q**(-bound) / (1 + q) for a bound below 0. Otherwise it is
    1 - q**(bound + 1) / (1 + q).
    """
    log_of_both = math.log1p(math.exp(-1 / scale))
    below = np.minimum(bound, 0) / scale - log_of_both
    with np.errstate(divide="ignore"):
        above = np.log1p(-np.exp(-(np.maximum(bound, 0) + 1) / scale - log_of_both))
    return np.asarray(np.where(bound < 0, below, above))
