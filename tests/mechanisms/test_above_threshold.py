"""Above threshold: its loss is exact, is reached, and the known wrong variants are caught."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.mechanisms import Calibration
from dpframework.mechanisms.above_threshold import AboveThreshold
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.queries import Norm, QueryFacts, Sensitivity
from dpframework.verify.assertions import assert_private

ADD = Relation.ADD_OR_REMOVE_ONE
RISES = {"monotonic": (1, 0), "falling": (0, 1), "both ways": (1, 1), "more up than down": (2, 1)}


def facts(rise: int, fall: int, size: int = 4) -> QueryFacts:
    declared = Sensitivity(Norm.LINF, max(rise, fall), rise=rise, fall=fall, source="a test")
    return QueryFacts("counts", "counts", (), True, size, (declared,))


def calibrated(mechanism: AboveThreshold, rise: int, fall: int, relation: Relation, size: int = 4) -> Calibration:
    calibration = mechanism.calibrate(facts(rise, fall, size), relation)
    assert calibration is not None
    return calibration


def logs(mechanism: Any, counts: tuple[int, ...], calibration: Calibration) -> np.ndarray:
    answer = np.array([*counts, 0])
    return np.array([mechanism.log_density(answer, k, calibration) for k in range(len(answer))])


def largest_loss(mechanism: Any, calibration: Calibration, steps: range, bases: list[tuple[int, ...]]) -> float:
    """Return the largest realised loss over all neighbours of some answers, either way round."""
    found = 0.0
    for base in bases:
        one = logs(mechanism, base, calibration)
        for shift in itertools.product(steps, repeat=len(base)):
            other = logs(mechanism, tuple(np.add(base, shift).tolist()), calibration)
            found = max(found, float(np.abs(one - other).max()))
    return found


def far(scale: Fraction, size: int = 3) -> list[tuple[int, ...]]:
    """Answers near the threshold, and such as only a threshold far up in its tail lets pass."""
    d = math.ceil(30 * scale)
    return [(0,) * size, (2, -1, 1)[:size], (d,) * (size - 1) + (-d,), (-d,) * (size - 1) + (d,)]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("name", RISES)
@pytest.mark.parametrize("relation", list(Relation))
def test_it_loses_its_epsilon_and_no_more(name: str, relation: Relation, epsilon: str) -> None:
    rise, fall = RISES[name]
    mechanism = AboveThreshold(epsilon)
    calibration = calibrated(mechanism, rise, fall, relation)
    reach = rise + fall if relation is Relation.REPLACE_ONE else 0
    steps = range(-reach, reach + 1) if reach else range(-fall, rise + 1)
    lost = largest_loss(mechanism, calibration, steps, far(calibration.scale))
    assert lost <= float(epsilon) * (1 + 1e-9)
    assert calibration.losses.pure.under(relation) <= Fraction(epsilon)
    assert lost >= 0.9 * float(epsilon)


def test_what_a_scale_costs_follows_from_change_and_spread() -> None:
    mechanism = AboveThreshold(1)
    assert mechanism.change(facts(1, 0)) == ByRelation(Fraction(2), Fraction(3))
    assert mechanism.change(facts(2, 1)) == ByRelation(Fraction(5), Fraction(9))


@pytest.mark.parametrize("epsilon", ["0.2", "2"])
def test_probabilities_add_up_to_1(epsilon: str) -> None:
    mechanism = AboveThreshold(epsilon, threshold=7)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE)
    for counts in ((0, 0, 0), (7, 7, 7), (100, -100, 7), (-40, 6, 8)):
        assert np.exp(logs(mechanism, counts, calibration)).sum() == pytest.approx(1, abs=1e-12)


def test_a_count_far_below_the_threshold_is_released_as_often_as_noise_makes_up_for_it() -> None:
    """Together they may: the threshold's noise is anywhere between the count and 0 with much the same probability."""
    mechanism = AboveThreshold(1)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE)
    s, count = calibration.lattice_scale, -round(200 * calibration.lattice_scale)
    noisy = np.arange(count - 4000, 4000)  # of the threshold
    logs = -np.abs(noisy) / s + math.log(math.tanh(1 / (2 * s)))
    needed = noisy - count  # of the count's noise, at least
    of_tail = -needed / s - math.log1p(math.exp(-1 / s))
    logs += np.where(
        needed > 0, of_tail, np.log1p(-np.exp((np.minimum(needed, 0) - 1) / s - math.log1p(math.exp(-1 / s))))
    )
    exact = logs.max() + math.log(np.exp(logs - logs.max()).sum())
    assert mechanism.log_density(np.array([count, 0, 0]), 0, calibration) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("randomness", [SeededRandomness(4), SystemRandomness()], ids=["seeded", "private"])
