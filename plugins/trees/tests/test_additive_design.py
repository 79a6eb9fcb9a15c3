"""Columns, noise, ridge, bins and bands of an additive model, against their definitions written out plainly."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees.additive import Design, ObjectivePerturbation
from dpframework_trees.additive.bands import expected_deviations, most_deviations
from dpframework_trees.additive.bins import (
    counts_stand_out,
    cumulative_shares,
    even_cells,
    merge,
    merge_by_counts,
    most_bins,
    too_fine,
)
from dpframework_trees.additive.block_groups import groups_by_noise, parts_of_norm
from dpframework_trees.additive.design import probabilities
from dpframework_trees.additive.fit_rows import LogisticRows
from dpframework_trees.additive.group_noise import GroupNoise
from dpframework_trees.additive.noise_and_ridge import (
    CURVATURE,
    MULTICLASS,
    SPREAD_OF_INTERCEPT,
    NoiseAndRidge,
    expected_spread,
)
from dpframework_trees.additive.perturbation import draw_noise, noise_log_density, tune_for
from dpframework_trees.additive.stretch import MOST, Evidence, _scores, centre, evidence_of, stretch_of
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import expit, softmax
from scipy.stats import gamma

import dpframework as dpf
from dpframework.facts import Relation
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm


def design_of(sizes: Any, classes: int = 2, rows: float = 500, most_rows: int = 1000) -> Design:
    return Design([range(size) for size in sizes], classes, rows, most_rows)


DESIGNS = {
    "two": design_of([2, 3, 2, 5]),
    "three": design_of([2, 3, 2, 5], 3),
    "wide": design_of([4, 20, 2, 7], 2, 1e5),
    "five": design_of([3, 3], 5, 30),
    "tree": attrs.evolve(design_of([2, 3, 2]), leaves=(-16, -4, 7, 16)),
    "balanced": design_of([12, 3], 3),
}
each_design = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)


def has_one_sum(design: Design, group: Sequence[int]) -> bool:
    """Tell whether each output's noise has one sum: that of several blocks, one of them of several columns."""
    return not is_balanced(design, group) and len(group) > 1 and max(design.widths[j] for j in group) > 1


def is_balanced(design: Design, group: Sequence[int]) -> bool:
    """Tell whether a group's noise adds up to 0 over outputs (`test_histograms_are_in_the_groups_of_least_noise`)."""
    return design.noises[design.groups.index(tuple(group))].balanced


def dimension_of(design: Design, group: Sequence[int]) -> int:
    """Return the dimensions that share a radius: with one sum these are that, and all cells of an attribute but one."""
    if has_one_sum(design, group):
        return 1 + sum(max(design.widths[j] - 1, 1) for j in group if j < len(design.widths) - 1)
    return sum(design.widths[j] * (design.outputs - 1 if is_balanced(design, group) else 1) for j in group)


EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(7))


# --- columns --------------------------------------------------------------------------------------------------------


def test_an_attribute_of_two_values_has_one_column_and_others_have_one_each() -> None:
    for classes, outputs, swing in ((2, 1, 1), (3, 3, 2), (4, 4, 2)):
        design = design_of([2, 3, 2, 5], classes)
        assert (design.outputs, design.swing, design.columns) == (outputs, swing, 11)
        assert design.sizes == (2, 3, 2, 5)
        assert design.widths == (1, 3, 1, 5, 1)
        assert design.starts == (0, 1, 4, 5, 10)
        assert design.first_cells == (0, 2, 5, 7, 12)
    assert Design([[0, 0, 1, 1, 2], [1, 0]], 2, 1, 1).sizes == (3, 2)  # of merged bins, the cells


