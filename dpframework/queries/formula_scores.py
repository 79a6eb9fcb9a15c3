"""Scores that are written once, as a formula: what else a query needs follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframework.formulas.claims import Change, Claim, ScoreClaims, bound_at
from dpframework.formulas.derivation import derive
from dpframework.formulas.rounding import rounding_of
from dpframework.formulas.shapes import Cells, Parts
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.scores import CandidateScores


class FormulaScores(CandidateScores):
    """Scores of candidates by a formula of counts. A subclass gives the formula and counts rows.

    `count` returns, for each candidate, the counts that the formula reads: an array of shape (candidates, cells) for
    `Cells`, or (candidates, parts, classes) for `Parts`. Sensitivities are derived from the formula on small tables,
    without a solver. `dpframework prove` proves them for tables of any size.

    Attributes
    ----------
    formula
        The score.

    Examples
    --------
    >>> from dpframework.formulas import Cells, cells, most
    >>> both, apart = cells("both", "apart")
    >>> class Jaccard(FormulaScores):
    ...     name = "jaccard"
    ...     formula = Cells((both, apart), both / most(both + apart, 50))
    ...     def candidates(self, **inputs):
    ...         return inputs["candidates"]
    ...     def count(self, block, *, candidates):
    ...         return np.array([[(l & r).sum(), (l ^ r).sum()] for l, r in candidates])
    >>> (declared,) = Jaccard().sensitivities
    >>> print(declared.rise, declared.fall, declared.replace_one)
    1/50 1/51 1/50
    """

    formula: ClassVar[Parts | Cells]

    @property
    def row_bound(self) -> int | None:
        """The largest number of rows, if that is public; bounds that grow with the rows need it."""
        return None

    @property
    def exact_rows(self) -> bool:
        """Whether the table has just so many rows, so that one more makes it larger."""
        return False

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What is claimed of the formula; by default what `derive` finds."""
        return tuple(found.claim for found in derive(self.formula))

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formula, with what is claimed of it."""
        return (ScoreClaims(self.name, self.formula, self.claims),)

    @property
    def text(self) -> str:
        """The name and the formula."""
        return f"{self.name}: {self.formula.text}"

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """What is claimed of the formula, for the table's public number of rows."""
        return (formula_sensitivity(self.formula, self.claims, self.row_bound, self.exact_rows),)

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Return the sensitivity for several rows, where it is less than their sum.

        For `Cells` it is derived as that for one row is. For `Parts` the rows come one by one, to a table that grows.
        """
        if rows == 1:
            return ()
        claims = self.claims
        if isinstance(self.formula, Cells):
            claims = tuple(found.claim for found in derive(self.formula, rows))
        found = formula_sensitivity(self.formula, claims, self.row_bound, self.exact_rows, rows)
        (one,) = self.sensitivities
        return (found,) if _smaller(found, one, rows) else ()

    @property
    def rounding(self) -> Fraction:
        """How far a score in floating point may be from the true one (see `formulas.rounding_of`)."""
        return rounding_of(self.formula, self.sensitivities[0].add_or_remove_one or Fraction(), self.row_bound)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, by the formula's kernel."""
        from dpframework.formulas.kernels import scores_of

        return scores_of(self.formula, counts)


def formula_sensitivity(
    shape: Parts | Cells, claims: Sequence[Claim], row_bound: int | None, exact_rows: bool, group: int = 1
) -> Sensitivity:
    """Return the sensitivity that claims are for a table of at most so many rows.

    Parameters
    ----------
    shape
        The score.
    claims
        Its rise, its fall and its change under replacement.
    row_bound
        The largest number of rows, None for any.
    exact_rows
        Whether it is the number of rows, so that rows that are added exceed it.
    group
        How many rows of `Parts` are added or replaced, one by one: the bounds of claims about one row are added up.
    """
    bounds = {claim.change: claim.bound for claim in claims}
    larger = None if row_bound is None else row_bound + (group if exact_rows else 0)
    steps = 1 if isinstance(shape, Cells) else group

    def added(change: Change, most: int | None) -> Fraction:
        sizes = [None if most is None else max(most - k, 1) for k in range(steps)]
        return sum((bound_at(bounds[change], size) for size in sizes), Fraction())

    rise, fall = added(Change.RISE, larger), added(Change.FALL, larger)
    replaced = min(
        added(Change.RISE, row_bound) + added(Change.FALL, row_bound),
        steps * bound_at(bounds[Change.REPLACED], row_bound),
    )
    source = f"derived from the formula {shape.text}"
    return Sensitivity(Norm.LINF, max(rise, fall), replaced, rise=rise, fall=fall, source=source)


def _smaller(found: Sensitivity, one: Sensitivity, rows: int) -> bool:
    """Tell whether a sensitivity for several rows is less than their sum somewhere."""
    pairs = ((found.rise, one.rise), (found.fall, one.fall), (found.replace_one, one.replace_one))
    return any(several is not None and single is not None and several < rows * single for several, single in pairs)
