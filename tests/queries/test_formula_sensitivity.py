"""The sensitivity that follows from the claims of a formula, for a public number of rows, and for groups of rows."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest

from dpframework.facts.errors import InputError
from dpframework.formulas import Cells, Parts, at_least, cells, n, sum_over_classes
from dpframework.formulas.count_formula import rows
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.formula_scores import FormulaScores, _smaller, formula_sensitivity

(A,) = cells("a")
PARTS, CELLS = Parts(sum_over_classes(n**2)), Cells((A,), A)


def rise(m: int) -> F:
    return 1 - F(1, m)


def fall(m: int) -> F:
    return max(F(1, 2) - F(1, m), F(0))


def claims(replaced: Any = 9) -> list[Claim]:
    made: list[tuple[Change, Any]] = [
        (Change.RISE, 1 - 1 / rows),
        (Change.FALL, F(1, 2) - 1 / rows),
        (Change.REPLACED, replaced),
    ]
    return [Claim(change, bound) for change, bound in made]


@pytest.mark.parametrize(
    ("shape", "bound", "exact", "group", "larger", "same"),
    [
        (PARTS, 8, False, 1, [8], [8]),
        (PARTS, 8, True, 1, [9], [8]),  # a neighbour of exactly 8 rows may have 9
        (PARTS, 8, False, 3, [8, 7, 6], [8, 7, 6]),  # one row after another: each table is smaller
        (PARTS, 8, True, 3, [11, 10, 9], [8, 7, 6]),
        (PARTS, 2, False, 4, [2, 1, 1, 1], [2, 1, 1, 1]),
        (CELLS, 8, False, 3, [8], [8]),  # its claims are of the whole group
        (CELLS, 8, True, 3, [11], [8]),
    ],
)
def test_bounds_of_one_row_after_another_add_up_at_the_sizes_that_the_tables_have(
    shape: Any, bound: int, exact: bool, group: int, larger: list[int], same: list[int]
) -> None:
    found = formula_sensitivity(shape, claims(), bound, exact, group)
    assert found.norm is Norm.LINF
    assert found.rise == sum(map(rise, larger))
    assert found.fall == sum(map(fall, larger))
    assert found.add_or_remove_one == max(found.rise, found.fall)
    assert found.replace_one == sum(map(rise, same)) + sum(map(fall, same))  # a removal and an addition
    assert shape.text in found.source


@pytest.mark.parametrize(("shape", "group", "times"), [(PARTS, 1, 1), (PARTS, 3, 3), (CELLS, 3, 1)])
def test_a_replacement_costs_no_more_than_its_own_claim_for_each_row(shape: Any, group: int, times: int) -> None:
    found = formula_sensitivity(shape, claims(replaced=F(1, 10)), 8, True, group)
    assert found.replace_one == F(times, 10)
    growing = formula_sensitivity(shape, claims(replaced=F(1, 10) - F(1, 20) / rows), 8, True, group)
    assert growing.replace_one == times * (F(1, 10) - F(1, 160))


def test_without_a_bound_on_the_rows_bounds_are_the_limits() -> None:
    found = formula_sensitivity(PARTS, claims(), None, False, 2)
    assert (found.rise, found.fall, found.replace_one) == (2, 1, 3)
    lowers = [Claim(Change.RISE, 0), Claim(Change.FALL, F(1, 3)), Claim(Change.REPLACED, 1)]
    below = formula_sensitivity(CELLS, lowers, 5, False)
    assert (below.rise, below.fall, below.add_or_remove_one, below.replace_one) == (0, F(1, 3), F(1, 3), F(1, 3))


class _Declared(FormulaScores):
    """Its change jumps at 3000 rows, so that nothing is derived."""

    name = "declared"
    formula = Cells((A,), A + 7 * at_least(A, 3000))
    own: tuple[Claim, ...] = (Claim("rise", 8), Claim("fall", 0))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.own


def test_declared_claims_are_used_for_groups_and_nothing_is_derived_instead() -> None:
    declared = _Declared()
    (one,) = declared.sensitivities
    assert (one.rise, one.fall, one.replace_one) == (8, 0, 8)  # a replacement counts as a rise and a fall
    assert declared.for_rows(1) == declared.for_rows(2) == ()
    declared.own = (*declared.own, Claim("rise", 10, group=3), Claim("fall", 0, group=4))
    (three,) = declared.for_rows(3)
    assert (three.rise, three.fall, three.replace_one) == (10, 0, 10)
    assert (declared.sensitivities[0].rise, declared.for_rows(2), declared.for_rows(4)) == (8, (three,), ())


@pytest.mark.parametrize("group", [0, -1, "2"])
def test_a_group_of_a_claim_has_rows(group: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="group"):
        Claim("rise", 1, group)


def test_claims_without_a_rise_or_a_fall_are_refused_in_a_sentence() -> None:
    declared = _Declared()
    for own, says in (((Claim("rise", 8), Claim("replaced", 8)), "its fall"), ((), "its rise or its fall")):
        declared.own = own
        with pytest.raises(InputError, match=f"no claim about 'a .*' bounds {says} when a row is added; add one to"):
            _ = declared.sensitivities


def test_a_group_has_a_sensitivity_of_its_own_where_any_of_its_bounds_is_less_than_the_sum() -> None:
    def made(rise: Any, fall: Any, replaced: Any) -> Sensitivity:
        return Sensitivity("linf", max(rise, fall), replaced, rise=rise, fall=fall, source="made up")

    one = made(2, 1, 3)
    assert not _smaller(made(6, 3, 9), one, 3)
    for less in (made(5, 3, 9), made(6, 2, 9), made(6, 3, 8)):
        assert _smaller(less, one, 3)
    assert not _smaller(made(6, 3, 9), one, 2)
