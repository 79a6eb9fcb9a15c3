"""The sensitivities of entropies, by brute force over all tables of a few rows."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import attrs
import numpy as np
import pytest
from dpframework_distance.entropy_terms import UNITS, terms
from dpframework_distance.queries import CommonContextScores, ConditionalEntropies, ContextScores, Entropies
from dpframework_distance.sensitivities import RowBounds, published_entropy_change

import dpframework as dpf
from dpframework.queries import entropy_change


def f(n):
    return n * math.log2(n) if n else 0.0


def entropy(rows):
    """N H of a list of values."""
    return f(len(rows)) - sum(f(n) for n in Counter(rows).values())


def score(rows):
    """-N H(Y|S) of a list of pairs (s, y)."""
    return entropy([s for s, _ in rows]) - entropy(rows)


def tables(values, number):
    return itertools.combinations_with_replacement(values, number)


def replaced(rows, values):
    """Yield every table with one row replaced."""
    for k, value in itertools.product(range(len(rows)), values):
        yield (*rows[:k], value, *rows[k + 1 :])


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7])
def test_the_entropy_changes_by_g_and_no_more(number):
    values = range(4)
    largest = max(abs(entropy(t) - entropy(u)) for t in tables(values, number) for u in replaced(t, values))
    assert largest == pytest.approx(entropy_change(number), abs=1e-12)


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
def test_the_score_changes_by_g_and_no_more(number):
    """Half of the published bound, for a single attribute; a set is an attribute with more values."""
    values = list(itertools.product(range(3), range(2)))
    largest = max(abs(score(t) - score(u)) for t in tables(values, number) for u in replaced(t, values))
    assert largest == pytest.approx(entropy_change(number), abs=1e-12)
    assert 2 * published_entropy_change(number) > 2 * largest


def moved_apart(one, other):
    """By how much the scores of S1 and S2 move apart, where rows are (s1, s2, y)."""
    first, second = (score([(r[k], r[2]) for r in one]) - score([(r[k], r[2]) for r in other]) for k in (0, 1))
    return abs(first - second)


@pytest.mark.parametrize("number", [2, 3, 4])
def test_two_candidates_move_apart_by_twice_g(number):
    values = list(itertools.product((0, 1), repeat=3))
    largest = max(moved_apart(t, u) for t in tables(values, number) for u in replaced(t, values))
    assert largest == pytest.approx(2 * entropy_change(number), abs=1e-12)


@pytest.mark.parametrize("number", [2, 100, 10_000])
def test_twice_g_is_attained_by_tables_of_any_size(number):
    """So exp(eps score / (2 G)) has the best universal constant: one score rises by G, the other falls by G."""
    shared = [(0, 0, 0)] * (number - 1)
    apart = moved_apart([*shared, (1, 0, 1)], [*shared, (0, 1, 1)])
    assert apart == pytest.approx(2 * entropy_change(number), rel=1e-9)


@pytest.mark.parametrize("number", [1, 2, 4, 6])
def test_adding_a_row_moves_entropies_up_and_scores_down_by_g_at_most(number):
    values = list(itertools.product(range(2), range(2)))
    for table in tables(values, number - 1):
        for row in values:
            up = entropy([*table, row]) - entropy(table)
            down = score([*table, row]) - score(table)
            assert -1e-12 <= up <= entropy_change(number) + 1e-12
            assert -entropy_change(number) - 1e-12 <= down <= 1e-12


def test_g_is_just_below_the_published_bound_and_grows():
    numbers = range(2, 5000)
    changes = np.array([entropy_change(n) for n in numbers])
    published = np.array([published_entropy_change(n) for n in numbers])
    assert (changes < published).all()
    assert (np.diff(changes) > 0).all()
    assert (published - changes)[-1] < 1e-3


def test_what_is_public_of_the_rows_decides_the_claim():
    attributes = [dpf.Boolean("a"), dpf.Boolean("b")]
    counted = RowBounds.of(dpf.Schema(attributes, rows=50))
    assert counted.of_scores(2)[0].add_or_remove_one is None
    bounded = RowBounds.of(dpf.Schema(attributes, max_rows=50))
    assert float(bounded.of_scores(2)[0].add_or_remove_one) == pytest.approx(entropy_change(50))
    both = RowBounds.of(dpf.Schema(attributes, rows=50, max_rows=50))
    assert float(both.of_scores(2)[0].add_or_remove_one) == pytest.approx(entropy_change(51))
    assert float(both.of_scores(2)[0].replace_one) == pytest.approx(entropy_change(50))
    published = RowBounds.of(dpf.Schema(attributes, rows=50, max_rows=60), published=True)
    assert published.of_scores(2)[0].add_or_remove_one is None


@pytest.mark.parametrize("facts", [{}, {"max_rows": 2**31}])
def test_no_public_count_or_too_many_rows_are_refused(facts):
    with pytest.raises(dpf.InputError, match="rows"):
        RowBounds.of(dpf.Schema([dpf.Boolean("a")], **facts))


@pytest.mark.parametrize(("attributes", "size"), [(3, 2), (4, 2), (4, 3)])
@pytest.mark.parametrize("number", [2, 4])
def test_the_score_of_a_common_context_changes_as_proved(attributes, size, number):
    """Over all tables of Boolean rows: max(m - k, k) G bounds the change, and m - k of it is attained."""

    def common(rows):
        inside = tuple(range(size))
        total = 0.0
        for y in range(attributes):
            given = [k for k in inside if k != y]
            total += score([(tuple(row[k] for k in given), row[y]) for row in rows])
        return total

    values = list(itertools.product((0, 1), repeat=attributes))
    changes = [common([*table, row]) - common(table) for table in tables(values, number - 1) for row in values]
    bound = max(attributes - size, size) * entropy_change(number)
    assert max(changes) <= 1e-12
    assert min(changes) >= -bound - 1e-12
    assert min(changes) <= -(attributes - size) * entropy_change(number) + 1e-12
    query = CommonContextScores([dpf.Boolean(f"a{k}") for k in range(attributes)], size, RowBounds(number, number))
    assert float(query.sensitivities[0].add_or_remove_one) == pytest.approx(bound)


def test_rounded_terms_grow_as_exact_ones_do():
    """All proofs stand on that: g is in order, starts from 0, and is within what is declared."""
    rows = 300_000
    found = terms(rows)
    g = np.diff(found)
    assert found.dtype == np.int64
    assert g[0] == 0
    assert (np.diff(g) >= 0).all()
    for number in (1, 2, 3, 1000, rows):
        assert abs(found[number] / UNITS - f(number)) <= number / UNITS
        assert Fraction(int(g[number - 1]), UNITS) <= RowBounds(number, None).changes(number, 2)


def test_scores_of_large_tables_are_exact():
    """Sums of whole numbers: over 640,000 cells, as far from 0 as 10**7, no digit is lost."""
    attributes = [dpf.Categorical(f"a{k}", [str(v) for v in range(800)]) for k in range(2)]
    query = ContextScores(attributes, 1, RowBounds(2**21, None), 0)
    counts = np.random.default_rng(0).integers(1, 4, 800 * 800).astype(np.int32)
    counts[0] += 2**19
    table = counts.reshape(800, 800)
    units = terms(int(counts.sum())).tolist()
    expected = sum(units[n] for n in counts.tolist()) - sum(units[n] for n in table.sum(axis=0).tolist())
    assert query.answer(counts)[0] * UNITS == expected


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("target", [None, 0, 2])
def test_weighted_and_conditional_entropies_change_as_proved(number, target):
    """Over all tables of three Boolean attributes; with one target the bound under replace-one is attained."""
    attributes = [dpf.Boolean(f"a{k}") for k in range(3)]
    query = ConditionalEntropies(attributes, target, RowBounds(number, number))

    def answer(rows):
        alone = [float(w) * entropy([r[k] for r in rows]) for k, w in enumerate(query.weights)]
        return np.array([*alone, *(-score([(r[a], r[b]) for r in rows]) for a, b in query.conditions)])

    values = list(itertools.product((0, 1), repeat=3))
    added = [answer([*t, v]) - answer(t) for t in tables(values, number - 1) for v in values]
    swapped = [answer(u) - answer(t) for t in tables(values, number) for u in replaced(t, values)]
    assert np.min(added) >= -1e-12
    for k, power in enumerate((1, 2)):
        declared = query.sensitivities[k]
        largest = max((np.abs(change) ** power).sum() for change in added)
        assert largest <= float(declared.add_or_remove_one) + 1e-9
        largest = max((np.abs(change) ** power).sum() for change in swapped)
        assert largest <= float(declared.replace_one) + 1e-9
        if target is not None:
            assert largest == pytest.approx(float(declared.replace_one), rel=1e-5)


@pytest.mark.parametrize("target", [None, 1])
def test_conditional_entropies_are_read_back(target):
    attributes = [dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(4)]
    codes = np.random.default_rng(3).integers(0, 3, (4, 50))
    block = dpf.InMemory().load(dpf.Table.from_codes(dpf.Schema(attributes), codes))[0]
    query = ConditionalEntropies(attributes, target, RowBounds(50, 50))
    alone, joint = query.read(query.answer(query.count(block)))
    assert alone == pytest.approx([entropy(column.tolist()) for column in codes], abs=1e-4)
    for a, b in query.listed:
        assert joint[a, b] == pytest.approx(entropy(list(zip(*codes[[a, b]].tolist(), strict=True))), abs=1e-4)
        assert joint[a, b] == joint[b, a]


# --- several rows of one unit ---------------------------------------------------------------------------------------


def group_changes(values, number, k, answer):
    """The changes of an answer when up to k rows are added, to at most so many, and between any two such tables."""
    added, swapped = [], []
    for size in range(number):
        for base in tables(values, size):
            before = answer(base)
            after = [
                answer([*base, *group]) - before
                for more in range(1, min(k, number - size) + 1)
                for group in tables(values, more)
            ]
            added += after
            low, high = np.min([np.zeros_like(before), *after], axis=0), np.max([np.zeros_like(before), *after], axis=0)
            swapped.append(high - low)
    return np.array(added), np.array(swapped)


@pytest.mark.parametrize(("k", "number"), [(2, 6), (3, 6), (4, 6)])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 3)])
def test_entropies_change_by_what_is_declared_for_a_group_and_no_more(k, number, sizes):
    """Both the entropy of an attribute and the score of a context, over all tables of two attributes."""
    values = list(itertools.product(*map(range, sizes)))
    if len(values) > 4 and k > 2:
        number = 5
    added, swapped = group_changes(
        values, number, k, lambda rows: np.array([entropy([r[1] for r in rows]), -score(list(rows))])
    )
    declared = entropy_change(number, k, sizes[1])
    for name in range(2):
        assert added[:, name].min() >= -1e-12
        assert added[:, name].max() <= declared + 1e-12
        assert swapped[:, name].max() <= declared + 1e-12
        assert added[:, name].max() >= 0.85 * declared
    bounds = RowBounds(number, number).of_group(k)
    (of_scores,) = bounds.of_scores(sizes[1])
    assert declared <= float(of_scores.add_or_remove_one) <= declared + (k + 1) / UNITS
    assert of_scores.rise == 0


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("number", [40, 5000])
def test_a_group_of_rows_with_the_other_values_attains_it(k, number):
    for values in (2, 3, 5):
        base = [0] * (number - k)
        found = entropy([*base, *(1 + j % (values - 1) for j in range(k))]) - entropy(base)
        least = entropy_change(number, k, values)
        assert found <= least + 1e-9
        if k % (values - 1) == 0 or values > k:
            assert found == pytest.approx(least, rel=1e-9)
        assert least <= entropy_change(number, k) <= k * entropy_change(number)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("target", [None, 0])
def test_vectors_of_entropies_change_as_declared_for_a_group(k, target):
    attributes = [dpf.Boolean(f"a{k}") for k in range(3)]
    number, values = 5, list(itertools.product((0, 1), repeat=3))
    bounds = RowBounds(number, number)
    weighted, plain = (kind(attributes, target, bounds) for kind in (ConditionalEntropies, Entropies))

    def conditional(rows):
        alone = [float(w) * entropy([r[k] for r in rows]) for k, w in enumerate(weighted.weights)]
        return np.array([*alone, *(-score([(r[a], r[b]) for r in rows]) for a, b in weighted.conditions)])

    def of_all(rows):
        alone = [entropy([r[k] for r in rows]) for k in range(3)]
        return np.array([*alone, *(entropy([(r[a], r[b]) for r in rows]) for a, b in plain.listed)])

    for query, answer, near in ((weighted, conditional, 0.7), (plain, of_all, 0.7)):
        added, swapped = group_changes(values, number, k, answer)
        assert added.min() >= -1e-12
        for power, declared in enumerate(query.for_rows(k), start=1):
            largest = (np.abs(added) ** power).sum(axis=1).max()
            assert near * float(declared.add_or_remove_one) <= largest <= float(declared.add_or_remove_one) + 1e-9
            one = query.sensitivities[power - 1]
            assert declared.add_or_remove_one < one.add_or_remove_one * k**power
            assert declared.replace_one < one.replace_one * k**power
            # each number's largest difference between tables with the same rows in common: together, a bound on pairs
            assert (swapped.max(axis=0) ** power).sum() <= float(declared.replace_one) + 1e-9


@pytest.mark.parametrize(("attributes", "size", "k"), [(3, 2, 2), (3, 2, 3), (4, 2, 2)])
def test_common_contexts_change_as_declared_for_a_group(attributes, size, k):
    number, values = 4, list(itertools.product((0, 1), repeat=attributes))

    def common(rows):
        total = 0.0
        for y in range(attributes):
            total += score([(tuple(row[j] for j in range(size) if j != y), row[y]) for row in rows])
        return np.array([-total])

    added, swapped = group_changes(values, number, k, common)
    query = CommonContextScores([dpf.Boolean(f"a{k}") for k in range(attributes)], size, RowBounds(number, number))
    (declared,) = query.for_rows(k)
    assert added.min() >= -1e-12
    assert 0.6 * float(declared.add_or_remove_one) <= added.max() <= float(declared.add_or_remove_one) + 1e-9
    assert swapped.max() <= float(declared.replace_one) + 1e-9
    assert declared.add_or_remove_one < k * query.sensitivities[0].add_or_remove_one


@pytest.mark.parametrize(("sizes", "inside"), [((2, 9, 9), 1), ((2, 3, 9, 9), 2), ((5, 2, 2, 3), 3)])
def test_the_bound_on_common_contexts_is_the_largest_over_all_of_them(sizes, inside):
    """Beside every context, and every a on a fine grid: attributes of many values change most."""
    bounds = RowBounds(50, 50, group=4)
    whole, each = (float(bounds.changes(50, None)), [float(bounds.changes(50, size)) for size in sizes])
    largest = max(
        sum(min(whole - a, own) if k in chosen else min(a, own) for k, own in enumerate(each))
        for chosen in itertools.combinations(range(len(sizes)), inside)
        for a in np.linspace(0, whole, 2001)
    )
    (declared,) = bounds.of_common_scores(sizes, inside)
    assert largest <= float(declared.replace_one) + 1e-9
    assert largest == pytest.approx(float(declared.replace_one), rel=1e-3)


@pytest.mark.parametrize("group", [1, 4])
def test_the_bound_on_conditional_entropies_is_the_largest_over_all_that_an_attribute_may_change_by(group):
    """Beside a fine grid of u; for one row it is G times the larger of an attribute's weight and number of pairs."""
    bounds, sizes, weights = RowBounds(50, 50, group=group), (2, 9, 3), (Fraction(2), Fraction(1, 4), Fraction(1))
    given = [[9, 3], [2], [2, 9, 9]]
    declared = bounds.of_conditional_entropies(weights, sizes, given)
    whole = float(bounds.changes(50, None))
    for power, found in enumerate(declared, start=1):
        largest = 0.0
        for weight, size, others in zip(weights, sizes, given, strict=True):
            own, each = float(bounds.changes(50, size)), [float(bounds.changes(50, other)) for other in others]
            largest += max(
                (float(weight) * u) ** power + sum(min(whole - u, other) ** power for other in each)
                for u in np.linspace(0, own, 2001)
            )
        assert largest <= float(found.add_or_remove_one) + 1e-9
        assert largest == pytest.approx(float(found.add_or_remove_one), rel=1e-3)
        if group == 1:
            pairs = zip(weights, given, strict=True)
            assert (
                found.add_or_remove_one == sum(max(w**power, len(g)) for w, g in pairs) * bounds.changes(50, 2) ** power
            )


