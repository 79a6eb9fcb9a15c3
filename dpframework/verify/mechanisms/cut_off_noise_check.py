"""Checks that a mechanism's noise is not cut off. Outputs beyond a cut would be impossible on one neighbour only.

Usual draws hardly ever reach a cut that lies far out. So a mechanism is given randomness that takes its noise there:
noise of a much larger scale, one number of noise that lies far out, and uniform bits that are all 0 or all 1. From such
bits, a sampler draws its farthest output if it looks noise up in a table, or computes it from a uniform number of 53
bits.

If there is a cut, many draws lie at it, or none comes near the number that was put far out. A cut is wrong only if it
moves with the answer. Outputs in a public range also end with that range, but its ends are the same for every answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import NOTHING, Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.verify.mechanisms.output_keys import output_numbers
from dpframework.verify.mechanisms.release_failure_check import density_beside
from dpframework.verify.mechanisms.sampler_statistics import noise_size

DRAWN = 100  # how many outputs are drawn from each source
WIDER = 1000  # the factor by which noise is widened
#: How far out a number of noise is put: once in scales of the noise, and once in steps of the lattice on which outputs
#: lie. 2**33 steps do not fit in 32 bits, so a number of 32 bits wraps round.
FAR_OUT, STEPS_OUT = 60, 2**33
#: A sampler may draw from a source and reject some numbers. It keeps a number with a probability that is proportional
#: to the number's stated density, divided by its density in the source. The number far out must come through if the two
#: densities say that it is kept at least exp(-LESS_LIKELY) = 0.6 times as often as 0.
LESS_LIKELY = 0.5
ROUNDED = 1e-9  # the relative error that logarithms of probabilities may have
CUT = 0.25  # noise counts as cut off if more than this share of draws lie at the same largest distance
LEAST = 4  # with extreme uniform integers, a cut counts if it is at least 4 scales and 4 steps from the answer
MOST_REQUESTS = 20_000  # the most requests of a sampler for extreme bits, with which it might otherwise never end


class WideGenerator(np.random.Generator):
    """A generator whose noise is of a much larger scale than it is asked for. Uniform numbers stay as they are."""

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw wider noise."""
        return super().laplace(loc, np.multiply(WIDER, scale), size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw wider noise."""
        return super().normal(loc, np.multiply(WIDER, scale), size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw wider noise."""
        return super().exponential(np.multiply(WIDER, scale), size)

    def standard_normal(self, *given: Any, **named: Any) -> Any:
        """Draw wider noise."""
        return WIDER * super().standard_normal(*given, **named)

    def standard_exponential(self, *given: Any, **named: Any) -> Any:
        """Draw wider noise."""
        return WIDER * super().standard_exponential(*given, **named)


class WideRandomness(SeededRandomness):  # type: ignore[misc]  # final, except for this test
    """A source that draws noise of a much larger scale than it is asked for."""

    def discrete_laplace(self, size: int, scale: float) -> NDArray[np.int64]:
        """Draw wider noise."""
        return super().discrete_laplace(size, WIDER * scale)

    def discrete_gaussian(self, size: int, scale: float) -> NDArray[np.int64]:
        """Draw wider noise."""
        return super().discrete_gaussian(size, WIDER * scale)

    @property
    def generator(self) -> np.random.Generator:
        """A generator that draws wider noise, too."""
        return WideGenerator(super().generator.bit_generator)


class FarRandomness(SeededRandomness):  # type: ignore[misc]  # final, except for this test
    """A source whose first number of noise, after each `arm`, lies far out.

    Parameters
    ----------
    seed
        The seed of all other draws.
    steps
        How far out that number lies, in steps of the lattice. 0 for `FAR_OUT` scales of the noise.

    Attributes
    ----------
    log_share
        The logarithm of the probability of that number over the probability of 0. None if no noise was drawn.
    """

    def __init__(self, seed: int, steps: int) -> None:
        super().__init__(seed)
        self._steps, self._sign = steps, 0
        self.log_share: float | None = None

    def arm(self, sign: int) -> None:
        """Let the next number of noise lie far out: above 0 for a sign of 1, below for -1."""
        self._sign = sign

    def discrete_laplace(self, size: int, scale: float) -> NDArray[np.int64]:
        """Draw, and put the first number far out."""
        return self._put(super().discrete_laplace(size, scale), scale, 1)

    def discrete_gaussian(self, size: int, scale: float) -> NDArray[np.int64]:
        """Draw, and put the first number far out."""
        armed, self._sign = self._sign, 0  # the Gaussian sampler draws Laplace noise, which must not be far out
        drawn = super().discrete_gaussian(size, scale)
        self._sign = armed
        return self._put(drawn, scale, 2)

    def _put(self, drawn: NDArray[np.int64], scale: float, power: int) -> NDArray[np.int64]:
        if self._sign and drawn.size:
            far = self._steps or math.ceil(FAR_OUT * scale)
            drawn[0], self._sign = self._sign * far, 0
            self.log_share = -((far / scale) ** power) / power
        return drawn


class EnoughError(BaseException):
    """Stops a sampler that asks for bits again and again. Samplers that catch every `Exception` do not catch it."""


class ExtremeRandomness(SeededRandomness):  # type: ignore[misc]  # final, except for this test
    """A source whose uniform integers are the smallest or the largest possible, each with probability 1/2."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._left = MOST_REQUESTS

    def integers(self, below: int | NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Draw 0 or `below` - 1."""
        self._ask()
        return np.asarray(super().integers(2, size) * (np.broadcast_to(below, size) - 1))

    def words(self, size: int) -> NDArray[np.uint64]:
        """Draw words whose bits are all 0 or all 1."""
        self._ask()
        return np.negative(super().integers(2, size)).astype(np.uint64)

    def _ask(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise EnoughError


def find_cut_off(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Yield a sentence if a mechanism's noise is cut off.

    Two kinds of mechanisms are not tested: those with a delta of their own, which may cut off their noise, and those
    that claim neither epsilon nor rho.
    """
    losses = calibration.losses
    if losses.delta != NOTHING:  # a tail of the noise with that probability may be cut off
        return
    if not any(one.under(relation) is not None for one in (losses.pure, losses.zcdp) for relation in Relation):
        return
    moved = answer + answer.dtype.type(1)
    wide, unit = WideRandomness(3).handed(mechanism.assumptions), float(calibration.unit)
    least = LEAST * max(unit, noise_size(mechanism, calibration))

    def together(one: NDArray[Any]) -> Any:
        return _end(list(mechanism.release_many([one] * DRAWN, calibration, wide)), one, unit)

    def alone(one: NDArray[Any]) -> Any:
        return _end([mechanism.release(one, calibration, wide) for _ in range(DRAWN)], one, unit)

    def extreme(one: NDArray[Any]) -> Any:
        sources = [ExtremeRandomness(k).handed(mechanism.assumptions) for k in range(DRAWN)]
        try:
            return _end([mechanism.release(one, calibration, source) for source in sources], one, least)
        except EnoughError:
            return None

    for drawn in (together, alone, extreme):
        one = drawn(answer)
        other = None if one is None else drawn(moved)
        if one is not None and other is not None and one.cut != other.cut and one.range != other.range:
            cut = abs(one.cut - float(answer.ravel()[0]))
            yield f"its noise is cut off at {cut:.6g}: outputs beyond are impossible on one neighbour only"
            return
    for steps in (0, STEPS_OUT):
        problem = _redrawing_problem(mechanism, answer, calibration, steps)
        if problem is not None:
            yield problem
            return


@attrs.frozen
class _Ends:
    """Where outputs end: the output farthest from the answer (of two, the larger one), and the range of all outputs."""

    cut: float
    range: tuple[float, float]


def _end(outputs: list[Any], answer: NDArray[Any], least: float) -> _Ends | None:
    """Return where outputs end, by their first numbers.

    None if the farthest outputs lie less than `least` from the answer, or if only a few lie so far away.
    """
    numbers = np.array([output_numbers(output)[0] for output in outputs])
    farthest, distance = _are_farthest(np.abs(numbers - float(answer.ravel()[0])))
    if distance < least or farthest.mean() <= CUT:
        return None
    return _Ends(float(numbers[farthest].max()), (float(numbers.min()), float(numbers.max())))


def _are_farthest(errors: NDArray[np.float64]) -> tuple[NDArray[np.bool_], float]:
    """Tell which of some distances are the largest, and return that distance."""
    largest = float(errors.max())
    return np.isclose(errors, largest, rtol=1e-9), largest


def _redrawing_problem(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration, steps: int) -> str | None:
    """Return a sentence if a number of noise that lies far out is never put out, although its density is high enough.

    A sampler may rightly reject the number, if its own distribution has thinner tails than the source. The log-density
    then states a much lower density for outputs so far out.
    """
    source = FarRandomness(9, steps)
    handed, distances = source.handed(mechanism.assumptions), []
    for k in range(DRAWN):
        source.arm(1 if k % 2 else -1)
        output = output_numbers(mechanism.release(answer, calibration, handed))
        distances.append(float(np.abs(output - answer.ravel()).max()))
    if source.log_share is None:
        return None  # the mechanism makes its noise from uniform integers
    farthest, largest = _are_farthest(np.array(distances))
    far = steps * float(calibration.unit) if steps else FAR_OUT * noise_size(mechanism, calibration)
    if largest > far / 4 or farthest.mean() > CUT:
        return None  # the noise comes far, or the outputs end with a public range
    out = math.ceil(far / float(calibration.unit)) * float(calibration.unit)
    stated = [density_beside(mechanism, answer, shift, calibration) for shift in (0, out, -out)]
    if max(stated[1:]) - stated[0] >= source.log_share * (1 + ROUNDED) - LESS_LIKELY:
        return (
            f"its noise is cut off: a number of noise {far:.6g} from 0 is drawn again or wraps round, and outputs so "
            "far out are impossible on one neighbour only"
        )
    return None
