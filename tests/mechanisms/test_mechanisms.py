"""Every mechanism: its density sums to 1, its draws follow it, and no neighbour costs more than it claims."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import dpframework as dpf
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.mechanisms import (
    AboveThreshold,
    BlockNorm,
    Calibration,
    DiscreteLaplace,
    Gaussian,
    GaussianThreshold,
    KNorm,
    Laplace,
    Mechanism,
    PartitionSelection,
)
from dpframework.mechanisms.built_in import BUILT_IN
from dpframework.mechanisms.exponential_interval_mechanism import ExponentialInterval
from dpframework.mechanisms.integer_answer_change_bounds import unit_changes
from dpframework.mechanisms.lattice_rounding import LatticePoints
from dpframework.mechanisms.randomness import Noise, Randomness, Samplers, SeededRandomness, SystemRandomness
from dpframework.mechanisms.release_losses import double_at_most
from dpframework.mechanisms.selection import (
    Exponential,
    PermuteAndFlip,
    permute_and_flip_log_probability,
    with_relative_error,
)
from dpframework.queries import Sensitivity
from dpframework.queries.base import Norm, QueryFacts
from dpframework.queries.scores import PiecewiseScores

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
FALSE_FAILURE = 1e-6  # of each sampling test, exactly: binomial tests with Bonferroni's correction
SOURCES = {
    "seeded": lambda: SeededRandomness(20100725),
    "opendp": lambda: SystemRandomness(Samplers.OPENDP),
    "arrays": lambda: SystemRandomness(Samplers.ARRAYS),
}


def facts(*sensitivities: Sensitivity, integer: bool = True, answer_length: int | None = 1) -> QueryFacts:
    return QueryFacts("test", "a test query", (), integer, answer_length, sensitivities)


def sensitivity(norm: str, added: Any, replaced: Any = None, **directions: Any) -> Sensitivity:
    return Sensitivity(norm, added, replaced, **directions, source="by construction of the test")


def calibrated(mechanism: Mechanism, of: QueryFacts, relation: Relation = ADD, **options: Any) -> Calibration:
    calibration = mechanism.calibrate(of, relation, **options)
    assert calibration is not None
    return calibration


def accepted(counts: Any, probabilities: Any) -> bool:
    """Tell whether counts are plausible for the cells' probabilities; wrongly no with probability <= 1e-6."""
    total, level = int(np.sum(counts)), FALSE_FAILURE / len(counts)
    return all(
        stats.binomtest(int(c), total, float(p)).pvalue >= level for c, p in zip(counts, probabilities, strict=True)
    )


COUNT = dpf.queries.Count().facts()
TWO_CELLS = dpf.queries.Histogram(dpf.Boolean("ill")).facts()
REAL = facts(sensitivity("l1", 1), sensitivity("squared-l2", 1), integer=False)
VOTES = facts(sensitivity("linf", 1, 1, fall=0), answer_length=3)
SCORES = np.array([3, 2, 0])
PIECES = PiecewiseScores(np.array([0.0, 1.0, 1.5, 4.0]), np.array([1.0, 3.0, 0.0]))


# --- densities ------------------------------------------------------------------------------------------------------


def total_over(calibration: Calibration, answer: Any, outputs: Any) -> float:
    return sum(math.exp(calibration.mechanism.log_density(answer, output, calibration)) for output in outputs)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 5])
def test_discrete_laplace_density_sums_to_one(epsilon: Any) -> None:
    calibration = calibrated(DiscreteLaplace(epsilon), COUNT)
    reach = int(40 / Fraction(epsilon))
    assert total_over(calibration, 7, range(7 - reach, 8 + reach)) == pytest.approx(1, abs=1e-12)


def test_discrete_laplace_density_of_several_numbers_is_their_product() -> None:
    calibration = calibrated(DiscreteLaplace(2), TWO_CELLS)
    grid = itertools.product(range(-20, 25), repeat=2)
    assert total_over(calibration, np.array([3, 0]), map(np.array, grid)) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace("0.5"), Laplace("0.5"), Gaussian("0.02")], ids=str)
def test_the_log_density_of_several_numbers_is_the_sum_of_theirs(mechanism: Mechanism) -> None:
    calibration = calibrated(mechanism, TWO_CELLS)

    def density(*moved: int) -> float:
        exact = np.arange(len(moved)) + 5
        return float(calibration.mechanism.log_density(exact, exact + np.array(moved), calibration))

    for one, other in ((3, -4), (0, 2), (5, 5)):
        assert density(one, other) == pytest.approx(density(one) + density(other))
    assert density(1, 1) < density(0, 1) < density(0, 0)


@pytest.mark.parametrize("mechanism", [Laplace(2**19), Gaussian(2**37)])
def test_lattice_density_of_reals_sums_to_one(mechanism: Mechanism) -> None:
    # With so much budget the noise is a few lattice steps, and its support can be listed.
    calibration = calibrated(mechanism, REAL)
    unit = float(calibration.unit)
    centre = round(0.3 / unit)
    outputs = [k * unit for k in range(centre - 200, centre + 201)]
    assert total_over(calibration, 0.3, outputs) == pytest.approx(1, abs=1e-10)
    assert mechanism.log_density(0.3, 0.3 + unit / 3, calibration) == -math.inf  # not on the lattice


@pytest.mark.parametrize("count", [0, 2**53, 2**62])
def test_whole_numbers_are_told_apart_however_large(count: int) -> None:
    calibration = calibrated(DiscreteLaplace(1), facts(sensitivity("l1", 1)))
    density = functools.partial(calibration.mechanism.log_density, count, calibration=calibration)
    assert [density(count + k) - density(count) for k in (-1, 0, 1)] == pytest.approx([-1, 0, -1])


