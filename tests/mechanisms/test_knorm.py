"""K-norm noise for several histograms: its norm, its counts, its draws and its loss, each against enumeration."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.mechanisms import Calibration, DiscreteLaplace, KNorm, cell_variances, groups_by_size
from dpframework.mechanisms.knorm import _second_moment
from dpframework.mechanisms.knorm_ball_moments import unit_ball_moments
from dpframework.mechanisms.knorm_ball_points import Balls, draw_section, section_size
from dpframework.mechanisms.knorm_ball_radii import RadiusWeights, geometric_sum
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.mechanisms.uniforms import WholeNumbers
from dpframework.queries import Marginals, Norm, QueryFacts, Sensitivity

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
FALSE_FAILURE = 1e-6
SHAPES = [(2,), (3, 2), (2, 2, 2), (4, 3)]
BOTH = pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add-or-remove", "replace"])


def facts(sizes: tuple[int, ...]) -> QueryFacts:
    return Marginals([dpf.Categorical(f"a{k}", [str(v) for v in range(s)]) for k, s in enumerate(sizes)]).facts()


def calibrated(sizes: tuple[int, ...], relation: Relation, epsilon: Any = 1, **options: Any) -> Calibration:
    calibration = KNorm(epsilon).calibrate(facts(sizes), relation, **options)
    assert calibration is not None
    return calibration


def changes(sizes: tuple[int, ...], relation: Relation) -> list[tuple[int, ...]]:
    """Return what one row, added, removed or replaced, does to all histograms."""
    rows = [
        tuple(int(k == cell) for size, cell in zip(sizes, row, strict=True) for k in range(size))
        for row in itertools.product(*map(range, sizes))
    ]
    if relation is ADD:
        return [*rows, *(tuple(-x for x in row) for row in rows)]
    return [tuple(x - y for x, y in zip(one, other, strict=True)) for one in rows for other in rows]


def parts(point: Any, sizes: tuple[int, ...]) -> list[Any]:
    return np.split(np.asarray(point), np.cumsum(sizes)[:-1])


def enumerated(sizes: tuple[int, ...], relation: Relation, radius: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the integer points of the space of norm up to `radius`, by the definition of the hull."""
    longest = radius * (2 if relation is REPLACE else 1)
    each = [
        [z for z in itertools.product(range(-longest, longest + 1), repeat=size) if sum(map(abs, z)) <= longest]
        for size in sizes
    ]
    for z in itertools.product(*each):
        sums = {sum(part) for part in z}
        if len(sums) == 1 and (relation is ADD or sums == {0}):
            norm = max(sum(map(abs, part)) for part in z)
            yield norm // (2 if relation is REPLACE else 1), tuple(itertools.chain(*z))


@BOTH
@pytest.mark.parametrize("sizes", SHAPES)
def test_the_norm_is_that_of_the_hull_of_what_one_row_can_change(sizes: tuple[int, ...], relation: Relation) -> None:
    """Against a linear programme: the least sum of weights by which changes add up to a point."""
    corners = np.array(changes(sizes, relation), dtype=float).T
    for norm, point in itertools.islice(enumerated(sizes, relation, 2), 0, 400, 7):
        found = linprog(np.ones(corners.shape[1]), A_eq=corners, b_eq=point)
        assert found.status == 0
        assert found.fun == pytest.approx(norm, abs=1e-6)


def test_sections_are_counted() -> None:
    for size, total, depth in itertools.product((2, 3, 4), (0, 1, 3), range(4)):
        reach = range(-depth, total + depth + 1)
        found = [
            z for z in itertools.product(reach, repeat=size) if sum(z) == total and -sum(x for x in z if x < 0) <= depth
        ]
        assert section_size(size, total, depth) == len(found)
    assert section_size(3, 1, -1) == 0


@BOTH
@pytest.mark.parametrize("sizes", SHAPES)
def test_balls_are_counted_and_the_density_sums_to_one(sizes: tuple[int, ...], relation: Relation) -> None:
    space, reach = Balls(sizes, relation is REPLACE), 3
    by_norm = Counter(norm for norm, _ in enumerated(sizes, relation, reach))
    for radius in range(reach + 1):
        assert space.number(radius) == sum(by_norm[k] for k in range(radius + 1))
    calibration = calibrated(sizes, relation)
    densities = {norm: math.exp(density(point, calibration)) for norm, point in enumerated(sizes, relation, reach)}
    further = [space.number(r) - space.number(r - 1) for r in range(reach + 1, 120)]
    beyond = sum(number * densities[0] * math.exp(-(reach + 1 + k)) for k, number in enumerate(further))
    assert sum(by_norm[norm] * densities[norm] for norm in by_norm) + beyond == pytest.approx(1, abs=1e-9)


