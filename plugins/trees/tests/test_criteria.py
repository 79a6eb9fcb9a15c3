"""Criteria: sensitivities by brute force, attained and never exceeded; monotonicity as claimed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA, criterion_named, gain_sensitivity
from dpframework_trees.kernels import child_score

from dpframework.facts.errors import InputError
from dpframework.queries import Norm

MOST_ROWS = 14


def score(counts: tuple[int, ...], name: str) -> float:
    return child_score(np.array(counts, dtype=np.int64), CRITERIA[name].code)


def tables(rows: int, classes: int):
    """All class counts of one child with at most `rows` rows."""
    return (n for n in itertools.product(range(rows + 1), repeat=classes) if sum(n) <= rows)


def added(counts: tuple[int, ...], c: int) -> tuple[int, ...]:
    return tuple(n + (k == c) for k, n in enumerate(counts))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CRITERIA)
def test_declared_sensitivity_holds_and_is_attained_when_a_row_is_added(name, classes):
    sensitivity = CRITERIA[name].sensitivity(MOST_ROWS)
    assert sensitivity.norm is Norm.LINF
    changes = [
        score(added(n, c), name) - score(n, name) for n in tables(MOST_ROWS - 1, classes) for c in range(classes)
    ]
    declared = float(sensitivity.add_or_remove_one)
    assert max(map(abs, changes)) <= declared + 1e-9
    assert max(map(abs, changes)) >= declared - 1e-6
    monotonic = min(changes) >= -1e-9 or max(changes) <= 1e-9
    assert monotonic == sensitivity.monotonic


@pytest.mark.parametrize("name", CRITERIA)
def test_declared_sensitivity_holds_and_is_attained_when_a_row_is_replaced(name):
    # two children, as a binary test makes them: the replaced row may change its child too
    sensitivity = CRITERIA[name].sensitivity(MOST_ROWS)
    largest = 0.0
    for left in tables(MOST_ROWS - 1, 2):
        rest = MOST_ROWS - 1 - sum(left)
        for k in range(rest + 1):
            sides = (left, (k, rest - k))
            scores = [
                sum(score(added(side, c) if s == moved else side, name) for s, side in enumerate(sides))
                for moved in range(2)
                for c in range(2)
            ]
            largest = max(largest, max(scores) - min(scores))
    declared = float(sensitivity.replace_one)
    assert largest <= declared + 1e-9
    assert largest >= 0.99 * declared  # the 3-norm comes close to 1 only as the rows grow


def test_purity_is_not_monotonic_so_its_spread_is_twice_its_sensitivity():
    # a row of another class lowers the purity of a pure child
    assert score((9, 1), "gini") < score((9, 0), "gini") - 0.79
    assert CRITERIA["gini"].sensitivity(None).spread.add_or_remove_one == 2
    assert CRITERIA["norm"].sensitivity(None).spread.add_or_remove_one == 1


@pytest.mark.parametrize("n", [2, 5, 10, 1000])
def test_purity_under_replace_one_is_the_papers_gini_bound_made_exact(n):
    assert CRITERIA["gini"].sensitivity(n).replace_one == Fraction(2 * (n - 1), n)


def test_gain_sensitivity_is_below_the_published_bound_and_close_to_it():
    for rows in (2, 10, 1000, 45222):
        published = math.log2(rows + 1) + 1 / math.log(2)
        assert gain_sensitivity(rows) <= published
        assert gain_sensitivity(rows) >= published - 1.1


def test_gini_and_purity_order_candidates_alike():
    rng = np.random.default_rng(3)
    for _ in range(200):
        parts = rng.multinomial(60, rng.dirichlet(np.ones(8))).reshape(4, 2)
        # the Gini score of the talk: -sum over children of N (1 - sum of squared shares)
        splits = [parts, np.array([parts[0] + parts[1], parts[2] + parts[3]])]
        gini = [-sum(n.sum() * (1 - ((n / n.sum()) ** 2).sum()) for n in split if n.sum()) for split in splits]
        purity = [sum(score(tuple(n), "gini") for n in split) for split in splits]
        assert gini[0] - gini[1] == pytest.approx(purity[0] - purity[1], abs=1e-9)


def test_information_gain_without_a_bound_on_the_rows_says_what_to_set():
    with pytest.raises(InputError, match="max_rows"):
        CRITERIA["information-gain"].sensitivity(None)


def test_an_unknown_criterion_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'gini'"):
        criterion_named("ginni")


def test_information_gain_allows_for_the_row_that_a_neighbour_has_more():
    # with rows = 1 a neighbour under add-or-remove-one has two rows, and a score may change by 2 bits
    exact = CRITERIA["information-gain"].sensitivity(1, exact=True)
    assert float(exact.add_or_remove_one) == pytest.approx(gain_sensitivity(2))
    assert float(exact.replace_one) == pytest.approx(gain_sensitivity(1))
    assert abs(score((1, 1), "information-gain") - score((1, 0), "information-gain")) <= exact.add_or_remove_one