@pytest.mark.parametrize("rho", ["0.001", "0.1", 3])
def test_gaussian_density_sums_to_one(rho: Any) -> None:
    calibration = calibrated(Gaussian(rho), COUNT)
    reach = int(12 * math.sqrt(calibration.scale)) + 3
    assert total_over(calibration, -2, range(-2 - reach, reach - 1)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mechanism", [Exponential("0.7"), PermuteAndFlip("0.7")])
@given(scores=st.lists(st.integers(-50, 50), min_size=1, max_size=12))
@settings(max_examples=30)
def test_selection_probabilities_sum_to_one(mechanism: Mechanism, scores: list[int]) -> None:
    calibration = calibrated(mechanism, attrs.evolve(VOTES, answer_length=12))
    assert total_over(calibration, np.array(scores), range(len(scores))) == pytest.approx(1, abs=1e-9)
    assert mechanism.log_density(np.array(scores), len(scores), calibration) == -math.inf
    assert mechanism.log_density(np.array(scores), -1, calibration) == -math.inf


def test_interval_density_integrates_to_one() -> None:
    calibration = calibrated(ExponentialInterval(1), VOTES)
    middles, lengths = PIECES.breaks[:-1] + np.diff(PIECES.breaks) / 2, np.diff(PIECES.breaks)
    densities = [math.exp(calibration.mechanism.log_density(PIECES, x, calibration)) for x in middles]
    assert np.dot(densities, lengths) == pytest.approx(1, abs=1e-12)
    assert calibration.mechanism.log_density(PIECES, 4.1, calibration) == -math.inf
    assert calibration.mechanism.log_density(PIECES, 4.0, calibration) == pytest.approx(math.log(densities[-1]))


def test_interval_outputs_do_not_tell_where_the_breaks_are() -> None:
    """Breaks are private values: every output is a point of the public interval's lattice, whatever they are."""
    calibration = calibrated(ExponentialInterval(1), VOTES)
    for inner in (0.1, 0.2, math.pi / 2):
        pieces = PiecewiseScores(np.array([0.0, inner, 4.0]), np.array([3.0, 0.0]))
        for seed in range(200):
            output = calibration.mechanism.release(pieces, calibration, SeededRandomness(seed))
            assert (output / 4.0 * 2**32).is_integer()


class Given:
    """Keeps what the exact samplers are given, and chooses the piece and the point that are wanted."""

    def __init__(self, piece: int) -> None:
        self.piece, self.scores, self.scale, self.below = piece, np.zeros(0), 0.0, 0

    def noisy_max(self, scores: Any, scale: float, noise: Any) -> int:
        self.scores, self.scale = scores, scale
        return self.piece

    def integers(self, below: int, size: int) -> Any:
        self.below = below
        return np.zeros(size, dtype=np.int64)


@pytest.mark.parametrize("integer", [True, False])
def test_a_point_sixty_below_the_best_keeps_its_probability(integer: bool) -> None:
    """Gumbel noise from 53 bits spans 40.3: what is further below was impossible."""
    calibration = calibrated(ExponentialInterval(1), facts(sensitivity("linf", 1), integer=integer))
    gap, breaks = 60 * float(calibration.scale), np.array([0.0, 1.0, 1.5, 4.0])
    logs = []
    for low in (0.0, 1.0):
        answer = PiecewiseScores(breaks, np.array([low, round(gap), 0.0]))
        kept = Given(0)
        output = calibration.mechanism.release(answer, calibration, kept)  # type: ignore[arg-type]
        assert kept.scores.dtype == np.int64
        assert output == 0.0
        relative = kept.scores / kept.scale
        share = relative[0] - relative.max() - math.log(np.exp(relative - relative.max()).sum())
        logs.append(share - math.log(kept.below * 4.0 / 2**32))
        stated = calibration.mechanism.log_density(answer, output, calibration)
        assert stated == pytest.approx(logs[-1], abs=1e-9)
        assert stated == pytest.approx((low - round(gap)) / float(calibration.scale) - math.log(0.5), abs=1e-4)
    assert 0.4 < logs[1] - logs[0] <= 1


def test_rounded_weights_of_pieces_are_within_what_is_paid_for() -> None:
    """Scores and lengths at random, against the true weights; half a step each, and no more."""
    rng = np.random.default_rng(2)
    for epsilon in ("1e-6", "0.3", "200"):
        calibration = calibrated(ExponentialInterval(epsilon), facts(sensitivity("linf", 1), integer=False))
        step = Fraction(calibration.unit)
        scale = Fraction(calibration.lattice_scale) * step
        allowed = step + scale * Fraction(1, 2**45)
        for _ in range(30):
            breaks = np.sort(np.concatenate([[0.0, 8.0], rng.uniform(0, 8, 3), rng.uniform(1, 1.001, 2)]))
            answer = PiecewiseScores(breaks, rng.uniform(-1e4, 1e4, len(breaks) - 1))
            kept = Given(0)
            calibration.mechanism.release(answer, calibration, kept)  # type: ignore[arg-type]
            edges = np.ceil(breaks / 8.0 * 2**32).astype(np.int64)
            with localcontext(prec=50):
                exact = [
                    Fraction(score) + scale * Fraction(Decimal(int(length)).ln())
                    for score, length in zip(answer.scores, np.diff(edges), strict=True)
                    if length
                ]
            off = [abs(int(found) * step - true) for found, true in zip(kept.scores, exact, strict=True)]
            assert max(off) <= allowed
    assert float(max(off)) > float(step) / 10  # of the last, whose steps count for most


def test_what_a_query_declares_of_floating_point_is_paid_for() -> None:
    """Four times in a selection: two scores, before and after."""
    plain = facts(sensitivity("linf", 1), integer=False)
    declared = attrs.evolve(plain, rounding=Fraction(1, 100))
    for mechanism in (Exponential(1), PermuteAndFlip(1), ExponentialInterval(1)):
        added = calibrated(mechanism, declared).scale - calibrated(mechanism, plain).scale
        assert added == pytest.approx(Fraction(4, 100), rel=1e-6)
        assert calibrated(mechanism, declared).losses.pure.add_or_remove_one == 1
    with pytest.raises(dpf.InputError, match="epsilon"):
        calibrated(ExponentialInterval(Fraction(1, 2**42)), plain)


def test_an_error_that_grows_with_the_scale_is_paid_for_at_every_scale() -> None:
    """What is added covers the error at the largest scale that the change can lead to: of a row between parts."""
    for epsilon, error in ((Fraction(1), Fraction(1, 4)), (Fraction(3, 7), Fraction(1, 1000))):
        for change in (
            ByRelation(Fraction(1), Fraction(2)),
            ByRelation(None, Fraction(5)),
            ByRelation(Fraction(3), None),
        ):
            padded = with_relative_error(change, error, epsilon)
            for before, after in zip(
                (change.add_or_remove_one, change.replace_one),
                (padded.add_or_remove_one, padded.replace_one),
                strict=True,
            ):
                known = [bound for bound in (padded.add_or_remove_one, padded.replace_one) if bound is not None]
                if before is None or after is None:
                    assert before is after
                    continue
                assert after - before >= error * max(known) / epsilon
                assert after - before == 4 * error / epsilon * max(
                    bound for bound in (change.add_or_remove_one, change.replace_one) if bound is not None
                )


@pytest.mark.parametrize("output", [math.nan, math.inf, -math.inf, 1.5])
def test_an_output_off_the_lattice_is_impossible(output: float) -> None:
    calibration = calibrated(DiscreteLaplace(1), COUNT)
    assert calibration.mechanism.log_density(3, output, calibration) == -math.inf


def test_an_output_of_which_one_number_is_off_the_lattice_is_impossible() -> None:
    for mechanism in (DiscreteLaplace(1), Gaussian(1)):
        calibration = calibrated(mechanism, TWO_CELLS)
        for output in ([1.0, 2.5], [2.5, 1.0], [1.0, math.nan]):
            assert mechanism.log_density(np.array([1, 2]), np.array(output), calibration) == -math.inf
        assert mechanism.log_density(np.array([1, 2]), np.array([1.0, 2.0]), calibration) > -math.inf


def test_an_output_of_another_shape_is_impossible() -> None:
    for mechanism in (DiscreteLaplace(1), Gaussian(1)):
        calibration = calibrated(mechanism, TWO_CELLS)
        assert mechanism.log_density(np.array([1, 2]), np.array([1, 2, 3]), calibration) == -math.inf


# --- draws ----------------------------------------------------------------------------------------------------------


def drawn_cells(name: str, calibration: Calibration, source: Randomness, draws: int) -> Any:
    """Draw and count by cell, the cells' probabilities under the honest calibration being in `EXPECTED`."""
    mechanism = calibration.mechanism
    if name in ("exponential", "permute-and-flip", "above-threshold"):
        outputs = [mechanism.release(SCORES, calibration, source) for _ in range(draws)]
        return np.bincount(outputs, minlength=3)
    if name == "exponential-interval":
        outputs = [mechanism.release(PIECES, calibration, source) for _ in range(draws)]
        return np.histogram(outputs, bins=PIECES.breaks)[0]
    if name in ("k-norm", "block-norm"):
        none = np.zeros(sum(calibration.facts.histograms), dtype=np.int64)
        first = [mechanism.release(none, calibration, source)[0] for _ in range(draws)]
        return np.histogram(first, bins=EDGES)[0]
    rows = FEW_ROWS if name in KEY_MECHANISMS else 0
    noise = np.asarray(mechanism.release(np.full(draws, rows), calibration, source)) - rows
    return np.histogram(noise, bins=EDGES)[0]


EDGES = np.array([-np.inf, -4.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 4.5, np.inf])
MANY = attrs.evolve(COUNT, answer_length=None)
HISTOGRAMS = attrs.evolve(facts(sensitivity("histograms", 1, fall=0), answer_length=4), histograms=(2, 2))
BLOCKS = attrs.evolve(facts(sensitivity("blocks", 1), answer_length=3), histograms=(1, 2))
CASES: dict[str, tuple[Mechanism, QueryFacts, Fraction, int]] = {
    # mechanism, query, what 30 % more noise does to its scale, draws
    "discrete-laplace": (DiscreteLaplace("0.5"), MANY, Fraction(13, 10), 10_000),
    "laplace": (Laplace("0.5"), MANY, Fraction(13, 10), 10_000),
    "laplace on reals": (
        Laplace("0.5"),
        facts(sensitivity("l1", 1), integer=False, answer_length=10_000),
        Fraction(13, 10),
        10_000,
    ),
    "gaussian": (Gaussian("0.125"), MANY, Fraction(169, 100), 10_000),
    "exponential": (Exponential(1), VOTES, Fraction(13, 10), 6_000),
    "permute-and-flip": (PermuteAndFlip(1), VOTES, Fraction(13, 10), 6_000),
    "exponential-interval": (ExponentialInterval(1), VOTES, Fraction(13, 10), 6_000),
    "above-threshold": (AboveThreshold(2, threshold=5), VOTES, Fraction(13, 10), 4_000),
    "k-norm": (KNorm("0.5"), HISTOGRAMS, Fraction(13, 10), 3_000),
    "block-norm": (BlockNorm("0.5"), BLOCKS, Fraction(13, 10), 3_000),
    "partition-selection": (PartitionSelection(1, "0.02"), MANY, Fraction(13, 10), 10_000),
    "gaussian-threshold": (GaussianThreshold("0.125", "0.02"), MANY, Fraction(169, 100), 10_000),
}
KEY_MECHANISMS = ("partition-selection", "gaussian-threshold")
FEW_ROWS = 5  # of a cell that is shown more often than not


def expected(name: str, calibration: Calibration) -> Any:
    mechanism = calibration.mechanism
    if name in ("exponential", "permute-and-flip", "above-threshold"):
        return [math.exp(mechanism.log_density(SCORES, k, calibration)) for k in range(3)]
    if name == "exponential-interval":
        middles = PIECES.breaks[:-1] + np.diff(PIECES.breaks) / 2
        return [
            math.exp(mechanism.log_density(PIECES, x, calibration)) * length
            for x, length in zip(middles, np.diff(PIECES.breaks), strict=True)
        ]
    if name == "laplace on reals":  # a lattice of 2**-20: the continuous distribution, to six digits
        return np.diff(stats.laplace(scale=float(calibration.scale)).cdf(EDGES))
    if name == "k-norm":
        return first_entry(calibration)
    if name == "block-norm":
        return first_number(calibration)
    points = np.arange(-60, 61)
    one = attrs.evolve(calibration, facts=COUNT)
    rows = FEW_ROWS if name in KEY_MECHANISMS else 0
    weights = [math.exp(mechanism.log_density(rows, rows + k, one)) for k in points]
    return np.histogram(points, bins=EDGES, weights=weights)[0]


def first_entry(calibration: Calibration) -> Any:
    """Return the chances of the first entry of noise on two histograms of two cells, by adding up the density."""
    points, none = np.arange(-60, 61), np.zeros(4, dtype=np.int64)
    of_norm = [calibration.mechanism.log_density(none, np.array([n, 0, n, 0]), calibration) for n in range(500)]
    chances = np.exp(np.array(of_norm))
    first, total = points[:, None, None], points[None, :, None]
    norms = np.maximum(np.abs(first) + np.abs(total - first), np.abs(points) + np.abs(total - points))
    return np.histogram(points, bins=EDGES, weights=chances[norms].sum(axis=(1, 2)))[0]


def first_number(calibration: Calibration) -> Any:
    """Return the chances of the first of a block of one number and a block of two, by adding up the density."""
    points, none = np.arange(-60, 61), np.zeros(3, dtype=np.int64)
    of_norm = [calibration.mechanism.log_density(none, np.array([n, 0, 0]), calibration) for n in range(200)]
    norms = np.arange(200)  # of the other block, of which 4 n pairs of whole numbers have the norm n
    weights = np.exp(np.array(of_norm))[np.maximum(np.abs(points)[:, None], norms)] * np.maximum(4 * norms, 1)
    return np.histogram(points, bins=EDGES, weights=weights.sum(axis=1))[0]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_density_and_noise_that_is_off_is_caught(name: str, source: str) -> None:
    mechanism, of, factor, draws = CASES[name]
    honest = calibrated(mechanism, of)
    probabilities = expected(name, honest)
    assert sum(probabilities) == pytest.approx(1, abs=1e-6)
    randomness = SOURCES[source]()
    assert accepted(drawn_cells(name, honest, randomness, draws), probabilities)
    scales = [honest.scale * factor, honest.scale / factor]
    for scale in scales if source == "seeded" else scales[:1]:  # a private draw takes a call of the sampler
        off = attrs.evolve(honest, scale=scale)
        assert not accepted(drawn_cells(name, off, randomness, draws), probabilities)


def test_every_built_in_mechanism_is_sampled() -> None:
    assert {case[0].name for case in CASES.values()} == {mechanism.name for mechanism in BUILT_IN}


@pytest.mark.parametrize("name", ["discrete-laplace", "gaussian", "permute-and-flip", "exponential"])
def test_previews_hold_with_95_percent(name: str) -> None:
    mechanism, of, _, draws = CASES[name]
    calibration = calibrated(mechanism, of)
    preview = mechanism.preview(calibration)
    source = SeededRandomness(5)
    if mechanism.selects:
        errors = np.array([3 - SCORES[mechanism.release(SCORES, calibration, source)] for _ in range(draws)])
    else:
        errors = np.abs(mechanism.release(np.zeros(draws, dtype=np.int64), calibration, source))
        assert np.mean(errors) == pytest.approx(preview.expected, rel=0.1)
    # Discrete noise may lie on the bound: a step of slack. Binomial: false failure below 1e-6.
    assert stats.binomtest(int((errors <= preview.within + 1).sum()), draws, 0.95, "less").pvalue > 1e-6


# --- realised loss --------------------------------------------------------------------------------------------------


def neighbours(relation: Relation, cells: int, rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield all pairs of neighbouring count vectors with at most so many rows a cell."""
    for base in itertools.product(range(rows + 1), repeat=cells):
        for i in range(cells):
            added = np.array(base)
            added[i] += 1
            if relation is ADD:
                yield np.array(base), added
            else:
                for j in range(cells):
                    replaced = added.copy()
                    replaced[j] -= 1
                    if replaced.min() >= 0 and i != j:
                        yield np.array(base), replaced


def worst_loss(calibration: Calibration, pairs: Any, outputs: Any) -> float:
    mechanism = calibration.mechanism
    return max(
        abs(mechanism.log_density(one, output, calibration) - mechanism.log_density(other, output, calibration))
        for one, other in pairs
        for output in outputs
    )


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("kind", [DiscreteLaplace, Laplace])
def test_laplace_on_counts_loses_its_epsilon_and_no_more(kind: Any, relation: Relation) -> None:
    calibration = calibrated(kind("0.3"), TWO_CELLS, relation)
    outputs = [np.array(o) for o in itertools.product(range(-3, 5), repeat=2)]
    worst = worst_loss(calibration, list(neighbours(relation, 2, 2)), outputs)
    assert worst == pytest.approx(0.3, abs=1e-12)
    assert calibration.losses.pure.under(relation) == Fraction(3, 10)


@pytest.mark.parametrize("relation", Relation)
def test_laplace_on_reals_loses_its_epsilon_with_rounding_included(relation: Relation) -> None:
    of = facts(sensitivity("l1", "0.7", "0.9"), integer=False, answer_length=2)
    calibration = calibrated(Laplace("0.5"), of, relation)
    change = 0.7 if relation is ADD else 0.9
    unit = float(calibration.unit)
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        one, share = rng.uniform(-2, 2, 2), rng.uniform()
        other = one + change * np.array([share, -(1 - share)]) * rng.choice([-1, 1])
        for o in itertools.product([-5, 5], repeat=2):
            output = np.rint(np.array(o) / unit) * unit
            loss = abs(
                calibration.mechanism.log_density(one, output, calibration)
                - calibration.mechanism.log_density(other, output, calibration)
            )
            worst = max(worst, loss)
    assert 0.5 * (1 - 1e-4) < worst <= 0.5


def shifts(relation: Relation, size: int, rise: int, fall: int) -> list[Any]:
    most = max(rise, fall)
    moves = range(-fall, rise + 1) if relation is ADD else range(-most, most + 1)
    return [np.array(s) for s in itertools.product(moves, repeat=size)]


BASES = [np.array(b) for b in itertools.product((0, 1, 3), repeat=3)] + [np.array([0, 90, 0]), np.array([200, 0, 1])]


MOVES = [(1, 0), (0, 1), (1, 1), (2, 1), (1, 3)]  # how far a row raises a score, and lowers it


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("rise", "fall"), MOVES)
@pytest.mark.parametrize("mechanism", [Exponential("0.8"), PermuteAndFlip("0.8")])
def test_selections_lose_their_epsilon_and_no_more(
    mechanism: Mechanism, rise: int, fall: int, relation: Relation
) -> None:
    """Exhaustive over small changes: under replace-one of at most the larger either way, as declared."""
    most = max(rise, fall)
    of = facts(sensitivity("linf", most, most, rise=rise, fall=fall), answer_length=3)
    calibration = calibrated(mechanism, of, relation)
    pairs = [(base, base + shift) for base in BASES for shift in shifts(relation, 3, rise, fall)]
    worst = worst_loss(calibration, pairs, range(3))
    assert worst <= 0.8 + 1e-9
    assert worst > 0.8 * 0.999  # tight: one candidate far ahead, the others moving the other way


@pytest.mark.parametrize("mechanism", [Exponential("0.8"), PermuteAndFlip("0.8"), ExponentialInterval("0.8")])
def test_monotonic_scores_need_half_the_noise(mechanism: Mechanism) -> None:
    one, two, most = (facts(sensitivity("linf", 2, fall=fall), answer_length=3) for fall in (0, 1, 2))
    for more, factor in ((most, 2), (two, Fraction(3, 2))):
        ratio = calibrated(mechanism, more).scale / calibrated(mechanism, one).scale
        rounded = isinstance(mechanism, ExponentialInterval)  # which costs the same whatever the scores may do
        assert factor - Fraction(rounded, 2**17) < ratio <= factor if rounded else ratio == factor


def test_a_two_sided_change_with_monotonic_noise_would_lose_more() -> None:
    """Shows that the exhaustive search above can tell: half the noise is caught."""
    of = facts(sensitivity("linf", 1, 1), answer_length=3)
    for mechanism in (Exponential("0.8"), PermuteAndFlip("0.8")):
        honest = calibrated(mechanism, of)
        halved = attrs.evolve(honest, scale=honest.scale / 2)
        pairs = [(base, base + shift) for base in BASES for shift in shifts(ADD, 3, 1, 1)]
        assert worst_loss(halved, pairs, range(3)) > 0.8 * 1.5


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("rise", "fall"), MOVES)
def test_interval_loses_its_epsilon_and_no_more(rise: int, fall: int, relation: Relation) -> None:
    most = max(rise, fall)
    of = facts(sensitivity("linf", most, most, rise=rise, fall=fall), answer_length=None)
    calibration = calibrated(ExponentialInterval("0.8"), of, relation)
    breaks = np.array([0.0, 1e-9, 1.0, 10.0])
    bases = [np.array(b, dtype=float) for b in itertools.product((0, 2), repeat=3)] + [np.array([0.0, 0.0, 80.0])]
    pairs = [
        (PiecewiseScores(breaks, base), PiecewiseScores(breaks, base + shift))
        for base in bases
        for shift in shifts(relation, 3, rise, fall)
    ]
    worst = worst_loss(calibration, pairs, [5e-10, 0.5, 5.0])
    assert 0.8 * 0.999 < worst <= 0.8 + 1e-9


def renyi(one: Any, other: Any, order: float) -> float:
    return math.log(math.fsum(np.exp(order * one - (order - 1) * other))) / (order - 1)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("rho", ["0.02", "0.5", 2])
def test_gaussian_renyi_divergence_is_at_most_rho_times_the_order(rho: Any, relation: Relation) -> None:
    calibration = calibrated(Gaussian(rho), TWO_CELLS, relation)
    scalar = attrs.evolve(calibration, facts=COUNT)
    claimed = float(calibration.losses.zcdp.under(relation) or 0)
    assert claimed == float(Fraction(rho))
    reach = int(30 * math.sqrt(calibration.scale)) + 30
    zero, one = (
        np.array([calibration.mechanism.log_density(x, k, scalar) for k in range(-reach, reach)]) for x in (0, 1)
    )
    moved = 1 if relation is ADD else 2  # cells that change, each by 1; divergences of independent noise add up
    for order in (1.01, 1.5, 2, 3, 4):
        divergence = moved * renyi(zero, one, order)
        assert divergence <= claimed * order * (1 + 1e-9)
        if float(order).is_integer():
            assert divergence == pytest.approx(claimed * order, rel=1e-6)  # tight at integer orders


@pytest.mark.parametrize(
    ("mechanism", "rho"),
    [
        (Laplace(1), Fraction(1, 2)),
        (DiscreteLaplace(1), Fraction(1, 2)),
        (Exponential(1), Fraction(1, 8)),
        (ExponentialInterval(1), Fraction(1, 8)),
        (PermuteAndFlip(1), Fraction(1, 2)),
    ],
)
def test_zcdp_losses(mechanism: Mechanism, rho: Fraction) -> None:
    of = facts(sensitivity("linf", 1, fall=0), sensitivity("l1", 1))
    losses = calibrated(mechanism, of).losses
    if not isinstance(mechanism, ExponentialInterval):
        assert losses.pure == ByRelation(Fraction(1), Fraction(2))
        assert losses.zcdp == ByRelation(rho, 4 * rho)
        return
    # what a piece's rounding costs is the same under either relation
    replaced = losses.pure.replace_one
    assert replaced is not None
    assert 2 - Fraction(1, 2**17) < replaced <= 2
    assert losses.pure.add_or_remove_one == 1
    assert losses.zcdp == ByRelation(rho, rho * replaced**2)


@pytest.mark.parametrize("mechanism", [Laplace(1), DiscreteLaplace(1), Exponential(1), PermuteAndFlip(1)])
def test_a_step_in_parts_costs_no_more_when_a_row_moves_between_them(mechanism: Mechanism) -> None:
    of = facts(sensitivity("linf", 1, 1, fall=0), sensitivity("l1", 1, 1))
    losses = calibrated(mechanism, of, REPLACE, in_parts=True).losses.pure
    assert losses.add_or_remove_one == Fraction(1, 2)
    assert losses.replace_one is not None
    assert losses.replace_one <= 1
    only_replace = facts(sensitivity("linf", None, 1), sensitivity("l1", None, 1))
    assert mechanism.calibrate(only_replace, REPLACE, in_parts=True) is None
    assert mechanism.calibrate(only_replace, REPLACE) is not None
    assert mechanism.calibrate(only_replace, ADD) is None


# --- published numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "published"),
    [("0.1", [0.40, 0.33, 0.16, 0.11]), ("1", [0.88, 0.12, 1e-4, 1e-6])],
)
def test_vote_table_of_the_2010_talk(epsilon: str, published: list[float]) -> None:
    """Friedman and Schuster's talk: exponent epsilon q / 2, the exponential mechanism for two-sided scores.

    The last probability at epsilon 0.1 is 0.104; the talk prints 0.11, so that its column adds up to 1.
    """
    two_sided = facts(sensitivity("linf", 1), answer_length=4)
    calibration = calibrated(Exponential(epsilon), two_sided)
    votes = np.array([27, 23, 9, 0])
    for position, printed in enumerate(published):
        probability = math.exp(calibration.mechanism.log_density(votes, position, calibration))
        assert probability == pytest.approx(printed, abs=0.0065 if printed > 0.01 else 0.3 * printed)


def test_vote_table_without_budget_is_uniform() -> None:
    calibration = calibrated(Exponential("1e-9"), facts(sensitivity("linf", 1), answer_length=4))
    for position in range(4):
        assert calibration.mechanism.log_density(np.array([27, 23, 9, 0]), position, calibration) == pytest.approx(
            math.log(0.25), abs=1e-6
        )


def test_split_point_table_of_the_2010_talk() -> None:
    """Friedman and Schuster's talk: ranges of [0, 12] with Max scores, weights exp(score) times length."""
    breaks = np.array([0.0, 2, 3, 5, 7, 10, 11, 12])
    scores = np.array([3.0, 4, 5, 4, 3, 4, 3])
    published = [0.063, 0.085, 0.467, 0.172, 0.095, 0.086, 0.032]
    monotonic = facts(sensitivity("linf", 1, fall=0), integer=True, answer_length=None)
    calibration = calibrated(ExponentialInterval(1), monotonic)
    answer = PiecewiseScores(breaks, scores)
    for k, printed in enumerate(published):
        middle, length = (breaks[k] + breaks[k + 1]) / 2, breaks[k + 1] - breaks[k]
        probability = math.exp(calibration.mechanism.log_density(answer, middle, calibration)) * length
        assert probability == pytest.approx(printed, abs=0.0015)


# --- permute-and-flip -----------------------------------------------------------------------------------------------


def flipped(weights: list[float], chosen: int) -> float:
    """Permute-and-flip as its authors wrote it: candidates in random order, each accepted with its weight."""
    orders = list(itertools.permutations(range(len(weights))))
    total = 0.0
    for order in orders:
        before = order[: order.index(chosen)]
        total += weights[chosen] * math.prod(1 - weights[k] for k in before)
    return total / len(orders)


@given(scaled=st.lists(st.floats(-30, 0), min_size=0, max_size=5))
@settings(max_examples=40)
def test_permute_and_flip_is_what_its_authors_wrote(scaled: list[float]) -> None:
    scores = np.array([0.0, *scaled])
    weights = [math.exp(s) for s in scores]
    for chosen in range(len(scores)):
        exact = flipped(weights, chosen)
        assert permute_and_flip_log_probability(scores, chosen) == pytest.approx(math.log(exact), abs=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.01, 3.0, 40.0])
def test_permute_and_flip_of_five_thousand_candidates_sums_to_one(spread: float) -> None:
    values = -spread * np.arange(5)
    scaled = np.repeat(values, [1, 9, 90, 900, 4000])
    firsts = [0, 1, 10, 100, 1000]
    logs = [permute_and_flip_log_probability(scaled, k) for k in firsts]
    assert np.dot([1, 9, 90, 900, 4000], np.exp(logs)) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("size", [39, 40, 41, 42, 60])
def test_permute_and_flip_is_exact_on_both_sides_of_its_change_of_method(size: int) -> None:
    scaled = -np.random.default_rng(size).exponential(2, size)
    scaled -= scaled.max()
    total = sum(math.exp(permute_and_flip_log_probability(scaled, k)) for k in range(size))
    assert total == pytest.approx(1, abs=1e-10)


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    calibrations = [calibrated(kind("0.5"), VOTES) for kind in (PermuteAndFlip, Exponential)]
    for scores in BASES:
        flip, exponential = (
            sum(math.exp(c.mechanism.log_density(scores, k, c)) * (scores.max() - scores[k]) for k in range(3))
            for c in calibrations
        )
        assert flip <= exponential + 1e-12


@pytest.mark.parametrize(
    ("mechanism", "of"),
    [
        (DiscreteLaplace("0.5"), facts(sensitivity("l1", 1))),
        (Laplace("0.5"), facts(sensitivity("l1", "0.7"), integer=False)),
        (Gaussian("0.01"), facts(sensitivity("squared-l2", 1))),
        (Gaussian("0.01"), facts(sensitivity("squared-l2", 2), integer=False)),
    ],
)
def test_the_variance_is_that_of_the_draws(mechanism: Mechanism, of: QueryFacts) -> None:
    """Of 40,000 draws; a variance 30 % off is 20 of its own deviations away."""
    calibration = calibrated(mechanism, of)
    answer = np.zeros(40_000)
    many = attrs.evolve(calibration, facts=attrs.evolve(of, answer_length=len(answer)))
    drawn = mechanism.release(answer.astype(np.int64) if of.integer else answer, many, SeededRandomness(5))
    assert np.var(drawn) == pytest.approx(calibration.variance, rel=0.1)


def test_a_selection_has_no_variance() -> None:
    with pytest.raises(dpf.InputError, match="adds no noise to numbers"):
        calibrated(Exponential(1), facts(sensitivity("linf", 1), answer_length=3)).variance  # noqa: B018 - it raises


# --- the lattice ----------------------------------------------------------------------------------------------------


@given(
    added=st.fractions(Fraction(1, 10**6), 10**9),
    answer_length=st.integers(1, 5000),
    norm=st.sampled_from(["l1", "squared-l2"]),
)
@settings(max_examples=100)
def test_the_scale_covers_rounding_and_is_rounded_up(added: Fraction, answer_length: int, norm: str) -> None:
    mechanism: Mechanism = Laplace(1) if norm == "l1" else Gaussian(1)
    calibration = calibrated(mechanism, facts(sensitivity(norm, added), integer=False, answer_length=answer_length))
    unit = calibration.unit
    if norm == "l1":
        assert calibration.scale >= added + 2 * answer_length * unit
        assert Fraction(calibration.lattice_scale) * unit >= calibration.scale
    else:  # the root of the padded square covers sqrt(size) steps, of which size is a bound
        assert 2 * calibration.scale >= added
        assert (2 * calibration.scale / added) >= (
            1 + 2 * answer_length * unit / Fraction(math.isqrt(math.ceil(added)) + 1)
        ) ** 2


SELECTIONS = st.sampled_from([Exponential(1), PermuteAndFlip(1)])


@given(mechanism=SELECTIONS, added=st.fractions(Fraction(1, 10**6), 10**9), share=st.fractions(0, 1))
@settings(max_examples=100)
def test_the_scale_of_a_selection_covers_rounding(mechanism: Mechanism, added: Fraction, share: Fraction) -> None:
    """Two scores are rounded before and after: their difference moves by two steps more, and two are for doubles."""
    of = facts(sensitivity("linf", added, fall=share * added), integer=False, answer_length=3)
    calibration = calibrated(mechanism, of)
    assert calibration.scale >= added * (1 + share) + 4 * calibration.unit


@pytest.mark.parametrize("mechanism", [Exponential(1), PermuteAndFlip(1)])
def test_rounded_scores_lose_no_more_than_is_claimed(mechanism: Mechanism) -> None:
    """One score rises and one falls by the sensitivity, 0.7, and rounding takes both a step further."""
    of = facts(sensitivity("linf", "0.7"), integer=False, answer_length=2)
    calibration = calibrated(mechanism, of)
    unit = float(calibration.unit)
    worst = 0.0
    for low, high in itertools.product(np.linspace(0, unit, 9), repeat=2):
        before, after = np.array([low, high + 60]), np.array([low + 0.7, high + 60 - 0.7])
        for chosen in (0, 1):
            moved = [mechanism.log_density(answer, chosen, calibration) for answer in (before, after)]
            worst = max(worst, abs(moved[0] - moved[1]))
    assert 1 - 1e-5 <= worst <= 1


def test_large_answers_are_clamped_not_wrapped_around() -> None:
    """An int64 that overflows would jump from one end to the other between neighbours."""
    real = calibrated(Laplace(1), facts(sensitivity("l1", 1), integer=False))
    points = real.on_lattice(np.array([1e300, -1e300, 1e20, 1e20 + 1][:1]))
    assert points[0] == real.on_lattice(1e299) > 0
    assert real.on_lattice(-1e300) == -real.on_lattice(1e300)
    many = attrs.evolve(real, facts=attrs.evolve(real.facts, answer_length=None))
    ordered = many.on_lattice(np.array([-1e300, -1e19, -1.0, 0.0, 1.0, 1e19, 1e300]))
    assert (np.diff(ordered) >= 0).all()
    whole = calibrated(DiscreteLaplace(1), MANY)
    extreme = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert whole.on_lattice(extreme).tolist() == [0, 2**62, 2**62, 2**62]
    assert whole.on_lattice(np.array([-(2**63), 5])).tolist() == [-(2**62), 5]
    assert whole.on_lattice(np.array([True, False])).tolist() == [1, 0]
    chosen = calibrated(PermuteAndFlip(1), VOTES)
    assert chosen.mechanism.release(np.array([-(2**63), 2**63 - 1, 0]), chosen, SeededRandomness(0)) == 1


def test_answers_are_rounded_some_at_a_time_and_keep_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    one = calibrated(Laplace(1), facts(sensitivity("l1", 1), integer=False))
    real = attrs.evolve(one, facts=attrs.evolve(one.facts, answer_length=None))
    answer = np.random.default_rng(5).normal(0, 1e3, (4, 6)).T
    at_once = real.on_lattice(answer)
    np.testing.assert_array_equal(at_once, np.rint(answer / float(real.unit)))
    monkeypatch.setattr("dpframework.mechanisms.lattice_rounding.AT_ONCE", 5)
    np.testing.assert_array_equal(real.on_lattice(answer), at_once)
    assert real.on_lattice(2.0).shape == ()


def test_many_real_scores_are_rounded_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = calibrated(Exponential(1), attrs.evolve(facts(sensitivity("linf", 1), integer=False), answer_length=24))
    answer = np.append(np.random.default_rng(6).normal(0, 1e3, 22), [1e300, -1e300]).reshape(4, 6)
    whole = chosen.on_lattice(answer).ravel()
    assert isinstance(chosen.scores(answer), np.ndarray)
    monkeypatch.setattr("dpframework.mechanisms.base.AT_ONCE", 23)
    points = chosen.scores(answer)
    assert isinstance(points, LatticePoints)
    np.testing.assert_array_equal(np.asarray(points), whole)
    np.testing.assert_array_equal(points[3:9], whole[3:9])
    assert (len(points), points.max(), points[5]) == (24, whole.max(), whole[5])
    for seed in range(20):
        choices = [
            SeededRandomness(seed).noisy_max(one, 1e3 / float(chosen.unit), Noise.GUMBEL) for one in (points, whole)
        ]
        assert choices[0] == choices[1]
    for unusable in (np.full(24, np.nan), np.zeros(25)):
        with pytest.raises(dpf.InputError):
            chosen.scores(unusable)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "float16", "float32"])