@pytest.mark.parametrize("k", [2, 4, 8])
def test_rounding_of_several_terms_is_paid_for(k):
    """On tables of any size, equal rows and k others: a change in units is above what is exact, and not declared."""
    found = terms(3000)
    above = []
    for number in range(2 * k, 3000):
        change = int(found[number] - found[number - k] - found[k])
        declared = RowBounds(number, number, group=k).changes(number, 2)
        assert change <= declared * UNITS
        above.append(change > math.ceil(entropy_change(number, k, 2) * UNITS))
    assert any(above) == (k > 2), "so nothing but what is added covers it"


def test_real_queries_of_units_change_as_declared():
    """Rounded terms too: the queries themselves, on small tables with many rows besides."""
    attributes = [dpf.Boolean("a"), dpf.Categorical("b", ["x", "y", "z"]), dpf.Boolean("c")]
    schema = dpf.Schema(attributes, max_rows=12)
    bounds = RowBounds.of(schema)
    queries = [
        ContextScores(attributes, 1, bounds, 1),
        CommonContextScores(attributes, 2, bounds),
        Entropies(attributes, None, bounds),
        ConditionalEntropies(attributes, 1, bounds),
    ]
    for query, relation, k in itertools.product(queries, dpf.Relation, (2, 4)):
        report = dpf.verify.search_sensitivity(query, schema, relation, rows=k, pairs=120)
        assert report.passed, str(report)


