"""Mechanisms that draw rightly in the usual test, and wrongly elsewhere: planted, each beside its honest twin.

Each has a log-density that is right, so that no replay sees anything. What is wrong is what is drawn for another
sensitivity, relation or unit, for large or long answers, for tables of numbers, or what is put out beside the noisy
numbers. Draws are compared with a probability of at most 1e-6 that a right one fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Laplace, Mechanism, PermuteAndFlip
from dpframework.verify import check_losses, check_sampler
from dpframework.verify.mechanisms.neighbour_answers import answers_of
from dpframework.verify.mechanisms.output_keys import output_key, output_numbers, puts_out_numbers
from dpframework.verify.mechanisms.probe_query_answers import probes, with_single_changes

DRAWS = 600


class OneByOne(DiscreteLaplace):
    """Draws one output after another."""

    right: Any = attrs.field(converter=Version)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]

    def noise(self, answer: Any, scale: float, randomness: Any) -> Any:
        return randomness.discrete_laplace(np.size(answer), scale).reshape(np.shape(answer))


@attrs.frozen
class OwnEpsilon(OneByOne):
    """Draws with the scale 1 / epsilon, whatever the sensitivity is."""

    name = "own-epsilon"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale if self.right else float(1 / self.epsilon)
        return answer + self.noise(answer, scale, randomness)


@attrs.frozen
class OfAnAddedRow(OneByOne):
    """Scales by the change of a row that is added, under either relation."""

    name = "of-an-added-row"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale
        if not self.right:
            change = calibration.facts.sensitivity(dpf.queries.Norm.L1).add_or_remove_one
            scale = float(change / calibration.mechanism.epsilon)
        return answer + self.noise(answer, scale, randomness)


@attrs.frozen
class EpsilonOfUnit(OneByOne):
    """Takes its own epsilon where a row of a unit has a share of it."""

    name = "epsilon-of-unit"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale / (1 if self.right else calibration.by.rows)
        return answer + self.noise(answer, scale, randomness)


@attrs.frozen
class OneRowOfNoise(OneByOne):
    """Draws noise for the last axis of a table, which numpy repeats along the others."""

    name = "one-row-of-noise"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        last = answer if self.right or np.ndim(answer) < 2 else answer[0]
        return answer + self.noise(last, calibration.lattice_scale, randomness)


@attrs.frozen
class LessForMany(OneByOne):
    """Draws less noise for large counts, "which can bear it"."""

    name = "less-for-many"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        factor = 1 if self.right or np.max(answer) <= 1000 else 3
        return answer + self.noise(answer, calibration.lattice_scale / factor, randomness)


@attrs.frozen
class LessForLong(OneByOne):
    """Draws less noise for answers of many numbers, "which add up"."""

    name = "less-for-long"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        factor = 1 if self.right or np.size(answer) <= 8 else 3
        return answer + self.noise(answer, calibration.lattice_scale / factor, randomness)


@attrs.frozen
class ScoresOfMany(PermuteAndFlip):
    """Lets scores count three times where there are many rows."""

    name = "scores-of-many"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        return super().release(answer if self.right or np.max(answer) < 1000 else 3 * answer, calibration, randomness)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


@attrs.frozen
class InLowBits(Laplace):
    """Adds a billionth of the exact answer to the noisy one, which its density rounds away."""

    name = "in-low-bits"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        noisy = np.asarray(super().release(answer, calibration, randomness), dtype=float)
        return noisy if self.right else noisy + np.asarray(answer) * 1e-9

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]

    def log_density(self, answer, output, calibration):
        unit = float(calibration.unit)
        return super().log_density(answer, np.rint(np.asarray(output) / unit) * unit, calibration)


@attrs.frozen
class InItsType(OneByOne):
    """Puts out numbers of a type that the exact counts decide."""

    name = "in-its-type"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        noisy = answer + self.noise(answer, calibration.lattice_scale, randomness)
        return noisy.astype("int64" if self.right or np.max(answer) > 0 else "int32")


@attrs.frozen
class Beside(OneByOne):
    """Puts out the noisy counts, and how many of the noisy ones, or of the exact ones, are above 0."""

    name = "beside"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        noisy = answer + self.noise(answer, calibration.lattice_scale, randomness)
        return {"counts": noisy, "above": int(((noisy if self.right else answer) > 0).sum())}

    def log_density(self, answer, output, calibration):
        if self.right and output["above"] != (output["counts"] > 0).sum():
            return -math.inf
        return super().log_density(answer, output["counts"], calibration)


NARROWER = "the draws fit noise 30 % narrower than claimed"
ADDED_UP = "its log-density is equal for outputs that a reader can tell apart, such as"
PLANTED: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "1 / epsilon for the scale": (
        lambda right: OwnEpsilon(1, right),
        f"two counts, a sensitivity of 3, private randomness: {NARROWER}",
    ),
    "the scale of an added row under replace-one": (
        lambda right: OfAnAddedRow(1, right),
        f"two counts, a row replaced, private randomness: {NARROWER}",
    ),
    "the epsilon of a unit for that of each of its rows": (
        lambda right: EpsilonOfUnit(1, right),
        f"two counts, a unit of 3 rows, private randomness: {NARROWER}",
    ),
    "one row of noise for a table of numbers": (
        lambda right: OneRowOfNoise(1, right),
        "two counts, a table of two rows and two columns, private randomness: the draws are correlated between",
    ),
    "less noise for large counts": (
        lambda right: LessForMany(1, right),
        f"two counts, 4,294,967,496 more rows, private randomness: {NARROWER}",
    ),
    "less noise for long answers": (
        lambda right: LessForLong(1, right),
        "two counts: the noise of an answer of length 4096 is 30 % narrower than claimed",
    ),
    "scores that count more where rows are many": (
        lambda right: ScoresOfMany(1, right),
        f"integer scores, 4,294,967,496 more rows, private randomness: {NARROWER}",
    ),
    "an exact answer in the low bits of a noisy one": (lambda right: InLowBits(1, right), ADDED_UP),
    "a type that follows from exact counts": (
        lambda right: InItsType(1, right),
        f"{ADDED_UP} [0] (int32) and [0] (int64); let it depend on the whole output",
    ),
    "an exact number beside the noisy ones": (lambda right: Beside(1, right), ADDED_UP),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_draws_that_are_wrong_in_another_setting_are_named(bug, record_property):
    make, named = PLANTED[bug]
    found = check_sampler(make(False), draws=DRAWS).wrong
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_draws_what_it_states_and_loses_what_it_claims(bug, record_property):
    mechanism = PLANTED[bug][0](True)
    found = check_sampler(mechanism, draws=DRAWS)
    record_property("correct version", (bug, found.passed))
    assert found.passed, found
    assert check_losses(mechanism).passed


@attrs.frozen
class Asks(dpf.Miner):
    """Count the towns."""

    name = "asks"
    noise: Mechanism

    def plan(self, schema):
        return dpf.step("towns", dpf.queries.Histogram(schema["town"]), self.noise)

    def mine(self, table):
        return table.release("towns")


@pytest.mark.parametrize("right", [False, True])
def test_what_is_put_out_may_be_a_collection_and_is_verified_whole(right):
    schema = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"])])
    example = dpf.Example(schema, Asks(Beside(1, right)))
    found = dpf.verify.verify_examples("asks", {"one": example}, replays=400, runs=0)
    assert found.passed is right, list(found.problems())


def test_a_probe_differs_in_one_way_at_a_time():
    counts = next(probe for probe in probes() if probe.facts.text == "two counts")
    assert [probe.facts.text for probe in with_single_changes(counts)] == [
        "two counts, a sensitivity of 3",
        "two counts, a row replaced",
        "two counts, a unit of 3 rows",
        "two counts, a table of two rows and two columns",
        "two counts, 4,294,967,496 more rows",
    ]
    larger, replaced, of_unit, table, many = with_single_changes(counts)
    scales = [probe.calibrate(DiscreteLaplace(1)).scale for probe in (counts, larger, replaced, of_unit, table, many)]
    assert scales == [1, 3, 2, 3, 1, 1]
    assert table.answer(1.0).tolist() == [[5, -3], [5, -3]]
    assert many.answer(1.0).tolist() == [4_294_967_501, 4_294_967_493]
    keys = next(probe for probe in probes() if probe.facts.unlisted)
    assert len(list(with_single_changes(keys))) == 3  # keys are no table, and have no more rows


def test_outputs_of_any_form_have_keys_and_numbers():
    one, other = ({"counts": np.array([k]), "texts": ["few", 2.5]} for k in (1, 2))
    assert output_key(one) == output_key({**one})
    assert output_key(one) != output_key(other)
    assert len({output_key(one), output_key(other), output_key(3), output_key((1, 2))}) == 4
    assert output_numbers(other).tolist() == [2.0, 2.5]
    assert output_numbers(np.array([[1, 2], [3, 4]])).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_only_a_mechanism_that_puts_out_numbers_does():
    counts = next(probe for probe in probes() if probe.facts.text == "two counts")
    answer = counts.answer(1.0)
    for mechanism, numbers in ((DiscreteLaplace(1), True), (Beside(1, True), False)):
        assert puts_out_numbers(mechanism, answer, counts.calibrate(mechanism)) is numbers
    scores = next(probe for probe in probes() if probe.facts.text == "integer scores")
    chooses = PermuteAndFlip(1)
    assert not puts_out_numbers(chooses, scores.answer(1.0), scores.calibrate(chooses))


@attrs.frozen
class _Fails(DiscreteLaplace):
    """A mechanism whose log-density fails for tables of numbers."""

    name = "fails"

    def log_density(self, answer, output, calibration):
        if np.ndim(answer) > 1:
            raise KeyError("table")
        return super().log_density(answer, output, calibration)


@attrs.frozen
class _FailsForUnits(DiscreteLaplace):
    """A mechanism whose log-density fails where the noise is for units of several rows."""

    name = "fails-for-units"

    def log_density(self, answer, output, calibration):
        if calibration.by.rows > 1:
            raise KeyError("unit")
        return super().log_density(answer, output, calibration)


@attrs.frozen
class _Texts(DiscreteLaplace):
    """A mechanism that puts out texts, in which the kit finds no numbers."""

    name = "texts"

    def release(self, answer, calibration, randomness):
        return [str(int(one)) for one in np.ravel(super().release(answer, calibration, randomness))]

    def log_density(self, answer, output, calibration):
        return super().log_density(answer, np.array(list(map(int, output))).reshape(np.shape(answer)), calibration)


def test_a_log_density_that_fails_is_a_finding():
    counts = [probe for probe in probes() if probe.facts.text == "two counts"]
    assert check_sampler(_Fails(1), given=counts, draws=DRAWS).passed
    assert check_sampler(_Fails(1), draws=DRAWS).wrong == ("its log_density fails with KeyError: 'table'",)
    asked = answers_of(DiscreteLaplace(1))[0]
    table = attrs.evolve(asked, pairs=lambda *given: (map(np.atleast_2d, pair) for pair in asked.pairs(*given)))
    for given, problem in (([asked], ""), ([table], "its log_density fails with KeyError: 'table'")):
        found = check_losses(_Fails(1), given=given).wrong
        assert bool(found) is bool(problem)
        assert all("fails with KeyError: 'table'" in one for one in found)
        assert any(problem in one for one in found) is bool(problem)
    found = check_losses(_FailsForUnits(1), given=[asked])
    assert found.claims  # those about rows are compared all the same
    assert any("its log_density fails with KeyError: 'unit'" in one for one in found.wrong)


def test_outputs_without_numbers_are_tested():
    assert check_sampler(_Texts(1), draws=DRAWS).passed
    assert check_losses(_Texts(1)).passed
