"""Scores of candidates, for selections, and scores of an interval's points, for exponential densities."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases, Description, as_descriptions
from dpframework.facts.row_partitions import attributes_of
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import histogram_claims
from dpframework.tables.count_width import in_64_bits
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts
from dpframework.tables.encoded_row_blocks import Block


class CandidateScores(Query):
    """One score for each of several public candidates, by which a mechanism selects one of them.

    A subclass declares its sensitivity in the linf norm. If an added row moves all scores in the same direction, the
    sensitivity is monotonic, and a selection needs half of the noise that it needs otherwise. A subclass lists its
    candidates from public inputs alone. A candidate that depends on the rows breaks every claim.
    """

    integer = False

    @abc.abstractmethod
    def candidates(self, **inputs: Any) -> Sequence[Any]:
        """Return the candidates, in the order of the scores."""


@final
@attrs.frozen
class Supports(CandidateScores):
    """For each of several descriptions its support, which is the number of rows for which it holds.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions_of_rows import Equals
    >>> Supports([Equals("order", "pizza"), Equals("order", "salad")]).answer_length
    2
    """

    name = "supports"
    integer = True
    descriptions: tuple[Description, ...] = attrs.field(
        converter=as_descriptions, validator=attrs.validators.min_len(1)
    )

    @property
    def text(self) -> str:
        """Say how many descriptions there are."""
        return f"supports of {len(self.descriptions)} descriptions"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the descriptions test."""
        return attributes_of(self.descriptions)

    @property
    def answer_length(self) -> int:
        """One score for each description."""
        return len(self.descriptions)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Adding a row raises each support by 0 or 1, and replacing a row changes it by at most 1.

        The l1 and the squared l2 sensitivity are attained if all descriptions hold for a row. For disjoint
        descriptions, a histogram has lower sensitivities.
        """
        source = "a row is in each support once or not at all"
        return (
            Sensitivity(Norm.LINF, 1, 1, fall=0, source=source),
            Sensitivity(Norm.L1, self.answer_length, self.answer_length, fall=0, source=source),
            Sensitivity(Norm.SQUARED_L2, self.answer_length, self.answer_length, fall=0, source=source),
        )

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claims about the support of one description. The l1 changes of several supports add up."""
        return histogram_claims(1)

    def candidates(self, **inputs: Any) -> Sequence[Description]:
        """Return the descriptions."""
        return self.descriptions

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (descriptions,)."""
        return np.array([int(d.holds(block).sum()) for d in self.descriptions], dtype=np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return, for each description, a table of the rows for which it holds and of all others."""
        tables = [Crosstab([Cases([one])]) for one in self.descriptions]
        return JointCounts(tables, lambda counts: np.array([own[0] for own in counts]))


@attrs.frozen(eq=False)
class PiecewiseScores:
    """A score that is constant between breaks of an interval, for an interval mechanism.

    The breaks may be private values. The density that they define covers the whole public interval, and no break is
    ever released.

    Attributes
    ----------
    breaks
        The ends of the pieces, float64, shape (pieces + 1,), never decreasing. The first and the last are the public
        bounds.
    scores
        The score of each piece, float64, shape (pieces,).
    """

    breaks: NDArray[np.float64] = attrs.field(converter=in_64_bits)
    scores: NDArray[np.float64] = attrs.field(converter=in_64_bits)

    def __attrs_post_init__(self) -> None:
        """Refuse shapes that do not fit and values that are not finite."""
        if self.scores.ndim != 1 or self.breaks.shape != (len(self.scores) + 1,):
            raise InputError("piecewise scores need exactly one more break than scores")
        if not (np.isfinite(self.breaks).all() and np.isfinite(self.scores).all()):
            raise InputError("piecewise scores and their breaks must be finite on every table")
