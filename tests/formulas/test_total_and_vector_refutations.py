"""Refutations for functions of totals and for vectors: claims that are too small are refuted, true ones are not."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, strategies as st

from dpframework.formulas import cells, public
from dpframework.formulas.score_structures import Adds, Outer, Total, table_rows
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim
from dpframework.formulas.total_and_vector_refutations import MOST_ENDS, find_refuting_rows, find_refuting_totals

gain, none = cells("gain", "none")
NORMS = st.sampled_from([Change.L1, Change.SQUARED_L2, Change.LINF])
BOUND = st.integers(0, 24).map(lambda sixths: Fraction(sixths, 6))
HALF = Outer((Total(gain, 1, 1, 1), Total(none, 1, 0, 1)), (gain - none) / 2)
SHARE = Outer((Total(gain, 1, 0, 1),), gain * gain / table_rows)
#: What a row moves half of the difference of two totals by.
LARGEST = {Change.RISE: Fraction(1, 2), Change.FALL: Fraction(1), Change.REPLACED: Fraction(3, 2)}


@given(st.sampled_from(sorted(LARGEST)), BOUND)
def test_a_claim_about_totals_is_refuted_where_it_is_below_the_largest_change(change: Change, bound: Fraction) -> None:
    found = find_refuting_totals(HALF, Claim(change, bound))
    assert (found is not None) == (bound < LARGEST[change])
    if found is not None:
        scores = [(Fraction(one[0]) - Fraction(one[1])) / 2 for one in (found.low, found.high)]
        assert found.change == scores[1] - scores[0] > bound
        assert abs(found.high[-1] - found.low[-1]) == (0 if change is Change.REPLACED else 1)


def test_rows_are_added_to_tables_of_many_sizes() -> None:
    # the share of a total that all rows are in rises by 1 with a row, and by less where some are not
    assert find_refuting_totals(SHARE, Claim(Change.RISE, 2)) is None
    found = find_refuting_totals(SHARE, Claim(Change.RISE, Fraction(1, 2)))
    assert found is not None
    assert found.change > Fraction(1, 2)


ENDS = st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(sorted)


@given(
    st.lists(ENDS, min_size=1, max_size=3),
    NORMS,
    BOUND,
    st.booleans(),
)
def test_a_norm_is_refuted_where_it_is_below_that_of_the_extreme_rows(
    ends: list[list[int]], change: Change, bound: Fraction, replaced: bool
) -> None:
    shape = Adds(tuple(public(f"x{k}", *one) for k, one in enumerate(ends)))
    moves = [high - low if replaced else max(abs(low), abs(high)) for low, high in ends]
    largest = {Change.L1: sum(moves), Change.LINF: max(moves), Change.SQUARED_L2: sum(one**2 for one in moves)}
    found = find_refuting_rows(shape, Claim(change, bound, replaced=replaced))
    assert (found is not None) == (bound < largest[change])
    if found is not None:
        assert found.change == largest[change] or found.change > bound
        assert replaced or set(found.low) == {0}


def test_entries_that_are_shares_of_a_row_add_up_to_1_at_most() -> None:
    entries = (public("x", 0, 1), public("y", 0, 1))
    assert find_refuting_rows(Adds(entries), Claim(Change.L1, 1)) is not None
    assert find_refuting_rows(Adds(entries, shares=True), Claim(Change.L1, 1)) is None


def test_more_parameters_than_can_be_tried_refute_nothing() -> None:
    for number, refuted in ((MOST_ENDS, True), (MOST_ENDS + 1, False)):
        shape = Adds(tuple(public(f"x{k}", 0, 1) for k in range(number)))
        assert (find_refuting_rows(shape, Claim(Change.LINF, Fraction(1, 2))) is not None) == refuted
