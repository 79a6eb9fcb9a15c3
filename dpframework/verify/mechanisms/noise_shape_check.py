"""Checks that the noise of a number has the distribution that its log-density states, and not only the stated size.

Ratios of likelihoods tell noise from wider and narrower noise of the same shape. Noise of another shape may have the
same mean size, and most outputs of fine noise occur only once, so that no frequencies can be compared. So the
distribution function is summed up from the log-density, and draws are compared with it.

- If the log-density is a sum over numbers, the noise of one number has the distribution that follows from varying this
  number alone. It is summed up on a grid around the answer. The draws and their absolute values are compared with it by
  the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant: of n independent draws, the share below any
  number is off by more than e with a probability of at most 2 exp(-2 n e**2).
- Otherwise the draws are halved, and a Metropolis walk starts from each draw of one half. Such a walk leaves the stated
  distribution as it is. If the draws have that distribution, so have the ends of the walks, and their log-densities are
  distributed as those of the other half. The two halves are compared by the test of Kolmogorov and Smirnov.

Each comparison refuses a correct mechanism with a probability of at most 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import (
    AMOUNT_LONG,
    LONG,
    calibrate_for_length,
    other_amount_calibrations,
)
from dpframework.verify.mechanisms.neighbour_answers import has_real_density
from dpframework.verify.mechanisms.output_keys import is_array_like, output_step
from dpframework.verify.mechanisms.release_failure_check import density_beside, drawn_output, stated_density
from dpframework.verify.mechanisms.sampler_statistics import FALSE_ALARM, adds_up, are_unlike, errors_of, noise_size

Floats: TypeAlias = "NDArray[np.float64]"

CELLS = 25  # into how many cells a scale of noise is divided
REACH = 8  # how many scales the grid reaches to either side; draws farther away are not compared
ROUGH = 0.01  # how far a sum over the grid may be off, such as at a jump of the density within a cell
FINE = 1e-3  # a lattice is fine if its step is at most this share of the noise's scale
JUMP = 1.5  # a density jumps between two points of the grid if it differs by more than this factor
BESIDE = 0.37  # densities of real numbers are summed up once more on a grid that is shifted by this share of a cell
#: Lengths of answers, and how many are drawn for each.
DRAWN = ((1, 4096), (LONG, 8))
DRAWN_AT_AMOUNTS = 4  # how many answers of length `AMOUNT_LONG` are drawn at each other amount
WALKED = (2, 8)  # the lengths of answers whose numbers depend on each other
WALKS, STEPS = 1500, 16  # how many walks are made for each of them, and of how many steps
WALK_SCALE = 1.5  # the standard deviation of a step, in scales of the noise, for an answer of one number


def noise_shape_problems(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Yield the first problem with the shape of a mechanism's noise, if there is one.

    Parameters
    ----------
    mechanism
        The mechanism. Its outputs must have a number for each number of the answer.
    answer
        Any answer. The answers that are tried have its type.
    calibration
        The mechanism's noise scale and losses for a query.
    """
    for length, draws in DRAWN:
        longer = calibrate_for_length(mechanism, calibration, length)
        if longer is not None:
            zeros = np.zeros(length, dtype=answer.dtype)
            found = _shape_problem(mechanism, zeros, longer, draws)
            if found:
                yield f"the noise of an answer of length {length} {found}"
                return
    for length in WALKED:
        longer = calibrate_for_length(mechanism, calibration, length)
        if longer is not None:
            found = _walk_problem(mechanism, np.zeros(length, dtype=answer.dtype), longer)
            if found:
                yield f"the noise of an answer of length {length} {found}"
                return


def noise_shape_problems_at_other_amounts(mechanism: Mechanism, answer: Any, calibration: Calibration) -> Iterator[str]:
    """Yield the first problem with the shape of the noise if the mechanism has other amounts to spend.

    The parameters are those of `noise_shape_problems`.
    """
    if mechanism.selects or not isinstance(answer, np.ndarray) or answer.dtype.kind not in "iuf":
        return
    zeros = np.zeros(AMOUNT_LONG, dtype=answer.dtype)
    for how, other, changed in other_amount_calibrations(mechanism, calibration):
        found = _shape_problem(other, zeros, changed, DRAWN_AT_AMOUNTS)
        if found:
            yield f"{how}, the noise of an answer of length {AMOUNT_LONG} {found}"
            return