def test_published_bounds_say_nothing_of_a_group_and_a_public_count_leaves_room_for_all_its_rows():
    attributes = [dpf.Boolean("a"), dpf.Boolean("b")]
    published = RowBounds.of(dpf.Schema(attributes, rows=50), published=True)
    assert published.of_group(3) is None
    assert ContextScores(attributes, 1, published, 0).for_rows(3) == ()
    both = RowBounds.of(dpf.Schema(attributes, rows=50, max_rows=50)).of_group(3)
    assert (both.added, both.replaced) == (53, 50)
    bounded = RowBounds.of(dpf.Schema(attributes, max_rows=50)).of_group(3)
    assert (bounded.added, bounded.replaced) == (50, 50)
    assert RowBounds.of(dpf.Schema(attributes, rows=50)).of_group(3).added is None


def test_bounds_of_conditional_entropies_are_nearly_attained_by_many_rows():
    """A row that shares each value with a quarter of the others, but no two, is replaced by one of new values.

    Each number then changes by g(rows / 4), which is G = log2(rows) + 1.4 but for 2 bits.
    """
    attributes, rows = [dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(4)], 1 << 16
    schema, engine = dpf.Schema(attributes, rows=rows), dpf.InMemory()
    query = ConditionalEntropies(attributes, None, RowBounds.of(schema))
    codes, found = np.where(np.arange(rows) % 4 == np.arange(4)[:, np.newaxis], 0, 1), []
    for last in (0, 2):
        codes[:, -1] = last
        found.append(query.evaluate(engine, engine.load(dpf.Table.from_codes(schema, codes))))
    declared = float(query.sensitivities[0].replace_one)
    assert 0.88 * declared <= np.abs(found[1] - found[0]).sum() <= declared


