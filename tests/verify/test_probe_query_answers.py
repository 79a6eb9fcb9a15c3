"""The answers that a mechanism's loss is measured on: of every kind that it takes, and as far apart as is declared."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Mechanism
from dpframework.queries import KeyCounts, Norm, PiecewiseScores, QueryFacts, Sensitivity
from dpframework.verify.mechanisms.loss_claim_check import check_losses
from dpframework.verify.mechanisms.neighbour_answers import STEPS, answers_of, invent_answers, shifts

SCORES = ["integer scores, monotonic", "integer scores, two-sided", "real scores, monotonic", "real scores, two-sided"]
TAKEN: dict[str, tuple[Mechanism, list[str]]] = {
    "discrete-laplace": (
        dpf.mechanisms.DiscreteLaplace(1),
        ["a count", "counts of disjoint cells", "a sum of weights up to 3"],
    ),
    "laplace": (
        dpf.mechanisms.Laplace(1),
        ["a count", "counts of disjoint cells", "a sum of weights up to 3", "a real number"],
    ),
    "gaussian": (
        dpf.mechanisms.Gaussian(1),
        ["a count", "counts of disjoint cells", "a sum of weights up to 3", "a real number"],
    ),
    "k-norm": (dpf.mechanisms.KNorm(1), ["two histograms of the same rows"]),
    "block-norm": (dpf.mechanisms.BlockNorm(1), ["two blocks of numbers"]),
    "permute-and-flip": (dpf.mechanisms.PermuteAndFlip(1), SCORES),
    "exponential": (dpf.mechanisms.Exponential(1), SCORES),
    "exponential-interval": (dpf.mechanisms.ExponentialInterval(1), SCORES),
    "partition-selection": (
        dpf.mechanisms.PartitionSelection(1, "1e-3"),
        ["a count", "counts of disjoint cells", "keys that nobody lists"],
    ),
}


def lengths(facts: QueryFacts, change: Any) -> dict[Norm, float]:
    """The length of a change in each norm."""
    size = np.abs(np.asarray(change, dtype=float))
    found = {Norm.L1: size.sum(), Norm.SQUARED_L2: (size**2).sum(), Norm.LINF: size.max()}
    if facts.histograms:
        parts = np.split(size, np.cumsum(facts.histograms)[:-1])
        found |= dict.fromkeys((Norm.HISTOGRAMS, Norm.BLOCKS), max(part.sum() for part in parts))
    return found


@pytest.mark.parametrize("name", TAKEN)
def test_a_mechanism_is_asked_with_each_kind_of_answer_that_it_takes(name: str) -> None:
    mechanism, texts = TAKEN[name]
    assert mechanism.name == name
    assert [asked.facts.text for asked in answers_of(mechanism)] == texts


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", TAKEN)
def test_answers_differ_by_as_much_as_is_declared_and_by_no_more(name: str, relation: Relation) -> None:
    mechanism, _ = TAKEN[name]
    for asked in answers_of(mechanism):
        calibration = mechanism.calibrate(asked.facts, relation)
        if calibration is None:
            assert (name, relation) == ("k-norm", Relation.ADD_OR_REMOVE_ONE)
            continue
        furthest: dict[Norm, float] = {}
        for one, other in asked.pairs(mechanism, calibration, relation):
            if isinstance(one, KeyCounts):
                before, after = (dict(zip(keys.keys, keys.counts.tolist(), strict=True)) for keys in (one, other))
                change: Any = [after.get(key, 0) - before.get(key, 0) for key in {*before, *after}]
            elif isinstance(one, PiecewiseScores):
                change = other.scores - one.scores
            else:
                assert one.dtype.kind == other.dtype.kind == ("i" if asked.facts.integer else "f")
                change = other - one
            for norm, length in lengths(asked.facts, change).items():
                furthest[norm] = max(furthest.get(norm, 0.0), length)
        for declared in asked.facts.sensitivities:
            most = declared.change.under(relation)
            assert most is not None
            assert furthest[declared.norm] == pytest.approx(float(most), rel=1e-5)


@pytest.mark.parametrize("relation", Relation)
def test_changes_of_whole_numbers_are_all_that_are_as_large_as_may_be_up_to_their_sign(relation: Relation) -> None:
    for mechanism, size in ((TAKEN["discrete-laplace"][0], 1), (TAKEN["gaussian"][0], 2), (TAKEN["exponential"][0], 3)):
        for asked in answers_of(mechanism):
            if not asked.facts.integer:
                continue
            own = min(size, asked.facts.answer_length or size)
            found = {tuple(map(int, change)) for change in shifts(asked.facts, relation, own)}
            expected = set()
            for change in itertools.product(range(-9, 10), repeat=own):
                if not any(change) or next(step for step in change if step) < 0:
                    continue
                told = lengths(asked.facts, change)
                ratios = [
                    Fraction(told[s.norm]) / bound
                    for s in asked.facts.sensitivities
                    if (bound := s.change.under(relation))
                ]
                spread = max(change) - min(change)
                ratios += [
                    spread / bound
                    for s in asked.facts.sensitivities
                    if s.norm is Norm.LINF and (bound := s.spread.under(relation))
                ]
                # Both rows of a replacement together bound all that rises, and all that falls.
                ratios += [
                    lengths(asked.facts, side)[s.norm] / (s.rise**power + s.fall**power) ** (1 / power)
                    for s in asked.facts.sensitivities
                    if relation is Relation.REPLACE_ONE and s.norm is not Norm.LINF and s.rise is not None
                    for power in [0.5 if s.norm is Norm.SQUARED_L2 else 1]
                    for side in (np.maximum(change, 0), np.maximum(np.negative(change), 0))
                ]
                if max(ratios) == 1:
                    expected.add(change)
            assert found == expected


@given(
    st.lists(st.sampled_from([Norm.L1, Norm.SQUARED_L2]), min_size=1, max_size=2, unique=True),
    st.fractions(10, 10**12),
    st.fractions(10, 10**12),
    st.booleans(),
    st.integers(1, 3),
)
def test_large_changes_are_few_and_as_large_as_all_norms_allow(
    norms: list[Norm], first: Fraction, second: Fraction, integer: bool, size: int
) -> None:
    """The time that a search takes does not grow with the declared change, and each norm is a bound by itself."""
    longest = dict(zip(norms, (first, second), strict=False))
    bounds = {norm: most * most if norm is Norm.SQUARED_L2 else most for norm, most in longest.items()}
    declared = [Sensitivity(norm, bound, source="a probe") for norm, bound in bounds.items()]
    facts = QueryFacts("sums", "sums", (), integer, size, declared)
    found = shifts(facts, Relation.ADD_OR_REMOVE_ONE, size)
    assert size <= len(found) <= max(len(STEPS), 20) ** size
    for change in found:
        shares = [lengths(facts, change)[norm] / float(bound) for norm, bound in bounds.items()]
        assert max(shares) <= 1 + 1e-8
        assert (change == np.rint(change)).all() or not integer
        assert integer or max(shares) == pytest.approx(1)
    assert any(np.count_nonzero(change) == 1 for change in found)


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("fall", [0, 100, 1000])
def test_large_changes_of_scores_keep_within_their_spread(integer: bool, fall: int) -> None:
    declared = Sensitivity(Norm.LINF, 1000, fall=fall, source="a probe")
    for relation in Relation:
        change, spread = declared.change.under(relation), declared.spread.under(relation)
        assert change is not None and spread is not None  # noqa: PT018
        found = shifts(QueryFacts("scores", "scores", (), integer, 3, [declared]), relation, 3)
        assert max(float(np.abs(one).max()) for one in found) == change
        assert max(float(np.ptp(one)) for one in found) == pytest.approx(float(min(spread, 2 * change)), rel=0.002)
        assert all(np.abs(one).max() <= change and np.ptp(one) <= spread for one in found)


@pytest.mark.parametrize("integer", [True, False])
def test_losses_of_large_sums_are_found_and_missing_noise_with_them(integer: bool) -> None:
    """Whole numbers with noise of a million are compared as densities are: on a grid that is coarse, and wide."""
    declared = Sensitivity(Norm.SQUARED_L2, 10**12 + 1, source="a probe")
    invented = invent_answers(QueryFacts("sums", "sums", (), integer, 2, [declared]))
    # every direction shows the same for this noise, and each takes seconds
    given_facts = [attrs.evolve(invented, pairs=lambda *of: itertools.islice(invented.pairs(*of), 0, None, 12))]
    report = check_losses(dpf.mechanisms.Gaussian(1), given=given_facts)
    assert report.passed
    assert report.tightness > 0.999
    wrong = check_losses(LessNoise(1), given=given_facts)
    assert not wrong.passed
    assert {claim.kind.split()[0] for claim in wrong.claims if not claim.holds} == {"rho", "delta"}


class LessNoise(dpf.mechanisms.Gaussian):
    """Draws a tenth less noise than it states."""

    name = "less-noise"

    def log_density(self, answer: Any, output: Any, calibration: dpf.mechanisms.Calibration) -> float:
        return super().log_density(answer, output, attrs.evolve(calibration, scale=calibration.scale * Fraction(4, 5)))