def test_the_mirrored_half_of_the_numbers_fits_counts_beyond_it() -> None:
    for same_rows in (True, False):
        space = Balls((2, 9, 3, 5, 4), same_rows)
        assert min(space.polynomials.points) >= 1
        for radius in (12, 19, 40):
            totals = [0] if same_rows else range(-radius, radius + 1)
            assert space.number(radius) == sum(space.section(abs(total), radius) for total in totals)


def density(point: Any, calibration: Calibration) -> float:
    none = np.zeros(sum(calibration.facts.histograms), dtype=np.int64)
    return calibration.mechanism.log_density(none, np.array(point), calibration)


@BOTH
@pytest.mark.parametrize("sizes", SHAPES)
def test_it_loses_its_epsilon_and_no_more(sizes: tuple[int, ...], relation: Relation) -> None:
    """Over enumerated outputs and all that one row can change; and its other claims follow from the change."""
    calibration = calibrated(sizes, relation, "0.7")
    losses = [
        density(point, calibration) - density(np.array(point) + change, calibration)
        for _, point in enumerated(sizes, relation, 1)
        for change in changes(sizes, relation)
    ]
    assert max(losses) == pytest.approx(0.7, abs=1e-9)
    assert min(losses) == pytest.approx(-0.7, abs=1e-9)
    claimed = calibration.losses.pure
    assert claimed.under(relation) == Fraction(7, 10)
    assert claimed.under(REPLACE if relation is ADD else ADD) == (Fraction(14, 10) if relation is ADD else None)
    assert calibration.losses.zcdp.under(relation) == Fraction(49, 200)


def test_what_noise_cannot_reach_is_impossible() -> None:
    fixed, free = calibrated((2, 3), REPLACE), calibrated((2, 3), ADD)
    assert density([1, 0, 0, 1, 0], fixed) == -math.inf  # the number of rows is the same on all neighbours
    assert density([1, 0, 0, 1, 0], free) > -math.inf
    assert density([1, 0, 0, 0, 0], free) == -math.inf  # every histogram counts every row
    assert density([1, 0, 0, 1], free) == -math.inf
    assert density([0.5, 0.5, 0, 1, 0], free) == -math.inf


def test_noise_hides_the_number_of_rows_wherever_neighbours_may_differ_in_it() -> None:
    """Under replace-one: in parts of a table, and where a unit in place of another may have fewer rows."""
    assert calibrated((2, 3), REPLACE).same_rows
    in_parts = calibrated((2, 3), REPLACE, in_parts=True)
    resized = calibrated((2, 3), REPLACE, by=UnitChange(3, resizes=True))
    grouped = calibrated((2, 3), REPLACE, by=UnitChange(3))
    assert [one.same_rows for one in (in_parts, resized, grouped)] == [False, False, True]
    for calibration in (in_parts, resized):
        assert density([1, 0, 0, 1, 0], calibration) > -math.inf
    assert (in_parts.losses.pure.add_or_remove_one, in_parts.losses.pure.replace_one) == (Fraction(1, 2), 1)
    for calibration in (calibrated((2, 3), REPLACE), grouped):  # noise that adds up to 0 shows a row that is added
        assert calibration.losses.pure.add_or_remove_one is None
        assert calibration.losses.zcdp.add_or_remove_one is None
    # three rows of a unit at epsilon 1: a third of it for each row
    assert grouped.losses.pure.replace_one == resized.losses.pure.replace_one == 1
    one, three = np.array([1, -1, 0, 0, 0]), np.array([3, -3, 0, 0, 0])
    for calibration in (grouped, resized):
        assert density(0 * one, calibration) - density(one, calibration) == pytest.approx(1 / 3)
        assert density(0 * one, calibration) - density(three, calibration) == pytest.approx(1)