def g_above(rows):
    """Return G, rounded up to units."""
    return Fraction(math.ceil((rows * math.log2(rows) - (rows - 1) * math.log2(rows - 1)) * UNITS), UNITS)


def test_one_row_is_declared_to_change_what_was_derived():
    """Exactly: multiples of G of the rows under either relation, rounded up once."""
    bounds = RowBounds(50, 60)
    g, more = g_above(50), g_above(60)
    (score,) = bounds.of_scores(7)
    assert (score.add_or_remove_one, score.replace_one, score.rise, score.fall) == (more, g, 0, more)
    for inside in (2, 3, 4):
        (common,) = bounds.of_common_scores((2, 3, 7, 5, 4), inside)
        factor = max(5 - inside, inside)
        assert (common.add_or_remove_one, common.replace_one, common.rise) == (factor * more, factor * g, 0)
    l1, squared = bounds.of_entropies((2, 3, 7))
    assert (l1.add_or_remove_one, l1.replace_one, l1.fall) == (3 * more, 3 * g, 0)
    assert (squared.add_or_remove_one, squared.replace_one, squared.fall) == (3 * more**2, 3 * g**2, 0)
    weights, given = (Fraction(2), Fraction(1, 4), Fraction(1)), ([3, 7, 7], [2], [])
    l1, squared = bounds.of_conditional_entropies(weights, (2, 3, 7), given)
    assert (l1.add_or_remove_one, l1.replace_one) == ((3 + 1 + 1) * more, (2 + Fraction(1, 4) + 1 + 4) * g)
    assert squared.add_or_remove_one == (4 + 1 + 1) * more**2
    assert squared.replace_one == (4 + Fraction(1, 16) + 1 + 4) * g**2
    assert {one.fall for one in (l1, squared)} == {0}


