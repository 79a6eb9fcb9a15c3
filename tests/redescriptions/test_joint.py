"""One joint distribution of several matches: its sums, its fit, and what is read off it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts import And, Equals, Not, Or
from dpframework.lab.evaluation import exact_counts
from dpframework.redescriptions import (
    DESIGNS,
    OverlappingTables,
    Redescription,
    Redescriptions,
    ReportConditions,
    joint_distribution_fit,
    redescriptions_from_match_combinations,
)
from dpframework.redescriptions.joint_distribution_fit import Floats, Joint, as_cells, fit, trios
from dpframework.redescriptions.kernels.joint_distribution_sum import sum_states
from dpframework.redescriptions.redescriptions_from_match_combinations import (
    DEVIATIONS,
    Joined,
    _distinct,
    _without_idle_members,
    candidates_of,
    laplace,
)

ROWS = 4000
NAMES = [[f"{view}{k}" for k in range(5)] for view in ("a", "b")]
SCHEMA = dpf.Schema(
    [dpf.Boolean(name, view=view) for names, view in zip(NAMES, dpf.View, strict=True) for name in names], rows=ROWS
)
SIDES = [(Equals(a, "true"), Equals(b, "true")) for a, b in zip(*NAMES, strict=True)]


def tied_rows() -> dpf.Table:
    """Return rows of two views, each attribute of one holding for nearly the rows of one of the other.

    Left attributes hold together more often than by chance, so that their combinations have rows.
    """
    rng = np.random.default_rng(5)
    shared = rng.random(ROWS) < 0.5
    left = np.array([np.where(rng.random(ROWS) < 0.8, shared, rng.random(ROWS) < 0.4) for _ in range(5)])
    right = left ^ (rng.random(left.shape) < 0.05)
    return dpf.Table.from_codes(SCHEMA, np.concatenate([left, right]).astype(np.int64))


TABLE = tied_rows()


def tables_of(table: dpf.Table, sides: Sequence[tuple[dpf.facts.Description, dpf.facts.Description]]) -> Floats:
    """Return the exact tables of a design."""
    engine = dpf.InMemory()
    rows, made = engine.load(table), []
    for line in DESIGNS[len(sides)]:
        left, right = zip(*(sides[k] for k in line), strict=True)
        made.append(dpf.redescriptions.TruthCells(3).evaluate(engine, rows, left=left, right=right))
    return np.array(made, dtype=float)


def overlapping(counts: Floats, variance: float = 1e-6, schema: dpf.Schema = SCHEMA) -> OverlappingTables:
    return OverlappingTables(SIDES, (True,) * 5, counts, variance, schema)


@pytest.mark.parametrize("matches", DESIGNS)
def test_every_two_matches_meet_in_a_table_and_in_one_alone_on_a_plane(matches: int) -> None:
    design = DESIGNS[matches]
    meetings = [sum({*pair} <= {*line} for line in design) for pair in itertools.combinations(range(matches), 2)]
    assert min(meetings) == 1
    assert (max(meetings) == 1) == (matches in (7, 9))
    assert all(list(line) == sorted(line) for line in design)
    assert (0, 1, 2) not in design  # the kernel runs through these together


@pytest.mark.parametrize("matches", DESIGNS)
def test_sums_over_states_are_those_of_the_products(matches: int) -> None:
    design, states = DESIGNS[matches], np.arange(4**matches)
    weights = np.random.default_rng(1).random((len(design), 64))
    cells = [sum((states >> 2 * m & 3) << 2 * k for k, m in enumerate(line)) for line in design]
    product = np.prod([weight[cell] for weight, cell in zip(weights, cells, strict=True)], axis=0)
    sums, made = np.empty_like(weights), np.empty(len(states))
    total = sum_states(weights, np.array(design), matches, sums, made)
    np.testing.assert_allclose(made, product, rtol=1e-12)
    assert total == pytest.approx(product.sum())
    for found, cell in zip(sums, cells, strict=True):
        np.testing.assert_allclose(found, np.bincount(cell, product, minlength=64), rtol=1e-10)
    joint = Joint(matches, product / product.sum())
    for found, of_trio in zip(sums, joint.of_trios(design), strict=True):
        np.testing.assert_allclose(as_cells(of_trio), found / total, atol=1e-15)


@pytest.mark.parametrize(("matches", "off"), [(5, 0.06), (7, 0.06), (9, 0.3)])
def test_a_fit_comes_near_the_tables_that_it_is_given(matches: int, off: float) -> None:
    """By the sum of absolute differences of a table's shares; that of the uniform distribution is thrice as large."""
    design = DESIGNS[matches]
    weights = np.random.default_rng(2).random((len(design), 64)) ** 3
    sums = np.empty_like(weights)
    shares = sums / sum_states(weights, np.array(design), matches, sums, np.empty(0))
    joint = fit(matches, shares)
    assert joint.states.min() > 0
    assert joint.states.sum() == pytest.approx(1)
    apart = np.abs(np.array([as_cells(one) for one in joint.of_trios(design)]) - shares).sum(axis=1)
    assert apart.max() < off < np.abs(shares - 1 / 64).sum(axis=1).min() / 3
    pairs = fit(matches, shares, pairs_only=True).of_trios(design)
    of_pairs = np.abs(pairs.reshape(-1, 2, 2, 2, 2, 2, 2).sum(axis=(1, 4)) - _of_first_pairs(shares)).sum(
        axis=(1, 2, 3, 4)
    )
    assert of_pairs.max() < off