def _shape_problem(mechanism: Mechanism, zeros: NDArray[Any], calibration: Calibration, draws: int) -> str | None:
    """Compare the noise of all numbers with the distribution that the log-density states for the first one.

    Also compare it with the distribution that the mechanism states by itself.

    Return None if the distributions fit, or if the numbers of a draw depend on each other or are not alike.
    """
    handed = SeededRandomness(12).handed(mechanism.assumptions)
    outputs = [drawn_output(mechanism, zeros, calibration, handed) for _ in range(draws)]
    first = outputs[0]
    if not is_array_like(first, zeros):
        return None
    several = zeros.size > 1
    if several and not (
        _are_alike(mechanism, zeros, first, calibration) and adds_up(mechanism, zeros, first, calibration)
    ):
        return None
    drawn = errors_of(outputs, zeros).ravel()
    found = _law_problem(calibration, drawn, noise_size(mechanism, calibration))
    if found:
        return found
    distribution = _distribution(mechanism, zeros, calibration, first.dtype)
    if distribution is None:
        return None
    grid, below = distribution
    inside = drawn[(drawn > grid[0]) & (drawn <= grid[-1])]
    if not inside.size:
        return "lies nowhere near the answer, where its log-density is largest"
    allowed = math.sqrt(math.log(4 / FALSE_ALARM) / (2 * inside.size)) + ROUGH
    shares = np.searchsorted(np.sort(inside), grid, side="right") / inside.size
    off = np.abs(shares - below)
    # The grid is symmetric, so the k-th points from both ends have the same distance from the answer.
    folded = np.abs((shares - below)[::-1] - (shares - below))[: grid.size // 2]
    for found, within in ((off, False), (folded, True)):
        if found.max(initial=0.0) > allowed:
            k = int(found.argmax())
            stated, seen = (one[-1 - k] - one[k] if within else one[k] for one in (below, shares))
            bound = (-grid[k] if within else grid[k]) / noise_size(mechanism, calibration)
            return (
                f"is not distributed as its log-density states: it is {'within' if within else 'at most'} {bound:.3g} "
                f"scales in {seen:.1%} of {inside.size} draws, and the log-density states {stated:.1%}"
            )
    return None


def _are_alike(mechanism: Mechanism, zeros: NDArray[Any], output: NDArray[Any], calibration: Calibration) -> bool:
    """Tell whether a log-density stays the same if the numbers of an output change places.

    The first number, whose stated distribution is compared with draws of all numbers, changes places with another one
    that differs from it.
    """
    mixed, swapped = output[np.random.default_rng(5).permutation(zeros.size)], output.copy()
    other = int(np.argmax(output != output[0]))
    swapped[0], swapped[other] = output[other], output[0]
    stated, *moved = (stated_density(mechanism, zeros, one, calibration) for one in (output, mixed, swapped))
    return all(math.isclose(stated, density, rel_tol=1e-9) for density in moved)


def _law_problem(calibration: Calibration, drawn: Floats, size: float) -> str | None:
    """Compare the noise of real numbers with the distribution that the mechanism states by itself, if it states one.

    Bounds on errors of results are computed from that distribution (see `Mechanism.noise_law`).
    """
    if float(calibration.unit) > FINE * size:
        return None  # noise on whole numbers has that distribution only roughly
    try:
        law = calibration.noise_law
    except InputError:
        return None
    grid = np.linspace(-REACH, REACH, 2 * REACH * CELLS + 1) * size
    below = law.at_most(grid)
    allowed = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * drawn.size)) + ROUGH
    off = np.abs(np.searchsorted(np.sort(drawn), grid, side="right") / drawn.size - below)
    if off.max() > allowed:
        return f"is not distributed as its noise_law states, which is off by up to {off.max():.1%}"
    chances = (below > ROUGH) & (below < 1 - ROUGH)
    back = law.quantile(below[chances]) - grid[chances]
    return None if (np.abs(back) <= ROUGH * size).all() else "has a noise_law whose quantiles do not fit its at_most"