@BOTH
@pytest.mark.parametrize(("sizes", "epsilon"), [((2,), "0.5"), ((3, 2), 1), ((2, 2, 2), "0.7"), ((2, 3, 3), 2)])
def test_draws_have_the_stated_probabilities(sizes: tuple[int, ...], epsilon: Any, relation: Relation) -> None:
    """Chi-square over the likely points; a false failure has a probability of 1e-6."""
    calibration, draws = calibrated(sizes, relation, epsilon), 4_000
    source, none = SeededRandomness(11), np.zeros(sum(sizes), dtype=np.int64)
    seen = Counter(tuple(KNorm(epsilon).release(none, calibration, source).tolist()) for _ in range(draws))
    points = [point for _, point in enumerated(sizes, relation, 2 if len(sizes) == 3 else 4)]
    expected = {point: draws * math.exp(density(point, calibration)) for point in points}
    likely = [point for point in points if expected[point] >= 8]
    observed = np.array([seen[point] for point in likely])
    wanted = np.array([expected[point] for point in likely])
    observed, wanted = np.append(observed, draws - observed.sum()), np.append(wanted, draws - wanted.sum())
    assert stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1) > FALSE_FAILURE


@BOTH
def test_the_norm_of_many_cells_has_its_law(relation: Relation) -> None:
    """P(|z| <= r) is a sum over balls; chi-square over tenths, of a false failure of 1e-6."""
    sizes, draws, epsilon = (2,) * 10 + (3,) * 8 + (7, 9, 16), 400, Fraction(1, 2)
    calibration, space = calibrated(sizes, relation, epsilon), Balls(sizes, relation is REPLACE)
    shells = [space.number(0), *(space.number(r) - space.number(r - 1) for r in range(1, 400))]
    logs = np.array([math.log(shell) for shell in shells]) - 0.5 * np.arange(400)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    edges = np.unique(np.searchsorted(np.cumsum(chances), np.arange(1, 10) / 10))
    source, none = SeededRandomness(3), np.zeros(sum(sizes), dtype=np.int64)
    norms = []
    for _ in range(draws):
        noise = KNorm(epsilon).release(none, calibration, source)
        norms.append(max(int(np.abs(part).sum()) for part in parts(noise, sizes)) // (2 if space.same_rows else 1))
    wanted = draws * np.array([part.sum() for part in np.split(chances, edges + 1)])
    observed = np.bincount(np.searchsorted(edges, norms), minlength=len(wanted))
    assert stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1) > FALSE_FAILURE


def test_a_choice_draws_more_bits_until_they_tell() -> None:
    """From one bit at first; a false failure has a probability of 1e-6."""
    h, scale, draws = [1, 30, 7, 2], Fraction(3, 7), 4_000
    weights, numbers = RadiusWeights(h, scale, bits=1), WholeNumbers(SeededRandomness(3).words)
    shares = np.array([w * math.exp(-7 / 3 * k) for k, w in enumerate(h)])
    wanted = draws * shares / shares.sum()
    observed = np.bincount([weights.draw(numbers) for _ in range(draws)], minlength=4)
    assert stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), 3) > FALSE_FAILURE
    for bits in (8, 64):
        below, above = weights.between(bits)
        exact = [Fraction(float(share)) for share in np.cumsum(shares) / shares.sum()]
        assert all(a - 1 <= 2**bits * x <= b + 1 for a, x, b in zip(below, exact, above, strict=True) if bits < 50)
        assert all(0 <= b - a <= 2 for a, b in zip(below, above, strict=True))


def test_sections_are_drawn_uniformly() -> None:
    """Chi-square over all vectors of a section; a false failure has a probability of 1e-6."""
    numbers, draws = WholeNumbers(SeededRandomness(5).words), 6_000
    for size, total, depth in ((3, 0, 2), (2, 2, 2), (4, 1, 1)):
        seen = Counter(tuple(draw_section(size, total, depth, numbers)) for _ in range(draws))
        number = section_size(size, total, depth)
        assert all(sum(z) == total and -sum(x for x in z if x < 0) <= depth for z in seen)
        statistic = (
            sum((count - draws / number) ** 2 for count in seen.values()) + (number - len(seen)) * (draws / number) ** 2
        )
        assert stats.chi2.sf(statistic / (draws / number), number - 1) > FALSE_FAILURE


