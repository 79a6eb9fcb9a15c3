"""Sources of randomness: the operating system's generator with exact samplers, or a seed for experiments.

In a real run, all built-in mechanisms draw integers. Noise and selections come from exact samplers: our own, or
OpenDP's if they are chosen (Canonne, Kamath and Steinke 2020). Uniform integers come from ChaCha20, keyed by the
operating system. A seeded run draws from the same distributions by fast sampling, and its result says that it is not
private.

Noise that is made in floating point from a uniform number of 53 bits lies in a bounded interval. So some outcomes are
possible on one of two neighbours and impossible on the other. Therefore a mechanism gets the generator for such noise
only if it lists the assumption `real-arithmetic` (see `Randomness.handed`).
"""

from __future__ import annotations

import abc
import enum
import functools
import hashlib
import math
import os
import secrets
import weakref
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms import opendp_samplers
from dpframework.mechanisms.lattice_rounding import AT_ONCE, LatticePoints, Scores
from dpframework.mechanisms.uniforms import WORD_BITS, Uniform

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
REAL_ARITHMETIC = "real-arithmetic"  # the assumption that floats are drawn like the real numbers that they stand for
KEY_BITS, PUBLIC_BITS = 256, 128  # the bits of a generator's key, and of a seed of public draws
FEW_WORDS = 1 << 10  # up to this many words are drawn by the operating system, which takes no longer than a generator