def _distribution(
    mechanism: Mechanism, zeros: NDArray[Any], calibration: Calibration, dtype: np.dtype[Any]
) -> tuple[Floats, Floats] | None:
    """Return a grid around 0, and the stated probability that the first number's noise is at most each of its points.

    Noise outside the grid, and noise at its first point, does not count for the probability. Return None if the grid is
    too coarse. It is if the density jumps, or if a sum over a shifted grid differs, as for a peak at a single number.
    """
    unit, size = output_step(mechanism, zeros, calibration), noise_size(mechanism, calibration)
    real = has_real_density(mechanism, zeros, calibration)
    step = size / CELLS if real else max(1, round(size / unit / CELLS)) * unit
    number = math.ceil(REACH * size / step)
    grid = np.arange(-number, number + 1, dtype=np.float64) * step
    sums: list[Floats] = []
    for beside in (0.0, BESIDE * step if real else unit):
        logs = np.array([density_beside(mechanism, zeros, point, calibration, dtype) for point in grid + beside])
        if not np.isfinite(logs.max()):
            return None
        weights = np.exp(logs - logs.max())
        if not real and step == unit:  # every point of the lattice
            below = np.concatenate([[0.0], np.cumsum(weights[1:])])
            return grid, np.asarray(below / below[-1])
        far_apart = np.maximum(weights[1:], weights[:-1]) > JUMP * np.minimum(weights[1:], weights[:-1])
        jumps = np.abs(np.diff(weights))[far_apart]
        if jumps.sum() / 2 > ROUGH * weights.sum():
            return None
        # A cell of the grid from a to b has several lattice points. Of its ends, only b belongs to it. So the sum over
        # its lattice points is that of the trapezoid, plus half of the weight of b, less half of the weight of a.
        cells = (weights[1:] + weights[:-1]) / 2
        if not real:
            cells += (weights[1:] - weights[:-1]) / 2 * (unit / step)
        below = np.concatenate([[0.0], np.cumsum(cells)])
        sums.append(below / below[-1])
    return (grid, sums[0]) if np.abs(sums[0] - sums[1]).max() <= ROUGH / 2 else None


def _walk_problem(mechanism: Mechanism, zeros: NDArray[Any], calibration: Calibration) -> str | None:
    """Compare draws with the ends of walks that start from other draws and leave the stated distribution as it is.

    Return None if they fit, if outputs are not arrays, or if the log-density is a sum over numbers.
    """
    handed = SeededRandomness(13).handed(mechanism.assumptions)
    first = drawn_output(mechanism, zeros, calibration, handed)
    if not is_array_like(first, zeros):
        return None
    if adds_up(mechanism, zeros, first, calibration):
        return None
    drawn = [drawn_output(mechanism, zeros, calibration, handed) for _ in range(2 * WALKS)]
    stated = np.array([stated_density(mechanism, zeros, one, calibration) for one in drawn])
    if not np.isfinite(stated).all():
        return None  # other tests name such draws
    source = np.random.default_rng(14)
    size = WALK_SCALE * noise_size(mechanism, calibration) / math.sqrt(zeros.size)
    unit = float(calibration.unit)
    lattice = not has_real_density(mechanism, zeros, calibration)
    for k in range(WALKS):
        for _ in range(STEPS):
            move = source.standard_normal(zeros.size) * size
            if lattice:
                move = np.rint(move / unit) * unit
            moved = (drawn[k] + move.reshape(zeros.shape)).astype(first.dtype)
            density = stated_density(mechanism, zeros, moved, calibration)
            if math.log(source.random()) < density - stated[k]:
                drawn[k], stated[k] = moved, density
    if are_unlike(stated[:WALKS], stated[WALKS:]):
        return (
            "is not distributed as its log-density states: draws change their distribution by a walk that keeps the "
            f"stated one; their mean log-density is {stated[WALKS:].mean():.4g} before it and "
            f"{stated[:WALKS].mean():.4g} after it"
        )
    return None