def test_whole_numbers_of_any_size_are_uniform() -> None:
    """A bound beyond 64 bits, by thirds: a false failure has a probability of 1e-6."""
    numbers, bound = WholeNumbers(SeededRandomness(7).words), 3 << 200
    thirds = np.bincount([(numbers.below(bound) >> 200) for _ in range(3_000)], minlength=3)
    assert stats.chi2.sf(((thirds - 1000) ** 2 / 1000).sum(), 2) > FALSE_FAILURE
    assert numbers.below(1) == 0
    assert len(thirds) == 3


def test_each_bit_is_one_of_the_source_and_none_is_used_twice() -> None:
    numbers, words = WholeNumbers(SeededRandomness(1).words), SeededRandomness(1).words(3 * 64)
    drawn, at = 0, 0
    for size in (1, 3, 0, 64, 200, 4000, 5000):
        drawn, at = drawn | numbers.bits(size) << at, at + size
    assert drawn == int.from_bytes(words.astype("<u8").tobytes(), "little") % 2**at


@BOTH
@pytest.mark.parametrize("epsilon", [300, 10_000])
def test_hardly_any_noise_takes_no_longer(epsilon: int, relation: Relation) -> None:
    """P(any noise) is below exp(-290)."""
    sizes = (3,) * 20 + (16,)
    calibration, none = calibrated(sizes, relation, epsilon), np.zeros(76, dtype=np.int64)
    assert not calibration.mechanism.release(none, calibration, SeededRandomness(1)).any()
    assert density(none, calibration) == pytest.approx(0, abs=1e-9)


@BOTH
@pytest.mark.parametrize("sizes", [(2,) * 6 + (5, 9), (16, 9, 7, 3, 2)])
def test_variances_and_previews_hold(sizes: tuple[int, ...], relation: Relation) -> None:
    """Variances to within 15 % over 600 draws; the cell with most noise within its preview, but for 1e-6."""
    calibration, draws = calibrated(sizes, relation), 600
    source, none = SeededRandomness(2), np.zeros(sum(sizes), dtype=np.int64)
    noise = np.array([KNorm(1).release(none, calibration, source) for _ in range(draws)])
    for found, part in zip(cell_variances(calibration), parts(np.square(noise).mean(axis=0), sizes), strict=True):
        assert part.mean() == pytest.approx(found, rel=0.15)
    assert calibration.variance == pytest.approx(np.square(noise).mean(), rel=0.15)
    smallest = int(np.argmin(sizes))
    first = sum(sizes[:smallest])
    within = int((np.abs(noise[:, first]) <= calibration.preview.within).sum())
    assert stats.binomtest(within, draws, 0.95, "less").pvalue > FALSE_FAILURE


def test_one_histogram_with_rows_added_is_discrete_laplace_noise() -> None:
    """The hull is then the l1 ball: nothing is gained, and nothing lost."""
    one, other = calibrated((3,), ADD), DiscreteLaplace(1).calibrate(facts((3,)), ADD)
    assert other is not None
    for point in ([0, 0, 0], [2, -1, 0], [4, 4, -1]):
        assert density(point, one) == pytest.approx(density(point, other))
    assert one.variance == pytest.approx(other.variance)
    assert (one.preview.within, one.preview.expected) == (other.preview.within, pytest.approx(other.preview.expected))
    huge = calibrated((3,), ADD, "0.00001")  # no sum has to be looked for
    drawn = KNorm("0.00001").release(np.zeros(3, dtype=np.int64), huge, SeededRandomness(1))
    assert np.abs(drawn).max() < 10 * huge.preview.within


def test_groups_by_size_leave_the_least_noise() -> None:
    """Against all ways to cut three sizes; and the published figures for 14 attributes of Adult."""
    for sizes in ((2, 2, 40), (2, 9, 41), (5, 5, 5), (3,)):
        groups = groups_by_size(sizes)
        assert sorted(k for members, _ in groups for k in members) == list(range(len(sizes)))
        assert sum(share for _, share in groups) == 1
        found = summed_variance(sizes, groups)
        for cut in itertools.product([False, True], repeat=len(sizes) - 1):
            bounds = [0, *(k + 1 for k, here in enumerate(cut) if here), len(sizes)]
            order = sorted(range(len(sizes)), key=lambda k: sizes[k])
            cuts = [tuple(order[a:b]) for a, b in itertools.pairwise(bounds)]
            equal = [(members, Fraction(1, len(cuts))) for members in cuts]
            assert found <= summed_variance(sizes, equal) * 1.01
    many = groups_by_size([40] * 60)  # more than one release may hold
    assert len(many) > 1


