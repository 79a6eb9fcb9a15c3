"""Bounds of claims at a number of rows and in the limit, exactly, and what claims and pairs of tables say."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import dpframework as dpf
from dpframework.formulas.count_formula import Formula, as_formula, cells, form, root, rows, x_log2_x
from dpframework.formulas.rounding_error_bound import (
    UNIT_ROUNDOFF,
    _Error,
    _error,
    _extreme,
    _product,
    _quotient,
    _share_error,
    _sum,
)
from dpframework.formulas.sensitivity_claims_and_neighbours import (
    LAST_INCREMENT,
    Change,
    Claim,
    Neighbours,
    bound_at,
    norm_claims,
    score_claims,
)
from dpframework.queries import Histogram

SHAPE = Histogram(dpf.Boolean("ill")).scored_formulas[0].shape


def test_the_last_increment_is_rounded_up_and_no_further() -> None:
    """Of k log2 k from k - 1 to k rows, with 50 digits by whole numbers: 2**(10**4 change) lies between powers."""
    assert bound_at(LAST_INCREMENT, 0) == bound_at(LAST_INCREMENT, 1) == 0
    for k in (2, 3, 4, 7, 100):
        found = bound_at(LAST_INCREMENT, k)
        # change = log2(k**k / (k - 1)**(k - 1)); so many bits of its 64th power are before the point
        power = Fraction(k**k, (k - 1) ** (k - 1)) ** 64
        bits = power.numerator.bit_length() - power.denominator.bit_length()
        assert Fraction(bits - 1, 64) <= found <= Fraction(bits + 1, 64)
        exact = k * math.log2(k) - (k - 1) * math.log2(k - 1)
        assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-12)
    assert bound_at(LAST_INCREMENT, 2) >= 2
    with pytest.raises(dpf.InputError, match=r"grows with the rows; set max_rows or rows in the schema$"):
        bound_at(LAST_INCREMENT, None)


def test_a_bound_is_exact_at_a_number_of_rows_and_in_the_limit() -> None:
    third = Fraction(1, 3)
    for bound, number, at, limit in (
        (as_formula(third), 5, third, third),
        (third - 1 / rows, 5, third - Fraction(1, 5), third),
        (1 - 2 / rows, 8, Fraction(3, 4), Fraction(1)),
        (1 - 2 / rows, 1, Fraction(0), Fraction(1)),  # a change is never below 0
        (1 - 2 / rows, 0, Fraction(0), Fraction(1)),
        (3 * (third - 1 / rows), 4, Fraction(1, 4), Fraction(1)),
        (-1 / rows + third, 5, third - Fraction(1, 5), third),
        (rows, 9, Fraction(9), None),
        (2 * rows, 9, Fraction(18), None),
        (1 + rows, 9, Fraction(10), None),
        (rows * rows, 9, Fraction(81), None),
        (rows / 2, 9, Fraction(9, 2), None),
    ):
        assert bound_at(bound, number) == at, bound
        if limit is not None:
            assert bound_at(bound, None) == limit, bound
        else:
            with pytest.raises(dpf.InputError, match="grows with the rows"):
                bound_at(bound, None)
    with pytest.raises(dpf.InputError, match="no sensitivity can be read from the bound"):
        bound_at(x_log2_x(rows), 3)


def test_claims_and_pairs_of_tables_say_what_they_are() -> None:
    one, two = Claim("rise", 2), Claim(Change.REPLACED, rows, group=2, replaced=True)
    assert (one.text, two.text) == ("rise <= 2", "replaced when replaced by 2 rows <= R")
    assert one.form == ["rise", 1, False, form(as_formula(2))]
    assert two.form == ["replaced", 2, True, form(rows)]
    scored = score_claims("some", SHAPE, 1, 2, 3)
    assert [one.text for one in scored.claims] == ["rise <= 1", "fall <= 2", "replaced <= 3"]
    assert (scored.name, scored.shape, scored.scorer) == ("some", SHAPE, None)
    other = score_claims("some", SHAPE, 1, 2, 3, lambda counts, numbers: 0)
    assert other == scored
    assert "scorer" not in repr(other)
    normed = norm_claims("more", SHAPE, {Change.L1: 1, Change.LINF: 1}, {Change.L1: 2})
    assert [one.text for one in normed.claims] == ["l1 <= 1", "linf <= 1", "l1 when replaced <= 2"]
    assert str(Neighbours((1, Fraction(1, 2)), (2, 3), Fraction(1, 3))) == "[1 1/2] -> [2 3]: 1/3"
    assert str(Neighbours(((1, 0), (2, 3)), ((1, 1), (2, 3)), 0.1234567)) == "[[1 0] [2 3]] -> [[1 1] [2 3]]: 0.123457"


def test_errors_are_added_up_as_shares_or_as_sizes() -> None:
    """Each rule by hand, in unit roundoffs, for values whose largest sizes, signs and errors all differ."""
    u, F = UNIT_ROUNDOFF, Fraction
    one, other = _share_error(F(6), 1, F(3)), _share_error(F(5), 1, F(4))
    minus, unknown = _share_error(F(5), -1, F(4)), _Error(F(5), 1, 7 * u, None)
    assert (one.largest, one.sign, one.absolute, one.share) == (6, 1, 18 * u, 3)
    assert _sum(one, other) == _Error(F(11), 1, (18 + 20 + 11) * u, F(5))
    assert _sum(one, minus) == _Error(F(11), 0, (18 + 20 + 11) * u, None)
    assert _sum(one, unknown) == _sum(unknown, one) == _Error(F(11), 1, (18 + 7 + 11) * u, None)
    whole, half = _share_error(F(6), 1, F(0)), _share_error(F(1, 2), 1, F(0))
    assert _sum(whole, whole) == _Error(F(12), 1, F(0), F(0))
    assert _sum(whole, half) == _Error(F(13, 2), 1, F(13, 2) * u, F(1))  # no whole number
    assert _sum(whole, one) == _Error(F(12), 1, (18 + 12) * u, F(4))
    limit = 1 / u
    for size, exact in ((limit - 7, True), (limit - 6, False)):  # 2**53 and more need not be exact
        assert _sum(whole, _share_error(size, 1, F(0))).share == (0 if exact else 1)
    assert _product(one, other) == _Error(F(30), 1, (18 * 5 + 20 * 6 + 30) * u + 18 * 20 * u**2, F(8))
    assert _product(one, minus).sign == -1
    assert _product(unknown, one).share is _product(one, unknown).share is None
    assert _extreme(one, other) == _Error(F(6), 1, 20 * u, F(4))
    assert _extreme(other, one) == _Error(F(6), 1, 20 * u, F(4))
    assert _extreme(one, minus) == _Error(F(6), 0, 20 * u, None)
    assert _extreme(one, unknown).share is _extreme(unknown, one).share is None


def test_a_quotient_is_by_a_constant_or_by_a_whole_number() -> None:
    u, F = UNIT_ROUNDOFF, Fraction
    top, below = _share_error(F(6), 1, F(3)), _share_error(F(5), 1, F(0))
    assert _quotient(1 / rows, top, below) == _share_error(F(6), 1, F(4))
    assert _quotient(rows / 4, top, _share_error(F(4), 1, F(0))) == _share_error(F(6, 4), 1, F(4))
    assert _quotient(rows / -4, top, _share_error(F(4), -1, F(0))) == _share_error(F(6, 4), -1, F(4))
    loose = _Error(F(6), 1, 9 * u, None)
    assert _quotient(rows / 4, loose, _Error(F(4), 1, 2 * u, F(1, 2))) == _Error(
        F(3, 2), 1, 2 * (9 * u + F(3, 2) * 2 * u) / 4 + F(3, 2) * u, None
    )
    for formula, error in ((1 / rows, F(1, 2)), (rows / 4, F(2)), (1 / (rows / 3), F(0))):
        with pytest.raises(dpf.InputError, match="may be arbitrarily small; declare the rounding"):
            _quotient(formula, top, _Error(F(5), 1, error, F(0)))
    assert _quotient(1 / rows, loose, _Error(F(5), 1, F(1, 2) - u, F(0))).largest == 6


def test_the_error_of_each_operation_is_known() -> None:
    u, F = UNIT_ROUNDOFF, Fraction
    count, all_rows = cells("a")[0], _share_error(F(100), 1, F(0))
    for formula, expected in (
        (as_formula(F(1, 4)), _share_error(F(1, 4), 1, F(0))),
        (as_formula(F(1, 3)), _share_error(F(1, 3), 1, F(1))),
        (as_formula(-3), _share_error(F(3), -1, F(0))),
        (as_formula(0), _share_error(F(0), 1, F(0))),
        (count, all_rows),
        (x_log2_x(count), _share_error(F(700), 1, F(10))),
        (root(count), _share_error(F(11), 1, F(13))),
        (root(as_formula(F(1, 1024))), _share_error(F(2), 1, F(10))),
        (count + F(1, 3), _sum(all_rows, _share_error(F(1, 3), 1, F(1)))),
        (count * F(1, 3), _product(all_rows, _share_error(F(1, 3), 1, F(1)))),
        (
            count * -1 + count,
            _sum(_product(all_rows, _share_error(F(1), -1, F(0))), _share_error(F(100), 1, F(0))),
        ),
    ):
        assert _error(formula, F(100), 2) == expected, formula
    assert _error(count * F(1, 3), F(100), 2).absolute >= 100 * u / 3


@pytest.mark.parametrize("bound", [2 / rows, 1 + 1 / (rows + 3), 3 - rows, as_formula(Fraction(1, 2)) / (rows + 1)])
def test_a_bound_that_falls_as_the_rows_grow_is_refused(bound: Formula) -> None:
    """What it is for the most rows does not hold for tables with fewer: with any number of rows it would be 0."""
    for number in (1, 100, None):
        with pytest.raises(dpf.InputError, match="falls as the rows grow"):
            bound_at(bound, number)


@pytest.mark.parametrize("bound", [1 / (1 / rows), 2 / (1 - 1 / rows), 1 - 1 / (rows - 1)])
def test_a_bound_divides_only_by_the_rows_and_a_number_of_0_or_more(bound: Formula) -> None:
    for number in (100, None):
        with pytest.raises(dpf.InputError, match="divides only by numbers and by the rows"):
            bound_at(bound, number)
    assert bound_at(2 - 1 / (1 + rows), 3) == Fraction(7, 4)
    assert bound_at(2 - 1 / (rows + 1), None) == 2
    assert bound_at((1 - 1 / rows) / 2, 4) == Fraction(3, 8)
    assert bound_at((1 - 1 / rows) / 2, None) == Fraction(1, 2)