def test_answers_that_could_have_wrapped_round_are_refused(kind: str) -> None:
    whole = calibrated(DiscreteLaplace(1), MANY)
    with pytest.raises(dpf.InputError, match=f"numbers of type {kind} cannot hold"):
        whole.on_lattice(np.array([1, 2], dtype=kind))
    with pytest.raises(dpf.InputError, match=f"numbers of type {kind} cannot hold"):
        PiecewiseScores(np.array([0.0, 1.0]), np.array([1], dtype=kind))


def test_integer_arrays_of_a_real_query_of_large_sensitivity_are_not_lost() -> None:
    calibration = calibrated(Laplace(10**6), facts(sensitivity("l1", 2**30), integer=False))
    assert calibration.unit > 1
    answer = np.int64(2**40)
    assert int(calibration.on_lattice(answer)) * calibration.unit == 2**40
    assert calibration.mechanism.release(answer, calibration, SeededRandomness(1)) == pytest.approx(2**40, rel=0.01)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (math.nan, "NaN or infinity"),
        (math.inf, "NaN or infinity"),
        (2.5, None),
        ("9412", "numbers are needed"),
        (np.array([1.0, 2.0]), "more than the 1 numbers"),
        (np.array([1.0, math.nan]), "NaN or infinity"),
        (np.array([-math.inf, 1.0]), "NaN or infinity"),
        (None, "numbers are needed"),
    ],
)
def test_answers_that_cannot_be_used_are_refused_without_their_value(answer: Any, text: str | None) -> None:
    calibration = calibrated(Laplace(1), REAL)
    if text is None:
        assert isinstance(calibration.mechanism.release(answer, calibration, SeededRandomness(0)), float)
        return
    with pytest.raises(dpf.InputError, match=text) as refused:
        calibration.mechanism.release(answer, calibration, SeededRandomness(0))
    assert "9412" not in str(refused.value)


