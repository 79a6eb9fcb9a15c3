"""Nothing exact stands beside noise in floating point, wherever it is in the output."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import Laplace, Mechanism, PureMechanism
from dpframework.queries import Norm
from dpframework.verify import check_sampler
from dpframework.verify.mechanisms.unnoised_output_check import exact_part_problems

ADD = dpf.Relation.ADD_OR_REMOVE_ONE
HISTOGRAM = dpf.queries.Histogram(dpf.Categorical("c", ["x", "y", "z"]))


@attrs.frozen
class Beside(PureMechanism):
    """Puts out Laplace noise in floating point, and beside it how many noisy, or exact, counts are above 0."""

    name = "beside"
    norm = Norm.L1
    assumptions = ("real-arithmetic",)
    exact: bool = False
    form: str = "dictionary"

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        noisy = np.ravel(answer) + randomness.generator.laplace(0, float(calibration.scale), np.size(answer))
        above = int(((np.ravel(answer) if self.exact else noisy) > 0).sum())
        match self.form:
            case "dictionary":
                return {"numbers": noisy, "above": above}
            case "text":
                return (noisy.tolist(), f"{above} above")
            case _:
                return np.append(noisy, above)

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        numbers = output["numbers"] if self.form == "dictionary" else output[0] if self.form == "text" else output[:-1]
        distances = np.abs(np.asarray(numbers) - np.ravel(answer)) / float(calibration.scale)
        return float((-distances - math.log(2 * float(calibration.scale))).sum())

    def preview(self, calibration: Any) -> Any:
        return dpf.mechanisms.Preview(math.nan, math.nan, "numbers")


def problems(mechanism: Mechanism) -> list[str]:
    calibration = mechanism.calibrate(HISTOGRAM.facts(), ADD)
    assert calibration is not None
    return list(exact_part_problems(mechanism, np.array([3, 1, 2]), calibration))


@pytest.mark.parametrize("form", ["dictionary", "text", "array"])
def test_an_exact_part_is_named_and_a_noisy_one_is_none(form: str, record_property: Any) -> None:
    found = problems(Beside(1, True, form))
    record_property("planted bug", (f"an exact part beside noise: {form}", bool(found)))
    assert "for an answer of [0], and always" in found[0]
    right = problems(Beside(1, False, form))
    record_property("correct version", (f"a noisy part beside noise: {form}", not right))
    assert right == []


@attrs.frozen
class Refuses(Beside):
    """Says of exact counts of another answer that they are impossible: no claim about losses holds, but the density."""

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        if output["above"] != int((np.ravel(answer) > 0).sum()):
            return -math.inf
        return super().log_density(answer, output, calibration)


def test_a_density_that_tells_of_the_exact_part_is_judged_by_its_losses() -> None:
    assert problems(Refuses(1, True)) == []
    assert problems(Laplace(1)) == []


def test_the_check_of_samplers_looks_for_exact_parts() -> None:
    assert "the part ['above'] of its output is always" in str(check_sampler(Beside(1, True), draws=400))