def test_draws_follow_the_stated_probabilities(randomness: Any) -> None:
    """4,000 draws; a share is off by 6 deviations with a probability below 1e-8."""
    mechanism = AboveThreshold(1, threshold=5)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE)
    stated = np.exp(logs(mechanism, (4, 5, 6), calibration))
    draws = 4_000
    answer = np.array([4, 5, 6, 0])
    drawn = Counter(mechanism.release(answer, calibration, randomness) for _ in range(draws))
    for k, share in enumerate(stated):
        assert abs(drawn[k] - draws * share) <= 6 * math.sqrt(draws * share * (1 - share))


def test_counts_are_as_far_from_the_threshold_as_the_preview_says() -> None:
    """Fewer than 350 of 400 within a bound that holds with 0.95 have a probability below 1e-8."""
    mechanism = AboveThreshold(1, threshold=50)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE, size=21)
    within = mechanism.preview(calibration).within
    rng, randomness = np.random.default_rng(1), SeededRandomness(2)
    held = 0
    for _ in range(400):
        counts = np.append(rng.integers(20, 80, 20), 0)
        chosen = mechanism.release(counts, calibration, randomness)
        before = counts[:chosen].max(initial=-1000) < 50 + within
        held += before and (chosen == 20 or counts[chosen] > 50 - within)
    assert held >= 350


def test_the_preview_expects_the_noise_of_the_threshold_and_of_a_count() -> None:
    """Either is about its scale away from 0; the mean of so many draws is off by 5 % with probability below 1e-40."""
    mechanism = AboveThreshold("0.001", threshold=50)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE, size=21)
    noise = np.abs(SeededRandomness(3).discrete_laplace(100_000, calibration.lattice_scale)).mean()
    assert mechanism.preview(calibration).expected == pytest.approx(2 * noise, rel=0.05)  # 15 deviations of the mean


# --- known wrong variants (Lyu, Su and Li 2017), each claiming what the right one does --------------------------------

NOISY = np.arange(-300, 301)  # of the threshold


def log_missed(count: int, noisy: Any, scale: float) -> Any:
    """Return the log-probability that a count with noise stays below a noisy threshold."""
    q, k = math.exp(-1 / scale), np.asarray(noisy) - count - 1
    return np.log(np.where(k < 0, q ** np.maximum(-k, 0) / (1 + q), 1 - q ** (np.maximum(k, 0) + 1) / (1 + q)))


def log_hit(count: int, noisy: Any, scale: float) -> Any:
    return log_missed(-count, 1 - np.asarray(noisy), scale)


def log_laplace(k: Any, scale: float) -> Any:
    return -np.abs(k) / scale + math.log(math.tanh(1 / (2 * scale)))


def added_up(terms: Any) -> float:
    most = terms.max()
    return -math.inf if most == -math.inf else float(most + math.log(np.exp(terms - most).sum()))


def right(counts: Any, output: int, scale: float) -> float:
    before = sum(log_missed(count, NOISY, scale) for count in counts[:output])
    return added_up(log_laplace(NOISY, scale) + before + log_hit(counts[output], NOISY, scale))


def no_noise_on_the_threshold(counts: Any, output: int, scale: float) -> float:
    return float(sum(log_missed(count, 0, scale) for count in counts[:output]) + log_hit(counts[output], 0, scale))


def no_noise_on_the_counts(counts: Any, output: int, scale: float) -> float:
    fits = (max(counts[:output], default=-(10**6)) < NOISY) & (counts[output] >= NOISY)
    return added_up(np.where(fits, log_laplace(NOISY, scale), -math.inf))


