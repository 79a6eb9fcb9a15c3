"""The Laplace mechanism, on integers and on a fine lattice of real numbers.

Source: Dwork, McSherry, Nissim and Smith 2006; on integers Ghosh, Roughgarden and Sundararajan 2009. Assumes that
the declared l1 sensitivity holds. Claim: pure epsilon; in zCDP rho = epsilon**2 / 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms.base import Calibration, Preview, PureMechanism
from dpframework.mechanisms.integer_answer_change_bounds import unit_shifts
from dpframework.mechanisms.noise_laws import LaplaceLaw
from dpframework.mechanisms.randomness import Randomness
from dpframework.queries.base import Norm, QueryFacts
from dpframework.results.noisy_count_with_interval import discrete_laplace_variance


@attrs.frozen
class _LatticeLaplace(PureMechanism):
    """Adds a number k of lattice steps to every coordinate, with probability proportional to exp(-|k| unit / scale)."""

    norm: ClassVar[Norm] = Norm.L1

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add noise to each coordinate. Integers stay integers."""
        # Not `self.release_many`: in a subclass with its own `release`, that method calls `release`. If `release` then
        # calls this method, as its parent's, the calls would never end.
        (output,) = _LatticeLaplace.release_many(self, [answer], calibration, randomness)
        return output

    def release_many(self, answers: Sequence[Any], calibration: Calibration, randomness: Randomness) -> list[Any]:
        """Draw the independent noise of all coordinates of all answers at once."""
        return with_noise(
            answers, calibration, lambda size: randomness.discrete_laplace(size, calibration.lattice_scale)
        )

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of the output's lattice points."""
        noise = noise_between(answer, output, calibration)
        if noise is None:
            return -math.inf
        b = calibration.lattice_scale
        log_normalizer = math.log(math.tanh(1 / (2 * b)))
        return float(noise.size * log_normalizer - np.abs(noise).sum() / b)

    def preview(self, calibration: Calibration) -> Preview:
        """Return the mean and the 95 % quantile of the noise's absolute value. For integer noise the quantile is whole.

        For integer noise k and q = exp(-1 / scale), the mean of |k| is 2 q / (1 - q**2), and Pr[|k| > m] is
        2 q**(m + 1) / (1 + q).
        """
        expected = scale = float(calibration.scale)
        within = scale * math.log(20)
        if calibration.facts.integer:
            unit, steps = float(calibration.unit), float(calibration.scale / calibration.unit)
            q = math.exp(-1 / steps)
            expected = unit * 2 * q / (1 - q * q)
            within = unit * float(max(math.ceil(steps * math.log(40 / (1 + q)) - 1), 0))
        return Preview.of_noise(expected, within)

    def variance(self, calibration: Calibration) -> float:
        """Return the variance of discrete Laplace noise, in units of the answer."""
        return discrete_laplace_variance(calibration.lattice_scale) * float(calibration.unit) ** 2

    def noise_law(self, calibration: Calibration) -> LaplaceLaw:
        """Return the continuous Laplace distribution, nearly the distribution of the noise (see `noise_laws`)."""
        return LaplaceLaw(float(calibration.scale))

    def dp_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return discrete Laplace events for the integers that a row moves (see `unit_shifts`).

        The event of continuous Laplace noise would understate the loss. On integers, the loss of a change by 1 is plus
        or minus 1 / scale and nothing in between, which composes to a larger total.
        """
        return self.unit_event(calibration, relation)

    def unit_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return discrete Laplace events for the shifts of a unit (see `unit_shifts`)."""
        shifts = unit_shifts(calibration, relation)
        if shifts is None:
            return None
        import dp_accounting

        number, shift = shifts
        event = dp_accounting.dp_event.DiscreteLaplaceDpEvent(1 / calibration.lattice_scale, shift)
        return event if number == 1 else dp_accounting.SelfComposedDpEvent(event, number)


@final
@attrs.frozen
class Laplace(_LatticeLaplace):
    """Laplace noise on real numbers, drawn exactly on a lattice whose step is at most 2**-20 of the sensitivity.

    The sensitivity includes the rounding. Integer queries get integer noise.

    Examples
    --------
    >>> Laplace(0.5).epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "laplace"


@final
@attrs.frozen
class DiscreteLaplace(_LatticeLaplace):
    """Integer Laplace noise (two-sided geometric) for integer queries.

    Examples
    --------
    >>> DiscreteLaplace("0.1").epsilon
    Fraction(1, 10)
    """

    name: ClassVar[str] = "discrete-laplace"

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse real-valued answers, and all answers that every mechanism refuses."""
        if not facts.integer:
            return "adds integer noise, and the query's answer is not integer; use laplace"
        return super().misfit(facts)


def with_noise(answers: Sequence[Any], calibration: Calibration, draw: Callable[[int], NDArray[np.int64]]) -> list[Any]:
    """Return answers with independent noise on each coordinate, drawn in one call for all of them.

    Parameters
    ----------
    answers
        The exact answers.
    calibration
        The calibration of the noise.
    draw
        The function that draws a given number of independent integers, in lattice steps.
    """
    exact = [calibration.on_lattice(answer) for answer in answers]
    ends = list(itertools.accumulate(points.size for points in exact))
    noise = draw(ends[-1]) if ends else np.zeros(0, dtype=np.int64)
    return [
        from_lattice(points + noise[end - points.size : end].reshape(points.shape), calibration)
        for points, end in zip(exact, ends, strict=True)
    ]


def from_lattice(points: np.ndarray[Any, Any], calibration: Calibration) -> Any:
    """Return lattice points in units of the answer: an array of the same shape, or a Python number for one point."""
    numbers = points if calibration.unit == 1 else points * float(calibration.unit)
    return numbers.item() if numbers.ndim == 0 else numbers


def to_lattice(output: Any, calibration: Calibration) -> np.ndarray[Any, Any] | None:
    """Return an output as whole numbers of lattice steps, or None if it is not on the lattice."""
    output = np.asarray(output)
    if calibration.unit == 1 and output.dtype.kind in "iu":
        return np.asarray(output.astype(np.int64))
    numbers = output / float(calibration.unit)
    points = np.rint(numbers)
    return points.astype(np.int64) if bool((np.isfinite(numbers) & (points == numbers)).all()) else None


def noise_between(answer: Any, output: Any, calibration: Calibration) -> NDArray[np.int64] | None:
    """Return the noise in whole lattice steps that turns an exact answer into an output, or None if there is none."""
    exact, points = calibration.on_lattice(answer), to_lattice(output, calibration)
    return None if points is None or points.shape != exact.shape else points - exact