def test_a_query_that_declares_integers_must_not_answer_with_floats() -> None:
    calibration = calibrated(DiscreteLaplace(1), COUNT)
    with pytest.raises(dpf.InputError, match="declares integer answers"):
        calibration.on_lattice(2.0)


@pytest.mark.parametrize(
    "mechanism", [Laplace("1e-30"), DiscreteLaplace("1e-30"), Gaussian("1e-60"), Exponential("1e-30")]
)
def test_noise_that_overflows_is_refused(mechanism: Mechanism) -> None:
    of = facts(sensitivity("l1", 1), sensitivity("linf", 1))
    with pytest.raises(dpf.InputError, match="too large for 64-bit"):
        mechanism.calibrate(of, ADD)


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace, Exponential, PermuteAndFlip, ExponentialInterval, Gaussian])
@pytest.mark.parametrize("bad", [0, -1, "nan", math.inf, math.nan, None, True, "x", [1]])
def test_privacy_parameters_must_be_positive_numbers(kind: Any, bad: Any) -> None:
    with pytest.raises(dpf.InputError, match=r"epsilon|rho"):
        kind(bad)


def test_queries_that_a_mechanism_cannot_serve() -> None:
    assert "linf" in (Exponential(1).misfit(facts(sensitivity("squared-l2", 1))) or "")
    assert "l1" in (Laplace(1).misfit(facts(sensitivity("linf", 1))) or "")
    assert "integer" in (DiscreteLaplace(1).misfit(REAL) or "")
    assert "length" in (Laplace(1).misfit(attrs.evolve(REAL, answer_length=None)) or "")
    assert "linf" in (ExponentialInterval(1).misfit(facts()) or "")
    unknown = attrs.evolve(facts(sensitivity("linf", 1), integer=False), answer_length=None)
    assert Exponential(1).misfit(unknown) is ExponentialInterval(1).misfit(unknown) is None  # scores need no length
    assert Laplace(1).calibrate(facts(), ADD) is None
    assert Exponential(1).misfit(facts(sensitivity("squared-l2", 1), sensitivity("l1", 1))) is None  # l1 bounds linf
    scores = calibrated(ExponentialInterval(1), VOTES)
    with pytest.raises(dpf.InputError, match="PiecewiseScores"):
        scores.mechanism.release(np.array([1, 2]), scores, SeededRandomness(0))