def seed_of(*texts: str) -> int:
    """Return a seed of 128 bits that follows from public texts."""
    return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[: PUBLIC_BITS // 8])


class Noise(enum.StrEnum):
    """The noise of a noisy maximum, exponential for permute-and-flip or Gumbel for the exponential mechanism."""

    EXPONENTIAL = "exponential"
    GUMBEL = "gumbel"


class Samplers(enum.StrEnum):
    """The code that turns random bits into noise and choices: OpenDP's samplers or our own. Both are exact."""

    OPENDP = "opendp"
    ARRAYS = "arrays"

    @classmethod
    def named(cls, name: str) -> Samplers:
        """Return the samplers with a name.

        Raises
        ------
        InputError
            If no samplers have that name. The message lists the known names.
        """
        if name not in list(cls):
            raise InputError(f"no samplers are called {name!r}; there are {' and '.join(cls)}")
        return cls(name)


class Randomness(abc.ABC):
    """A source of the draws that mechanisms make. Noise and its scales are in steps of the lattice."""

    private: bool
    samplers: Samplers | None = None  # None for a source that is not private

    @abc.abstractmethod
    def discrete_laplace(self, size: int, scale: float) -> Integers:
        """Draw `size` integers k with probability proportional to `exp(-|k| / scale)`."""

    @abc.abstractmethod
    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        """Draw `size` integers k with probability proportional to exp(-k**2 / (2 scale**2))."""

    @abc.abstractmethod
    def noisy_max(self, scores: Scores, scale: float, noise: Noise) -> int:
        """Return the position of the largest of `scores` plus independent noise of that scale."""

    @abc.abstractmethod
    def integers(self, below: int | Integers, size: int) -> Integers:
        """Draw `size` integers uniformly from [0, below). `below` is one bound for all of them, or one for each."""

    @abc.abstractmethod
    def words(self, size: int) -> Words:
        """Draw `size` words of 64 uniform bits."""

    @property
    @abc.abstractmethod
    def generator(self) -> np.random.Generator:
        """A generator for samplers that draw in floating point (assumption `real-arithmetic`)."""

    def public_seed(self) -> int:
        """Return 128 bits for draws that anybody may know and repeat. No private draw depends on them.

        By default they come from the operating system, and no other draw uses them.
        """
        return secrets.randbits(PUBLIC_BITS)

    def apart(self) -> Randomness:
        """Return a source for draws whose number depends on the rows.

        Such draws from a seeded source would shift all its later draws, so a seeded source returns another source. By
        default the result is this source. Its draws are unpredictable, so nobody can tell how many it has made.
        """
        return self

    def below_exp(self, exponent: Fraction, word: int) -> bool:
        """Tell whether a uniform real number, of which the first 64 bits are `word`, is below exp(exponent).

        This is exact: further bits are drawn, and further digits of the exponential computed, until the comparison is
        decided.
        """
        return Uniform(word, WORD_BITS, self.words).below_exp(exponent)

    def handed(self, assumptions: Iterable[str]) -> Randomness:
        """Return the source that a mechanism with these assumptions may draw from.

        If the mechanism does not assume real arithmetic, that source has no generator, so all its draws are exact.
        """
        return self if REAL_ARITHMETIC in assumptions else _WithoutGenerator(self)


class GeneratorNotHandedError(InputError):
    """A mechanism asked for the generator without the assumption that allows it."""


@final
class _WithoutGenerator(Randomness):
    def __init__(self, source: Randomness) -> None:
        self._source, self.private, self.samplers = source, source.private, source.samplers

    @property
    def generator(self) -> np.random.Generator:
        raise GeneratorNotHandedError(
            "the mechanism draws in floating point and does not say so; draw integers (noisy_max, integers), or list "
            f"'{REAL_ARITHMETIC}' in its assumptions"
        )

    def discrete_laplace(self, size: int, scale: float) -> Integers:
        return self._source.discrete_laplace(size, scale)

    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        return self._source.discrete_gaussian(size, scale)

    def noisy_max(self, scores: Scores, scale: float, noise: Noise) -> int:
        return self._source.noisy_max(scores, scale, noise)

    def apart(self) -> Randomness:
        return _WithoutGenerator(self._source.apart())

    def integers(self, below: int | Integers, size: int) -> Integers:
        return self._source.integers(below, size)

    def words(self, size: int) -> Words:
        return self._source.words(size)


@final
class SystemRandomness(Randomness):
    """Cryptographic randomness.

    No two processes draw the same numbers: a fork gets a new key, and so does a copy.

    Parameters
    ----------
    samplers
        The code that turns random bits into noise and choices. OpenDP is imported when it first draws.

    Raises
    ------
    InputError
        If OpenDP is to draw, and is not installed.
    """

    private = True

    def __init__(self, samplers: Samplers = Samplers.ARRAYS) -> None:
        self.samplers = Samplers(samplers)
        if self.samplers is Samplers.OPENDP:
            opendp_samplers.require_installed()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle this source as a new source, with its own key."""
        return SystemRandomness, (self.samplers,)

    def discrete_laplace(self, size: int, scale: float) -> Integers:
        """Draw as `Randomness` says, by `discrete_laplace_sampler` or OpenDP's `make_laplace` on integers."""
        if self.samplers is Samplers.OPENDP:
            return opendp_samplers.noise("laplace", scale, size)
        from dpframework.mechanisms import discrete_laplace_sampler

        return discrete_laplace_sampler.discrete_laplace(self.words, size, _within(discrete_laplace_sampler, scale))

    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        """Draw as `Randomness` says, by `discrete_gaussian_sampler` or OpenDP's `make_gaussian` on integers."""
        if self.samplers is Samplers.OPENDP:
            return opendp_samplers.noise("gaussian", scale, size)
        from dpframework.mechanisms import discrete_gaussian_sampler

        return discrete_gaussian_sampler.discrete_gaussian(self.words, size, _within(discrete_gaussian_sampler, scale))

    def noisy_max(self, scores: Scores, scale: float, noise: Noise) -> int:
        """Choose as `Randomness` says, by `exact_choice_sampler` or OpenDP's `make_noisy_max` on integers."""
        if len(scores) == 1:
            return 0
        gumbel = noise is Noise.GUMBEL
        if self.samplers is Samplers.OPENDP:
            return opendp_samplers.noisy_max(scores, scale, gumbel=gumbel)
        from dpframework.mechanisms import exact_choice_sampler

        choose = exact_choice_sampler.exponential_choice if gumbel else exact_choice_sampler.permute_and_flip
        given = scores if isinstance(scores, LatticePoints) else np.asarray(scores, dtype=np.int64)
        return choose(self.words, given, _within(exact_choice_sampler, scale))

    def integers(self, below: int | Integers, size: int) -> Integers:
        """Draw as `Randomness` says. numpy's Generator rejects bits that would favour some integers (Lemire 2019)."""
        return self.generator.integers(0, below, size)

    def words(self, size: int) -> Words:
        """Draw as `Randomness` says. A few words come from the operating system itself, which needs no import."""
        if size <= FEW_WORDS and "generator" not in vars(self):
            return np.frombuffer(os.urandom(size * WORD_BITS // 8), dtype=np.uint64)
        # `Generator.integers` would take several times longer than these raw words.
        return self.generator.bit_generator.random_raw(size)

    @functools.cached_property
    def generator(self) -> np.random.Generator:
        """ChaCha20 in numpy's Generator, keyed with 256 bits of the operating system."""
        generator = _generator_class()(_newly_keyed())
        _generators.add(generator)
        return generator


def _within(sampler: Any, scale: float) -> float:
    """Return a scale as a float. Refuse a scale at which a sampler cannot draw."""
    if not sampler.SMALLEST_SCALE <= float(scale) <= sampler.LARGEST_SCALE:
        least, most = (math.log2(one) for one in (sampler.SMALLEST_SCALE, sampler.LARGEST_SCALE))
        raise InputError(
            f"the scale of the noise, 2**{math.log2(scale):.0f} steps, is not between 2**{least:.0f} and "
            f"2**{most:.0f}; change epsilon, or the bounds of the answer"
        )
    return float(scale)


@functools.cache  # made at first use: few releases need it, and numpy loads its generators when one is first named
def _generator_class() -> type[np.random.Generator]:
    """Return a subclass of numpy's Generator whose objects can be in a `WeakSet`."""

    class Generator(np.random.Generator):
        pass

    return Generator


# Generators are listed and not their sources, since a generator may outlive its source.
_generators: weakref.WeakSet[np.random.Generator] = weakref.WeakSet()


def _newly_keyed() -> Any:
    from randomgen import ChaCha

    return ChaCha(key=secrets.randbits(KEY_BITS), rounds=20)


def _rekey() -> None:
    """After a fork, give every copied generator a new key, in place, since other code may hold the generator."""
    for generator in _generators:
        generator.bit_generator.state = _newly_keyed().state


if hasattr(os, "register_at_fork"):  # where there is no fork, nothing is copied
    os.register_at_fork(after_in_child=_rekey)


@final
class SeededRandomness(Randomness):
    """Reproducible draws for experiments. They are not private, and every result made with them says so.

    Parameters
    ----------
    seed
        A non-negative integer.

    Raises
    ------
    InputError
        If `seed` is not a non-negative integer.
    """

    private = False

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed is {seed!r}; a non-negative integer is needed")
        self._generator = np.random.default_rng(seed)
        self._seed, self._apart = int(seed), 0

    def public_seed(self) -> int:
        """Return the same seed each time. It is a hash, so that public draws are unrelated to the noise."""
        return seed_of("public", str(self._seed))

    def apart(self) -> SeededRandomness:
        """Return another source each time, seeded by a hash of the seed and of the number of sources so far."""
        self._apart += 1
        return type(self)(seed_of("apart", str(self._seed), str(self._apart)))

    @property
    def generator(self) -> np.random.Generator:
        """Numpy's default generator, from the seed."""
        return self._generator

    def integers(self, below: int | Integers, size: int) -> Integers:
        """See `Randomness`."""
        return self._generator.integers(0, below, size)

    def words(self, size: int) -> Words:
        """See `Randomness`."""
        return self._generator.integers(0, 2**WORD_BITS, size, dtype=np.uint64)

    def discrete_laplace(self, size: int, scale: float) -> Integers:
        """Draw as `Randomness` says, as the difference of two geometric variables."""
        success = -np.expm1(-1.0 / scale)
        draws = self._generator.geometric(success, size=(2, size))
        return np.asarray(draws[0] - draws[1], dtype=np.int64)

    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        """Draw by rejection from the discrete Laplace (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
        laplace_scale = float(np.floor(scale)) + 1.0
        drawn = np.zeros(0, dtype=np.int64)
        while len(drawn) < size:
            proposals = self.discrete_laplace(2 * (size - len(drawn)) + 8, laplace_scale)
            excess = np.abs(proposals) - scale**2 / laplace_scale
            kept = self._generator.random(len(proposals)) < np.exp(-(excess**2) / (2 * scale**2))
            drawn = np.concatenate([drawn, proposals[kept]])
        return drawn[:size]

    def noisy_max(self, scores: Scores, scale: float, noise: Noise) -> int:
        """See `Randomness`. Works in chunks, since there may be millions of scores. This does not change the draws."""
        draw = self._generator.exponential if noise is Noise.EXPONENTIAL else self._generator.gumbel
        top, largest, position = scores.max(), -math.inf, 0
        for start in range(0, len(scores), AT_ONCE):
            some = scores[start : start + AT_ONCE]
            # The largest score is subtracted first: if noise is added to a large score, its last digits are lost.
            noisy = (some - top) + draw(scale=scale, size=len(some))
            best = int(np.argmax(noisy))
            if noisy[best] > largest:
                largest, position = float(noisy[best]), start + best
        return position
