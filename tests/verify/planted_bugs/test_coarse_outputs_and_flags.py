"""Mechanisms that round real outputs, or that a flag, an option or a number of their own makes wrong: planted bugs.

Each is planted beside a right version. Real answers that are put out as whole numbers, or on a grid of the mechanism's
own, have probabilities and no densities. Wrong draws for a long answer, and wrong claims for it, are seen in the noise
of one of its numbers.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import attrs
import numpy as np
import pytest
from verify.bug_version import Version
from verify.planted_bugs.test_mechanism_forms import NormalWithDelta
from verify.planted_bugs.test_unusual_answers import ByCell, Softmax

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation
from dpframework.mechanisms import Gaussian, Laplace, Mechanism, Preview, PureMechanism
from dpframework.queries import Norm, QueryFacts, Sensitivity
from dpframework.verify import check_losses, check_sampler
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import other_amount_problems
from dpframework.verify.mechanisms.neighbour_answers import Answers, answers_of
from dpframework.verify.mechanisms.output_keys import output_step
from dpframework.verify.mechanisms.probe_query_answers import Probe, probes
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import with_other_parameters

ADD, REPLACE = dpf.Relation.ADD_OR_REMOVE_ONE, dpf.Relation.REPLACE_ONE


def _geometric(distance: Any, scale: float) -> Any:
    """Return the log-probabilities of integer Laplace noise."""
    return math.log(math.tanh(0.5 / scale)) - np.abs(distance) / scale


@attrs.frozen
class OnAGrid(PureMechanism):
    """Rounds real numbers down to multiples of the sensitivity, or at random to half of it, and adds noise to these.

    Two numbers near ends of their cells move by two cells if a row moves both by a little. The wrong one pays for one.
    """

    name = "on-a-grid"
    norm = Norm.L1
    at_random: Any = attrs.field(default=False, converter=Version)
    right: Any = attrs.field(default=True, converter=Version)

    def misfit(self, facts):
        return "rounds real numbers" if facts.integer else super().misfit(facts)

    def grain(self, facts):
        return facts.sensitivity(Norm.L1).change.add_or_remove_one / (2 if self.at_random else 1)

    def change(self, facts):
        cells = facts.answer_length * self.grain(facts) if self.right else 0
        return super().change(facts).map(lambda change: change + cells)

    def cells(self, answer, calibration):
        """Return the cells that numbers lie in, and the probabilities of the next ones."""
        exact = np.asarray(answer, dtype=float) / float(self.grain(calibration.facts))
        cells = np.floor(exact)
        return cells.astype(np.int64), exact - cells if self.at_random else np.zeros(exact.shape)

    def scale_in_cells(self, calibration):
        return float(calibration.scale / self.grain(calibration.facts))

    def release(self, answer, calibration, randomness):
        cells, above = self.cells(answer, calibration)
        rounded = cells + (randomness.integers(1 << 53, cells.size).reshape(cells.shape) < above * 2.0**53)
        noise = randomness.discrete_laplace(cells.size, self.scale_in_cells(calibration)).reshape(cells.shape)
        return (rounded + noise) * (float(self.grain(calibration.facts)) if self.at_random else 1)

    def log_density(self, answer, output, calibration):
        (cells, above), scale = self.cells(answer, calibration), self.scale_in_cells(calibration)
        drawn = np.asarray(output, dtype=float) / (float(self.grain(calibration.facts)) if self.at_random else 1)
        if (drawn != np.rint(drawn)).any():
            return -math.inf
        with np.errstate(divide="ignore"):
            logs = [np.log1p(-above), np.log(above)]
        either = (log + _geometric(drawn - cells - k, scale) for k, log in enumerate(logs))
        return float(np.logaddexp(*either).sum())

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "cells")


@attrs.frozen
class LessIfLong(Gaussian):  # type: ignore[misc]  # final, except for this test
    """Normal noise on counts, with four fifths of it for answers of eight or more numbers."""

    name = "less-if-long"
    right: Any = attrs.field(default=True, converter=Version)

    def of_length(self, answer, calibration):
        share = 1 if self.right or np.size(answer) < 8 else Fraction(16, 25)
        return attrs.evolve(calibration, scale=calibration.scale * share)

    def release(self, answer, calibration, randomness):
        return super().release(answer, self.of_length(answer, calibration), randomness)

    def log_density(self, answer, output, calibration):
        return super().log_density(answer, output, self.of_length(answer, calibration))


@attrs.frozen
class HalfForVectors(NormalWithDelta):
    """Normal noise at an epsilon and a delta, with half of the variance for three or more numbers."""

    name = "half-for-vectors"

    def change(self, facts):
        share = 1 if self.right or facts.answer_length < 3 else Fraction(1, 2)
        return super().change(facts).map(lambda change: change * share)


@attrs.frozen
class OneSided(ByCell):
    """Geometric noise; if `two_sided` is False, it is never below 0."""

    name = "one-sided"
    two_sided: bool = True

    def __attrs_post_init__(self):
        if self.right and not self.two_sided:
            raise ValueError("noise above 0 alone is not private")

    def release(self, answer, calibration, randomness):
        output = super().release(answer, calibration, randomness)
        return output if self.two_sided else answer + np.abs(output - answer)

    def log_density(self, answer, output, calibration):
        above, both = np.asarray(output) - answer, super().log_density(answer, output, calibration)
        if self.two_sided:
            return both
        return -math.inf if (above < 0).any() else both + math.log(2) * np.count_nonzero(above)


class Rows(enum.Enum):
    """Whether the number of rows is secret."""

    SECRET = "secret"
    PUBLIC = "public"


@attrs.frozen
class CheapIfPublic(ByCell):
    """Takes a replaced row for an added one if the number of rows is public."""

    name = "cheap-if-public"
    rows: Rows = Rows.SECRET

    def change(self, facts):
        change = super().change(facts)
        cheap = not self.right and self.rows is Rows.PUBLIC
        return ByRelation(*[change.add_or_remove_one] * 2) if cheap else change


@attrs.frozen
class Bounded(ByCell):
    """Clips counts to plus and minus a bound, if there is one, and takes half of it for the sensitivity."""

    name = "bounded"
    bound: int | None = None

    def change(self, facts):
        most = math.inf if self.right or self.bound is None else Fraction(self.bound, 2)
        return super().change(facts).map(lambda change: min(change, most))


@attrs.frozen
class Best(Softmax):
    """Chooses several candidates, one after another. The wrong one pays for two of them at most."""

    name = "best"
    selects = False
    choices: int = attrs.field(default=2, validator=attrs.validators.ge(1))

    def change(self, facts):
        paid = self.choices if self.right else min(self.choices, 2)
        return super().change(facts).map(lambda change: change * paid)

    def release(self, answer, calibration, randomness):
        left = list(range(np.size(answer)))
        chosen: list[int] = []
        for _ in range(min(self.choices, len(left))):
            place = super().release(np.ravel(answer)[left], calibration, randomness)
            chosen.append(left.pop(place))
        return tuple(chosen)

    def log_density(self, answer, output, calibration):
        left, log = list(range(np.size(answer))), 0.0
        for candidate in output:
            log += float(self.logs(np.ravel(answer)[left], calibration)[left.index(candidate)])
            left.remove(candidate)
        return log

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "some candidates")


LOST: dict[str, tuple[Callable[[bool], Mechanism], dpf.Relation, str]] = {
    "real numbers as numbers of cells": (
        lambda right: OnAGrid(1, right=right),
        ADD,
        f"length 17, if only its l1 sensitivity is declared, {ADD}: epsilon: 1 is claimed, ",
    ),
    "real numbers rounded at random": (
        lambda right: OnAGrid(1, True, right),
        ADD,
        f"length 2, {ADD}: epsilon: 1 is claimed, 1.02",
    ),
    "less normal noise for longer answers": (
        lambda right: LessIfLong("0.5", right),
        ADD,
        f"length 17, {ADD}: rho times the order ",
    ),
    "half of the variance for vectors": (
        lambda right: HalfForVectors(1, right=right),
        ADD,
        f"length 17, {ADD}: exact delta beyond epsilon 1: 0.01 is claimed, ",
    ),
    "a flag that makes noise one-sided": (
        lambda right: OneSided(1, right),
        ADD,
        f"length 1, with two_sided = False, {ADD}: epsilon: 1 is claimed, inf found",
    ),
    "an option that makes replaced rows cheap": (
        lambda right: CheapIfPublic(1, right),
        REPLACE,
        f"length 3, with rows = Rows.PUBLIC, {REPLACE}: epsilon: 1 is claimed, 2 found",
    ),
    "choices beyond two that are free": (
        lambda right: Best(1, right),
        ADD,
        f"integer scores, monotonic, 17 candidates, with the number choices = 3, {ADD}: epsilon: 1 is claimed, ",
    ),
    "a sensitivity of half a bound that is left out": (
        lambda right: Bounded(1, right),
        ADD,
        f"length 1, with bound = 1, {ADD}: epsilon: 1 is claimed, 2 found",
    ),
}


def _some_answers(mechanism: Mechanism) -> list[Answers]:
    """Return the answers of one kind of query, to save time."""
    return [asked for asked in answers_of(mechanism) if asked.facts.name in ("counts", "real", "scores")][:1]


@pytest.mark.parametrize("bug", LOST)
def test_a_loss_with_other_outputs_or_parameters_is_named(bug, record_property):
    make, relation, named = LOST[bug]
    wrong = make(False)
    found = str(check_losses(wrong, given=_some_answers(wrong), relations=[relation]))
    record_property("planted bug", (bug, "DOES NOT HOLD" in found))
    assert named in found, found


@pytest.mark.parametrize("bug", LOST)
def test_the_right_one_loses_no_more_than_it_claims(bug, record_property):
    make, relation, _ = LOST[bug]
    right = make(True)
    found = check_losses(right, given=_some_answers(right), relations=[relation])
    record_property("correct version", (bug, found.passed))
    assert found.passed, found


@attrs.frozen
class MeanOfDraws(ByCell):
    """Adds the mean of some draws of noise, or one of them; its log-density is that of one."""

    name = "mean-of-draws"
    rounds: int = 1

    def release(self, answer, calibration, randomness):
        drawn = [super(MeanOfDraws, self).release(answer, calibration, randomness) for _ in range(self.rounds)]
        return drawn[0] if self.right else np.rint(sum(drawn) / self.rounds).astype(np.int64)


@attrs.frozen
class Antithetic(ByCell):
    """Negates the noise of the first half for the second, if a flag says so."""

    name = "antithetic"
    in_pairs: bool = False

    def release(self, answer, calibration, randomness):
        drawn, half = super().release(answer, calibration, randomness) - answer, np.size(answer) // 2
        if self.in_pairs and not self.right:
            drawn.flat[half : 2 * half] = -drawn.flat[:half]
        return answer + drawn


DRAWN: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "a number of draws whose mean is taken": (
        lambda right: MeanOfDraws(1, right),
        "with the number rounds = 2, the noise of an answer of length 2048 is 30 % narrower than claimed",
    ),
    "a flag that pairs noise": (
        lambda right: Antithetic(1, right),
        "with in_pairs = True, the noise of an answer of 64 numbers is not independent",
    ),
}


@pytest.mark.parametrize("bug", DRAWN)
def test_draws_with_other_parameters_are_named(bug, record_property):
    make, named = DRAWN[bug]
    found = check_sampler(make(False), draws=400).wrong
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", DRAWN)
def test_right_draws_with_other_parameters_pass(bug, record_property):
    right = DRAWN[bug][0](True)
    (asked,) = _some_answers(right)
    calibration = right.calibrate(asked.facts, ADD)
    found = list(other_amount_problems(right, np.array([5, -3]), calibration))
    record_property("correct version", (bug, not found))
    assert found == []


# --- right mechanisms that were refused ------------------------------------------------------------------------------


def _two_real_numbers() -> list[Probe]:
    return [one for one in probes() if one.facts.text == "two real numbers"]


@pytest.mark.parametrize("at_random", [False, True])
def test_outputs_on_a_grid_of_their_own_are_drawn_as_stated(at_random):
    found = check_sampler(OnAGrid(1, at_random, False), given=_two_real_numbers(), draws=400)
    assert found.passed, found


@attrs.frozen
class OneHot(ByCell):
    """Each bit of a one-hot code, kept or turned (unary encoding): bits are no noise that all numbers have alike."""

    name = "one-hot"
    assumptions = ("real-arithmetic",)

    def change(self, facts):
        """Two bits change, whatever a row changes, and so the scale is 1 / epsilon or 2 / epsilon."""
        return super().change(facts).map(lambda change: Fraction(2))

    def likely(self, answer, calibration):
        hot = np.arange(np.size(answer)) == np.argmax(answer)
        return np.where(hot, 1, 0), -np.logaddexp([0, 0], [-1 / float(calibration.scale), 1 / float(calibration.scale)])

    def release(self, answer, calibration, randomness):
        bits, (kept, _) = self.likely(answer, calibration)
        turned = np.log(randomness.generator.random(bits.size)) >= kept
        return np.where(turned, 1 - bits, bits).reshape(np.shape(answer))

    def log_density(self, answer, output, calibration):
        bits, (kept, turned) = self.likely(answer, calibration)
        released = np.ravel(output)
        if ((released != 0) & (released != 1)).any():
            return -math.inf
        return float(np.where(released == bits, kept, turned).sum())

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "bits")


def test_bits_that_are_not_alike_are_drawn_as_stated():
    found = check_sampler(OneHot(1), draws=400)
    assert found.passed, found


@attrs.frozen
class Digits(ByCell):
    """Has a number of its own that changes nothing, so that 17 numbers are tried with a replaced row."""

    name = "digits"
    digits: int = 2


def test_a_replaced_row_of_long_answers_is_not_counted_twice():
    right = Digits(1)
    found = check_losses(right, given=_some_answers(right), relations=[REPLACE])
    assert found.passed, found


@attrs.frozen
class OwnEpsilon(OneHot):
    """Draws by its own parameter, and not by the calibrated scale."""

    def likely(self, answer, calibration):
        return super().likely(answer, attrs.evolve(calibration, scale=2 / self.epsilon))


def test_a_log_density_without_a_scale_is_explained():
    assert "its log-density is the same for every calibration.scale" in str(check_sampler(OwnEpsilon(1), draws=400))


def test_the_step_between_outputs_is_found():
    facts = QueryFacts("real", "two real numbers", (), False, 2, [Sensitivity(Norm.L1, Fraction(5, 2), source="-")])
    answer = np.array([0.1, 7.7])
    for mechanism, step in ((OnAGrid(1), 1.0), (OnAGrid(1, True), 1.25), (Laplace(1), None)):
        calibration = mechanism.calibrate(facts, ADD)
        assert output_step(mechanism, answer, calibration) == (step or float(calibration.unit))


def test_own_parameters_are_changed_one_at_a_time():
    def changed(mechanism):
        return [how for how, _ in with_other_parameters(mechanism)]

    assert changed(MeanOfDraws(1)) == ["the number rounds = 2", "the number rounds = 3"]
    assert changed(CheapIfPublic(1)) == ["rows = Rows.PUBLIC"]
    assert changed(Bounded(1)) == ["bound = 1", "bound = 2"]
    assert changed(OneSided(1)) == []  # its constructor refuses the other value


@attrs.frozen
class Admits(Laplace):
    """Has flags and an option which say that they plant a mistake, and a flag and an option that say no such thing."""

    name = "admits"
    right: bool = True
    with_bug: bool = False
    on_the_right: bool = True
    how: Literal["honest", "wrong", "right"] = "right"


def test_a_flag_that_says_that_it_plants_a_mistake_is_not_turned():
    assert [how for how, _ in with_other_parameters(Admits(1))] == ["on_the_right = False"]
    assert [how for how, _ in with_other_parameters(Admits(1, how="honest"))] == [
        "on_the_right = False",
        "how = right",
        "on_the_right = False and how = right",
    ]