def the_threshold_s_noise_drawn_anew(counts: Any, output: int, scale: float) -> float:
    weights = log_laplace(NOISY, scale)
    missed = sum(added_up(weights + log_missed(count, NOISY, scale)) for count in counts[:output])
    return missed + added_up(weights + log_hit(counts[output], NOISY, scale))


def the_noisy_number_released(counts: Any, output: int, scale: float) -> float:
    """Position and a noisy count of 0, which is at or above the noisy threshold."""
    before = sum(log_missed(count, NOISY, scale) for count in counts[:output])
    terms = log_laplace(NOISY, scale) + before + log_laplace(-counts[output], scale)
    return added_up(np.where(NOISY <= 0, terms, -math.inf))


def every_positive_for_one_budget(counts: Any, output: int, scale: float) -> float:
    """All up to the output are missed and all from there on reach the threshold, which keeps its noise."""
    before = sum(log_missed(count, NOISY, scale) for count in counts[:output])
    return added_up(log_laplace(NOISY, scale) + before + sum(log_hit(count, NOISY, scale) for count in counts[output:]))


WRONG = [
    no_noise_on_the_threshold,
    no_noise_on_the_counts,
    the_threshold_s_noise_drawn_anew,
    the_noisy_number_released,
    every_positive_for_one_budget,
]