def test_a_cell_is_in_its_own_column_or_on_its_side_of_a_shared_one() -> None:
    design = design_of([2, 3])
    assert design.of_cells.tolist() == [
        [-1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    with pytest.raises(ValueError, match="read-only"):
        design.of_cells[0, 0] = 5


def test_two_thousand_coefficients_are_the_most() -> None:
    """A column each, with the intercept's, times outputs."""
    assert design_of([1999]).columns == 2000
    assert design_of([499], 4).columns * 4 == 2000
    for sizes, classes, number in (([2000], 2, 2001), ([500], 4, 2004)):
        with pytest.raises(dpf.InputError, match=f"would have {number} coefficients, more than 2000"):
            design_of(sizes, classes)


@pytest.mark.parametrize("outputs", [1, 3, 6])
@pytest.mark.parametrize(
    "sizes", [[2], [5], [2, 2, 2], [3, 40], [2, 14, 3, 8, 4, 5, 13, 9, 2], [4] * 30 + [2] * 10, [70, 80, 2], [64] * 5]
)
def test_histograms_are_in_the_groups_of_least_noise(sizes: list[int], outputs: int) -> None:
    """Of all divisions in order of size with 64 dimensions a group at most; the intercept is in the first.

    Of several outputs the noise of a group is by output or balanced, whichever is less.
    """
    design = design_of(sizes, 2 if outputs == 1 else outputs)
    widths = design.widths
    groups, order = groups_by_noise(widths, outputs), sorted(range(len(sizes)), key=lambda j: (sizes[j], j))
    assert groups == design.groups
    assert len(sizes) in groups[0]
    functions = [[j for j in group if j < len(sizes)] for group in groups]
    assert [sizes[j] for group in functions for j in sorted(group, key=lambda j: sizes[j])] == sorted(sizes)
    assert sorted(j for group in functions for j in group) == list(range(len(sizes)))

    def cost(own: Sequence[int]) -> float:
        if len(own) > 1 and 1 + sum(size - 1 for size in own) > 64:
            return math.inf
        dimension = 1 + sum(size - 1 for size in own)
        noise = sum(min(m, 6) ** 2 / m**2 * (m - 1) * (2 * m - 1) / (m + 1) ** 2 for m in own)
        return math.cbrt(min((dimension + 1) * (dimension + 2) * noise, balanced(own)))

    def balanced(own: Sequence[int]) -> float:
        """Return the noise by the mean squares of a group without the intercept, those of differences by half."""
        if outputs == 1:
            return math.inf
        noise = GroupNoise(tuple(1 if m == 2 else m for m in own), outputs, False, False, balanced=True)
        parts = zip(own, noise.squares, strict=True)
        return sum(min(m, 6) ** 2 * (m - 1) / m * square / (1 + (m == 2)) for m, square in parts)

    found = [cost([sizes[j] for j in group]) for group in functions]
    best = [0.0]
    for end in range(1, len(order) + 1):
        best.append(min(best[start] + cost([sizes[j] for j in order[start:end]]) for start in range(end)))
    assert sum(found) == pytest.approx(best[-1])
    for noise, of_group in zip(design.noises, functions, strict=True):
        own = [sizes[j] for j in of_group]
        assert noise.balanced == (balanced(own) <= cost(own) ** 3 * (1 + 1e-9))
    shares = [float(share) for share in design.shares]
    assert shares == pytest.approx([one / sum(found) for one in found], abs=1e-4)


def test_a_fit_of_the_intercept_alone_has_noise() -> None:
    assert groups_by_noise([1], 1) == ((0,),)
    assert parts_of_norm([1], ((0,),), 1) == [round(2**16 * math.cbrt(2 * 3 / 3))]


@each_design
def test_the_largest_noise_is_the_mean_radius_of_the_widest_group(design: Design) -> None:
    """The radius of a norm's noise in d coordinates is Gamma distributed, of shape d + 1."""
    tuned = NoiseAndRidge(design, Fraction(1, 3))
    numbers = [dimension_of(design, group) for group in design.groups]
    means = [(number + 1) * scale for number, scale in zip(numbers, tuned.scales, strict=True)]
    assert tuned.largest_noise == max(means)


@each_design
def test_shares_of_the_norm_are_above_nothing_and_add_up_to_one(design: Design) -> None:
    assert sum(design.shares) == 1
    assert min(design.shares) > 0
    assert len(design.shares) == len(design.groups)


# --- noise and ridge ------------------------------------------------------------------------------------------------


@each_design
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_each_part_of_epsilon_has_what_is_said(design: Design, epsilon: Fraction) -> None:
    """A 1024th for either side of the release, 2**-20 for the lattice, at most a 7th for the determinant."""
    tuned, classes = NoiseAndRidge(design, epsilon), design.classes
    assert tuned.determinant <= (0 if classes == 2 else MULTICLASS)
    assert tuned.of_gradient == epsilon * (1 - Fraction(2, 1024) - tuned.determinant) * (1 - Fraction(1, 2**20))
    coarsest = Fraction(2) ** (-32 - math.floor(math.log2(epsilon)))
    assert tuned.step == coarsest  # which costs little enough at these
    for scale, share in zip(tuned.scales, design.shares, strict=True):
        needed = design.swing / (tuned.step * tuned.of_gradient * share)
        assert needed <= Fraction(scale) < needed * (1 + Fraction(1, 2**51))
    if classes == 2:
        assert tuned.most_curvature == tuned.spent_by_gradient
    else:
        # q <= e (K - 1) / 2, and q (K - 2) / (K - 1) within what is set aside: see `perturbation`
        bounds = (
            tuned.spent_by_gradient * (classes - 1) / 2,
            tuned.determinant * epsilon / Fraction(classes - 2, classes - 1),
        )
        assert tuned.most_curvature == min(bounds)


@pytest.mark.parametrize("classes", [2, 3, 8])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_lattice_of_a_group_is_paid_for_by_its_widest_block(epsilon: Fraction, classes: int) -> None:
    tuned = NoiseAndRidge(design_of([2, 3, 4, 9, 14], classes), epsilon)
    # with one sum r the last of m cells is r less the others, which may each be off by 1
    widest = [max(tuned.design.widths[j] for j in group) for group in tuned.design.groups]
    assert widest == {2: [9, 14], 3: [4, 9, 14], 8: [9, 14]}[classes]
    # the one of 14 is alone, and its cells have no sum; of three balanced outputs the last is two others' sum
    expected = {2: [17, 14], 3: [4 * 4, 4 * 9, 4 * 14], 8: [8 * 17, 14 * 14]}[classes]
    lattice = sum(m / Fraction(scale) for m, scale in zip(expected, tuned.scales, strict=True))
    determinant = tuned.most_curvature * Fraction(classes - 2, classes - 1)
    assert tuned.claimed == tuned.spent_by_gradient + lattice + determinant + epsilon * Fraction(2, 1024)
    assert tuned.claimed <= epsilon


def test_either_bound_on_the_curvature_binds_somewhere() -> None:
    few, many = (
        NoiseAndRidge(design_of([2, 3], 4, 40), Fraction(1), share) for share in (Fraction(1, 1000), Fraction(9, 10))
    )
    assert few.most_curvature == Fraction(1, 1000) * Fraction(3, 2)
    assert many.most_curvature == many.spent_by_gradient * Fraction(3, 2)


def test_the_determinant_has_the_least_of_its_shares_that_is_enough() -> None:
    """A 7th, or that halved up to eight times: so that the ridge is at most four times what is asked for, about."""
    found = set()
    for rows, epsilon in itertools.product(np.geomspace(1, 1e5, 40), (Fraction(1), Fraction(1, 100))):
        design = design_of([2, 3], 3, float(rows))
        enough = []
        for times in range(1, 9):
            tried = NoiseAndRidge(design, epsilon, MULTICLASS / 2**times)
            if tried.curvature(4 * tried.suitable_ridge) <= tried.most_curvature:
                enough.append(tried.determinant)
        assert NoiseAndRidge(design, epsilon).determinant == min(enough, default=MULTICLASS)
        found.add(NoiseAndRidge(design, epsilon).determinant)
    assert found == {MULTICLASS / 2**times for times in range(9)}


@each_design
def test_noise_is_as_large_as_its_density_says(design: Design) -> None:
    """A radius of d + 1 exponentials, and a uniform point of a ball: its coordinates' mean square is known.

    With one sum from 4,000 draws, whose mean squares are 8 % off with a probability far below 1e-6.
    """
    tuned = NoiseAndRidge(design, Fraction(1, 3))
    for group, scale in zip(design.groups, tuned.scales, strict=True):
        unit = scale * float(tuned.step)
        square = gamma(dimension_of(design, group) + 1).moment(2) * unit**2
        for j in group:
            m = design.widths[j]
            if not is_balanced(design, group) and not has_one_sum(design, group):
                assert tuned.deviations[design.columns_of(j)] == pytest.approx(
                    math.sqrt(2 * square / ((m + 1) * (m + 2)))
                )
                assert tuned.variances_of_means[j] == pytest.approx(2 * square / ((m + 1) * (m + 2)))
    number = 4_000 // min(noise.radii for noise in design.noises)  # outputs with a radius each are draws by themselves
    drawn = np.array([draw_noise(tuned, SeededRandomness(seed)) for seed in range(number)])
    for j, m in enumerate(design.widths):
        own = drawn[:, design.columns_of(j)]
        if any(j in group and is_balanced(design, group) for group in design.groups):
            found = (own**2).sum(axis=2).mean() / (design.outputs - 1)
            assert found == pytest.approx(tuned.deviations[design.starts[j]] ** 2, rel=0.08)
            assert tuned.variances_of_means[j] == pytest.approx(tuned.deviations[design.starts[j]] ** 2)
        else:
            own = own.transpose(0, 2, 1).reshape(-1, m)
            means, apart = own.mean(axis=1, keepdims=True), max(m - 1, 1)
            between = own if m == 1 else own - means
            found = (between**2).sum(axis=1).mean() / apart
            assert found == pytest.approx(tuned.deviations[design.starts[j]] ** 2, rel=0.08)
            if m > 1:
                assert m * (means**2).mean() == pytest.approx(tuned.variances_of_means[j], rel=0.08)


@each_design
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_ridge_is_what_is_asked_for_and_no_higher_floor_than_the_curvature_needs(
    design: Design, epsilon: Fraction
) -> None:
    tuned = NoiseAndRidge(design, epsilon)
    spread = np.where(
        np.arange(design.columns) == design.columns - 1, SPREAD_OF_INTERCEPT, expected_spread(len(design.sizes))
    )
    per_row = 4 * CURVATURE * (1 / design.classes) * (1 - 1 / design.classes)  # 4 p (1 - p) of even classes
    widths = np.repeat(design.widths, design.widths)
    assert tuned.curvatures == pytest.approx(per_row * design.rows / widths)
    assert tuned.suitable_ridge == pytest.approx(tuned.deviations**2 / tuned.curvatures / spread)
    floor, most = tuned.ridge - tuned.suitable_ridge, float(tuned.most_curvature)
    assert floor == pytest.approx(np.full(design.columns, floor[0]), abs=1e-9 * tuned.ridge.max())
    assert tuned.curvature(tuned.ridge) <= tuned.most_curvature * (1 - Fraction(1, 2**31))
    if tuned.curvature(tuned.suitable_ridge) < most * (1 - 2.0**-29):
        assert (floor >= 0).all()
        assert floor == pytest.approx(0, abs=1e-12 * tuned.ridge.min())
    else:
        assert tuned.curvature(tuned.ridge) >= most * (1 - 2.0**-29)
        assert floor.min() > 0


def test_many_attributes_are_expected_to_spread_less_each() -> None:
    spreads = [expected_spread(attributes) for attributes in (1, 20, 21, 40, 80)]
    assert spreads == pytest.approx([0.25, 0.25, 100 / 441, 1 / 16, 1 / 64])
    few, many = (NoiseAndRidge(design_of([2] * k, rows=1e4), Fraction(1)) for k in (20, 80))
    asked = [tuned.suitable_ridge[0] / tuned.deviations[0] ** 2 for tuned in (few, many)]
    assert asked[1] == pytest.approx(16 * asked[0])
    alike = NoiseAndRidge(attrs.evolve(few.design, numeric=tuple(range(20))), Fraction(1))  # a number counts twice
    assert alike.suitable_ridge[0] == pytest.approx(4 * few.suitable_ridge[0])
    assert expected_spread(14, 6) == 0.25


def test_of_some_designs_the_ridge_has_a_floor_and_of_others_none() -> None:
    floors = [
        (tuned := NoiseAndRidge(design_of([2, 3, 6], 2, rows), Fraction(1))).ridge - tuned.suitable_ridge
        for rows in (5, 1e6)
    ]
    assert abs(floors[0]).max() < 1e-9 < floors[1].min()
    assert (
        NoiseAndRidge(design_of([2, 3], 2, 0.0), Fraction(1)).curvatures
        == NoiseAndRidge(design_of([2, 3], 2, 1.0), 1).curvatures
    ).all()


@each_design
def test_the_largest_curvature_is_that_of_some_row_whatever_the_ridge(design: Design) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        ridge = rng.uniform(0.1, 5, design.columns)
        cells = [range(first, first + size) for first, size in zip(design.first_cells, (*design.sizes, 1), strict=True)]
        rows = np.array([design.of_cells[:, list(of_row)].sum(axis=1) for of_row in itertools.product(*cells)])
        assert NoiseAndRidge(design, Fraction(1)).curvature(ridge) == pytest.approx((rows**2 / ridge).sum(axis=1).max())


@each_design
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_a_release_hides_how_far_what_is_computed_may_be_from_the_minimum(design: Design, epsilon: Fraction) -> None:
    tuned, number = NoiseAndRidge(design, epsilon), design.columns * design.outputs
    halves = 0.0
    for group in design.groups:
        for m in (design.widths[j] for j in group):
            if is_balanced(design, group):  # of K outputs, the last is off by as much as all others
                halves += m * (design.outputs - 1 + (design.outputs - 1) ** 2) / 4
            else:
                halves += design.outputs * m / 4
        if has_one_sum(design, group):  # the last of m cells is the sum less the others, and may be m halves off
            for m in (design.widths[j] for j in group if j < len(design.widths) - 1):
                halves += design.outputs * ((9 if m == 1 else m - 1 + m**2) / 4 - m / 4)
    lattice = 2 * math.sqrt(halves) * float(tuned.step)
    reached = tuned.gradient_error * math.sqrt(tuned.ridge.min())
    assert reached == pytest.approx(lattice + tuned.within_reach, rel=1e-12, abs=0)
    assert tuned.within_reach > 0
    # no longer than the gradient in the norm of R, and in l1 by the root of the trace of R**-1 (see `perturbation`)
    trace = math.fsum(1 / r for r in tuned.ridge) * design.outputs
    distance = math.sqrt(trace) * tuned.gradient_error * (1 + 2.0**-30)
    assert tuned.distance == pytest.approx(distance, rel=1e-12, abs=0)
    assert math.log2(tuned.release_step) == math.floor(math.log2(tuned.release_step))
    assert tuned.release_step * number <= tuned.distance < 2 * tuned.release_step * number
    moved = math.ceil(tuned.distance / tuned.release_step) + number
    needed = Fraction(moved) / (epsilon * Fraction(1, 1024))
    assert needed <= Fraction(tuned.release_scale) < needed * (1 + Fraction(1, 2**51))


def test_probabilities_are_those_of_scores() -> None:
    scores = np.random.default_rng(0).normal(0, 400, (30, 3))
    assert probabilities(scores) == pytest.approx(softmax(scores, axis=1))
    one = scores[:, :1] / 50
    assert probabilities(one) == pytest.approx(np.column_stack([expit(-one[:, 0]), expit(one[:, 0])]))
    two = scores[:, :2] / 50
    assert probabilities(two) == pytest.approx(softmax(two, axis=1))


# --- the mechanism --------------------------------------------------------------------------------------------------


def test_the_mechanism_says_what_it_does_before_it_is_run() -> None:
    query = LogisticRows(dpf.Boolean("class"), ("a", "b"))
    assert query.text == "additive logistic model of class on 2 attributes"
    assert query.attributes == ("a", "b", "class")
    assert query.gathers
    assert not query.integer
    (declared,) = query.sensitivities
    assert (declared.norm, declared.add_or_remove_one, declared.replace_one) == (Norm.LINF, 1, None)
    given = ObjectivePerturbation(Fraction(1, 4)).calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE)
    assert given is not None
    assert (given.scale, given.unit) == (4, 1)
    preview = given.mechanism.preview(given)
    assert (preview.expected, preview.within) == (4, pytest.approx(4 * math.log(20)))
    noise = "a fit with noise in its gradient, for each coefficient about as much as 4 rows can add to it"
    assert preview.text.startswith(f"{noise}; with fewer")
    assert f"fewer than about {50 * 4 * len(query.given)} rows" in preview.text
    assert not ObjectivePerturbation(1).needs_length
    tuned = tune_for(DESIGNS["two"], given)
    assert (tuned.epsilon, tuned.design) == (Fraction(1, 4), DESIGNS["two"])


def section_volume(cells: int, total: float) -> float:
    """Return the volume, in all entries but the last, of {z: its entries add up to a total, its l1 norm is at most 1}.

    An attribute of one column is an interval. Of p negative entries with the sum -n, the others with the sum n + total.
    """
    if cells == 1:
        return 2.0
    total, volume = abs(total), abs(total) ** (cells - 1) / math.factorial(cells - 1)
    for p in range(1, cells):
        others = cells - p
        part = quad(lambda n, p=p, others=others: n ** (p - 1) * (n + total) ** (others - 1), 0, (1 - total) / 2)[0]
        volume += math.comb(cells, p) * part / math.factorial(p - 1) / math.factorial(others - 1)
    return volume


@each_design
def test_the_density_of_noise_is_that_of_its_norm_over_the_volume_of_its_ball(design: Design) -> None:
    """exp(-G / s) integrates to s**d d! times the volume of the unit ball: a product of l1 balls of 2**m / m!.

    With one sum the volume is an integral over that, of the product of sections (see `section_volume`). Outputs have
    such a density each, if they are not balanced.
    """
    tuned, rng = NoiseAndRidge(design, Fraction(1, 3)), np.random.default_rng(0)
    for _ in range(3):
        noise, total = rng.normal(0, 5, (design.columns, design.outputs)), 0.0
        for g, group in enumerate(design.groups):
            unit, blocks = tuned.scales[g] * float(tuned.step), [design.widths[j] for j in group]
            d, number = dimension_of(design, group), 1 if is_balanced(design, group) else design.outputs
            if has_one_sum(design, group):
                functions = [design.widths[j] for j in group if j < len(design.widths) - 1]
                volume = quad(lambda r, own=functions: math.prod(section_volume(m, r) for m in own), -1, 1)[0]
            elif is_balanced(
                design, group
            ):  # of the points of depth 1 / 2 at most: there are B n**(K-2) / (K-2)! of depth n
                k, volume = design.outputs, 0.5**d
                for m in (design.widths[j] for j in group):
                    volume *= math.comb(2 * k - 2, k - 1) ** m / math.factorial(m * (k - 1))
            else:
                volume = math.prod(2.0**m / math.factorial(m) for m in blocks)
            starts = [(design.starts[j], design.starts[j] + design.widths[j]) for j in group]
            if is_balanced(design, group):
                norm = max(np.abs(noise[start:end]).sum() for start, end in starts)
            else:
                outputs = range(design.outputs)
                norm = sum(max(np.abs(noise[start:end, c]).sum() for start, end in starts) for c in outputs)
            total -= norm / unit
            total -= number * (math.log(volume) + d * math.log(unit) + math.log(math.factorial(d)))
        assert noise_log_density(tuned, noise) == pytest.approx(total)


@each_design
def test_numbers_of_a_fit_that_a_search_compares_are_linear_functions_of_norm_one(design: Design) -> None:
    from dpframework_trees.additive.fit_rows import _probes

    probes = _probes(design).reshape(-1, design.columns, design.outputs)
    assert len(probes) > 1
    for probe in probes:
        for share, group in zip(design.shares, design.groups, strict=True):
            parts = [probe[design.starts[j] : design.starts[j] + design.widths[j]] for j in group]
            used = [np.abs(part) for part in parts if part.any()]
            assert len(used) == 1  # so its largest value on the unit ball is the sum over groups of share / swing
            assert used[0] == pytest.approx(np.full(used[0].shape, float(share) / design.swing))
    signs = np.sign(probes[probes != 0])
    assert set(signs.tolist()) == {-1.0, 1.0}


# --- bins -----------------------------------------------------------------------------------------------------------


def test_bins_are_a_sixteenth_of_the_root_of_the_rows_from_4_to_64() -> None:
    for row_budget in (0, 1, 4000, 5184, 5185, 40_000, 1e6, 1_048_576, 1e7):
        expected = min(64, max(4, round(math.sqrt(row_budget) / 16)))
        assert most_bins(row_budget) == expected
    assert {most_bins(n) for n in (0, 5183, 1e12)} == {4, 64}


def test_bins_are_too_fine_if_there_are_more_than_may_be_kept() -> None:
    for given in ({"bins": 9}, {"cuts": list(range(1, 9))}):
        for missing in (False, True):
            attribute = dpf.Numeric("n", 0, 9, missing=missing, **given)
            assert [too_fine(attribute, most) for most in (8, 9, 10)] == [True, False, False]
    assert not too_fine(dpf.Categorical("c", list("abcdefgh")), 3)


@pytest.mark.parametrize("attributes", [1, 5, 30])
def test_counts_tell_where_their_noise_is_at_most_a_merged_bin(attributes: int) -> None:
    """Laplace noise for so many attributes at once, of a two-hundredth of epsilon each and a tenth at most."""
    share = min(attributes / 200, 1 / 10)
    for epsilon in (0.1, 1.0):
        fewest = 4 * math.sqrt(2) * attributes / (share * epsilon)  # with four merged bins
        assert [counts_stand_out(attributes, fewest * by, epsilon) for by in (0.99, 1.01)] == [False, True]
    assert not counts_stand_out(0, 1e9, 1.0)


def test_neighbouring_bins_are_merged_as_many_each_as_can_be() -> None:
    for bins, most, missing in itertools.product((5, 9, 12), (3, 4, 12), (False, True)):
        cells = merge(dpf.Numeric("n", 0, 9, bins=bins, missing=missing), most)
        number = min(bins, most)
        assert len(cells) == bins + missing
        assert sorted(set(cells)) == list(range(number + missing))
        assert list(cells) == sorted(cells)
        sizes = [cells.count(k) for k in range(number)]
        assert max(sizes) - min(sizes) <= 1
        assert not missing or cells.count(number) == 1
    assert merge(dpf.Categorical("c", list("abcde"), missing=True), 2) == (0, 1, 2, 3, 4, 5)


def plain_shares(counts: list[float], variance: float, rows: float) -> list[float]:
    """Return the mean of share k given its noisy count, for each k: by Bayes' rule for two normal variables."""
    b, found, least = len(counts), [], 0.0
    for k in range(1, b + 1):
        counted = (sum(counts[:k]) + k * (rows - sum(counts)) / b) / rows
        noise = k * (b - k) / b * variance / rows**2
        prior = 4 * k * (b - k) / b**2 / 12  # 1 / 12 in the middle
        share = 1.0 if k == b else (counted / noise + (k / b) / prior) / (1 / noise + 1 / prior)
        least = max(least, share)
        found.append(min(max(least, 0.0), 1.0))
    return found


def test_counts_and_even_rows_are_weighed_by_what_they_tell() -> None:
    rng = np.random.default_rng(0)
    for variance, rows in itertools.product((1.0, 90.0, 1e4), (50.0, 300.0)):
        for b in (2, 5, 9):
            counts = rng.normal(rows / b, 20, b)
            found = cumulative_shares(counts, variance, rows)
            assert found == pytest.approx(plain_shares(counts.tolist(), variance, rows))
    low = cumulative_shares(np.array([-500.0, 10.0, 600.0]), 1.0, 100.0)
    assert low.tolist() == [0.0, 0.0, 1.0]


def test_a_bin_is_in_the_cell_where_the_middle_of_its_rows_lies() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        shares = np.sort(rng.random(6))
        shares[-1] = 1
        for most in (3, 4):
            places = [min(int((a + b) / 2 * most), most - 1) for a, b in itertools.pairwise([0.0, *shares])]
            assert even_cells(shares, most) == tuple(sorted(set(places)).index(place) for place in places)
    assert even_cells(np.array([0.0, 1.0, 1.0]), 3) == (0, 1, 2)  # a middle at 1 is in the last cell
    missing = dpf.Numeric("n", 0, 4, bins=4, missing=True)
    counts = np.array([30.0, 1.0, 1.0, 30.0, 7.0])
    assert merge_by_counts(missing, 3, counts, 1e-9, 62.0) == (0, 1, 1, 2, 3)
    assert merge_by_counts(attrs.evolve(missing, missing=False), 3, counts[:4], 1e-9, 62.0) == (0, 1, 1, 2)
    assert merge_by_counts(missing, 3, counts, 1e9, 0.0) == (0, 1, 1, 2, 3)  # a noisy number of rows may be 0


# --- bands and stretch ----------------------------------------------------------------------------------------------


@each_design
def test_expected_deviations_are_those_of_even_rows(design: Design) -> None:
    """A cell's value is its column's coefficient, or plus or minus that of two, or a leaf's share of it."""
    tuned = NoiseAndRidge(design, Fraction(1))
    column = np.abs(design.of_cells).argmax(axis=0)
    of_columns = tuned.deviations / (tuned.curvatures + tuned.ridge)
    share = np.abs(design.of_cells).max(axis=0)
    assert expected_deviations(tuned) == pytest.approx(of_columns[column] * share)


@each_design
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_wide_band_is_the_bound_that_is_derived(design: Design, epsilon: Fraction) -> None:
    tuned = NoiseAndRidge(design, epsilon)
    given = [dpf.Categorical(f"a{j}", [str(k) for k in range(size)]) for j, size in enumerate(design.sizes)]
    given[-1] = dpf.Categorical("last", [str(k) for k in range(design.sizes[-1] - 1)], missing=True)
    beta, largest, found = tuned.deviations**2 / tuned.ridge, tuned.largest_ratio, []
    for j, attribute in enumerate(given):
        cells = range(design.first_cells[j], design.first_cells[j + 1])
        mean = np.mean([design.of_cells[:, cell] for cell in cells[: len(cells) - attribute.missing]], axis=0)
        for cell in cells:
            u = (design.of_cells[:, cell] - mean) / np.sqrt(tuned.ridge)
            a, own = np.linspace(0, np.linalg.norm(u), 100_001), beta[design.starts[j]]
            found.append(math.sqrt((own * a**2 + largest * a * (np.linalg.norm(u) - a)).max()))
    assert most_deviations(tuned, given) == pytest.approx([*found, 0.0], rel=1e-8)


def test_rows_that_are_spread_evenly_have_scores_of_every_cell() -> None:
    design = design_of([2, 3])
    coefficients = np.array([[10.0], [100.0], [200.0], [300.0], [5.0]])
    found = _scores(design, coefficients)
    assert found.shape == (2000, 1)
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == [5 + two + three for three in (100, 200, 300) for two in (-10, 10)]
    # six cells as likely as each other: a count is 9 of its deviations off with probability below 1e-6
    assert np.abs(counts - 2000 / 6).max() < 9 * math.sqrt(2000 * 5 / 36)


# Of coefficients that are stretched, but not as far as any may be.
SIZES = {"two": 1.5, "three": 0.4, "wide": 4.0, "tree": 1.5, "balanced": 0.25}


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize("name", SIZES)
def test_the_evidence_for_a_stretch_is_what_the_module_derives(name: str, numeric: bool) -> None:
    design = attrs.evolve(DESIGNS[name], numeric=tuple(range(len(DESIGNS[name].sizes))) if numeric else ())
    tuned, rng = NoiseAndRidge(design, Fraction(1, 2)), np.random.default_rng(5)
    w = rng.normal(0, SIZES[name], (design.columns, design.outputs))
    w = centre(w)
    scores, outputs = _scores(design, w), range(design.outputs)
    p = probabilities(scores)[:, -design.outputs :]
    expected_p = 0.6 * (design.classes - 1) / design.classes**2
    share = 1 - 1 / design.outputs if design.outputs > 1 else 1
    surer = (p * (1 - p)).mean(axis=0) / expected_p / share
    of_groups = np.zeros((len(design.groups), design.outputs))
    for g, group in enumerate(design.groups):
        for j in group:
            for k, c in itertools.product(range(design.widths[j]), outputs):
                column = design.starts[j] + k
                h = tuned.curvatures[column]
                if numeric and j < len(design.sizes):  # all rows in one cell: its column has all its curvature
                    h = 0.0 if k else h * design.widths[j]
                else:  # of the mean of several columns only the ridge knows
                    h = 0.0 if k and k == design.widths[j] - 1 else h * surer[c]
                one_sum = has_one_sum(design, group)
                between, of_mean = tuned.deviations[column] ** 2, 0.0 if one_sum else tuned.variances_of_means[j]
                if one_sum and j == len(design.widths) - 1:
                    between = 0.0
                if design.widths[j] > 1 and numeric:
                    between += (of_mean - between) / design.widths[j]  # of one column
                elif design.widths[j] > 1 and k == design.widths[j] - 1:
                    between = of_mean
                of_groups[g, c] += share * between / (h + tuned.ridge[column])
    # what blocks share, with all groups' sums in one system: c = -h g'c - r, and -E[w'b] = -g E[c r]
    gains, variances = np.array(tuned.shared).T[::-1]
    for c in outputs:
        h = tuned.curvatures[-1] * surer[c]
        moved = np.linalg.inv(np.eye(len(gains)) + h * np.outer(np.ones(len(gains)), gains))
        of_groups[:, c] += share * np.diag(moved) * gains * variances
    found = evidence_of(tuned, w, scores)
    assert found.left == pytest.approx((tuned.ridge[:, None] * w**2).sum(axis=0) - of_groups.sum(axis=0))
    covariance = np.diag((share * tuned.deviations[:, None] ** 2 * w**2).sum(axis=0))
    for group, taken in zip(design.groups, of_groups, strict=True):
        # by 1 - 1 / K and -1 / K centred, noise of one variance has the squares' shares of what is left
        centring, k = np.eye(design.outputs) - (design.outputs > 1) / design.outputs, design.outputs
        moved = np.ones((k, 1)) if is_balanced(design, group) else centring**2 / share
        covariance += 4 / (dimension_of(design, group) + 1) * np.diag(taken) @ moved @ moved.T @ np.diag(taken)
    assert found.covariance == pytest.approx(covariance)
    assert stretch_of(tuned, w) == pytest.approx(_searched(scores, design.rows, found), abs=0.002)


def _searched(scores: NDArray[np.float64], rows: float, found: Evidence) -> NDArray[np.float64]:
    """Return the factors of the module's minimum by a search that tries smaller and smaller steps."""
    before, outputs = probabilities(scores)[:, -scores.shape[1] :], scores.shape[1]
    expected = 0.8 * np.ones((outputs, outputs)) + 0.2 * np.eye(outputs)

    def off(factors: NDArray[np.float64]) -> float:
        grown = probabilities(scores * factors)[:, -scores.shape[1] :] - before
        error = found.left - rows * (scores * grown).mean(axis=0)
        of_prior = (factors - 1) @ np.linalg.solve(expected, factors - 1)
        return float(error @ np.linalg.solve(found.covariance, error) + of_prior)

    factors, step = np.ones(scores.shape[1]), 0.5
    while step > 1e-4:
        signs = [np.array(own) for own in itertools.product((-1, 0, 1), repeat=len(factors))]
        tried = [np.clip(factors + step * own, 1, MOST) for own in signs]
        best = min(tried, key=off)
        if off(best) < off(factors):
            factors = best
        else:
            step /= 2
    assert 1.05 < factors.max() < 2.95
    return factors


def test_scores_of_no_rows_are_not_stretched() -> None:
    tuned = NoiseAndRidge(design_of([2, 3], 2, 0.0), Fraction(1))
    assert stretch_of(tuned, np.full((5, 1), 50.0)).tolist() == [1.0]


@pytest.mark.parametrize("epsilon", [Fraction(10), Fraction(1), Fraction(1, 10), Fraction(1, 400)], ids=str)
@pytest.mark.parametrize(("sizes", "classes"), [([1999], 2), ([64] * 12, 2), ([2], 2), ([40], 3), ([300, 5], 5)])
def test_the_lattice_of_the_noise_costs_little_at_every_epsilon(
    sizes: list[int], classes: int, epsilon: Fraction
) -> None:
    query = LogisticRows(dpf.Categorical("class", [str(k) for k in range(classes)]), ("a",))
    given = ObjectivePerturbation(epsilon).calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE)
    assert given is not None
    tuned = tune_for(design_of(sizes, classes, 1e5), given)
    assert tuned.claimed <= epsilon
    widest = [of_group.rounded for of_group in tuned.design.noises]
    of_lattice = sum(m / Fraction(scale) for m, scale in zip(widest, tuned.scales, strict=True))
    assert of_lattice <= epsilon / 2**20
    coarsest = Fraction(2) ** (-32 - math.floor(math.log2(epsilon)))
    assert tuned.step <= coarsest
    if tuned.step < coarsest:  # no finer than it must be
        assert 2 * tuned.step * max(widest) > tuned.design.swing * Fraction(1, 2**20)


