"""A check that a mechanism's noise is made of as many random bits as its log-density states.

Noise from a generator that was seeded with 32 random bits has the right distribution, and so do draws that are used
twice in one answer. But whoever tries all seeds, or subtracts the two numbers, knows the noise. A function of b random
bits has an entropy of at most b bits. The entropy that a mechanism states is the mean of minus the log-density of its
outputs. So the random bits that it asks for are counted, and compared with that entropy.

Bits that the mechanism asks for itself, as words or integers, may be the key of a cryptographic generator. So the check
accepts any mechanism that asks for at least `KEY_BITS` such bits.

Noise may also be looked up in a table, with an independent entry for each number. Its bits are many, but its values are
few. If it is added to two answers that lie close to each other, hardly any output is possible for both, so an output
reveals the answer. So outputs are drawn for two such answers, and it is counted how many of them occur among further
outputs of the first answer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import REAL_ARITHMETIC, SeededRandomness
from dpframework.mechanisms.uniforms import WORD_BITS
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import NARROW, TELLING
from dpframework.verify.mechanisms.output_keys import output_numbers
from dpframework.verify.mechanisms.probe_query_answers import scale_sensitivity
from dpframework.verify.mechanisms.sampler_statistics import adds_up, noise_size

KEY_BITS = 128  # that many bits cannot be guessed, so they may be the key of a generator
#: The share of the stated entropy that the bits must reach. Both are estimates from at least a few hundred numbers,
#: whose error is a few per cent. Noise that is used twice reaches a share of one half.
SHARE = 0.75
COINCIDING = 3  # how many outputs of a long answer are drawn and compared with as many others
#: How far the second answer lies from the first, in scales of the noise. The number is no multiple of usual lattices.
BESIDE = 0.0123456789
#: A table of values is reported if more than `FEWEST` outputs of the first answer occur again, and if these are more
#: than `TIMES` as many as the outputs of the second answer that occur. Given the further outputs, both numbers are
#: binomial. An output is at most about 1.01 times as likely for the first answer as for the second, so correct noise is
#: reported with a probability below 1e-10.
FEWEST, TIMES = 100, 4


class CountedRandomness(SeededRandomness):  # type: ignore[misc]  # final, except for this test
    """A seeded source that counts the random bits that it gives.

    Attributes
    ----------
    noise_bits
        The entropy of the noise that it has drawn, in bits.
    own_bits
        How many bits it has drawn as words and integers.
    """

    def __init__(self, seed: int, *, private: bool = False) -> None:
        super().__init__(seed)
        self.private = private  # a mechanism might look at this, and draw differently in a private run
        self.noise_bits = self.own_bits = 0.0
        self._start = copy.deepcopy(self._generator.bit_generator)

    def discrete_laplace(self, size: int, scale: float) -> NDArray[np.int64]:
        """Count the entropy, and draw."""
        self.noise_bits += size * laplace_bits(scale)
        return super().discrete_laplace(size, scale)

    def discrete_gaussian(self, size: int, scale: float) -> NDArray[np.int64]:
        """Count the entropy, and draw."""
        counted = self.noise_bits + size * gaussian_bits(scale)
        drawn = super().discrete_gaussian(size, scale)
        self.noise_bits = counted  # without the draws that were rejected
        return drawn

    def noisy_max(self, *given: Any) -> int:
        """Draw. A choice has noise for each candidate, so its bits count as enough."""
        self.own_bits = math.inf
        return super().noisy_max(*given)

    def integers(self, below: int | NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Count the bits, and draw."""
        self.own_bits += float(np.broadcast_to(np.log2(np.asarray(below, dtype=np.float64)), size).sum())
        return super().integers(below, size)

    def words(self, size: int) -> NDArray[np.uint64]:
        """Count the bits, and draw."""
        self.own_bits += WORD_BITS * size
        return super().words(size)

    def apart(self) -> CountedRandomness:
        """Return itself instead of another source, so that all bits are counted."""
        return self

    @property
    def generator_words(self) -> int:
        """How many words the generator has drawn, at most `KEY_BITS // WORD_BITS`."""
        walked, now = copy.deepcopy(self._start), self._generator.bit_generator.state["state"]
        for words in range(KEY_BITS // WORD_BITS):
            if walked.state["state"] == now:
                return words
            walked.random_raw()
        return KEY_BITS // WORD_BITS


def laplace_bits(scale: float) -> float:
    """Return the entropy of discrete Laplace noise, in bits.

    Examples
    --------
    >>> round(laplace_bits(1), 3)
    2.341
    """
    ratio = math.exp(-1 / scale)
    return (-math.log(-math.expm1(-1 / scale) / (1 + ratio)) + 2 * ratio / -math.expm1(-2 / scale) / scale) / math.log(
        2
    )


def gaussian_bits(scale: float) -> float:
    """Return the entropy of discrete Gaussian noise, in bits.

    Examples
    --------
    >>> round(gaussian_bits(1), 3), round(gaussian_bits(100), 3)
    (2.047, 8.691)
    """
    if scale > 4:  # the entropy of the continuous distribution differs by less than 1e-9 bits
        return math.log2(scale * math.sqrt(2 * math.pi * math.e))
    weights = np.exp(-(np.arange(-64, 65) ** 2) / (2 * scale**2))
    shares = weights / weights.sum()
    return float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())


