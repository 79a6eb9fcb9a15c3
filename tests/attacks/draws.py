"""Very many draws of each built-in mechanism, beside the probabilities that it states."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from mechanisms.test_mechanisms import CASES, SOURCES, calibrated, drawn_cells, expected
from scipy import stats

ONE_BY_ONE = {"exponential", "permute-and-flip", "above-threshold", "exponential-interval", "k-norm", "block-norm"}
TOGETHER = 10_000  # draws at once
ALONE = 20  # a mechanism that is drawn from one by one gets a twentieth of the draws
TINY = 1e-6  # the probability that a correct sampler fails, each


def problems(draws: int, names: list[str] | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield a line for each mechanism and source of randomness, and what is wrong with it, if anything is."""
    for name in names or CASES:
        mechanism, of, _, _ = CASES[name]
        calibration = calibrated(mechanism, of)
        number = draws // ALONE if name in ONE_BY_ONE else draws
        chances = np.array(expected(name, calibration))
        for source, make in SOURCES.items():
            started = time.process_time()
            counts = counted(name, calibration, make(), number)
            p, found = chance_of(counts, chances), wrong(counts, chances)
            seconds = time.process_time() - started
            yield f"{name}, {source}: {counts.sum():,} draws, {len(counts)} cells, p = {p:.2g}, {seconds:.1f} s", found


def counted(name: str, calibration: Any, source: Any, number: int) -> Any:
    """Return how many of some draws are in each cell."""
    parts = [min(TOGETHER, number - start) for start in range(0, number, TOGETHER)]
    return sum(drawn_cells(name, calibration, source, part) for part in parts)


def chance_of(counts: Any, chances: Any) -> float:
    """Return the probability that counts differ from what is stated by so much, 0 if an output is impossible."""
    possible = chances > 0
    if counts[~possible].any():
        return 0.0
    wanted = counts.sum() * chances / chances.sum()
    return float(stats.chisquare(counts[possible], wanted[possible]).pvalue)


def wrong(counts: Any, chances: Any) -> str | None:
    """Return how counts of draws differ from what is stated, or None."""
    if counts[chances == 0].any():
        return "an output came that is stated to be impossible"
    p = chance_of(counts, chances)
    return None if p > TINY else f"the draws do not have the stated probabilities (p = {p:.2g})"
