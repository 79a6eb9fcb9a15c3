"""What redescriptions are truly worth, and how much of a non-private set was found: beside sets of rows in Python."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import spearmanr

import dpframework as dpf
from dpframework.facts.logical_descriptions_of_rows import And, Equals, Not, Or
from dpframework.lab.evaluation import exact_counts, match_redescriptions, redescription_quality
from dpframework.lab.evaluation.distinct_redescriptions_and_idle_literals import leave_out_each, without_idle_literals
from dpframework.lab.evaluation.exact_redescription_quality import select_redescriptions
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.results.noisy_count_with_interval import Noisy

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


def planted(rows=1000, **sets):
    """Return a table of Booleans, each true for a range of rows, or for several."""
    masks = {name: np.isin(np.arange(rows), np.r_[tuple(spans)]) for name, spans in sets.items()}
    return table_of([masks[name].astype(int) for name in NAMES])


def test_different_findings_leave_out_complements_and_near_copies_and_the_same_attributes():
    # a and c are true for 400 rows; b and d for 300 others, so that "a or b" is not "a"
    table = planted(a=[slice(0, 400)], b=[slice(400, 700)], c=[slice(0, 400)], d=[slice(400, 700)])
    complement, both = shown(Not(A), Not(C)), shown(Or([A, B]), Or([C, E]))
    found = [shown(A, C), complement, shown(B, E), both, shown(Not(B), Not(E)), shown(And([Not(A), Not(B)]), Not(C))]
    quality = redescription_quality(found, table)
    # only the complements repeat what stands before them; the last is no match
    assert quality.useful.tolist() == [True, True, True, True, True, False]
    assert quality.different.tolist() == [True, False, True, True, False, False]
    again = redescription_quality([both, shown(And([Not(A), Not(B)]), And([Not(C), Not(E)]))], table)
    assert again.useful.tolist() == [True, True]
    assert again.different.tolist() == [True, False]
    assert redescription_quality(found[1:], table).different.tolist() == [True, True, True, False, False]


def test_a_complement_in_other_words_is_the_same_finding():
    table = planted(a=[slice(0, 400)], b=[slice(420, 1000)], c=[slice(0, 400)], d=[slice(420, 1000)])
    quality = redescription_quality([shown(A, C), shown(B, E)], table)
    assert quality.useful.tolist() == [True, True]
    assert quality.different.tolist() == [True, False]


def test_of_the_same_attributes_one_is_counted_and_literals_that_say_nothing_make_no_attribute():
    table = planted(a=[slice(0, 500)], b=[slice(300, 700)], c=[slice(0, 500)], d=[slice(300, 700)])
    both, apart = shown(And([A, B]), And([C, E])), shown(And([A, Not(B)]), And([C, Not(E)]))
    quality = redescription_quality([both, apart], table)
    assert quality.useful.tolist() == [True, True]
    assert quality.different.tolist() == [True, False]
    rare = planted(a=[slice(0, 300)], b=[slice(300, 309)], c=[slice(0, 300)], d=[slice(300, 309)])
    quality = redescription_quality([shown(Or([A, B]), Or([C, E])), shown(A, C)], rare)
    assert quality.nothing.tolist() == [2, 0]
    assert quality.empty == quality.to_dict()["empty"] == 0.5
    assert redescription_quality(
        [shown(Or([A, B]), C)], planted(a=[slice(0, 300)], b=[slice(300, 310)], c=[slice(0, 300)], d=[slice(0, 0)])
    ).nothing.tolist() == [0]


def test_literals_are_left_out_in_any_place_of_a_description():
    said = And([Or([A, Not(B)]), Not(Or([C, And([A, E])]))])
    assert [str(one) for one in leave_out_each(said)] == [
        "b != true and not (c = true or (a = true and d = true))",
        "a = true and not (c = true or (a = true and d = true))",
        "(a = true or b != true) and not (a = true and d = true)",
        "(a = true or b != true) and not (c = true or d = true)",
        "(a = true or b != true) and not (c = true or a = true)",
    ]
    assert not list(leave_out_each(A))
    assert not list(leave_out_each(Not(A)))


def test_of_literals_that_repeat_each_other_one_stays():
    (block,) = dpf.InMemory().load(planted(a=[slice(0, 300)], b=[slice(0, 300)], c=[slice(0, 50)], d=[slice(0, 0)]))
    assert without_idle_literals(And([A, B]), block) in (A, B)
    assert without_idle_literals(Or([A, C]), block) == A
    assert without_idle_literals(And([A, C]), block) == C
    assert without_idle_literals(Or([A, Not(C)]), block) == Or([A, Not(C)])


@pytest.mark.parametrize(("more", "left"), [(9, A), (10, Or([A, B]))])
def test_a_literal_says_something_from_a_hundredth_of_the_rows_on(more, left):
    rows = planted(a=[slice(0, 300)], b=[slice(300, 300 + more)], c=[slice(0, 0)], d=[slice(0, 0)])
    (block,) = dpf.InMemory().load(rows)
    assert without_idle_literals(Or([A, B]), block) == left


def test_nothing_found_has_no_figures():
    quality = redescription_quality([], table_of([[0]] * 4)).to_dict()
    assert quality.pop("count") == quality.pop("useful") == quality.pop("different") == 0
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

    matching = match_redescriptions(found, reference, table)
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
    matching = match_redescriptions(found, reference, table)
    first, second = rows_where(table, "a & c"), rows_where(table, "a")
    assert matching.best.tolist() == [1, 1]
    assert matching.similarity == pytest.approx([len(first & second) / len(first | second), 1])
    assert str(matching).endswith("Not private: measured on the rows themselves.")


def test_which_are_kept():
    sides = {"left_only": Noisy(50, 50), "right_only": Noisy(50, 50), "rows": 1000}
    large, small = Redescription(A, C, both=Noisy(400, 50), **sides), shown(B, E, 12, 3)
    found = Redescriptions([large, small], candidates=50)
    assert select_redescriptions(found, "all") == list(found)
    trusted, pruned = select_redescriptions(found, "trusted"), select_redescriptions(found, "pruned")
    assert trusted == pruned == select_redescriptions(found, 100) == [large]
    for which in ("some", True):
        with pytest.raises(dpf.InputError, match="accepted are"):
            select_redescriptions(found, which)