def test_published_bounds_are_declared_for_a_row_that_is_replaced_only():
    bounds = RowBounds.of(dpf.Schema([dpf.Boolean("a")], rows=50, max_rows=60), published=True)
    change = Fraction(math.ceil((1 / math.log(2) + math.log2(50)) * UNITS), UNITS)
    assert bounds == RowBounds(50, None, published=True)
    (score,) = bounds.of_scores(7)
    assert (score.add_or_remove_one, score.replace_one) == (None, 2 * change)
    assert score.source == "theorems 6 and 7 of the paper"
    l1, squared = bounds.of_entropies((2, 3))
    assert (l1.replace_one, squared.replace_one, l1.add_or_remove_one) == (2 * change, 2 * change**2, None)
    assert l1.source == "theorem 5 of the paper"
    with pytest.raises(dpf.InputError, match="sensitivity = 'published' holds for a public row count only"):
        RowBounds.of(dpf.Schema([dpf.Boolean("a")], max_rows=60), published=True)


@pytest.mark.parametrize(
    ("facts", "bounds", "of_three"),
    [
        ({"rows": 50}, (50, None), (50, None)),
        ({"max_rows": 50}, (50, 50), (50, 50)),  # of a unit's rows, too, no more than that are in a table
        ({"rows": 50, "max_rows": 50}, (50, 51), (50, 53)),
        ({"rows": 50, "max_rows": 60}, (50, 60), (50, 60)),
    ],
)
def test_the_bounds_on_rows_follow_from_the_schema(facts, bounds, of_three):
    found = RowBounds.of(dpf.Schema([dpf.Boolean("a")], **facts))
    assert attrs.astuple(found) == (*bounds, False, 1)
    assert attrs.astuple(found.of_group(3)) == (*of_three, False, 3)