@pytest.mark.parametrize("matches", DESIGNS)
def test_a_fit_of_matches_that_few_rows_have_does_not_give_all_rows_to_one_state(matches: int) -> None:
    """Each holds for one row in fifty, independently: nearly all rows are in neither side of any."""
    of_one = np.array([0.97, 0.005, 0.005, 0.02])
    cells = functools.reduce(np.multiply.outer, [of_one] * 3).ravel()
    found = fit(matches, np.tile(cells, (len(DESIGNS[matches]), 1)))
    of_trios = found.of_trios(trios(matches))
    assert np.abs([as_cells(table) for table in of_trios] - cells).max() < 0.002


def test_a_fit_stops_at_the_noise_and_loses_nothing_by_it() -> None:
    """Seeded, so it fails always or never. Ten tables of noise, and both what tables and what pairs of matches tell."""
    shares = np.stack([as_cells(one) for one in tables_of(TABLE, SIDES)]) / ROWS
    variance, random = 900.0 / ROWS**2, np.random.default_rng(4)
    places = trios(len(SIDES))
    exact = fit(len(SIDES), shares).of_trios(places)
    for pairs_only in (False, True):
        off = np.zeros(2)
        for _ in range(10):
            noisy = shares + np.sqrt(variance) * random.standard_normal(shares.shape)
            fits = [fit(len(SIDES), noisy, told, pairs_only=pairs_only) for told in (variance, 0.0)]
            off += [((one.of_trios(places) - exact) ** 2).sum() for one in fits]
            if not pairs_only:
                learned = np.stack([as_cells(one) for one in fits[1].of_trios(DESIGNS[len(SIDES)])]) - noisy
                left = np.stack([as_cells(one) for one in fits[0].of_trios(DESIGNS[len(SIDES)])]) - noisy
                assert (learned**2).sum() <= (left**2).sum()
                assert 0.6 <= (left**2).sum() / (variance * left.size) <= 0.85
        assert off[0] < 1.05 * off[1]


def _of_first_pairs(shares: Floats) -> Floats:
    """Return tables of the first two of three matches, by (left 1, left 0, right 1, right 0)."""
    made = np.zeros((len(shares), 2, 2, 2, 2))
    for cell in range(64):
        first, second = cell & 3, cell >> 2 & 3
        made[:, second & 1, first & 1, second >> 1, first >> 1] += shares[:, cell]
    return made


def test_combinations_are_of_one_to_three_matches_and_complements_only_where_there_are_some() -> None:
    """Alone, by two words, and with signs: 7 * 2, 21 * 4 * 2, 35 * 8 * 2 of seven matches, and 35 * 8 * 6 nested."""
    assert len(candidates_of(7, (True,) * 7)) == 14 + 168 + 560 + 1680
    some = candidates_of(5, (True, False, True, True, True))
    assert len(set(some)) == len(some) == 4 * 2 + 1 + 2 * (6 * 4 + 4 * 2) + 2 * (4 * 8 + 6 * 4)
    assert all((1, False) not in one.left.members for one in some)
    for one in some:
        assert one.matches <= set(trios(5)[one.trio])


