r"""The score of extensions: by how many rows a redescription surpasses a known Jaccard index.

Symbols: I is the number of rows in both supports (the rows for which each side holds), A the number of rows in exactly
one, and U = I + A.

A redescription is counted before it is extended, so the Jaccard index c to surpass is known. I / U > c if and only if I
- c U = (1 - c) U - A > 0. This is a number of rows, which a row moves by at most 1. A row moves the index itself by 1 /
U, with a U that nobody has counted (Dinkelbach 1967, on maximising fractions). `Surplus` is

    s(U, A) = (1 - c) min(U, m) - A,    1/2 <= c <= 1.

Beyond the maximum support m, more rows gain nothing. An added row moves s by 1 - c or 0 if it enters both supports, and
by -c or -1 if it enters one: so by -1 to 1/2, a spread of 3/2. A row that passes from one support to both, or back,
leaves U unchanged and moves s by 1. A replaced row that enters or leaves both supports, or one, moves s by at most 1,
as above. So replacing a row moves s by at most 1. All of this holds for any c in its range, so c may come from any
release.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.formulas import Cells, ScoreClaims, cells, least, public, score_claims
from dpframework.queries import Norm, Sensitivity

LEAST_INDEX = 0.5  # the least index to surpass: below it, a row in both supports would count more than a row in one


@final
@attrs.frozen
class Surplus:
    """By how many rows a redescription surpasses a Jaccard index, up to a maximum support.

    Attributes
    ----------
    max_support
        m: the largest number of rows in at least one support that adds to the score.
    index
        c: the Jaccard index to surpass, from 1/2 to 1.

    Examples
    --------
    >>> Surplus(500, 0.75).of_supports(np.array([320]), np.array([400]))
    array([20.])
    """

    max_support: int
    index: float = LEAST_INDEX

    def at(self, supports: tuple[int, int] | None) -> Surplus:
        """Return the score itself, since its bound on the support is known beforehand."""
        return self

    def surpassing(self, index: float) -> Surplus:
        """Return the surplus over another index, which is moved into the range from 1/2 to 1."""
        return Surplus(self.max_support, min(max(index, LEAST_INDEX), 1.0))

    def of_supports(self, both: NDArray[Any], either: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores of I and U, shape (redescriptions,)."""
        of_either = (1 - self.index) * np.minimum(either, self.max_support) - either
        return np.asarray(both + of_either)

    @property
    def sensitivity(self) -> Sensitivity:
        """The linf sensitivity of the score (see the module)."""
        return Sensitivity(
            Norm.LINF,
            1,
            1,
            rise=Fraction(1, 2),
            fall=1,
            source="rows beyond a known Jaccard index: derived in dpframework_greedy.surplus_score",
        )

    @property
    def scored(self) -> tuple[ScoreClaims, ...]:
        """The formula of the score, for every index to surpass."""
        both, one = cells("both", "one")
        shape = Cells((both, one), (1 - public("c", "1/2", 1)) * least(both + one, self.max_support) - one)
        return (score_claims("surplus", shape, "1/2", 1, 1, self._score),)

    def _score(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return the surplus over an index, from the numbers of rows in both supports and in exactly one."""
        both, one = counts[:1], counts[1:]
        return float(self.surpassing(float(parameters["c"])).of_supports(both, both + one)[0])

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return no bound for several rows at once, since k rows can move the score k times as far as one row can."""
        return ()

    @property
    def text(self) -> str:
        """Name the score."""
        return f"rows beyond a released Jaccard index (max {self.max_support})"
