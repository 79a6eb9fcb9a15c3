"""Scores whose bounds on the support follow from a noisy number of rows, which the miner releases first.

Karjalainen, Galbrun and Miettinen 2022, section 3.2, let the user "query for" the number of rows and "use the noisy
estimate to compute near-optimal steepness". Here the bounds on the support follow from it, too: a tenth and seven
tenths of the rows. So when a study is planned, nobody knows how far a row will move the score, and yet a plan has to
declare it.

`RelativeScore` is therefore the weighted index divided by a number u that suits its bounds. Let rise, fall and replaced
be the changes of the index for given bounds (`scores.Changes`), and

    u = max(rise / (2/3), fall / (1/3), replaced / (19/20)).

Divided by u, the index rises by at most 2/3 with an added row, falls by at most 1/3, and moves by at most 19/20 if a
row is replaced, whatever the bounds. These numbers are declared. Only u depends on the bounds, and u is a function of
releases. The shares 2/3 and 1/3 are those of a score whose minimum support is about 200 rows. For that score, nothing
is lost. Otherwise there is more noise than for a score whose bounds are known beforehand. Under add-or-remove-one it is
at most 14 % more for a minimum support from 50 to 10,000 rows, and at most 30 % more for a smaller one. Under
replace-one it is at most 16 % and 43 % more.

`OpenSurplus` is a `Surplus` whose maximum support follows from a release, too. Its sensitivity holds for any maximum
support.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
from numpy.typing import NDArray

from dpframework.formulas import ScoreClaims
from dpframework.queries import Norm, Sensitivity
from dpframework_greedy.budgets import WORTH
from dpframework_greedy.scores import Floats, Score
from dpframework_greedy.surplus_score import Surplus

#: The minimum and the maximum support, in rows.
Supports: TypeAlias = "tuple[int, int]"

RISE, FALL, REPLACED = Fraction(2, 3), Fraction(1, 3), Fraction(19, 20)
FEWEST, MOST = 10, 10**9  # a noisy number of rows is moved into this range
PART, TIMES = 10, 7  # the minimum support is a tenth of the rows, and the maximum support seven times that
DIGITS = 2  # the significant digits of a minimum support; more digits would hardly change the score


def supports_of(rows: float) -> Supports:
    """Return the bounds on the support that follow from a noisy number of rows.

    Examples
    --------
    >>> supports_of(5617), supports_of(-3)
    ((560, 3920), (1, 7))
    """
    least = min(max(round(rows), FEWEST), MOST) // PART
    unit = 10 ** max(len(str(least)) - DIGITS, 0)
    least = least // unit * unit
    return least, TIMES * least


@final
@attrs.frozen
class ScaledScore:
    """The weighted index with known bounds on the support, divided by u (see the module).

    Attributes
    ----------
    score
        The weighted index.
    unit
        The divisor u.
    """

    score: Score
    unit: Fraction

    @classmethod
    def of(cls, supports: Supports) -> ScaledScore:
        """Return the score for bounds on the support."""
        score = Score.lowest(*supports)
        changes = score.changes
        rise, fall, replaced = changes.above
        return cls(score, max(rise / RISE, fall / FALL, replaced / REPLACED))

    def of_supports(self, both: NDArray[Any], either: NDArray[Any]) -> Floats:
        """Return the scores of I and U, shape (redescriptions,)."""
        return self.score.of_supports(both, either) / float(self.unit)

    def surpassing(self, index: float) -> ScaledScore:
        """Return the score itself, which does not depend on an earlier index."""
        return self


class OpenScore:
    """A score whose bounds on the support come from a release. Without them, only its sensitivity is known."""

    __slots__ = ()

    @property
    def scored(self) -> tuple[ScoreClaims, ...]:
        """No formula, since a formula needs the bounds."""
        return ()

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return no bound for several rows at once, since k rows can move a score k times as far as one row can."""
        return ()


@final
@attrs.frozen
class RelativeScore(OpenScore):
    """The weighted index divided by u (see the module), for bounds on the support that are released first."""

    def at(self, supports: Supports | None) -> ScaledScore:
        """Return the score for bounds on the support, which come from a release."""
        assert supports is not None  # the miner releases a number of rows first
        return ScaledScore.of(supports)

    @property
    def sensitivity(self) -> Sensitivity:
        """The linf sensitivity of the score (see the module)."""
        source = "the weighted index divided by what a row changes: derived in dpframework_greedy.noisy_row_scores"
        return Sensitivity(Norm.LINF, RISE, REPLACED, rise=RISE, fall=FALL, source=source)

    @property
    def text(self) -> str:
        """Name the score."""
        return "Jaccard index weighted by support (bounds from a released number of rows), by what a row changes"


@final
@attrs.frozen
class OpenSurplus(OpenScore):
    """By how many rows a redescription surpasses a Jaccard index, up to a maximum support that is released first."""

    def at(self, supports: Supports | None) -> Surplus:
        """Return the score for bounds on the support, which come from a release."""
        assert supports is not None  # the miner releases a number of rows first
        return Surplus(supports[1])

    @property
    def sensitivity(self) -> Sensitivity:
        """The linf sensitivity of the score, which is the same for every maximum support."""
        return Surplus(1).sensitivity

    @property
    def text(self) -> str:
        """Name the score."""
        return "rows beyond a released Jaccard index (max from a released number of rows)"


#: The scores that candidates of a language may have.
AnyScore: TypeAlias = "Score | Surplus | RelativeScore | OpenSurplus"


def worth_of(score: AnyScore) -> Fraction:
    """Return the distance from the best score beyond which an extension is not worth its budget.

    It is `WORTH` for an index. A surplus is a number of rows, so `WORTH` is multiplied by a number of rows half-way
    between the bounds on the support.
    """
    if not isinstance(score, Score) or score.min_support is None or score.max_support is None:
        return WORTH
    return WORTH * (score.min_support + score.max_support) / 2