def test_what_is_read_without_noise_is_true_of_the_rows() -> None:
    found, looked_at = overlapping(tables_of(TABLE, SIDES)).read(ReportConditions(0.58), np.random.default_rng(0))
    assert looked_at == 10 + 80 + 160
    assert len(found) >= 10
    exact = exact_counts(found, TABLE)
    assert max(abs(one.jaccard - true.jaccard) for one, true in zip(found, exact, strict=True)) < 0.05  # of the model
    assert max(abs(one.both.value - true.both.value) for one, true in zip(found, exact, strict=True)) < 0.02 * ROWS
    for one in found:
        assert one.jaccard >= 0.6
        assert one.both.value >= 0.03 * ROWS
        assert max(one.left_support.value, one.right_support.value) <= 0.7 * ROWS
        assert one.rows.value == ROWS
        assert one.deviation is not None
    supports = [one.left.holds(_columns()) & one.right.holds(_columns()) for one in found]
    for one, other in itertools.combinations(supports, 2):
        assert (one & other).sum() < 0.85 * (one | other).sum()


def test_what_the_model_misses_of_three_matches_on_no_table_is_as_many_rows_as_of_the_index() -> None:
    """Where there is no noise, it is most of how far off they are: one share of the rows in either support for all."""
    found, _ = overlapping(tables_of(TABLE, SIDES)).read(ReportConditions(0.5), np.random.default_rng(0))
    lines, missed, on_lines = {frozenset(line) for line in DESIGNS[5]}, [], []
    for one in found:
        matches = frozenset(k for k in range(5) if f"a{k} " in str(one.left))
        share = one.both.deviation / (one.both.value + one.left_only.value + one.right_only.value)
        assert one.deviation is not None
        assert share < one.deviation  # an index is off by what its supports are
        (missed if len(matches) == 3 and matches not in lines else on_lines).append(share)
    assert len(missed) > 10
    assert max(on_lines) < min(missed)
    assert max(missed) < 1.15 * min(missed)


def _columns() -> dpf.tables.Block:
    from dpframework.lab.evaluation.readable_rows_and_folds import columns_of

    return columns_of(TABLE)


def test_a_literal_without_which_nearly_the_same_rows_are_meant_is_left_out() -> None:
    """Whatever is shown, without one of its literals a side holds for 2 % of other rows, by the joint."""
    found, _ = overlapping(tables_of(TABLE, SIDES)).read(ReportConditions(0.58), np.random.default_rng(0))
    columns = _columns()
    for one in found:
        for side in (one.left, one.right):
            parts = getattr(side, "parts", ())
            for part in parts if len(parts) > 1 else ():
                rest = type(side)([other for other in parts if other != part])
                assert (rest.holds(columns) ^ side.holds(columns)).sum() >= 0.012 * ROWS


def test_a_literal_that_noise_hides_is_left_out() -> None:
    """The same counts, told to be noisier: whatever then stays changes more rows than the noise may."""
    counts, columns = tables_of(TABLE, SIDES), _columns()
    literals = []
    for variance in (1.0, 4900.0):  # a deviation of 70 rows: 2 % and 2.25 of these are 6 % of the rows
        found, _ = overlapping(counts, variance).read(ReportConditions(0.58, 0.03 * ROWS), np.random.default_rng(0))
        literals.append(np.mean([len(one.left.literals()) for one in found]))
        for one in found:
            for side in (one.left, one.right):
                parts = getattr(side, "parts", ())
                for part in parts if len(parts) > 1 else ():
                    rest = type(side)([other for other in parts if other != part])
                    changed = (rest.holds(columns) ^ side.holds(columns)).sum()
                    assert changed >= (0.012 if variance == 1 else 0.045) * ROWS
    assert literals[1] < literals[0]