def test_spread_needs_the_linf_norm() -> None:
    with pytest.raises(dpf.InputError, match="linf"):
        _ = sensitivity("l1", 1).spread
    assert sensitivity("linf", 1, fall=0).spread == ByRelation(Fraction(1), Fraction(2))
    assert sensitivity("linf", 1).spread == ByRelation(Fraction(2), Fraction(4))
    assert sensitivity("linf", None, 3, fall=0).spread == ByRelation(None, Fraction(6))
    assert sensitivity("squared-l2", 1).change == ByRelation(Fraction(1), Fraction(4))
    assert Norm("l1") is Norm.L1


def test_interval_draws_stay_in_the_interval_and_off_empty_pieces() -> None:
    calibration = calibrated(ExponentialInterval(1), VOTES)
    answer = PiecewiseScores(np.array([2.0, 2.0, 2.0 + 1e-15, 3.0]), np.array([500.0, 0.0, 0.0]))
    draws = [calibration.mechanism.release(answer, calibration, SeededRandomness(s)) for s in range(200)]
    assert all(2.0 <= d < 3.0 for d in draws)
    assert all(math.isfinite(calibration.mechanism.log_density(answer, d, calibration)) for d in draws)


# --- bounds and constants ------------------------------------------------------------------------------------------


def test_a_replacement_is_at_most_a_removal_and_an_addition() -> None:
    for replaced, bound in ((None, 6), (7, 6), (Fraction(9, 2), Fraction(9, 2))):
        found = double_at_most(ByRelation(Fraction(3), None if replaced is None else Fraction(replaced)))
        assert found == ByRelation(Fraction(3), Fraction(bound))
    assert double_at_most(ByRelation(None, Fraction(3))) == ByRelation(None, Fraction(3))