def test_a_fit_whose_noise_might_not_fit_into_64_bits_is_refused() -> None:
    """At an epsilon so small that it would tell nothing: before anything is drawn."""
    query = LogisticRows(dpf.Boolean("class"), ("a",))

    def tuned(epsilon: Fraction) -> NoiseAndRidge:
        given = ObjectivePerturbation(epsilon).calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE)
        assert given is not None
        return tune_for(design_of([1999], 2, 1e5), given)

    fits = tuned(Fraction(1, 500))
    largest = max(
        (dimension_of(fits.design, group) + 1) * scale
        for group, scale in zip(fits.design.groups, fits.scales, strict=True)
    )
    assert fits.largest_noise == largest < 2.0**53
    smallest = Fraction(1, 500) * Fraction(largest / 2**53).limit_denominator(10**6)
    assert tuned(smallest * Fraction(1001, 1000)).step == fits.step
    with pytest.raises(dpf.InputError, match=r"the noise of a fit cannot be computed for epsilon = 0\.00[0-9]+; use"):
        tuned(smallest * Fraction(999, 1000))


@pytest.mark.parametrize("above", [-0.5, 0.5])
def test_what_is_left_of_the_evidence_decides_whether_scores_are_stretched(above: float) -> None:
    """Coefficients of which just less than the ridge's share of noise is left, and just more."""
    tuned = NoiseAndRidge(DESIGNS["two"], Fraction(1, 2))
    w = np.random.default_rng(5).normal(0, 3, (tuned.design.columns, 1))
    low, high = 0.0, 10.0
    for _ in range(80):  # the factor of w of which just so much is left
        middle = (low + high) / 2
        more = evidence_of(tuned, middle * w, _scores(tuned.design, middle * w)).left[0] > above
        low, high = (low, middle) if more else (middle, high)
    w = high * w
    assert evidence_of(tuned, w, _scores(tuned.design, w)).left == pytest.approx([above], abs=1e-6)
    assert bool(stretch_of(tuned, w)[0] > 1) is (above > 0)
    assert stretch_of(tuned, w)[0] >= 1


def test_little_information_is_some() -> None:
    """Half a row's worth, and strong evidence."""
    w = np.random.default_rng(5).normal(0, 30, (11, 1))
    scores = _scores(DESIGNS["two"], w)
    p = probabilities(scores)[:, 1:]
    few = design_of([2, 3, 2, 5], 2, 0.5 / float((p * (1 - p) * scores**2).mean()))
    assert evidence_of(NoiseAndRidge(few, Fraction(1, 2)), w, _scores(few, w)).left[0] > 0
    assert stretch_of(NoiseAndRidge(few, Fraction(1, 2)), w)[0] > 1
