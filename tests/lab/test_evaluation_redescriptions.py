"""What redescriptions are truly worth, and how much of a non-private set was found: beside sets of rows in Python."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import spearmanr

import dpframework as dpf
from dpframework.facts.descriptions import And, Equals, Not, Or
from dpframework.lab.evaluation import exact_counts, matched, redescription_quality
from dpframework.lab.evaluation.redescriptions import kept
from dpframework.results.noisy import Noisy
from dpframework.results.redescription import Redescription
from dpframework.results.redescriptions import Redescriptions

NAMES = list("abcd")
SCHEMA = dpf.Schema([dpf.Boolean(name, view="left" if name in "ab" else "right") for name in NAMES])
A, B, C, E = (Equals(name, "true") for name in NAMES)


def table_of(codes) -> dpf.Table:
    return dpf.Table.from_codes(SCHEMA, np.array(codes))


def shown(left, right, both=10.0, apart=10.0) -> Redescription:
    return Redescription(left, right, both=Noisy(both, 50), apart=Noisy(apart, 100))


@pytest.fixture(scope="module")
def table() -> dpf.Table:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (4, 20_011))  # more than two blocks, and no multiple of eight
    codes[2] = np.where(rng.random(20_011) < 0.9, codes[0], codes[2])
    return table_of(codes)


def rows_where(table, text):
    columns = dict(zip(NAMES, np.array(table.codes, dtype=bool), strict=True))
    return set(np.flatnonzero(eval(text, {}, columns)).tolist())


CASES = {
    "a~c": (shown(A, C), "a", "c"),
    "b~d": (shown(B, E), "b", "d"),
    "mixed": (shown(And([A, Not(B)]), Or([C, E])), "a & ~b", "c | d"),
}


@pytest.mark.parametrize("case", CASES)
def test_exact_counts(table, case):
    one, left, right = CASES[case]
    (exact,) = exact_counts([one], table)
    first, second = rows_where(table, left), rows_where(table, right)
    assert exact.both.value == len(first & second)
    assert exact.left_support.value == len(first)
    assert exact.right_support.value == len(second)
    assert exact.rows.value == 20_011
    assert exact.both.variance == exact.apart.variance == 0


def test_quality(table):
    found = [shown(A, C, 90, 10), shown(B, E, 60, 40), shown(A, E, 50, 50)]
    quality = redescription_quality(found, table)
    exact = exact_counts(found, table)
    assert quality.true.tolist() == [one.jaccard for one in exact]
    assert quality.noisy.tolist() == [0.9, 0.6, 0.5]
    assert quality.p_values.tolist() == [one.p_value for one in exact]
    assert quality.supports.tolist() == [one.both.value for one in exact]
    assert quality.significant == pytest.approx(np.mean([one.p_value <= 0.01 for one in exact]))
    assert quality.p_values[0] < 1e-99  # planted
    assert quality.quartiles[1] == sorted(quality.true)[1]
    assert quality.error == np.median(np.abs(quality.noisy - quality.true))
    assert quality.spearman == pytest.approx(spearmanr([0.9, 0.6, 0.5], quality.true).statistic)
    assert str(quality).endswith("Not private: measured on the rows themselves.")
    assert "not private" in repr(quality)


def test_a_p_value_by_hand():
    # three of four rows left, two right, two both: chance 3/4 * 2/4 each
    table = table_of([[1, 1, 1, 0], [0] * 4, [1, 1, 0, 0], [0] * 4])
    p = Fraction(3, 8)
    tail = 1 - (1 - p) ** 4 - 4 * p * (1 - p) ** 3
    assert redescription_quality([shown(A, C)], table).p_values[0] == pytest.approx(float(tail))


def test_useful_are_those_that_are_significant_within_their_supports_alike_and_different():
    rows = np.arange(100)
    a, b, c, e = rows < 40, rows < 37, rows < 38, rows >= 5
    table = table_of([a.astype(int), b.astype(int), c.astype(int), e.astype(int)])
    found = [shown(A, C), shown(B, C), shown(A, E), shown(Not(A), Not(C)), shown(Not(A), E)]
    # the second holds for the rows of the first, the third is no match, the fifth holds for 95 rows on one side
    assert redescription_quality(found, table).useful.tolist() == [True, False, False, True, False]
    assert redescription_quality(found[1:], table).useful.tolist() == [True, False, True, False]
    assert redescription_quality(found, table).to_dict()["useful"] == 2


def test_nothing_found_has_no_figures():
    quality = redescription_quality([], table_of([[0]] * 4)).to_dict()
    assert quality.pop("count") == quality.pop("useful") == 0
    assert all(math.isnan(value) for value in quality.values())
    assert "no redescriptions" in str(redescription_quality([], table_of([[0]] * 4)))
    two = redescription_quality([shown(A, C), shown(B, E)], table_of([[1]] * 4))
    assert math.isnan(two.spearman)


SIDES = st.sampled_from([A, B, C, E, Not(A), And([A, B]), Or([B, C])])
SETS = st.lists(st.builds(shown, SIDES, SIDES), max_size=4)


@settings(max_examples=100)
@given(SETS, SETS, st.lists(st.tuples(*[st.integers(0, 1)] * 4), max_size=20))
def test_matching_is_the_best_by_rows(found, reference, rows):
    table = table_of(np.array(rows, dtype=int).reshape(-1, 4).T)
    (block,) = dpf.InMemory().load(table)

    def covered(one):
        return set(np.flatnonzero(one.left.holds(block) & one.right.holds(block)).tolist())

    matching = matched(found, reference, table)
    for one, best, similarity in zip(reference, matching.best, matching.similarity, strict=True):
        each = [len(covered(one) & covered(o)) / max(len(covered(one) | covered(o)), 1) for o in found]
        assert similarity == pytest.approx(max(each, default=0))
        assert best == -1 if not found else each[best] == pytest.approx(max(each))
    if reference:
        assert matching.mean == pytest.approx(np.mean(matching.similarity))
        assert matching.recovered(0.5) == np.mean(matching.similarity >= 0.5)
    else:
        assert math.isnan(matching.mean)
        assert math.isnan(matching.recovered())


def test_matching_over_several_blocks(table):
    found, reference = [shown(B, E), shown(A, A)], [shown(A, C), shown(A, A)]
    matching = matched(found, reference, table)
    first, second = rows_where(table, "a & c"), rows_where(table, "a")
    assert matching.best.tolist() == [1, 1]
    assert matching.similarity == pytest.approx([len(first & second) / len(first | second), 1])
    assert str(matching).endswith("Not private: measured on the rows themselves.")


def test_which_are_kept():
    sides = {"left_only": Noisy(50, 50), "right_only": Noisy(50, 50), "rows": 1000}
    large, small = Redescription(A, C, both=Noisy(400, 50), **sides), shown(B, E, 12, 3)
    found = Redescriptions([large, small], candidates=50)
    assert kept(found, "all") == list(found)
    assert kept(found, "trusted") == kept(found, "pruned") == kept(found, 100) == [large]
    for which in ("some", True):
        with pytest.raises(dpf.InputError, match="accepted are"):
            kept(found, which)