@pytest.mark.parametrize(
    ("changes", "coordinates"),
    [
        ({"l1": 3, "squared-l2": 2, "linf": 1}, 2),
        ({"l1": 2, "squared-l2": 3, "linf": 1}, 2),
        ({"l1": 3, "linf": Fraction(19, 10)}, 3),
        ({"l1": 3, "linf": 2}, None),
        ({"linf": 1}, None),
        ({"l1": Fraction(1, 2), "linf": Fraction(1, 2)}, None),
    ],
)
def test_coordinates_that_change_by_1_are_counted_by_the_smallest_norm(changes: Any, coordinates: int | None) -> None:
    declared = [Sensitivity(Norm(norm), change, source="a test") for norm, change in changes.items()]
    counts = QueryFacts("c", "c", (), True, 9, declared)
    assert unit_changes(counts, Relation.ADD_OR_REMOVE_ONE) == coordinates
    assert unit_changes(attrs.evolve(counts, integer=False), Relation.ADD_OR_REMOVE_ONE) is None


@pytest.mark.parametrize(("mechanism", "power"), [(Laplace, 1), (Gaussian, 2)])
def test_noise_is_refused_just_beyond_what_64_bits_hold(mechanism: Any, power: int) -> None:
    declared = [Sensitivity(norm, 1, source="a test") for norm in (Norm.L1, Norm.SQUARED_L2)]
    counts = QueryFacts("c", "c", (), True, 1, declared)
    least = Fraction(1, 2 ** (52 * power) * power)  # 1 / epsilon, or 1 / (2 rho), is the largest scale
    assert mechanism(least).calibrate(counts, Relation.ADD_OR_REMOVE_ONE).scale == 2 ** (52 * power)
    with pytest.raises(InputError, match="the noise would be too large"):
        mechanism(least * Fraction(999, 1000)).calibrate(counts, Relation.ADD_OR_REMOVE_ONE)


