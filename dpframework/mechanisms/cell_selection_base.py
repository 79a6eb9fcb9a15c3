"""The base class of mechanisms that show the noisy counts of cells with enough rows, and hide all other cells."""

from __future__ import annotations

import abc
import math
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.base import Calibration, Mechanism, Preview
from dpframework.mechanisms.integer_answer_change_bounds import moves_by_more
from dpframework.mechanisms.laplace import from_lattice, to_lattice
from dpframework.mechanisms.randomness import Randomness
from dpframework.queries.base import QueryFacts
from dpframework.queries.key_queries import KeyCounts
from dpframework.results.keys import ReleasedKeys

NO_COUNTS = "selects cells by their counts, and the query's answer is not known to change by at most 1 in each cell"


@final
@attrs.frozen
class CellVisibility:
    """How many rows a cell needs to be shown, and how far off a shown count is.

    Attributes
    ----------
    half
        The fewest rows with which a cell is shown with probability 1/2 or more.
    always
        The fewest rows with which a cell is shown with probability `sure` or more.
    within
        A bound on the noise of a count that holds in at least 95 % of releases.
    hidden
        A number of rows. A cell with more rows than this is left out with a probability of at most 2.5 %.
    expected
        The mean of the noise's absolute value.
    sure
        The probability that counts as "always", which is 1 or nearly 1.
    """

    half: int
    always: int
    within: float
    hidden: int
    expected: float
    sure: Fraction = Fraction(1)

    def preview(self, cells: str) -> Preview:
        """Return the mean error of a shown count, and a bound on any cell's error that holds with 95 % probability.

        The count of a cell that is not shown is taken to be off by all its rows.
        """
        within = max(self.within, float(self.hidden))
        always = "always" if self.sure == 1 else f"in {float(100 * self.sure):g} %"
        text = (
            f"{cells} of {self.half} rows are shown half of the time, {cells} of {self.always} or more {always}, "
            f"and {cells} without rows never"
        )
        return Preview(self.expected, within, f"{text}; each count within ±{within:.3g} (95 %)")


@attrs.frozen
class CellSelection(Mechanism):
    """A mechanism that shows the noisy counts of cells, or of keys, with enough rows.

    A key is a value that nobody listed beforehand. Cells with too few rows are released as 0, and keys with too few
    rows are left out.
    """

    shows_keys: ClassVar[bool] = True
    outputs: ClassVar[tuple[type[Any], ...]] = (ReleasedKeys,)

    def misfit(self, facts: QueryFacts) -> str | None:
        """Accept only queries whose answers are known to be counts that change by at most 1."""
        return NO_COUNTS if moves_by_more(facts) else super().misfit(facts)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Return the noisy counts that are shown.

        Noise is drawn for all cells, so that the time of a draw reveals nothing.
        """
        exact = answer.counts if isinstance(answer, KeyCounts) else calibration.on_lattice(answer)
        noisy = self._noisy_counts(exact, calibration, randomness)
        if isinstance(answer, KeyCounts):
            return ReleasedKeys.shown(answer.keys, noisy.tolist())
        return from_lattice(noisy, calibration)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability that exactly these counts are shown, and the other cells are not."""
        if isinstance(answer, KeyCounts):
            if not isinstance(output, ReleasedKeys) or 0 in output.counts:
                return -math.inf
            # One count for every key of the answer or the output, 0 where the key is missing.
            keys = tuple(sorted({*answer.keys, *output}))
            exact = answer.at(keys)
            points: NDArray[np.int64] | None = np.array([output.get(key, 0) for key in keys], dtype=np.int64)
        else:
            exact, points = calibration.on_lattice(answer), to_lattice(output, calibration)
        if points is None or points.shape != exact.shape:
            return -math.inf
        return float(self._log_chances(exact, points, calibration).sum())

    def preview(self, calibration: Calibration) -> Preview:
        """Return the mean error of a count that is shown, and a bound on any cell's error (see `CellVisibility`)."""
        return self.cell_visibility(calibration).preview("keys" if calibration.facts.unlisted else "cells")

    @staticmethod
    @abc.abstractmethod
    def cell_visibility(calibration: Calibration) -> CellVisibility:
        """Return how many rows a cell needs to be shown, and how far off its count is."""

    @abc.abstractmethod
    def _noisy_counts(
        self, exact: NDArray[np.int64], calibration: Calibration, randomness: Randomness
    ) -> NDArray[np.int64]:
        """Draw the noisy counts of all cells, with 0 for cells that are not shown."""

    @abc.abstractmethod
    def _log_chances(
        self, exact: NDArray[np.int64], points: NDArray[np.int64], calibration: Calibration
    ) -> NDArray[np.float64]:
        """Return the log-probability of each released count, where 0 means that the cell is not shown."""
