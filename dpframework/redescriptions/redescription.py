"""A redescription, a pair of descriptions that hold for nearly the same rows, with noisy counts.

Everything here is post-processing of released counts, and costs no privacy. Intervals follow from the noise alone: they
are about the exact counts of this table, not about a population.

The Jaccard index and the p-value are those of Galbrun and Miettinen, Redescription Mining, 2017. The counts of a
redescription must be independent, and each must be a released cell or a sum of released cells, with discrete Laplace or
discrete Gaussian noise. A redescription with a `deviation` is an exception: its counts come from a fitted model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Description, description_from_dict
from dpframework.redescriptions.jaccard_intervals import least_jaccard_if_shown
from dpframework.redescriptions.shorter_description_text import sentence
from dpframework.results.noisy_count_with_interval import CONFIDENCE, Noisy, as_noisy, error_of, quantile
from dpframework.results.result import StoredResult
from dpframework.results.share_intervals import least_share, noise_at

ERROR = 0.05  # the chance that any redescription is trusted wrongly, and the share of artefacts that pruning leaves
MOST_SHARE = 0.8  # the largest share of the rows that a side of a starred redescription may hold for
# Intervals from a bootstrap are widened by these factors. They cover errors that a bootstrap misses, and the selection
# of what is shown. At a level of 0.95 they reach 3.2 deviations for an index and 3.6 for a support.
WIDER = 1.5
WIDER_SUPPORT = 1.7
# If the deviation is a bootstrap's, the index of a starred redescription minus `SURE` deviations must be at least
# `CLEAR` or `OF_SHOWN` of the index, whichever is smaller.
SURE = 3.0
CLEAR, OF_SHOWN = 0.5, 0.8
SIGNIFICANT = 0.01  # the largest p-value of a starred redescription, over all counts that the noise allows


def _optional(number: Noisy | float | None) -> Noisy | None:
    return None if number is None else as_noisy(number)


def _apart(redescription: Any) -> Noisy:
    if redescription.left_only is None or redescription.right_only is None:
        raise InputError("a redescription needs 'apart', or both of 'left_only' and 'right_only'")
    return redescription.left_only + redescription.right_only  # type: ignore[no-any-return]


@final
@attrs.frozen
class Redescription(StoredResult):
    """Two descriptions, one of each view, and noisy counts of the rows that they hold for.

    Attributes
    ----------
    left, right
        The descriptions.
    both
        The number of rows for which both hold.
    left_only, right_only
        The number of rows for which only the left one holds, and only the right one. None if only their sum was
        released.
    apart
        The number of rows for which exactly one holds, by default `left_only` + `right_only`. Its noise is independent
        of the noise of `both`.
    rows
        The number of all rows: a noisy count, a public number, or None where it is unknown.
    shown_from
        The smallest noisy Jaccard index at which the miner shows a redescription with this noise; 0 if it shows all.
    among
        How many candidates the miner looked at before it showed this one, including this one.
    deviation
        The standard error of the Jaccard index, found by a bootstrap, if the counts come from a model of several tables
        (`dpframework.redescriptions.redescriptions_from_match_combinations`). None if the counts are sums of released
        counts.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions_of_rows import Below, Equals
    >>> found = Redescription(Equals("smoker", "true"), Below("fev", 3), both=Noisy(400, 50), apart=Noisy(100, 50))
    >>> print(found)
    smoker  ~  fev < 3  (Jaccard 0.80 [0.78, 0.83], support 400 ± 16)
    """

    name_in_errors = "a redescription"
    left: Description
    right: Description
    both: Noisy = attrs.field(kw_only=True, converter=as_noisy)
    left_only: Noisy | None = attrs.field(kw_only=True, default=None, converter=_optional)
    right_only: Noisy | None = attrs.field(kw_only=True, default=None, converter=_optional)
    apart: Noisy = attrs.field(kw_only=True, default=attrs.Factory(_apart, takes_self=True), converter=as_noisy)
    rows: Noisy | None = attrs.field(kw_only=True, default=None, converter=_optional)
    shown_from: float = attrs.field(kw_only=True, default=0.0)
    among: int = attrs.field(kw_only=True, default=1)
    deviation: float | None = attrs.field(kw_only=True, default=None)

    @property
    def support(self) -> Noisy:
        """The number of rows for which both descriptions hold."""
        return self.both

    @property
    def left_support(self) -> Noisy | None:
        """The number of rows for which the left description holds."""
        return None if self.left_only is None else self.both + self.left_only

    @property
    def right_support(self) -> Noisy | None:
        """The number of rows for which the right description holds."""
        return None if self.right_only is None else self.both + self.right_only

    @property
    def jaccard(self) -> float:
        """The noisy Jaccard index, 0 if the noisy support is not positive.

        The index is the number of rows for which both sides hold, divided by the number for which at least one holds.
        """
        both, apart = max(self.both.value, 0.0), max(self.apart.value, 0.0)
        return both / (both + apart) if both > 0 else 0.0

    def support_interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of the support (see `Noisy.interval`), cut off at 0.

        With a `deviation` the interval is `WIDER_SUPPORT` times as wide, since a bootstrap misses some errors and the
        miner selects what it shows. That this is enough is measured, not derived.
        """
        margin = self.both.margin(level) * (1.0 if self.deviation is None else WIDER_SUPPORT)
        low, high = self.both.value - margin, self.both.value + margin
        return max(low, 0.0), max(high, 0.0)

    def jaccard_interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that holds the exact Jaccard index with at least the probability `level`.

        If the redescription is shown because its noisy index is above `shown_from`, the interval allows for that choice
        (`dpframework.redescriptions.jaccard_intervals` has the derivation). Otherwise the probability is for a
        redescription that is fixed before the noise is drawn.

        The interval is found by Fieller's inversion. The exact index J solves (1 - J) both - J apart = 0, and the noise
        of that difference is known. The interval ends at the first j, from either side, at which the difference is
        within its noise. With a `deviation` the interval reaches `WIDER` times a quantile of deviations to either side.
        That this is enough is measured, not derived.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.
        """
        error = error_of(level)
        if self.deviation is not None:
            reach = WIDER * quantile(error) * self.deviation
            return max(self.jaccard - reach, 0.0), min(self.jaccard + reach, 1.0)
        low, high = self.least_jaccard(error), 1 - least_share(self.apart, self.both, quantile(error))
        # With exact counts both ends are the index itself, up to rounding.
        return low, max(high, self.jaccard)

    def least_jaccard(self, error: float) -> float:
        """Return the lower end of the `jaccard_interval` that misses the exact index with at most this probability."""
        if self.deviation is not None:
            return max(self.jaccard - WIDER * quantile(error) * self.deviation, 0.0)
        if self.shown_from > 0:
            low = least_jaccard_if_shown(self.both, self.apart, error, self.shown_from, self.among)
        else:
            low = least_share(self.both, self.apart, quantile(error))
        return min(low, self.jaccard)

    @property
    def p_value(self) -> float | None:
        """The chance that independent sides with these supports share this many rows or more; None if unknown.

        The p-value is the upper tail, from `both` on, of a binomial distribution over `rows` with probability (left
        support / rows) (right support / rows). Counts are rounded and made consistent first, and then taken as exact,
        without their noise.
        """
        if self.left_support is None or self.right_support is None or self.rows is None:
            return None
        both, left, right = (np.array(n.value) for n in (self.both, self.left_support, self.right_support))
        return float(p_values(both, left, right, self.rows.value))

    @property
    def lift(self) -> float | None:
        """The number of rows of both sides, divided by the number expected for independent sides; None if unknown."""
        if self.left_support is None or self.right_support is None or self.rows is None:
            return None
        both = max(self.both.value, 0.0)
        expected = max(self.left_support.value, both) * max(self.right_support.value, both) / max(self.rows.value, 1.0)
        return both / expected if expected > 0 else None

    def starred(self, candidates: int = 1, min_support: float = 0, max_share: float = MOST_SHARE) -> bool:
        """Tell whether the redescription is known to be worth reading in spite of the noise.

        It must be trusted, at half of the error that `trusted` allows. In addition, three conditions must hold for all
        exact counts within the intervals: the p-value is at most 0.01; both sides hold together for at least
        `min_support` rows; and neither side holds for more than `max_share` of all rows, since it would then be nearly
        a tautology. With probability 0.95, none of the candidates is starred wrongly.

        With a `deviation`, the rule of `trusted` is used unchanged, and intervals reach `SURE` deviations. That this is
        enough is measured, not derived.

        Parameters
        ----------
        candidates
            See `trusted`.
        min_support, max_share
            The fewest rows for which both sides hold, and the largest share of the rows for which a single side holds.
        """
        if self.left_only is None or self.right_only is None or self.rows is None:
            return False
        # Half of the error is for the trusted index, and the rest for four counts.
        if self.deviation is not None:
            if not self.trusted():
                return False
            level = math.erf(SURE / math.sqrt(2))
        elif self.clearance() < quantile(ERROR / candidates / 2):
            return False
        else:
            level = 1 - ERROR / candidates / 8
        least, most = (max(end, 0.0) for end in self.both.interval(level))
        left_only, right_only = (max(count.interval(level)[1], 0.0) for count in (self.left_only, self.right_only))
        rows = self.rows.interval(level)[0]
        if least < min_support or most + max(left_only, right_only) > max_share * rows:
            return False
        both = np.array([least, most])
        return bool(p_values(both, both + left_only, both + right_only, rows).max() <= SIGNIFICANT)

    def trusted(self, candidates: int = 1) -> bool:
        """Tell whether the exact Jaccard index is known to be at least half of the index shown, in spite of the noise.

        That is so if the lower end of its interval is at least half of the index shown. The interval is taken at the
        level 1 - 0.05 / candidates, without regard to `shown_from`. At this level the intervals of all candidates hold
        together, whichever are shown. So with probability 0.95 none is trusted wrongly.

        With a `deviation`, the index minus `SURE` deviations must be at least `CLEAR`, or at least `OF_SHOWN` of the
        index shown. That this is enough is measured, not derived.

        Parameters
        ----------
        candidates
            How many redescriptions, including this one, were compared by their noisy counts before it was chosen.
        """
        if self.deviation is not None:
            return self.jaccard - SURE * self.deviation >= max(min(CLEAR, OF_SHOWN * self.jaccard), self.jaccard / 2)
        return self.clearance() >= quantile(ERROR / candidates)

    def clearance(self) -> float:
        """Return the largest quantile of noise at which `trusted` holds.

        If j is half of the Jaccard index shown, then (1 - j) both - j apart, the difference in `jaccard_interval`, is
        both / 2. The result is this difference in deviations of its noise.
        """
        if self.both.value <= 0:
            return -math.inf
        deviation, step = noise_at(self.both, self.apart, self.jaccard / 2)
        return (self.both.value / 2 - step) / deviation if deviation > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads, with derived numbers beside the counts."""
        counts = {name: getattr(self, name) for name in ("both", "left_only", "right_only", "apart", "rows")}
        return {
            "left": self.left.to_dict(),
            "right": self.right.to_dict(),
            "text": [sentence(self.left), sentence(self.right)],
            **{name: None if count is None else count.to_dict() for name, count in counts.items()},
            "shown_from": self.shown_from,
            "among": self.among,
            "deviation": self.deviation,
            "jaccard": self.jaccard,
            "jaccard_interval": list(self.jaccard_interval()),
            "support_interval": list(self.support_interval()),
            "lift": self.lift,
            "p_value": self.p_value,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Redescription:
        """See `StoredResult`."""
        known = {name: form[name] for name in ("both", "left_only", "right_only", "apart", "rows")}
        counts: dict[str, Any] = {n: None if c is None else Noisy.from_dict(c) for n, c in known.items()}
        chosen = {name: form[name] for name in ("shown_from", "among", "deviation") if name in form}
        return cls(description_from_dict(form["left"]), description_from_dict(form["right"]), **counts, **chosen)

    def __str__(self) -> str:
        low, high = self.jaccard_interval()
        index = f"{self.jaccard:.2f} [{low:.2f}, {high:.2f}]"
        return f"{sentence(self.left)}  ~  {sentence(self.right)}  (Jaccard {index}, support {self.both})"


def p_values(
    both: NDArray[np.float64], left: NDArray[np.float64], right: NDArray[np.float64], rows: float
) -> NDArray[np.float64]:
    """Return the p-value (see `Redescription.p_value`) of each of many redescriptions, from their noisy counts.

    Parameters
    ----------
    both, left, right
        The numbers of rows for which both descriptions hold, for which the left one holds, and for which the right one
        holds, in arrays of one shape.
    rows
        The number of all rows.

    Examples
    --------
    >>> p_values(np.array([40.0, 24.0]), np.array([60.0, 60.0]), np.array([40.0, 40.0]), rows=100).round(4).tolist()
    [0.0003, 0.5386]
    """
    from scipy.special import betainc  # scipy.stats takes half a second to import

    size = max(round(rows), 1)
    shared = np.clip(np.rint(both), 0, size)
    shares = (np.clip(np.rint(side), shared, size) / size for side in (left, right))
    tail = betainc(np.maximum(shared, 1), size - shared + 1, math.prod(shares))  # the binomial tail, to the last digit
    return np.where(shared > 0, tail, 1.0)