def test_answers_are_rounded_to_the_nearest_point_of_the_lattice() -> None:
    facts = QueryFacts("r", "r", (), False, 4, [Sensitivity(Norm.L1, 1, source="a test")])
    calibration = Laplace(1).calibrate(facts, Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    points = np.array([0.6, -0.6, 1.4, -1.4]) * float(calibration.unit)
    assert calibration.on_lattice(points).tolist() == [1, -1, 1, -1]


def test_many_candidates_of_next_to_no_weight_count() -> None:
    """Beside the best, m of weight w: the integral of (1 - u w)**m over u has a closed form."""
    m, weight = 100_000, 1e-10
    scaled = np.full(m + 1, math.log(weight))
    scaled[0] = 0.0
    exact = math.log(-math.expm1((m + 1) * math.log1p(-weight)) / ((m + 1) * weight))
    assert permute_and_flip_log_probability(scaled, 0) == pytest.approx(exact, rel=1e-6)


def test_points_of_an_interval_pay_for_both_roundings_and_the_logarithm() -> None:
    """Four times the query's own and a lattice step: half a step for a score, half for a length's (see the module)."""
    rounding, mechanism = Fraction(1, 1000), ExponentialInterval(1)
    facts = QueryFacts("s", "s", (), False, 9, [Sensitivity(Norm.LINF, 1, fall=0, source="a test")], rounding)
    step = mechanism.lattice_unit(facts)
    assert step == Fraction(1, 2**20)
    # of scores that only rise: 1 when a row is added, 2 when one is replaced
    spread = ByRelation(1 + 4 * (rounding + step), 2 + 4 * (rounding + step))
    assert mechanism.change(facts) == with_relative_error(spread, Fraction(4, 2**45), Fraction(1))


def test_noise_on_a_lattice_that_is_not_fine_enough_has_no_event_of_fine_noise() -> None:
    """Beside deltas that are asked for, 1e-7 is little; two numbers that change have twice the slack of one."""
    for numbers, known in ((1, True), (2, False)):
        declared = [Sensitivity(norm, numbers, source="a test") for norm in (Norm.L1, Norm.SQUARED_L2)]
        facts = QueryFacts("c", "c", (), True, 2, [*declared, Sensitivity(Norm.LINF, 1, source="a test")])
        mechanism = Gaussian(Fraction(numbers, 2 * 10_001**2))
        calibration = mechanism.calibrate(facts, Relation.ADD_OR_REMOVE_ONE)
        assert calibration is not None
        event = mechanism.dp_event(calibration, Relation.ADD_OR_REMOVE_ONE)
        assert (event is not None) is known


@pytest.mark.parametrize("mechanism", [Exponential("0.5"), PermuteAndFlip("0.5")])
def test_a_choice_is_expected_within_the_scale_times_the_logarithm_of_the_number(mechanism: Any) -> None:
    for size in (1, 2, 50):
        facts = QueryFacts("s", "s", (), True, size, [Sensitivity(Norm.LINF, 1, fall=0, source="a test")])
        preview = mechanism.calibrate(facts, Relation.ADD_OR_REMOVE_ONE).preview
        assert preview.expected == pytest.approx(2 * math.log(max(size, 2)))
        assert preview.within == pytest.approx(2 * mechanism.gap(size))


@pytest.mark.parametrize("mechanism", [Exponential("0.5"), PermuteAndFlip("0.5")])
@pytest.mark.parametrize("size", [2, 3, 50, 4097])
def test_a_choice_is_worse_than_stated_in_5_percent_at_most_and_of_the_worst_scores_in_5_percent(
    mechanism: Any, size: int
) -> None:
    """Of the scores that make a gap likeliest: one best, all others as far below. Any others make it less likely."""
    gap = mechanism.gap(size)
    worst = np.full(size, -gap)
    worst[0] = 0.0
    assert 1 - math.exp(mechanism.log_probability(worst, 0)) == pytest.approx(0.05, rel=1e-6)
    rng = np.random.default_rng(size)
    for _ in range(20):
        scores = -gap * rng.uniform(0, 2, size)
        scores[0] = 0.0
        below = [k for k in range(size) if scores[k] <= -gap][:50]
        chosen = sum(math.exp(mechanism.log_probability(scores, k)) for k in below)
        assert chosen <= 0.05 + 1e-9
    assert mechanism.gap(1) == 0


# --- what readers are told -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", 1, 3, 50])
@pytest.mark.parametrize("mechanism", [DiscreteLaplace, Laplace])
def test_the_preview_of_integer_noise_is_exact(mechanism: Any, epsilon: Any) -> None:
    """The mean of |k|, and the least m with Pr[|k| > m] of 5 % at most, added up over all k."""
    calibration = calibrated(mechanism(epsilon), COUNT)
    size = np.arange(2000)
    chances = np.exp(-size / float(calibration.scale)) * np.where(size, 2, 1)
    chances /= chances.sum()
    preview = calibration.preview
    assert preview.expected == pytest.approx(float(chances @ size))
    assert preview.within == np.searchsorted(np.cumsum(chances), 0.95)
    assert preview.text == f"each number within ±{preview.within:.3g} (95 %), ±{preview.expected:.3g} on average"


def test_previews_of_real_noise_are_those_of_continuous_noise() -> None:
    laplace, gaussian = calibrated(Laplace("0.5"), REAL), calibrated(Gaussian("0.125"), REAL)
    assert laplace.preview.expected == pytest.approx(2, rel=1e-5)
    assert laplace.preview.within == pytest.approx(stats.laplace(scale=2).ppf(0.975), rel=1e-5)
    assert laplace.preview.text == "each number within ±5.99 (95 %), ±2 on average"
    assert gaussian.preview.expected == pytest.approx(stats.foldnorm(0).mean() * 2, rel=1e-5)
    assert gaussian.preview.within == pytest.approx(2 * stats.norm.ppf(0.975), rel=1e-5)
    assert gaussian.preview.text == "each number within ±3.92 (95 %), ±1.6 on average"
    assert calibrated(Gaussian("0.125"), COUNT).preview.within == 4  # rounded up
    assert gaussian.variance == pytest.approx(4, rel=1e-5)
    assert laplace.variance == pytest.approx(8, rel=1e-5)


def test_previews_of_choices_are_in_units_of_the_score() -> None:
    chosen = calibrated(PermuteAndFlip("0.5"), attrs.evolve(VOTES, answer_length=8))
    assert chosen.preview.text == "a score within 8.44 of the best of 8 (95 %)"  # 2 `gap(8)`
    unknown = calibrated(Exponential("0.5"), attrs.evolve(VOTES, answer_length=None))
    assert unknown.preview.text == "noise of scale 2 on scores; the number of candidates is not known"
    assert math.isnan(unknown.preview.expected)
    assert math.isnan(unknown.preview.within)
    interval = calibrated(ExponentialInterval("0.5"), attrs.evolve(VOTES, answer_length=None)).preview
    assert interval.text == "a score within 5.99 + 2 ln(range / width of the best piece) of the best (95 %)"
    assert interval.expected == pytest.approx(2, rel=1e-4)
    assert interval.within == pytest.approx(2 * math.log(20), rel=1e-4)
    above = AboveThreshold("0.5", threshold=3)
    counted = calibrated(above, attrs.evolve(VOTES, answer_length=8))
    assert counted.scale == 4
    assert counted.preview.within == 2 * math.ceil(4 * math.log(8 / 0.05))
    assert counted.preview.text == (
        "the released count is above the threshold - 42, and counts before it are below the threshold + 42 (95 %)"
    )
    assert calibrated(above, attrs.evolve(VOTES, answer_length=1)).preview.within == 2 * math.ceil(4 * math.log(40))
    open_ended = calibrated(above, attrs.evolve(VOTES, answer_length=None)).preview
    assert open_ended.text == "noise of scale 4; the number of counts is not known"
    assert math.isnan(open_ended.expected)
    assert math.isnan(open_ended.within)


# --- the lattice, exactly ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("norm", "changes", "exponent"),
    [
        ("l1", (1, 2), -20),
        ("l1", (4, 1), -20),
        ("l1", (Fraction(3, 4), None), -21),
        ("l1", (Fraction(2**60 - 1, 2**60), None), -21),  # whose logarithm is 0 in double precision
        ("l1", (None, 8), -17),
        ("squared-l2", (16, None), -18),
        ("squared-l2", (15, None), -19),
        ("squared-l2", (Fraction(1, 4), 9), -21),
        ("squared-l2", (Fraction(2**62 - 1, 2**62), None), -21),
    ],
)
def test_the_lattice_is_the_power_of_two_just_below_the_smallest_change(norm: str, changes: Any, exponent: int) -> None:
    mechanism: Mechanism = Laplace(1) if norm == "l1" else Gaussian(1)
    of = facts(sensitivity(norm, *changes, **({"rise": None, "fall": None} if changes[0] is None else {})))
    assert mechanism.lattice_unit(attrs.evolve(of, integer=False)) == Fraction(2) ** exponent
    assert mechanism.lattice_unit(of) == 1
    assert mechanism.lattice_unit(facts(integer=False)) == 1