def summed_variance(sizes: tuple[int, ...], groups: Any) -> float:
    total = 0.0
    for members, share in groups:
        chosen = tuple(sizes[k] for k in members)
        each = cell_variances(calibrated(chosen, REPLACE, share / 10))
        total += sum(size * variance for size, variance in zip(chosen, each, strict=True))
    return total


def test_what_it_cannot_serve_is_refused() -> None:
    known = facts((2, 3))
    assert KNorm(1).misfit(known) is None
    assert "sizes" in str(KNorm(1).misfit(attrs.evolve(known, histograms=())))
    l1 = [Sensitivity(Norm.L1, 1, 2, source="by construction")]  # says nothing of the sums
    assert "norm" in str(KNorm(1).misfit(attrs.evolve(known, sensitivities=l1)))
    assert KNorm(1).misfit(attrs.evolve(known, sensitivities=[*l1, *known.sensitivities])) is None
    assert "two cells" in str(KNorm(1).misfit(facts((2, 1))))
    assert "integer" in str(KNorm(1).misfit(attrs.evolve(known, integer=False)))
    assert "groups" in str(KNorm(1).misfit(facts((501, 501))))
    with pytest.raises(dpf.InputError, match="too long to draw; raise epsilon"):
        KNorm("1e-10").calibrate(known, ADD)
    assert calibrated((2, 3), REPLACE, "1e-10").same_rows  # where sums are 0 a draw takes no longer


def test_one_marginal_more_than_one_row_moves_is_caught() -> None:
    """A query that says that each histogram counts every row, and leaves one out."""

    @attrs.frozen
    class SomeRows(dpf.Query):
        name = "some-rows"
        histograms = (2, 2)
        answer_length = 4

        @property
        def sensitivities(self) -> tuple[Sensitivity, ...]:
            return (Sensitivity(Norm.HISTOGRAMS, 1, 2, fall=0, source="wrong: ill rows alone are in the second"),)

        def count(self, block: dpf.Block, **inputs: Any) -> Any:
            ill, old = block.codes("ill"), block.codes("old")
            return np.concatenate([np.bincount(ill, minlength=2), np.bincount(old[ill == 1], minlength=2)])

    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
    for relation in Relation:
        found = dpf.verify.search_sensitivity(SomeRows(), schema, relation, pairs=200)
        assert next(one.norm for one in found.measured if not one.holds) == "histograms"
        right = dpf.verify.search_sensitivity(Marginals(schema), schema, relation, pairs=200)
        assert right.passed
        assert right.tightness == pytest.approx(1)


# --- what previews, variances and groups are made of ----------------------------------------------------------------


def by_sum(size: int, longest: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Return how many vectors have a sum and an l1 norm, and the sum of the squares of their first entries."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for z in itertools.product(range(-longest, longest + 1), repeat=size):
        if (norm := sum(map(abs, z))) <= longest:
            number, squares = found.get((sum(z), norm), (0, 0))
            found[sum(z), norm] = number + 1, squares + z[0] ** 2
    return found


def numbers_and_squares(sizes: tuple[int, ...], same_rows: bool, radius: int) -> tuple[int, int]:
    """Return how many points a ball has, and the sum of the squares of the first entries of the first histogram."""
    longest = 2 * radius if same_rows else radius
    total = squares = 0
    for t in [0] if same_rows else range(-longest, longest + 1):
        each = [[pair for (s, _), pair in by_sum(size, longest).items() if s == t] for size in sizes]
        numbers = [sum(number for number, _ in own) for own in each]
        total += math.prod(numbers)
        squares += sum(square for _, square in each[0]) * math.prod(numbers[1:])
    return total, squares


@pytest.mark.parametrize("same_rows", [True, False])
@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 2), (2, 3), (3, 2)])
def test_second_moments_are_those_of_the_continuous_ball(sizes: tuple[int, ...], same_rows: bool) -> None:
    """Numbers of points, and sums of squares over them, are polynomials of the radius: their first coefficients."""
    dimension = sum(sizes) - len(sizes) + (not same_rows)
    series = [numbers_and_squares(sizes, same_rows, radius) for radius in range(dimension + 3)]
    volume = differences([number for number, _ in series], dimension) / math.factorial(dimension)
    moment = differences([square for _, square in series], dimension + 2) / math.factorial(dimension + 2)
    expected = float(moment / volume)
    if same_rows:
        assert _second_moment(sizes[0]) == pytest.approx(expected, rel=1e-12)
    else:
        assert unit_ball_moments(sizes).entries[sizes[0]] == pytest.approx(expected, rel=1e-9)


