"""Where randomness comes from: the operating system's generator and exact samplers, or a seed for experiments.

A real run draws integers through OpenDP's exact samplers (Canonne, Kamath and Steinke 2020) and the few
floating-point draws that need it from ChaCha20, keyed by the operating system. A seeded run draws from the same
distributions by fast sampling; its result says that it is not private.
"""

from __future__ import annotations

import abc
import enum
import functools
import secrets
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError

Integers = NDArray[np.int64]


class Noise(enum.StrEnum):
    """The noise that a noisy maximum adds: exponential (permute-and-flip) or Gumbel (exponential mechanism)."""

    EXPONENTIAL = "exponential"
    GUMBEL = "gumbel"


class Randomness(abc.ABC):
    """A source of the draws that mechanisms make; its scales are in units of the integer lattice."""

    private: bool

    @abc.abstractmethod
    def discrete_laplace(self, size: int, scale: float) -> Integers:
        """Draw `size` integers k with probability proportional to `exp(-|k| / scale)`."""

    @abc.abstractmethod
    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        """Draw `size` integers k with probability proportional to exp(-k**2 / (2 scale**2))."""

    @abc.abstractmethod
    def noisy_max(self, scores: Integers, scale: float, noise: Noise) -> int:
        """Return the position of the largest of `scores` plus independent noise of that scale."""

    @property
    @abc.abstractmethod
    def generator(self) -> np.random.Generator:
        """A generator for samplers that draw in floating point (assumption `real-arithmetic`)."""


@final
class SystemRandomness(Randomness):
    """Cryptographic randomness; OpenDP is imported at the first draw."""

    private = True

    def discrete_laplace(self, size: int, scale: float) -> Integers:
        """See `Randomness`; OpenDP's `make_laplace` on integers."""
        return _drawn(_opendp_noise("laplace", scale), size)

    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        """See `Randomness`; OpenDP's `make_gaussian` on integers."""
        return _drawn(_opendp_noise("gaussian", scale), size)

    def noisy_max(self, scores: Integers, scale: float, noise: Noise) -> int:
        """See `Randomness`; OpenDP's `make_noisy_max` on integers."""
        if len(scores) == 1:
            return 0
        return int(_opendp_noisy_max(scale, noise)(np.ascontiguousarray(scores, dtype=np.int64)))

    @functools.cached_property
    def generator(self) -> np.random.Generator:
        """ChaCha20 in numpy's Generator, keyed with 256 bits of the operating system."""
        from randomgen import ChaCha

        return np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))


def _drawn(measurement: Any, size: int) -> Integers:
    return (
        np.asarray(measurement(np.zeros(size, dtype=np.int64)), dtype=np.int64) if size else np.zeros(0, dtype=np.int64)
    )


@functools.lru_cache(maxsize=256)
def _opendp_noise(kind: str, scale: float) -> Any:
    # opendp.prelude would import pandas, scikit-learn and scipy too: 160 MiB and a second
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return make_gaussian(domain, l2_distance(T="f64"), scale=scale)


@functools.lru_cache(maxsize=256)
def _opendp_noisy_max(scale: float, noise: Noise) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measure = max_divergence() if noise is Noise.EXPONENTIAL else zero_concentrated_divergence()
    return make_noisy_max(vector_domain(atom_domain(T="i64")), linf_distance(T="i64"), measure, scale=scale)


@final
class SeededRandomness(Randomness):
    """Reproducible draws for experiments: not private, and every result made with it says so.

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

    @property
    def generator(self) -> np.random.Generator:
        """Numpy's default generator, from the seed."""
        return self._generator

    def discrete_laplace(self, size: int, scale: float) -> Integers:
        """See `Randomness`; the difference of two geometric variables."""
        success = -np.expm1(-1.0 / scale)
        draws = self._generator.geometric(success, size=(2, size))
        return np.asarray(draws[0] - draws[1], dtype=np.int64)

    def discrete_gaussian(self, size: int, scale: float) -> Integers:
        """See `Randomness`; rejection from the discrete Laplace (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
        laplace_scale = float(np.floor(scale)) + 1.0
        drawn = np.zeros(0, dtype=np.int64)
        while len(drawn) < size:
            proposals = self.discrete_laplace(2 * (size - len(drawn)) + 8, laplace_scale)
            excess = np.abs(proposals) - scale**2 / laplace_scale
            kept = self._generator.random(len(proposals)) < np.exp(-(excess**2) / (2 * scale**2))
            drawn = np.concatenate([drawn, proposals[kept]])
        return drawn[:size]

    def noisy_max(self, scores: Integers, scale: float, noise: Noise) -> int:
        """See `Randomness`."""
        draw = self._generator.exponential if noise is Noise.EXPONENTIAL else self._generator.gumbel
        return int(np.argmax((scores - scores.max()) + draw(scale=scale, size=len(scores))))
