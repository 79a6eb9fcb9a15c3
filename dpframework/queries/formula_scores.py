"""Scores that are written once, as a formula. The kernel, sensitivities and rounding error follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.formulas.largest_change_search import MOST_JOINING, ways_to_join
from dpframework.formulas.rounding_error_bound import rounding_of
from dpframework.formulas.score_structures import Cells, Parts
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, ScoreClaims, bound_at
from dpframework.formulas.sensitivity_from_small_tables import derive
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.scores import CandidateScores


class FormulaScores(CandidateScores):
    """Scores of candidates by a formula of counts. A subclass states the formula and counts rows.

    The candidates are given at run time, as `candidates`, unless a subclass overrides that method. `count` returns each
    candidate's counts as an array. Its shape is (candidates, cells) for a formula of a few counts (`Cells`). It is
    (candidates, parts, classes) for a formula of the class counts of each part of a split (`Parts`). Sensitivities are
    bounds that fit the largest changes of the score on small tables (see `derive`). `dpframework prove` proves them for
    tables of any size.

    Attributes
    ----------
    formula
        The formula of a candidate's score.

    Examples
    --------
    >>> from dpframework.formulas import Cells, cells, most
    >>> both, apart = cells("both", "apart")
    >>> class Jaccard(FormulaScores):
    ...     name = "jaccard"
    ...     formula = Cells((both, apart), both / most(both + apart, 50))
    ...     def count(self, block, *, candidates):
    ...         return np.array([[(l & r).sum(), (l ^ r).sum()] for l, r in candidates])
    >>> (declared,) = Jaccard().sensitivities
    >>> print(declared.rise, declared.fall, declared.replace_one)
    1/50 1/51 1/50
    """

    formula: ClassVar[Parts | Cells]

    def candidates(self, **inputs: Any) -> Sequence[Any]:
        """Return the candidates that the query is given at run time."""
        given: Sequence[Any] = inputs["candidates"]
        return given

    @property
    def row_bound(self) -> int | None:
        """The largest number of rows if it is public, else None. Bounds that grow with the number of rows need it."""
        return None

    @property
    def exact_rows(self) -> bool:
        """Whether `row_bound` is the table's exact number of rows. A neighbour may then have one more."""
        return False

    @property
    def most_parts(self) -> int:
        """The largest number of parts of a candidate, for a formula of `Parts`. The rounding error grows with it."""
        return 64

    @property
    def most_classes(self) -> int:
        """The largest number of classes of a part, for a formula of `Parts`. The rounding error grows with it."""
        return 64

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims about the formula. By default `derive` finds them.

        A subclass may declare its own claims. They must bound the rise and the fall. Without a claim about
        replacements, a replacement counts as a rise and a fall. For units of several rows, add claims with a `group` of
        that many rows or more. Otherwise the sum over the rows is used.
        """
        return tuple(found.claim for found in derive(self.formula))

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formula with its claims."""
        return (ScoreClaims(self.name, self.formula, self.claims, self._score),)

    def _score(self, counts: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """Return the score of one candidate's counts."""
        return float(self.answer(counts[np.newaxis])[0])

    @property
    def text(self) -> str:
        """The name and the formula."""
        return f"{self.name}: {self.formula.text}"

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivity that follows from the claims, for tables of at most `row_bound` rows, or of any size."""
        claims = _claims_for(self.claims, 1)
        return (formula_sensitivity(self.formula, claims, self.row_bound, self.exact_rows),)

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Return the sensitivity for several rows, if it is less than the sum over the rows.

        For `Cells`, all ways in which the rows can join a table are tried, as for one row. If there are too many ways,
        the sum over the rows is used. For `Parts` the rows are added one by one, so that the table grows with each row,
        and the bounds for one row are summed.
        """
        if rows == 1:
            return ()
        claims = self.claims
        if isinstance(self.formula, Cells):
            if type(self).claims is not FormulaScores.claims:
                claims = _claims_for(claims, rows)
                if not {Change.RISE, Change.FALL} <= {claim.change for claim in claims}:
                    return ()
            elif ways_to_join(rows, len(self.formula.cells)) > MOST_JOINING:
                return ()
            else:
                claims = tuple(found.claim for found in derive(self.formula, rows))
        else:
            claims = _claims_for(claims, 1)
        found = formula_sensitivity(self.formula, claims, self.row_bound, self.exact_rows, rows)
        (one,) = self.sensitivities
        return (found,) if _smaller(found, one, rows) else ()

    @property
    def rounding(self) -> Fraction:
        """The largest rounding error of a score in floating point (see `formulas.rounding_of`)."""
        change = self.sensitivities[0].add_or_remove_one or Fraction()
        return rounding_of(self.formula, change, self.row_bound, self.most_classes, self.most_parts)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, computed by the formula's kernel.

        Raises
        ------
        InputError
            If the candidates have more parts or classes than `most_parts` and `most_classes` say.
        """
        from dpframework.formulas.formula_compiler import scores_of

        if isinstance(self.formula, Parts):
            _, parts, classes = counts.shape
            if parts > self.most_parts or classes > self.most_classes:
                raise InputError(
                    f"the query '{self.name}' counted {parts} parts of {classes} classes, but its rounding error is "
                    f"stated for at most {self.most_parts} parts of {self.most_classes} classes; override `most_parts` "
                    "and `most_classes`"
                )
        return scores_of(self.formula, counts)


def formula_sensitivity(
    shape: Parts | Cells, claims: Sequence[Claim], row_bound: int | None, exact_rows: bool, group: int = 1
) -> Sensitivity:
    """Return the sensitivity that follows from claims, for a table of at most `row_bound` rows.

    Parameters
    ----------
    shape
        The formula of the score.
    claims
        The claims about the score's rise, its fall and its change under replacement. Without a claim about
        replacements, a replacement counts as a rise and a fall.
    row_bound
        The largest number of rows, None for any.
    exact_rows
        Whether `row_bound` is the exact number of rows, so that a neighbour may have more.
    group
        The number of rows that are added or replaced. For `Parts` the bounds for one row are added up.

    Raises
    ------
    InputError
        If no claim is about the rise, or none about the fall.
    """
    bounds = {claim.change: claim.bound for claim in claims}
    if missing := [change for change in (Change.RISE, Change.FALL) if change not in bounds]:
        raise InputError(
            f"no claim about '{shape.text}' bounds its {' or its '.join(missing)} when a row is added; add one "
            "to FormulaScores.claims"
        )
    larger = None if row_bound is None else row_bound + (group if exact_rows else 0)
    steps = 1 if isinstance(shape, Cells) else group

    def add(change: Change, most: int | None) -> Fraction:
        sizes = [None if most is None else max(most - k, 1) for k in range(steps)]
        return sum((bound_at(bounds[change], size) for size in sizes), Fraction())

    rise, fall = add(Change.RISE, larger), add(Change.FALL, larger)
    replaced = add(Change.RISE, row_bound) + add(Change.FALL, row_bound)
    if Change.REPLACED in bounds:
        replaced = min(replaced, steps * bound_at(bounds[Change.REPLACED], row_bound))
    source = f"derived from the formula {shape.text}"
    return Sensitivity(Norm.LINF, max(rise, fall), replaced, rise=rise, fall=fall, source=source)


def _claims_for(claims: Sequence[Claim], rows: int) -> tuple[Claim, ...]:
    """Return one claim for each kind of change: of the claims for `rows` rows or more, the one for the fewest rows."""
    covering = [claim for claim in claims if claim.group >= rows]
    return tuple({claim.change: claim for claim in sorted(covering, key=lambda one: -one.group)}.values())


def _smaller(found: Sensitivity, one: Sensitivity, rows: int) -> bool:
    """Tell whether a sensitivity for several rows is less than the sum over the rows, in at least one amount."""
    pairs = ((found.rise, one.rise), (found.fall, one.fall), (found.replace_one, one.replace_one))
    return any(several is not None and single is not None and several < rows * single for several, single in pairs)