def test_rows_that_nobody_knows_follow_from_the_tables() -> None:
    counts = tables_of(TABLE, SIDES)
    hidden = overlapping(counts, 40.0, attrs.evolve(SCHEMA, rows=None))
    assert hidden.total.value == ROWS
    assert hidden.total.variance == pytest.approx(40.0 * 64 / 4)
    assert overlapping(counts, 40.0).total.variance == 0


def test_bounds_on_supports_are_kept() -> None:
    counts = tables_of(TABLE, SIDES)
    found, _ = overlapping(counts).read(ReportConditions(0.58, 900, 1900), np.random.default_rng(0))
    assert len(found)
    for one in found:
        assert one.both.value >= 900
        assert max(one.left_support.value, one.right_support.value) <= 1900
    assert overlapping(counts).read(ReportConditions(0.58, ROWS, ROWS), np.random.default_rng(0))[0] == []


def test_what_could_be_noise_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default a support is at least one deviation of the noise less than a star needs.

    The fit and the literals do not follow the noise here, so that all supports are as they would be without it.
    """
    counts = tables_of(TABLE, SIDES)
    monkeypatch.setattr(joint_distribution_fit, "OF_NOISE", 0)
    monkeypatch.setattr(redescriptions_from_match_combinations, "OF_NOISE", 0)

    def read(variance: float) -> set[float]:
        found, _ = overlapping(counts, variance).read(ReportConditions(0.58), np.random.default_rng(0))
        return {round(one.both.value, 6) for one in found}

    middle = sorted(read(1e-6))[len(read(1e-6)) // 2]
    for share, kept in ((0.999, True), (1.001, False)):
        found = read((share * middle / (DEVIATIONS - 1)) ** 2)
        assert (middle in found) == kept
        assert min(found) >= middle * share


def test_replicates_are_drawn_with_the_variance_of_the_noise_even_if_there_is_none() -> None:
    """Seeded. The mean square of 200,000 numbers is within 5 % of what it should be."""
    random = np.random.default_rng(1)
    assert not laplace(random, 0.0, (1000,)).any()
    assert not laplace(random, 1e-18, (1000,)).any()
    for variance in (0.02, 1.0, 600.0):
        assert np.square(laplace(random, variance, (200_000,))).mean() == pytest.approx(variance, rel=0.05)


def test_intervals_of_noisy_tables_hold_and_no_star_is_wrong() -> None:
    """At an epsilon of about .5. Seeded, so it fails always or never."""
    counts, held, stars = tables_of(TABLE, SIDES), list[bool](), 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        noisy = counts + laplace(random, 600.0, counts.shape)
        found = Redescriptions(overlapping(noisy, 600.0).read(ReportConditions(0.58), random)[0], 250)
        for one, true, star in zip(found, exact_counts(found, TABLE), found.starred, strict=True):
            low, high = one.jaccard_interval()
            held.append(low <= true.jaccard <= high)
            stars += star
            assert not star or true.jaccard >= 0.5
    assert len(held) >= 60
    assert np.mean(held) >= 0.95
    assert stars >= 12


def test_noise_that_is_drawn_anew_is_discrete_laplace_of_that_variance() -> None:
    """Of 200,000 draws the variance is off by 3 % with a chance below 1e-6: its deviation is 0.5 %."""
    drawn = laplace(np.random.default_rng(3), 50.0, (200_000,))
    assert (drawn == np.rint(drawn)).all()
    assert drawn.var() == pytest.approx(50.0, rel=0.03)
    assert abs(drawn.mean()) < 0.1


def test_a_deviation_makes_the_interval_and_the_star_and_is_kept() -> None:
    counts = {"both": dpf.results.Noisy(800, 100), "left_only": dpf.results.Noisy(100, 50), "rows": 3000}
    one = Redescription(SIDES[0][0], SIDES[0][1], right_only=dpf.results.Noisy(100, 50), deviation=0.05, **counts)
    low, high = one.jaccard_interval()
    assert (one.jaccard, low, high) == pytest.approx((0.8, 0.8 - 0.1589, 0.8 + 0.1589), abs=1e-3)
    assert one.least_jaccard(0.05) == low
    assert one.support_interval() == pytest.approx((800 - 1.7 * one.both.margin(), 800 + 1.7 * one.both.margin()))
    assert one.starred(candidates=10**6)
    assert not attrs.evolve(one, deviation=0.11).starred()  # 3 of these below .8 is less than .5
    assert Redescription.from_dict(one.to_dict()) == one


NESTED = [Joined(kind, ((2, True), (0, False), (1, True)), nested=True) for kind in (And, Or)]


@pytest.mark.parametrize("joined", NESTED)
def test_what_is_nested_holds_where_its_description_does(joined: Joined) -> None:
    """In a cell of three matches as in its rows; a member is left out together with its word."""
    columns = _columns()
    for some in (joined, *(joined.without(k) for k in range(3)), joined.without(0).without(0)):
        described = some.describe([left for left, _ in SIDES])
        numbers = sum(SIDES[k][0].holds(columns).astype(np.int64) << k for k in range(3))
        np.testing.assert_array_equal(some.holds(np.asarray(numbers), range(3)), described.holds(columns))
    assert str(joined.without(0).describe([left for left, _ in SIDES])) == (
        "a0 != true or a1 = true" if joined.kind is And else "a0 != true and a1 = true"
    )


def test_of_what_is_nested_a_member_stays_if_it_changes_more_rows_beyond_the_noise() -> None:
    """Match 2 fails for a share of the rows, of those where 0 or 1 holds: without it, that share changes."""
    joined = Joined(And, ((2, True), (0, True), (1, True)), nested=True)
    for share, noise, stays in ((0.02, 0.0, True), (0.014, 0.0, False), (0.044, 0.01, False), (0.046, 0.01, True)):
        shares = np.array([0.2, 0, 0, share, 0, 0.3, 0.3, 0.2 - share])
        left = _without_idle_members(joined, shares, (0, 1, 2), noise)
        assert left == (joined if stays else joined.without(0))
    flat = Joined(And, ((0, True), (1, True)))
    for share, stays in ((0.037, False), (0.038, True)):
        shares = np.array([0.4, 0.1, 0, 0.5 - share, 0, share, 0, 0])
        left = _without_idle_members(flat, np.roll(shares, 0), (0, 1, 2), 0.01)
        assert (left == flat) == stays or len(left.members) == 1


def test_what_a_member_changes_is_the_rows_of_all_cells_that_it_changes() -> None:
    """Without match 0 the rows of two cells change, each of which has too few of them alone."""
    both = Joined(And, ((0, True), (1, True)))
    for share, stays in ((0.012, True), (0.006, False)):
        shares = np.array([0.2, 0.2, share, 0.2, 0.1, 0, share, 0.3 - 2 * share])  # by cells of the matches 2, 1 and 0
        left = _without_idle_members(both, shares, (0, 1, 2), 0.0)
        assert left == (both if stays else both.without(0))


def test_of_candidates_that_hold_for_nearly_the_same_rows_the_first_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the joint of the exact tables, whose blocks are compared with each other too."""
    monkeypatch.setattr(redescriptions_from_match_combinations, "AT_ONCE", 32)
    joint = fit(5, np.stack([as_cells(one) for one in tables_of(TABLE, SIDES)]) / ROWS)
    everything = list(candidates_of(5, (True,) * 5))
    kept = _distinct(everything, joint)
    assert kept[0] == everything[0]
    left, right, shares = joint.likeliest(4**5)
    rows = [one.left.holds(left, range(5)) & one.right.holds(right, range(5)) for one in everything]
    before = list[int]()
    for k, one in enumerate(rows):
        if all(shares[one & rows[j]].sum() < 0.8 * shares[one | rows[j]].sum() for j in before):
            before.append(k)
    assert [everything[k] for k in before] == kept
    assert max(before) >= 128  # beyond several blocks
    np.testing.assert_allclose(joint.likeliest(10)[2], np.sort(joint.states)[::-1][:10])


def test_a_member_left_out_leaves_the_others() -> None:
    joined = Joined(dpf.facts.Or, ((0, True), (2, False), (3, True)))
    assert joined.without(1) == Joined(dpf.facts.Or, ((0, True), (3, True)))
    assert str(joined.describe([left for left, _ in SIDES])) == "a0 = true or a2 != true or a3 = true"
    opposite = [Not(left) for left, _ in SIDES]
    assert str(joined.describe(opposite)) == "a0 != true or a2 = true or a3 != true"
