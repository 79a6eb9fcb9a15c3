"""A sparse vector with enough noise on its numbers, or with half of it: a bug that only some outputs show."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
from verify.bug_version import Version

import dpframework as dpf
from dpframework.queries import CandidateScores, Norm, Sensitivity


@attrs.frozen
class FirstAbove(dpf.mechanisms.PureMechanism):
    """Says which of some numbers is the first above a threshold, both with Laplace noise; the last one if none is.

    Half of epsilon is for the threshold, half for the numbers. One of them may fall by as much as those before it and
    the threshold's shift rise: their noise needs twice the sensitivity, which several published versions leave out
    (Lyu, Su and Li 2017).
    """

    name = "first-above"
    norm = Norm.LINF
    selects = True
    assumptions = ("real-arithmetic",)
    right: Any = attrs.field(default=True, converter=Version)

    def change(self, facts):
        return facts.sensitivity(Norm.LINF).change

    def both_scales(self, calibration):
        scale = float(calibration.scale)
        return 2 * scale, (4 if self.right else 2) * scale

    def release(self, answer, calibration, randomness):
        of_threshold, of_numbers = self.both_scales(calibration)
        threshold = randomness.generator.laplace(10, of_threshold)
        above = answer[:-1] + randomness.generator.laplace(0, of_numbers, len(answer) - 1) > threshold
        return int(np.argmax(above)) if above.any() else len(answer) - 1

    def log_density(self, answer, output, calibration):
        """Integrate over the threshold, piece by piece between the kinks, exactly but for rounding."""
        of_threshold, b = self.both_scales(calibration)
        kinks = np.unique([10.0, *answer[:-1]])
        far = np.arange(1, 16) * 4 * of_threshold
        edges = np.unique([*(kinks[0] - far), *kinks, *(kinks[-1] + far), *np.arange(kinks[0], kinks[-1], 4)])
        nodes, weights = np.polynomial.legendre.leggauss(16)
        half = np.diff(edges) / 2
        t = (edges[:-1] + half)[:, np.newaxis] + half[:, np.newaxis] * nodes
        logs = -np.abs(t - 10) / of_threshold
        for k, number in enumerate(answer[: min(int(output) + 1, len(answer) - 1)]):
            logs += _log_laplace_below((t - number) / b if k < output else (number - t) / b)
        top = logs.max()
        return float(top + math.log((np.exp(logs - top) * weights * half[:, np.newaxis]).sum() / (2 * of_threshold)))

    def preview(self, calibration):
        return dpf.mechanisms.Preview(math.nan, math.nan, "not known")


def _log_laplace_below(x):
    """Return the log-probability that Laplace noise of scale 1 is below x."""
    return np.where(x < 0, x - math.log(2), np.log1p(-np.exp(-np.abs(x)) / 2))


@attrs.frozen
class IllThriceAndWell(CandidateScores):
    """How many are ill, three times, and how many are not."""

    name = "ill-thrice-and-well"
    integer = True
    answer_length = 5

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, 1, 1, fall=0, source="a row is ill or not"),)

    def candidates(self, **inputs):
        return range(5)

    def count(self, block, **inputs):
        ill = int(block.codes("ill").sum())
        return np.array([ill, ill, ill, block.rows - ill, 0])