def test_answers_are_clamped_where_a_double_tells_lattice_points_apart() -> None:
    real = calibrated(Laplace(1), attrs.evolve(REAL, answer_length=4))
    step = float(real.unit)
    edge = np.array([2.0**52, 2.0**52 - 1, -(2.0**52), 2.0**52 + 2]) * step
    assert real.on_lattice(edge).tolist() == [2**52, 2**52 - 1, -(2**52), 2**52]
    assert real.on_lattice([math.ldexp(1, 900), -math.ldexp(1, 900)]).tolist() == [2**52, -(2**52)]


def test_what_the_lattice_adds_to_a_change() -> None:
    """Two steps of 2**-20 a coordinate, squared for a squared norm; nothing for integers."""
    of = facts(sensitivity("l1", 1), sensitivity("squared-l2", 1), integer=False, answer_length=7)
    padded = 1 + Fraction(14, 2**20)
    assert Laplace(1).change(of).add_or_remove_one == padded
    assert Gaussian(1).change(of).add_or_remove_one == padded**2
    whole = attrs.evolve(of, integer=True)
    assert Laplace(1).change(whole).add_or_remove_one == Gaussian(1).change(whole).add_or_remove_one == 1
    scores = facts(sensitivity("linf", 1, fall=0), integer=False)
    for mechanism in (Exponential(1), PermuteAndFlip(1)):
        assert mechanism.change(scores).add_or_remove_one == 1 + Fraction(4, 2**20)


def test_what_never_changes_has_no_calibration() -> None:
    """Nothing to hide, so that noise of scale 0 would be asked for: checks say so."""
    assert DiscreteLaplace(1).calibrate(facts(sensitivity("l1", 0)), ADD) is None


def test_keys_in_parts_have_half_of_delta_each_where_a_row_may_move() -> None:
    whole, half = GaussianThreshold("0.125", "0.02"), GaussianThreshold("0.125", "0.01")
    keys = dpf.queries.Keys("town").facts()
    assert calibrated(whole, keys, REPLACE, in_parts=True).losses == calibrated(half, keys, REPLACE).losses
    assert calibrated(whole, keys, REPLACE, in_parts=True).mechanism == half
    assert calibrated(whole, keys, ADD, in_parts=True).losses == calibrated(whole, keys, ADD).losses


def test_a_step_in_parts_is_calibrated_for_the_larger_of_staying_and_moving() -> None:
    for declared, bound in (((1, 2), 2), ((1, 1), 2), ((1, Fraction(3, 2)), 2)):
        assert (
            calibrated(DiscreteLaplace(1), facts(sensitivity("l1", *declared)), REPLACE, in_parts=True).scale == bound
        )
        assert calibrated(DiscreteLaplace(1), facts(sensitivity("l1", *declared)), REPLACE).scale == declared[1]
        assert calibrated(DiscreteLaplace(1), facts(sensitivity("l1", *declared)), ADD, in_parts=True).scale == 1
    steep = facts(sensitivity("l1", None, 5, rise=None, fall=None), sensitivity("linf", 1))
    assert DiscreteLaplace(1).calibrate(steep, REPLACE, in_parts=True) is None


def test_losses_of_a_group_are_those_of_a_row_times_its_size_and_its_square() -> None:
    losses = calibrated(Exponential(1), VOTES).losses
    grouped = losses.of_rows(3)
    assert grouped.pure == ByRelation(Fraction(3), Fraction(6))
    assert grouped.zcdp == ByRelation(Fraction(9, 8), Fraction(36, 8))
    assert losses.of_rows(1) is losses


def test_noise_scales_are_rounded_up_to_floats() -> None:
    for epsilon in (Fraction(1, 3), Fraction(1, 7), Fraction(3), Fraction(10, 3)):
        calibration = calibrated(DiscreteLaplace(epsilon), COUNT)
        above = Fraction(calibration.lattice_scale)
        assert Fraction(math.nextafter(calibration.lattice_scale, 0)) < 1 / epsilon <= above


# --- far apart -----------------------------------------------------------------------------------------------------


def test_densities_of_candidates_that_are_very_far_apart_are_numbers() -> None:
    """Of scores millions of scales apart, of which no exponential is a double."""
    two, gap = attrs.evolve(VOTES, answer_length=2), 10**7
    for mechanism, halved in ((Exponential(1), 0.0), (PermuteAndFlip(1), math.log(2))):
        calibration = calibrated(mechanism, two)
        for scores, best in (([0, gap], 1), ([gap, 0], 0)):
            assert mechanism.log_density(np.array(scores), best, calibration) == pytest.approx(0, abs=1e-12)
            worst = mechanism.log_density(np.array(scores), 1 - best, calibration)
            assert worst == pytest.approx(-gap / float(calibration.scale) - halved)
    interval = calibrated(ExponentialInterval(1), two)
    pieces = PiecewiseScores(np.array([0.0, 1.0, 4.0]), np.array([0.0, 1e7]))
    low, high = (interval.mechanism.log_density(pieces, x, interval) for x in (0.5, 2.0))
    assert high == pytest.approx(-math.log(3))
    assert low == pytest.approx(-1e7 / float(interval.scale) - math.log(3))
    above = AboveThreshold(1)
    certain = above.log_density(np.array([10**6, 0]), 0, calibrated(above, two))
    assert certain == pytest.approx(0, abs=1e-12)


def test_seeded_choices_tell_neighbouring_scores_apart_however_large() -> None:
    """A double of 2**61 stands for 512 whole numbers."""
    scores = np.array([0, 2**61, 2**61 + 40, 2**61 - 5])
    for noise in Noise:
        for seed in range(20):
            assert SeededRandomness(seed).noisy_max(scores, 0.5, noise) == 2  # but for e**-80


def test_an_interval_s_end_belongs_to_its_last_piece_and_nothing_lies_beyond() -> None:
    calibration = calibrated(ExponentialInterval(1), VOTES)
    density = functools.partial(calibration.mechanism.log_density, PIECES, calibration=calibration)
    assert density(0.0) == density(0.5) == density(math.nextafter(1.0, 0) - 2.0**-20)
    assert density(1.0) == density(1.25) != density(1.5)
    assert density(1.5) == density(4.0)
    assert density(math.nextafter(4.0, 5)) == density(math.nextafter(0.0, -1)) == -math.inf
    # a double just below a lattice point may stand for it: less than a 64th of a step is forgiven
    step = 4.0 / 2**32
    assert density(1.0 - step / 100) == density(1.0)
    assert density(1.0 - step / 50) == density(0.5)


def test_points_of_a_piece_are_those_of_the_lattice_from_its_break_to_the_next() -> None:
    """The first of a piece, and the last, by what the uniform draw may be."""

    class Drawn:
        private = False

        def __init__(self, piece: int, last: bool) -> None:
            self.piece, self.last = piece, last

        def noisy_max(self, scores: Any, scale: float, noise: Any) -> int:
            assert noise is Noise.GUMBEL
            return self.piece

        def integers(self, below: int, size: int) -> Any:
            return np.array([below - 1 if self.last else 0] * size)

    calibration = calibrated(ExponentialInterval(1), VOTES)
    step = 4.0 / 2**32
    found = [
        [calibration.mechanism.release(PIECES, calibration, Drawn(k, last)) for last in (False, True)]  # type: ignore[arg-type]
        for k in range(3)
    ]
    assert found == [[0.0, 1.0 - step], [1.0, 1.5 - step], [1.5, 4.0 - step]]
    shifted = PiecewiseScores(np.array([2.0, 3.0, 10.0]), np.array([0.0, 1.0]))
    first = calibration.mechanism.release(shifted, calibration, Drawn(1, False))  # type: ignore[arg-type]
    assert 3.0 <= first < 3.0 + 8.0 / 2**32
