"""CPU time of a draw: of arrays and choices by our samplers and by OpenDP's, as ratios to the seeded draw's.

    python tests/benchmarks/sampler_times.py

Each row is measured in one process, its three sources in turn, and the least time of several is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpframework.mechanisms.randomness import Noise, Randomness, Samplers, SeededRandomness, SystemRandomness

ROUNDS = 5
LONG = 0.02  # seconds that a measurement takes at least
SCALES = (1.0, 40.0, 3.3 * 2**20)
SIZES = (1_000, 100_000)
CANDIDATES = (10_000, 100_000, 1_000_000)


def rows() -> Iterator[tuple[str, int, Callable[[Randomness], Any]]]:
    """Yield what is drawn, how many numbers there are, and a function that draws them from a source."""
    for size in SIZES:
        for scale in SCALES:
            yield f"Laplace, scale {scale:g}", size, lambda source, n=size, s=scale: source.discrete_laplace(n, s)
        for scale in SCALES:
            yield f"Gaussian, scale {scale:g}", size, lambda source, n=size, s=scale: source.discrete_gaussian(n, s)
    for size in CANDIDATES:
        scores = np.random.default_rng(0).integers(0, 1_000, size)
        for noise, named in ((Noise.EXPONENTIAL, "permute-and-flip"), (Noise.GUMBEL, "exponential mechanism")):
            yield named, size, lambda source, given=scores, of=noise: source.noisy_max(given, 200.0, of)


def seconds(draw: Callable[[Randomness], Any], source: Randomness) -> float:
    """Return the CPU seconds of one call."""
    calls, started = 0, time.process_time()
    while (taken := time.process_time() - started) < LONG:
        draw(source)
        calls += 1
    return taken / calls


def main() -> None:
    """Measure, and print a table."""
    sources = SeededRandomness(1), SystemRandomness(Samplers.ARRAYS), SystemRandomness(Samplers.OPENDP)
    print("| drawn | numbers | seeded, ns each | arrays / seeded | OpenDP / seeded | OpenDP / arrays |")
    print("|---|---|---|---|---|---|")
    for name, size, draw in rows():
        for source in sources:
            draw(source)  # tables are computed once
        least = [min(seconds(draw, source) for _ in range(ROUNDS)) for source in sources]
        seeded, ours, theirs = least
        ratios = " | ".join(f"{ratio:.3g}" for ratio in (ours / seeded, theirs / seeded, theirs / ours))
        print(f"| {name} | {size:,} | {seeded / size * 1e9:.3g} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