def bit_problems(mechanism: Mechanism, answers: Sequence[Any], calibration: Calibration, what: str) -> Iterator[str]:
    """Yield a sentence if the noise of answers that are drawn together is made of too few random bits.

    Parameters
    ----------
    mechanism
        The mechanism, which must not be a selection.
    answers
        The answers, with a few hundred numbers or more.
    calibration
        The calibration of the mechanism.
    what
        The answers in words.
    """
    for private in (False, True):
        source = CountedRandomness(8, private=private)
        outputs = mechanism.release_many(answers, calibration, source.handed(mechanism.assumptions))
        if REAL_ARITHMETIC in mechanism.assumptions:  # the log-density is one of real numbers, which have no entropy
            bits, enough = float(WORD_BITS * source.generator_words), float(KEY_BITS)
            stated = "which can be guessed"
        else:
            bits = source.noise_bits + source.own_bits
            densities = [mechanism.log_density(*pair, calibration) for pair in zip(answers, outputs, strict=True)]
            entropy = -math.fsum(densities) / math.log(2)
            enough = SHARE * entropy if source.own_bits < KEY_BITS else 0.0
            stated = f"and its log-density states {entropy:.4g}"
        if bits < enough:
            kind = "private" if private else "seeded"
            yield (
                f"the noise of {what} is made of {bits:.4g} bits of the {kind} randomness, {stated}; draw the noise of "
                f"each number anew, or key a cryptographic generator with at least {KEY_BITS} bits"
            )
            return


def table_problems(mechanism: Mechanism, zeros: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Yield a sentence if noise has few values, which tell close answers apart.

    The sensitivity is enlarged, so that noise on whole numbers has many values, too.

    Parameters
    ----------
    mechanism
        The mechanism. It is not tested if, by its log-density, the numbers of an output depend on each other.
    zeros
        A long answer of zeros.
    calibration
        The calibration of the mechanism for this answer.
    """
    larger = [scale_sensitivity(one, Fraction(TELLING)) for one in calibration.facts.sensitivities]
    wide = mechanism.calibrate(attrs.evolve(calibration.facts, sensitivities=larger), Relation.ADD_OR_REMOVE_ONE)
    if wide is None:
        return
    handed = SeededRandomness(18).handed(mechanism.assumptions)
    unit = float(wide.unit)
    shift = zeros.dtype.type(unit * math.ceil(BESIDE * noise_size(mechanism, wide) / unit))

    def drawn(answer: NDArray[Any]) -> NDArray[np.float64]:
        return np.concatenate([output_numbers(mechanism.release(answer, wide, handed)) for _ in range(COINCIDING)])

    if not adds_up(mechanism, zeros, mechanism.release(zeros, wide, handed), wide):
        return
    known = drawn(zeros)
    if np.median(np.abs(known)) < NARROW * noise_size(mechanism, wide):
        return  # the noise is not as wide as it should be, which other tests find
    again, beside = (int(np.isin(drawn(answer), known).sum()) for answer in (zeros, zeros + shift))
    if again > max(FEWEST, TIMES * beside):
        yield (
            f"of {known.size} numbers with noise, {again} occur twice, but only {beside} occur with an answer "
            f"{shift:.3g} away: the noise has few values, and shows the answer; draw it with 53 bits or more"
        )