def differences(series: list[int], order: int) -> Fraction:
    """Return the difference of some order of the first numbers."""
    return Fraction(sum((-1) ** (order - k) * math.comb(order, k) * series[k] for k in range(order + 1)))


@BOTH
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2), (2, 2, 2)])
def test_the_variance_of_a_cell_is_exact_for_little_noise(sizes: tuple[int, ...], relation: Relation) -> None:
    """Against all points up to a radius that is exceeded with a probability of 1e-12."""
    calibration, same_rows = calibrated(sizes, relation, 6), relation is REPLACE
    found = cell_variances(calibration)
    for k, stated in enumerate(found):
        order = (sizes[k], *sizes[:k], *sizes[k + 1 :])
        balls = np.array([numbers_and_squares(order, same_rows, radius) for radius in range(6)], dtype=float)
        number, square = np.exp(-6.0 * np.arange(6)) @ np.diff(balls, axis=0, prepend=0)
        assert stated == pytest.approx(square / number, rel=1e-9)
    overall = sum(size * v for size, v in zip(sizes, found, strict=True)) / sum(sizes)
    assert calibration.variance == pytest.approx(overall)


@BOTH
@pytest.mark.parametrize("sizes", [(2, 3), (4, 4, 2), (2, 2, 9), (5, 3, 16), (9,) * 25])
def test_large_noise_has_the_variance_of_the_continuous_ball(sizes: tuple[int, ...], relation: Relation) -> None:
    """The mean of R (R + 1) over the radius, times the mean square of an entry of the unit ball."""
    calibration, space = calibrated(sizes, relation, "0.001"), Balls(sizes, relation is REPLACE)
    scale = float(calibration.scale) / (2 if space.same_rows else 1)
    mean = (space.dimension + 1) * (space.dimension + 2) * scale**2
    for size, variance in zip(sizes, cell_variances(calibration), strict=True):
        moment = _second_moment(size) if space.same_rows else unit_ball_moments(sizes).entries[size]
        assert variance == pytest.approx(mean * moment, rel=1e-4)


