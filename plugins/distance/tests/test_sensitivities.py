"""The sensitivities of entropies, by brute force over all tables of a few rows."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from dpframework_distance.queries import CommonContextScores, ConditionalEntropies, ContextScores
from dpframework_distance.sensitivities import UNITS, RowBounds, entropy_change, published_entropy_change, terms

import dpframework as dpf


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
    assert counted.of_scores()[0].add_or_remove_one is None
    bounded = RowBounds.of(dpf.Schema(attributes, max_rows=50))
    assert float(bounded.of_scores()[0].add_or_remove_one) == pytest.approx(entropy_change(50))
    both = RowBounds.of(dpf.Schema(attributes, rows=50, max_rows=50))
    assert float(both.of_scores()[0].add_or_remove_one) == pytest.approx(entropy_change(51))
    assert float(both.of_scores()[0].replace_one) == pytest.approx(entropy_change(50))
    published = RowBounds.of(dpf.Schema(attributes, rows=50, max_rows=60), published=True)
    assert published.of_scores()[0].add_or_remove_one is None


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
        assert Fraction(int(g[number - 1]), UNITS) <= RowBounds(number, None).entropy()[1]


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