def worst(density: Any, size: int = 6) -> float:
    """Return the largest loss at epsilon 1 over neighbours whose counts a row raises by 0 or 1.

    The first counts are alike, and so are the others; so are their changes.
    """
    scale = calibrated(AboveThreshold(1), 1, 0, Relation.ADD_OR_REMOVE_ONE, size + 1).lattice_scale
    found = 0.0
    for first, level, others in itertools.product((1, size // 2, size - 1), (-30, 0, 30), (-30, 0, 30)):
        base = np.repeat([level, others], [first, size - first])
        for shift in ([1, 0], [0, 1], [1, 1]):
            after = base + np.repeat(shift, [first, size - first])
            for output in (0, first, size - 1):
                one, other = (density(counts, output, scale) for counts in (base, after))
                if one != other:
                    found = max(found, abs(one - other))
    return found


def test_the_right_one_is_what_the_mechanism_states() -> None:
    mechanism = AboveThreshold(1)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE, 4)
    counts = (3, -2, 1)
    stated = [mechanism.log_density(np.array([*counts, 0]), k, calibration) for k in range(3)]
    assert stated == pytest.approx([right(counts, k, calibration.lattice_scale) for k in range(3)], abs=1e-9)
    assert 0.9 < worst(right) <= 1 + 1e-9


@pytest.mark.parametrize("variant", WRONG, ids=lambda variant: variant.__name__)
def test_a_known_wrong_variant_loses_more_than_the_claim(variant: Any) -> None:
    assert worst(variant) > 1.2


# --- in a miner ------------------------------------------------------------------------------------------------------


@attrs.frozen
class IllThriceThenWell(dpf.queries.CandidateScores):
    """How many are ill, three times, how many are not, and the coordinate that stands for none of these."""

    name = "ill-thrice-then-well"
    integer = True
    answer_length = 5

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        return (Sensitivity(Norm.LINF, 1, 1, fall=0, source="a row is ill or not"),)

    def candidates(self, **inputs: Any) -> Any:
        return ("first", "second", "third", "well", None)

    def count(self, block: dpf.Block, **inputs: Any) -> np.ndarray:
        ill = int(block.codes("ill").sum())
        return np.array([ill, ill, ill, block.rows - ill, 0])


@attrs.frozen
class FirstAbove(dpf.Miner):
    """The first of some counts that is above 10."""

    name = "first-above-ten"
    mechanism: Any = attrs.field(factory=lambda: AboveThreshold(1, threshold=10))

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("first", IllThriceThenWell(), self.mechanism)

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.release("first")


SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@pytest.mark.parametrize("relation", list(Relation))
def test_replays_of_a_miner_come_near_the_claim_and_keep_it(relation: Relation) -> None:
    assert assert_private(FirstAbove(), SCHEMA, relation).tightness > 0.85


@pytest.mark.parametrize("counts", [(0, -3000), (3000, 0, -3000), (-4000, 5000, 0), (900, 1000, 0), (7, 7, 2000)])
@pytest.mark.parametrize("epsilon", [1, 16])
def test_values_that_are_not_listed_add_up_to_the_same_density(counts: tuple[int, ...], epsilon: int) -> None:
    """Long stretches of values of the noisy threshold, far from all counts, are summed up by a formula."""
    mechanism, values = AboveThreshold(epsilon, threshold=0), np.arange(-8000, 8001)
    calibration = calibrated(mechanism, 1, 0, ADD, len(counts) + 1)
    scale = calibration.lattice_scale
    log_both = math.log1p(math.exp(-1 / scale))

    def log_above(least: np.ndarray) -> np.ndarray:
        """Return the log-probability that noise is at least so large."""
        with np.errstate(divide="ignore", over="ignore"):
            below = np.log1p(-np.exp(-(1 - np.minimum(least, 0)) / scale - log_both))
        return np.where(least > 0, -least / scale - log_both, below)

    expected = []
    for chosen in range(len(counts) + 1):
        terms = -np.abs(values) / scale + math.log(math.tanh(1 / (2 * scale)))
        terms += sum(log_above(count + 1 - values) for count in counts[:chosen])  # noise is symmetric
        terms += log_above(values - counts[chosen]) if chosen < len(counts) else 0
        expected.append(terms.max() + math.log(np.exp(terms - terms.max()).sum()))
    assert logs(mechanism, counts, calibration) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("counts", [(5, 2**40), (2**40, 5), (-(2**40), 2**40, 0)])
def test_densities_of_billions_of_rows_add_up_to_1(counts: tuple[int, ...]) -> None:
    mechanism = AboveThreshold(1, threshold=0)
    found = logs(mechanism, counts, calibrated(mechanism, 1, 0, ADD, len(counts) + 1))
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def test_a_miner_gets_the_candidate_or_none() -> None:
    study = dpf.Study(SCHEMA, epsilon=10**4)
    study.add("first", FirstAbove(AboveThreshold(10**4, threshold=10)))
    for ill, well, expected in ((12, 40, "first"), (3, 40, "well"), (3, 4, None)):
        table = dpf.Table.from_codes(SCHEMA, [[1] * ill + [0] * well])
        assert study.run(table)["first"] == expected
    assert dpf.StudyPlan.from_json(study.plan().to_json()) == study.plan()


def test_what_it_cannot_serve_is_refused() -> None:
    real = attrs.evolve(facts(1, 0), integer=False)
    assert AboveThreshold(1).misfit(real) == "compares integer counts, and the query's answer is not integer"
    with pytest.raises(dpf.InputError, match=r"threshold is 0\.5; a whole number"):
        AboveThreshold(1, threshold=0.5)


def test_thresholds_are_whole_numbers_of_forty_bits() -> None:
    for threshold in (-(2**40), 0, 2**40):
        assert AboveThreshold(1, threshold=threshold).threshold == threshold
    for threshold in (-(2**40) - 1, 2**40 + 1):
        with pytest.raises(dpf.InputError, match="threshold is"):
            AboveThreshold(1, threshold=threshold)
    assert AboveThreshold(1).threshold == 0


def test_a_position_that_there_is_not_is_impossible() -> None:
    mechanism = AboveThreshold(1)
    calibration = calibrated(mechanism, 1, 0, Relation.ADD_OR_REMOVE_ONE, 3)
    found = [mechanism.log_density(np.array([1, 2, 0]), k, calibration) for k in range(-1, 4)]
    assert found[0] == found[4] == -math.inf
    assert math.fsum(map(math.exp, found[1:4])) == pytest.approx(1)


def test_a_claim_under_one_relation_alone_is_one_under_that_relation() -> None:
    only = Sensitivity(Norm.LINF, None, 3, rise=None, fall=None, source="a test")
    assert AboveThreshold(1).change(QueryFacts("c", "c", (), True, 3, (only,))) == ByRelation(None, Fraction(9))