@BOTH
def test_variances_are_numbers_however_little_noise_there_is(relation: Relation) -> None:
    """At epsilon 300 noise is 0, or, with a probability of some e**-300 each, one of the points next to it."""
    sizes = (3,) * 5 + (16,)
    calibration = calibrated(sizes, relation, 300)
    scale = float(calibration.scale) / (2 if relation is REPLACE else 1)
    # In the unit ball, a histogram's entries are 0 but for a 1, or for a 1 and a -1.
    points = [1 + size * (size - 1) if relation is REPLACE else size for size in sizes]
    with_entry = [2 * (size - 1) if relation is REPLACE else 2 for size in sizes]
    squares = [own * math.prod(points) // number for own, number in zip(with_entry, points, strict=True)]
    expected = [square * math.exp(-1 / scale) for square in squares]
    assert cell_variances(calibration) == pytest.approx(expected, rel=1e-9)


def test_the_preview_of_several_histograms_is_that_of_the_cell_with_most_noise() -> None:
    for relation in Relation:
        calibration = calibrated((2, 9, 4), relation, "0.3")
        deviation = math.sqrt(max(cell_variances(calibration)))
        preview = calibration.preview
        assert preview.within == math.ceil(2.3 * deviation)
        assert preview.expected == pytest.approx(deviation * math.sqrt(2 / math.pi))  # of a normal number
        assert preview.text == (
            f"each number within ±{math.ceil(2.3 * deviation):.3g} (95 %), ±{preview.expected:.3g} on average"
        )


@BOTH
@pytest.mark.parametrize(("size", "epsilon"), [(2, 1), (3, "0.8"), (4, 2)])
def test_noise_of_one_histogram_is_previewed_exactly(size: int, epsilon: Any, relation: Relation) -> None:
    """Over the law of the first entry: its norm's density, times the ways of the others."""
    calibration, reach = calibrated((size,), relation, epsilon), 60
    q = math.exp(-1 / float(calibration.scale))
    free = np.array([q ** abs(z) for z in range(-reach, reach + 1)])
    others = functools.reduce(np.convolve, [free] * (size - 1))  # by their sum
    middle = (len(others) - 1) // 2
    chances = np.array([free[reach + z] * (others[middle - z] if relation is REPLACE else 1) for z in range(reach)])
    chances[1:] *= 2  # either sign
    chances /= chances.sum()
    assert calibration.variance == pytest.approx(float(chances @ np.arange(reach) ** 2), rel=1e-6)
    assert calibration.preview.expected == pytest.approx(float(chances @ np.arange(reach)), rel=1e-6)
    within = int(calibration.preview.within)
    assert chances[: within + 1].sum() >= 0.95 > chances[:within].sum()


@BOTH
@pytest.mark.parametrize("size", [2, 3, 10])
def test_large_noise_of_one_histogram_is_that_of_continuous_noise(size: int, relation: Relation) -> None:
    """Variances over epsilon squared of Laplace noise, and of that with a sum of 0 (see the module)."""
    epsilon = Fraction(1, 20_000)
    calibration = calibrated((size,), relation, epsilon)
    scale = float(calibration.scale)
    cell = 2 * scale**2 if relation is ADD else scale**2 * 4 * (2 * size - 1) * (size - 1) / (size * (size + 1)) / 4
    assert calibration.variance == pytest.approx(cell, rel=2e-3)
    if relation is ADD:
        assert calibration.preview.expected == pytest.approx(scale, rel=2e-3)
        assert calibration.preview.within == pytest.approx(scale * math.log(20), rel=2e-3)


def best_cuts(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the groups of the least sum of roots, by trying all cuts of the histograms in order of size."""
    order = sorted(range(len(sizes)), key=lambda k: (sizes[k], k))
    found = []
    for cut in itertools.product([False, True], repeat=len(sizes) - 1):
        bounds = [0, *(k + 1 for k, here in enumerate(cut) if here), len(sizes)]
        groups = [tuple(sorted(order[a:b])) for a, b in itertools.pairwise(bounds)]
        if all(len(group) == 1 or dimension_of(sizes, group) < 1000 for group in groups):
            found.append((sum(root_of(sizes, group) for group in groups), groups))
    return min(found, key=lambda one: one[0])[1]


def dimension_of(sizes: tuple[int, ...], group: tuple[int, ...]) -> int:
    return sum(sizes[k] - 1 for k in group)


def root_of(sizes: tuple[int, ...], group: tuple[int, ...]) -> float:
    dimension = dimension_of(sizes, group)
    moments = sum(sizes[k] * 4 * (sizes[k] - 1) * (2 * sizes[k] - 1) / (sizes[k] * (sizes[k] + 1)) ** 2 for k in group)
    return float(np.cbrt((dimension + 1) * (dimension + 2) * moments))


SIZES = [
    (2, 2, 40),
    (40, 2, 2, 2),
    (2, 9, 41, 3, 3),
    (5, 5, 5),
    (3,),
    (16, 9, 7, 5, 2, 42, 6, 41),
    (2, 3, 3, 4),
    (2, 8),
]


@pytest.mark.parametrize("sizes", [*SIZES, (501, 500), (501, 501), (1500, 2), (400, 401, 402)])
def test_groups_are_the_best_of_all_cuts_and_have_shares_by_their_roots(sizes: tuple[int, ...]) -> None:
    groups = groups_by_size(sizes)
    assert [members for members, _ in groups] == best_cuts(sizes)
    roots = [root_of(sizes, members) for members, _ in groups]
    assert sum(share for _, share in groups) == 1
    for (_, share), root in zip(groups[:-1], roots, strict=False):
        assert share == Fraction(math.floor(1000 * root / sum(roots)), 1000)


def test_every_group_has_a_share() -> None:
    """However little of the noise is its own: of one attribute of two values beside ten thousand values."""
    groups = groups_by_size((2, 900_000_000))
    assert [share for _, share in groups] == [Fraction(1, 1000), Fraction(999, 1000)]


def test_the_largest_release_that_may_be_drawn() -> None:
    assert KNorm(1).misfit(facts((501, 500))) is None
    assert "draws from 1000 dimensions" in str(KNorm(1).misfit(facts((501, 501))))
    assert calibrated((2, 3), ADD, Fraction(1, 2**30)).scale == 2**30
    with pytest.raises(dpf.InputError, match="too long to draw"):
        calibrated((2, 3), ADD, Fraction(1, 2**30 + 1))


# --- which ball, to the last bit ------------------------------------------------------------------------------------


class Stream(WholeNumbers):  # type: ignore[misc]  # final, for all but this
    """The bits of one number of 2,000 bits, from the most significant on; keeps how many were drawn."""

    def __init__(self, number: int) -> None:
        super().__init__(SeededRandomness(0).words)
        self.number, self.drawn = number, 0

    def bits(self, number: int) -> int:
        self.drawn += number
        return (self.number >> (2000 - self.drawn)) & ((1 << number) - 1)


def summed_chances(h: list[int], scale: Fraction) -> list[Fraction]:
    """Return the probabilities of 0, ..., k, to 800 digits."""
    with localcontext(prec=800):
        q = (Decimal(-scale.denominator) / Decimal(scale.numerator)).exp()
        sums = list(itertools.accumulate(Decimal(weight) * q**k for k, weight in enumerate(h)))
        return [Fraction(one / sums[-1]) for one in sums]


WEIGHTS = [
    ([1, 30, 7, 2], Fraction(3, 7)),
    ([1, 1], Fraction(50)),
    ([1, 2**300, 5], Fraction(1, 200)),
    ([1], Fraction(1)),
]


@pytest.mark.parametrize(("h", "scale"), WEIGHTS)
@pytest.mark.parametrize("bits", [1, 8, 128])
def test_the_uniform_number_decides_which_weight_is_drawn(h: list[int], scale: Fraction, bits: int) -> None:
    """The first k whose sum is above it: of numbers beside each sum, and of others; no more bits than it takes."""
    weights, sums = RadiusWeights(h, scale, bits=bits), summed_chances(h, scale)
    near = [
        math.floor(share * 2**2000) + off
        for share in sums[:-1]
        for k in (30, 300)
        for off in (-(2 ** (2000 - k)), 2 ** (2000 - k))
    ]
    others = [k * 2**1990 + 12345 for k in range(0, 1024, 9)]
    for number in [0, 2**2000 - 1, *(n for n in near if 0 <= n < 2**2000), *others]:
        stream = Stream(number)
        assert weights.draw(stream) == next(k for k, share in enumerate(sums) if Fraction(number, 2**2000) < share)
        assert stream.drawn % bits == 0
        if bits == 128:
            assert stream.drawn <= 1024


@pytest.mark.parametrize(("h", "scale"), WEIGHTS)
def test_sums_of_chances_lie_between_neighbouring_whole_numbers(h: list[int], scale: Fraction) -> None:
    weights, sums = RadiusWeights(h, scale), summed_chances(h, scale)
    for bits in (1, 8, 64, 128, 700):
        below, above = weights.between(bits)
        assert (len(below), len(above)) == (len(h), len(h))
        for low, share, high in zip(below, sums, above, strict=True):
            assert low <= share * 2**bits <= high
            assert high - low <= 1
        assert below[-1] == above[-1] == 2**bits


def test_a_sum_of_geometric_numbers_is_made_of_as_many_as_are_asked_for() -> None:
    """Numbers that are 0 or more, in order, and no other; more are drawn while some are lacking."""

    class Drawn:
        def __init__(self, numbers: list[int]) -> None:
            self.left = numbers

        def discrete_laplace(self, size: int, scale: float) -> Any:
            assert scale == 2.5
            assert size >= 1
            found, self.left = self.left[:size], self.left[size:]
            return np.array([*found, *[-1] * (size - len(found))])

    numbers = [-3, 5, 0, -1, 7, -2, -2, 1, 100, 100] + [-9] * 40 + [2, 50]
    for number, total in ((0, 0), (1, 5), (2, 5), (3, 12), (4, 13), (5, 113), (6, 213)):
        assert geometric_sum(number, 2.5, Drawn([*numbers])) == total  # type: ignore[arg-type]
    lacking = Drawn([-1] * 100 + [4, 6, 8] + [-1] * 300 + [1])
    assert geometric_sum(3, 2.5, lacking) == 18  # type: ignore[arg-type]
