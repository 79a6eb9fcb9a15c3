"""Losses as exact rationals, their composition under both relations, and whom a claim protects."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st

import dpframework as dpf
from dpframework.accountant.composition import either, parallel, repeat, sequential
from dpframework.facts.privacy_losses import (
    NOTHING,
    ByRelation,
    PrivacyLoss,
    Relation,
    convert_above,
    decimal_text,
    exact,
    float_above,
    last_digit,
    positive,
    positive_rho,
    rational_above,
    readable,
    rho_below,
    root_below,
    round_down,
    round_up,
)
from dpframework.facts.privacy_unit import GROUPS, PrivacyUnit, UnitChange, unit_of_groups
from dpframework.facts.value_checks import (
    finite_number,
    is_increasing,
    plain_number,
    positive_count,
    require_list,
    visible_text,
)

amounts = st.fractions(0, 100)
pairs = st.builds(lambda a, r: ByRelation(a, min(r, 2 * a)), amounts, amounts)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (3, Fraction(3)),
        (0, Fraction(0)),
        ("1e-6", Fraction(1, 10**6)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(2), Fraction(2)),
    ],
)
def test_numbers_are_read_as_they_are_written(value: Any, number: Fraction) -> None:
    assert exact(value) == number


@pytest.mark.parametrize(
    "value", ["", "one", "0.1.2", "nan", "inf", math.nan, math.inf, -math.inf, None, True, False, [1], "1/0", "1e+5000"]
)
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(dpf.InputError, match="write a finite number"):
        exact(value)


def test_negative_and_zero_are_named() -> None:
    with pytest.raises(dpf.InputError, match=r"^rho is -0\.5; it cannot be negative$"):
        exact(-0.5, "rho")
    with pytest.raises(dpf.InputError, match=r"^epsilon is 0; write a number above 0, such as 0.\d$"):
        positive(0)


@pytest.mark.parametrize("value", ["1e999999999", "1e-999_999_999", "1e101", 1e200, "1e-101", 10**101])
def test_absurd_numbers_are_refused_at_once(value: Any) -> None:
    with pytest.raises(dpf.InputError, match="epsilon"):
        exact(value)


def test_the_largest_and_the_smallest_that_may_be_given() -> None:
    assert exact("1e100") == exact(10**100) == 10**100
    assert exact("1e-100") == Fraction(1, 10**100)
    for beyond in (10**100 + 1, f"1/{10**100 + 1}"):
        with pytest.raises(dpf.InputError, match="between 1e-100 and 1e100, or be 0"):
            exact(beyond)


def test_sums_are_equal_not_close() -> None:
    assert exact(0.1) + exact(0.2) == exact(0.3)
    assert sum(exact(0.1) for _ in range(10)) == 1
    assert 0.1 + 0.2 != 0.3  # which is why


def test_decimal_text() -> None:
    assert decimal_text(Fraction(3, 10)) == "0.3"
    assert decimal_text(Fraction(1, 3)) == "1/3"
    assert decimal_text(Fraction(10**6)) == "1000000.0"
    assert decimal_text(Fraction(1, 3 * 10**7)) == "3.33333e-08"
    assert decimal_text(Fraction(1, 10**12)) == "0.000000000001"
    assert decimal_text(Fraction(1, 2 * 10**12)) == "5e-13"
    assert decimal_text(Fraction(1, 999_999)) == "1/999999"
    assert decimal_text(Fraction(1, 1_000_001)) == "9.99999e-07"


def test_a_long_amount_is_shown_to_four_digits() -> None:
    assert readable(Fraction("0.12345678")) == "0.12345678"
    assert readable(Fraction("0.123456789")) == "~0.1235"
    assert readable(Fraction(1, 3)) == "~0.3333"


@given(st.integers(0, 10**9), st.integers(0, 9))
def test_a_decimal_is_written_as_one_that_is_read_the_same(numerator: int, places: int) -> None:
    number = Fraction(numerator, 10**places)
    assert exact(decimal_text(number)) == number


@given(st.fractions(0, 10**9))
def test_float_above_is_the_smallest_one(value: Fraction) -> None:
    above = float_above(value)
    assert Fraction(above) >= value
    assert Fraction(math.nextafter(above, -math.inf)) < value


@given(st.floats(1e-9, 1e9))
def test_conversions_round_up(value: float) -> None:
    assert rational_above(value) == Fraction(value) * Fraction(2**40 + 1, 2**40)  # the margin that proofs count on
    assert (
        Fraction(value) <= convert_above(value) <= Fraction(value) * Fraction(10**11 + 1, 10**11) + Fraction(1, 10**9)
    )


@given(st.floats(1e-9, 1e9))
@example(1e-3)
@example(10.0)
@example(1 + 1.5 * 2**-40)  # so near a decimal that the margin decides
@example(1 + 0.75 * 2**-40)
@example(1 - 0.75 * 2**-40)
@example(1 - 1.5 * 2**-40)
def test_nine_digits_below_and_above(value: float) -> None:
    """Both have nine significant digits, and lie beyond the margin of 2**-40, by less than one of the last digit."""
    unit = Fraction(1, 10**8)  # what the last digit counts, by comparing with powers of ten
    while value >= unit * 10**9:
        unit *= 10
    while value < unit * 10**8:
        unit /= 10
    assume(value < unit * (10**9 - Fraction(1, 1000)))  # the logarithm of what is all but a power of ten is rounded up
    assert last_digit(value, 9) == unit
    below, above = round_down(value), round_up(value)
    assert below % unit == above % unit == 0
    assert below <= Fraction(value) * (1 - Fraction(1, 2**40)) < below + unit
    assert above >= Fraction(value) * (1 + Fraction(1, 2**40)) > above - unit


@given(st.fractions(0, 10**9))
def test_the_root_below_is_the_nearest_of_twelve_decimals(square: Fraction) -> None:
    root = root_below(square)
    assert (root * 10**12).denominator == 1
    assert root**2 <= square < (root + Fraction(1, 10**12)) ** 2


@given(st.integers(0, 10**12), st.fractions(0, 1))
def test_a_converted_loss_is_the_next_one_of_nine_decimals(whole: int, part: Fraction) -> None:
    value = float(whole + part) / 10**9
    above, margin = convert_above(value), Fraction(value) * (1 + Fraction(1, 2**40))
    assert (above * 10**9).denominator == 1
    assert above - Fraction(1, 10**9) < margin <= above


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "7", "40"])
@pytest.mark.parametrize("delta", ["0.5", "1e-6", "1e-12"])
def test_a_rho_costs_its_epsilon_and_one_a_little_larger_costs_more(epsilon: str, delta: str) -> None:
    rest = math.log(1 / float(delta))

    def cost(rho: float) -> float:  # Bun and Steinke 2016, Proposition 1.3
        return rho + 2 * math.sqrt(rho * rest)

    rho = float(rho_below(Fraction(epsilon), Fraction(delta)))
    assert cost(rho) <= float(epsilon) < cost(rho * (1 + 1e-7))


def test_a_float_above_is_the_number_itself_if_it_is_a_float() -> None:
    assert float_above(Fraction(3, 8)) == 0.375
    third = float_above(Fraction(1, 3))  # the nearest float is below it
    assert third == math.nextafter(1 / 3, 1)


def test_an_exact_fraction_may_be_as_large_or_small_as_it_is() -> None:
    """What was computed from what was given is no input any more."""
    assert exact(Fraction(1, 10**101)) == Fraction(1, 10**101)
    assert exact(Fraction(10**101)) == 10**101
    assert exact("0") == exact(0.0) == 0
    with pytest.raises(dpf.InputError, match=r"^rho is 0; write a number above 0, such as 0.\d$"):
        positive_rho(0)


def test_relations_by_name() -> None:
    assert Relation.parse("replace-one") is Relation.REPLACE_ONE
    assert Relation.parse(Relation.ADD_OR_REMOVE_ONE) is Relation.ADD_OR_REMOVE_ONE
    with pytest.raises(dpf.InputError, match="'add-or-remove-one' and 'replace-one'"):
        Relation.parse("bounded")


@given(st.lists(pairs, min_size=1, max_size=6))
def test_parallel_under_both_relations(parts: list[ByRelation]) -> None:
    """The larger of a row that stays in its part and of one that leaves a part and enters another."""
    total = parallel(parts)
    added = [p.add_or_remove_one or Fraction(0) for p in parts]
    staying = max(p.replace_one or Fraction(0) for p in parts)
    moving = max((a + b for i, a in enumerate(added) for b in added[i + 1 :]), default=added[0])
    assert total == ByRelation(max(added), max(staying, moving))


def test_parallel_under_replace_one_is_not_the_largest_part() -> None:
    count = ByRelation(
        Fraction(1), Fraction(1)
    )  # such as the number of rows: a replacement inside a part changes it by 1
    assert parallel([count]) == ByRelation(Fraction(1), Fraction(1))
    assert parallel([count, count, count]) == ByRelation(Fraction(1), Fraction(2))
    assert parallel([ByRelation(Fraction(1), Fraction(2)), NOTHING]) == ByRelation(Fraction(1), Fraction(2))


@given(st.lists(pairs, max_size=5))
def test_sequential_either_repeat(parts: list[ByRelation]) -> None:
    added = [p.add_or_remove_one or Fraction(0) for p in parts]
    assert sequential(parts).add_or_remove_one == sum(added)
    assert either(parts).add_or_remove_one == max(added, default=0)
    for part in parts:
        assert repeat(part, 5) == sequential([part] * 5)
        assert repeat(part, 1) == part
        assert sequential([part, NOTHING]) == either([NOTHING, part]) == part


@given(st.builds(ByRelation, st.none() | amounts, st.none() | amounts))
def test_both_relations_are_written_and_read_back(amount: ByRelation) -> None:
    form = amount.to_dict()
    assert set(form) == {relation.value for relation in Relation}
    assert form["replace-one"] == (None if amount.replace_one is None else str(amount.replace_one))
    assert ByRelation.from_dict(form) == amount


def test_a_part_without_a_claim_leaves_none() -> None:
    only_replace, one = ByRelation(None, Fraction(1)), ByRelation(Fraction(1), Fraction(1))
    assert sequential([one, only_replace]) == ByRelation(None, Fraction(2))
    assert either([one, only_replace]) == ByRelation(None, Fraction(1))
    assert repeat(only_replace, 3) == ByRelation(None, Fraction(3))
    assert repeat(only_replace, 0) == NOTHING
    for parts in ([only_replace], [one, only_replace], [only_replace, only_replace]):
        assert parallel(parts) == ByRelation(None, None)  # a row that moves is added to a part


def test_losses_show_what_they_claim() -> None:
    assert repr(PrivacyLoss(epsilon=0.3)) == "PrivacyLoss(epsilon=0.3)"
    assert repr(PrivacyLoss(epsilon="0.5", rho="0.1", delta="1e-6")) == "PrivacyLoss(epsilon=0.5, delta=1e-06)"
    assert repr(PrivacyLoss(rho="1/3")) == "PrivacyLoss(rho=1/3)"
    assert [PrivacyLoss(epsilon=e).zcdp for e in (2, 3)] == [2, Fraction(9, 2)]
    assert PrivacyLoss(epsilon=2, rho="0.5").zcdp == Fraction(1, 2)
    assert PrivacyLoss(epsilon=2, delta="1e-6").zcdp is None
    assert PrivacyLoss().zcdp is None
    with pytest.raises(dpf.InputError, match="delta"):
        PrivacyLoss(epsilon=1, delta=-1)


def test_a_total_in_words() -> None:
    assert PrivacyLoss(epsilon="1/3", delta="1e-6").text == "epsilon ~0.3333, delta 1e-06"
    assert PrivacyLoss(epsilon=0).text == "epsilon 0.0"
    assert PrivacyLoss(rho=1).text == "no finite epsilon"
    assert repr(PrivacyLoss()) == "PrivacyLoss()"
    assert repr(PrivacyLoss(epsilon=0, rho=0)) == "PrivacyLoss(epsilon=0.0)"
    assert repr(PrivacyLoss(rho=0)) == "PrivacyLoss(rho=0.0)"
    assert PrivacyLoss(epsilon=0).zcdp == PrivacyLoss(epsilon=3, rho=0).zcdp == 0
    assert PrivacyLoss(rho=2, delta="0.1").zcdp == 2


@given(st.builds(ByRelation, st.none() | amounts, st.none() | amounts))
def test_each_amount_is_under_its_relation(amount: ByRelation) -> None:
    assert amount.under(Relation.ADD_OR_REMOVE_ONE) == amount.add_or_remove_one
    assert amount.under(Relation.REPLACE_ONE) == amount.replace_one
    mapped = amount.map(lambda x: x + 1)
    for relation in Relation:
        own = amount.under(relation)
        assert mapped.under(relation) == (None if own is None else own + 1)


ID = "whose"
UNITS = [  # unit, is it a row, is it asserted, does it group rows, and in words
    (PrivacyUnit(), True, False, False, "one row"),
    (PrivacyUnit(rows=2), False, True, False, "one unit of at most 2 rows, as the owner asserts"),
    (
        *(PrivacyUnit(period="month", date="on"), False, True, False),
        "one unit in one month of at most 1 row, as the owner asserts",
    ),
    (PrivacyUnit(ID), False, False, False, "one whose, by one row"),
    (PrivacyUnit(ID, 2), False, False, True, "one whose, by at most 2 of its rows"),
]


@pytest.mark.parametrize(("unit", "row", "asserted", "groups", "text"), UNITS, ids=str)
def test_whom_a_claim_protects(unit: PrivacyUnit, row: bool, asserted: bool, groups: bool, text: str) -> None:
    assert (unit.is_row, unit.asserted, unit.groups_rows, str(unit)) == (row, asserted, groups, text)
    period = {} if unit.period is None else {"period": unit.period, "date": unit.date}
    assert unit.to_dict() == {"id": unit.id, "rows": unit.rows, **period}


@pytest.mark.parametrize("rows", [0, -1, 10**6 + 1, 2.0, True, None])
def test_a_unit_has_a_whole_number_of_rows(rows: Any) -> None:
    assert PrivacyUnit(ID, 10**6).rows == 10**6
    with pytest.raises(
        dpf.InputError, match=r"^rows_per_unit is .*; write how many rows of one unit are kept, from 1 to 1000000$"
    ):
        PrivacyUnit(ID, rows)


@pytest.mark.parametrize("name", ["", " ", 3])
def test_a_unit_names_a_column(name: Any) -> None:
    with pytest.raises(dpf.InputError, match=r"^unit is .*; give the name of the column whose values name units$"):
        PrivacyUnit(name)


def test_what_a_unit_may_be_read_with() -> None:
    schema = dpf.Schema([dpf.Boolean("a")])
    PrivacyUnit(ID).require_fits(schema)
    PrivacyUnit().require_fits(schema)
    with pytest.raises(dpf.InputError, match=r"^unit 'a' is an attribute of the schema"):
        PrivacyUnit("a").require_fits(schema)
    with pytest.raises(dpf.InputError, match=r"^date 'a' is an attribute of the schema"):
        PrivacyUnit(ID, period="month", date="a").require_fits(schema)
    with pytest.raises(dpf.InputError, match=f"^'{ID}' names both units and dates; give two columns"):
        PrivacyUnit(ID, period="month", date=ID)
    for unit, ids in ((PrivacyUnit(), None), (PrivacyUnit(), ID), (PrivacyUnit(ID), ID)):
        unit.require_joined_by(ids)
    with pytest.raises(dpf.InputError, match=r"^here: the rows of two views are joined by position, so .* 'whose'"):
        PrivacyUnit(ID).require_joined_by(None, "here: ")
    with pytest.raises(dpf.InputError, match=r"^the rows of two views are joined by 'row', so one joined row"):
        PrivacyUnit(ID).require_joined_by("row")


def test_the_unit_of_a_fit() -> None:
    assert unit_of_groups(None, 1) == PrivacyUnit()
    assert unit_of_groups(["x"], 3) == PrivacyUnit(GROUPS, 3)
    assert unit_of_groups(["x"], 1) == PrivacyUnit(GROUPS, 1)
    with pytest.raises(
        dpf.InputError, match=r"^rows_per_unit is 3, and nothing says to which unit a row belongs; give fit the"
    ):
        unit_of_groups(None, 3)
    assert UnitChange() == UnitChange(rows=1, resizes=False)


def test_the_checks_of_single_facts() -> None:
    assert visible_text(" a ", "it") == " a "
    assert (finite_number(True + 1, "it"), math.copysign(1, finite_number(-0.0, "it"))) == (2.0, 1.0)
    assert positive_count(np.int8(1), "it") == 1
    assert require_list(iter("ab"), "it") == ("a", "b")
    assert [plain_number(sign * size) for sign in (1, -1) for size in (2.0**53 - 1, 2.0**53, math.inf)] == [
        *(2**53 - 1, 2.0**53, math.inf),
        *(1 - 2**53, -(2.0**53), -math.inf),
    ]
    assert isinstance(plain_number(-(2.0**53)), float)
    increasing = [is_increasing(edges) for edges in ((), (1,), (1, 2, 3), (1, 2, 2), (2, 1, 3))]
    assert increasing == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("check", "value", "sentence"),
    [
        (visible_text, 3, "it must be a text, not int"),
        (visible_text, " \n", "it must not be blank"),
        (visible_text, "\ud800", "it holds characters that UTF-8 cannot write"),
        (finite_number, True, "it must be a number, not bool"),
        (finite_number, "1", "it must be a number, not str; write it without quotes"),
        (finite_number, 10**400, "it must be a finite number"),
        (finite_number, math.nan, "it must be a finite number"),
        (positive_count, True, "it must be a whole number, not bool"),
        (positive_count, 1.0, "it must be a whole number, not float"),
        (positive_count, 0, "it must be at least 1; write a whole number from 1 on"),
        (require_list, "ab", "it must be a list, not str; write it in brackets, such as [1, 2]"),
        (require_list, b"ab", "it must be a list, not bytes; write it in brackets, such as [1, 2]"),
        (require_list, {"a": 1}, "it must be a list, not dict; write it in brackets, such as [1, 2]"),
        (require_list, 3, "it must be a list, not int; write it in brackets, such as [1, 2]"),
    ],
)
def test_single_facts_that_are_refused(check: Any, value: Any, sentence: str) -> None:
    with pytest.raises(dpf.InputError) as caught:
        check(value, "it")
    assert str(caught.value) == sentence


def test_nearest_names() -> None:
    from dpframework.facts.errors import nearest

    assert nearest("incme", ["income", "age"]) == "did you mean 'income'?"
    assert nearest("zzz", ["b", "a"]) == "known: a, b"
    assert nearest("zzz", []) == "none is known here"
    assert nearest("zzz", "abcdefghijk").endswith("h, ...")


MONTHS = {"period": "month", "date": "day"}


@pytest.mark.parametrize(
    ("unit", "who", "share"),
    [
        (
            PrivacyUnit(),
            "each row",
            "Each row counts alone, so a person with several rows counts several times.",
        ),
        (PrivacyUnit(rows=4), "each person", "Nobody has more than 4 rows, as the owner states."),
        (PrivacyUnit("pid"), "each pid", "Each pid counts with one row."),
        (PrivacyUnit("pid", 4), "each pid", "Each pid counts with at most 4 rows."),
        (
            PrivacyUnit(rows=1, **MONTHS),
            "each person in one month",
            "Nobody has more than 1 row in each month, as the owner states.",
        ),
        (PrivacyUnit("pid", 1, **MONTHS), "each pid in one month", "Each pid counts with one row in each month."),
        (
            PrivacyUnit("pid", 2, **MONTHS),
            "each pid in one month",
            "Each pid counts with at most 2 rows in each month.",
        ),
    ],
)
def test_whom_a_unit_protects_and_how_much_they_count(unit: PrivacyUnit, who: str, share: str) -> None:
    assert (unit.who, unit.share) == (who, share)
    assert bool(unit.gap) == (unit.period is not None)
    if unit.period is not None:
        somebody = "somebody" if unit.id is None else "one pid"
        assert f"over k months, {somebody} loses k times as much" in unit.gap


def test_a_unit_in_a_period_is_one_person_over_all_periods() -> None:
    unit = PrivacyUnit("pid", 2, **MONTHS)
    read = unit.during("2026-02")
    assert (unit.span, unit.template, read.template) == (None, unit, unit)
    assert read.span is not None
    assert read.span.name == "2026-02"
    assert read.require_span() == read.span
    with pytest.raises(dpf.InputError, match="reads one month at a time; say which"):
        unit.require_span()
    assert unit.history == PrivacyUnit("pid", 10**6)
    for whole in (PrivacyUnit(), PrivacyUnit("pid", 3), PrivacyUnit(rows=2)):
        assert whole.history == whole.template == whole
        assert whole.require_span() is None
        with pytest.raises(dpf.InputError, match="and has no periods; leave the period out"):
            whole.during("2026-02")


@pytest.mark.parametrize(
    ("unit", "ids", "by"),
    [
        ("pid", None, "position"),
        ("pid", "visit", "'visit'"),
        ("pid", "pid", None),
        (None, None, None),
        (None, "a", None),
    ],
)
def test_views_are_joined_by_the_ids_of_the_unit(unit: str | None, ids: str | None, by: str | None) -> None:
    if by is None:
        PrivacyUnit(unit).require_joined_by(ids)
        return
    with pytest.raises(dpf.InputError, match=f"^here: the rows of two views are joined by {by}, so one joined row"):
        PrivacyUnit(unit).require_joined_by(ids, "here: ")
