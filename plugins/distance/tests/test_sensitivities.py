"""The sensitivities of entropies, by brute force over all tables of a few rows."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from dpframework_distance.queries import CommonContextScores
from dpframework_distance.sensitivities import RowBounds, entropy_change, published_entropy_change

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


@pytest.mark.parametrize("number", [3, 5, 7])
def test_two_candidates_move_apart_by_twice_g(number):
    """So exp(eps score / (2 G)) has the best universal constant: one score falls by G, the other rises by G."""
    # rows are (s1, s2, y): in s1 all rows are of one value, in s2 the replaced row is alone before and not after
    before = [("a", "x", 0)] * (number - 1) + [("a", "z", 0)]
    best = 0.0
    values = list(itertools.product("ab", "xz", (0, 1)))
    for shared in tables(values, number - 1):
        for out, in_ in itertools.permutations(values, 2):
            one, other = (*shared, out), (*shared, in_)
            moved = [score([(r[k], r[2]) for r in one]) - score([(r[k], r[2]) for r in other]) for k in (0, 1)]
            best = max(best, abs(moved[0] - moved[1]))
        if number > 5:  # the tables that reach it have one kind of row besides the one that is replaced
            break
    assert len(before) == number
    assert best <= 2 * entropy_change(number) + 1e-12
    if number <= 5:
        assert best > 1.5 * entropy_change(number)


@pytest.mark.parametrize("number", [100, 1000])
def test_two_candidates_move_apart_by_nearly_twice_g_in_large_tables(number):
    """Rows (s1, s2, y): in s1 the row goes from alone to the odd one out, in s2 the other way round."""
    half = number // 2
    shared = [(0, 0, 0)] * half + [(0, 1, 0)] * 0 + [(1, 0, 0)] * (number - 1 - half)
    one, other = [*shared, (2, 0, 1)], [*shared, (0, 2, 1)]
    change = [score([(r[k], r[2]) for r in one]) - score([(r[k], r[2]) for r in other]) for k in (0, 1)]
    assert abs(change[0] - change[1]) > 1.8 * entropy_change(number)
    assert abs(change[0] - change[1]) <= 2 * entropy_change(number)


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
