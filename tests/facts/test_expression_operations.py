"""Operations of expressions: whatever the cells, the result lies in the domain that was derived beforehand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpframework.facts import InputError
from dpframework.facts.expression_operands_and_domains import Labels, Numbers, Operand, Truths
from dpframework.facts.expression_operations import (
    MOST_POWER,
    absolute,
    arithmetic,
    choice,
    compare_parts,
    concatenate,
    constant,
    extreme,
    fill,
    is_missing,
    logic,
    member,
    monotone,
    name_bin,
    negation,
    negative,
    number_in,
    root,
)

ENDS = st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(sorted)
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
TRUTHS = (True, False, None)


def number(name: str, low: float, high: float, *, whole: bool = False, missing: bool = False) -> Operand:
    return Operand(Numbers(low, high, whole, missing), lambda rows: rows[name])


def truth(name: str) -> Operand:
    return Operand(Truths(missing=True), lambda rows: rows[name])


def label(name: str, *values: str) -> Operand:
    return Operand(Labels(values, missing=True), lambda rows: rows[name])


def cell(part: Operand, **rows: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.ravel(part.cells({name: np.array([value]) for name, value in rows.items()}))[0])


def of_truth(value: bool | None) -> int:
    return -1 if value is None else int(value)


def require_inside(part: Operand, found: float) -> None:
    domain = part.domain
    assert isinstance(domain, Numbers)
    if math.isnan(found):
        assert domain.missing
    else:
        assert domain.low <= found <= domain.high
        assert not domain.whole or found.is_integer()


@given(st.data(), st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), ENDS, ENDS, st.booleans())
def test_a_result_of_arithmetic_is_in_its_domain(
    data: st.DataObject, sign: str, one: list[int], other: list[int], whole: bool
) -> None:
    between = (lambda low, high: st.integers(low, high).map(float)) if whole else st.floats
    if sign in ("//", "%"):
        other = [max(1, abs(other[0]))] * 2
    if sign == "**":
        other = [1 + abs(other[0]) % MOST_POWER] * 2
    a, b = data.draw(between(*one)), data.draw(between(*other))
    right = constant(float(other[0])) if other[0] == other[1] else number("b", *other, whole=whole)
    require_inside(part := arithmetic(sign, number("a", *one, whole=whole), right), cell(part, a=a, b=b))


@given(st.floats(-20, 20), st.floats(-20, 20))
def test_arithmetic_is_that_of_floats(a: float, b: float) -> None:
    left, right = number("a", -20, 20), number("b", -20, 20)
    assert cell(arithmetic("+", left, right), a=a, b=b) == a + b
    assert cell(arithmetic("-", left, right), a=a, b=b) == a - b
    assert cell(arithmetic("*", left, right), a=a, b=b) == a * b
    quotient = cell(arithmetic("/", left, right), a=a, b=b)
    assert math.isnan(quotient) if b == 0 else quotient == a / b


@given(st.data(), ENDS)
def test_functions_of_a_number_stay_in_their_domains(data: st.DataObject, ends: list[int]) -> None:
    part, a = number("a", *ends), data.draw(st.floats(*ends))
    for found in (absolute(part), negative(part), monotone(part, np.floor)):
        require_inside(found, cell(found, a=a))
    if ends[1] >= 0:
        require_inside(root(part), cell(root(part), a=a))
    else:
        with pytest.raises(InputError, match="always below 0"):
            root(part)


@given(st.data(), st.lists(ENDS, min_size=2, max_size=4), st.booleans())
def test_an_extreme_is_one_of_the_numbers_and_in_its_domain(
    data: st.DataObject, ends: list[list[int]], largest: bool
) -> None:
    cells = {f"x{k}": data.draw(st.floats(*one)) for k, one in enumerate(ends)}
    part = extreme([number(f"x{k}", *one) for k, one in enumerate(ends)], largest=largest)
    require_inside(part, found := cell(part, **cells))
    assert found == (max if largest else min)(cells.values())


@given(st.sampled_from(sorted(SIGNS)), st.integers(0, 3), st.integers(0, 3))
def test_comparisons_are_those_of_numbers(sign: str, a: int, b: int) -> None:
    part = compare_parts(sign, number("a", 0, 3, missing=True), number("b", 0, 3))
    assert cell(part, a=a, b=b) == SIGNS[sign](a, b)
    assert cell(part, a=math.nan, b=b) == -1


def test_labels_have_no_order_and_a_constant_must_be_one_of_them() -> None:
    with pytest.raises(InputError, match="labels have none"):
        compare_parts("<", label("a", "x", "y"), constant("x"))
    with pytest.raises(InputError, match="'z' is none of the values"):
        compare_parts("==", label("a", "x", "y"), constant("z"))


@pytest.mark.parametrize(("near", "asked"), [("123457", 123456.7), ("1.23457e+06", 1234567.0)])
def test_a_number_is_no_label_that_is_only_near_it(near: str, asked: float) -> None:
    with pytest.raises(InputError, match=f"'{asked:.8g}' is none of the values"):
        compare_parts("==", label("a", near, "7"), constant(asked))


@pytest.mark.parametrize("one", TRUTHS)
@pytest.mark.parametrize("other", TRUTHS)
def test_what_is_missing_counts_only_where_the_rest_does_not_settle_it(one: bool | None, other: bool | None) -> None:
    parts, rows = [truth("a"), truth("b")], {"a": of_truth(one), "b": of_truth(other)}
    possible = [(x, y) for x in TRUTHS[:2] for y in TRUTHS[:2] if one in (x, None) and other in (y, None)]
    for all_of, function in ((True, all), (False, any)):
        outcomes = {function(both) for both in possible}
        assert cell(logic(parts, all_of=all_of), **rows) == (outcomes.pop() if len(outcomes) == 1 else -1)


@pytest.mark.parametrize("given_truth", TRUTHS)
def test_a_choice_follows_its_truth(given_truth: bool | None) -> None:
    part = choice(truth("t"), number("a", 0, 3), number("b", 5, 9))
    found = cell(part, t=of_truth(given_truth), a=2.0, b=7.0)
    assert math.isnan(found) if given_truth is None else found == (2 if given_truth else 7)
    assert part.domain == Numbers(0, 9, missing=True)
    assert cell(negation(truth("t")), t=of_truth(given_truth)) == of_truth(
        None if given_truth is None else not given_truth
    )


def test_what_is_missing_is_filled_and_then_is_not_missing() -> None:
    part = number("a", 0, 3, missing=True)
    filled = fill(part, constant(9.0))
    assert [cell(filled, a=1), cell(filled, a=math.nan)] == [1, 9]
    assert not filled.domain.missing
    assert [cell(is_missing(part), a=1), cell(is_missing(part), a=math.nan)] == [0, 1]


@given(st.integers(-1, 1), st.integers(-1, 2))
def test_two_labels_are_one_text(a: int, b: int) -> None:
    part = concatenate(label("a", "x", "y"), label("b", "1", "2", "3"))
    assert isinstance(part.domain, Labels)
    place = int(cell(part, a=a, b=b))
    assert place == -1 if -1 in (a, b) else part.domain.values[place] == "xy"[a] + "123"[b]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=70, unique=True).map(sorted), st.floats(-10, 10))
def test_a_bin_begins_at_its_cut(cuts: list[int], a: float) -> None:
    names = [f"bin {k}" for k in range(len(cuts) + 1)]
    part = name_bin(number("a", -10, 10), cuts, names)
    assert isinstance(part.domain, Labels)
    assert part.domain.values[int(cell(part, a=a))] == f"bin {sum(a >= cut for cut in cuts)}"


@given(st.sets(st.integers(0, 5), min_size=1), st.integers(0, 5))
def test_a_member_is_one_of_the_constants(values: set[int], a: int) -> None:
    part = member(number("a", 0, 5, missing=True), sorted(map(float, values)))
    assert cell(part, a=a) == (a in values)
    assert cell(part, a=math.nan) == -1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_constant_is_the_number_in_it(value: float) -> None:
    assert number_in(constant(value)) == value
    assert number_in(number("a", value, value, missing=True)) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arithmetic("//", number("a", 0, 3), number("b", 1, 3)), "constant above 0"),
        (lambda: arithmetic("%", number("a", 0, 3), constant(0.0)), "constant above 0"),
        (lambda: arithmetic("**", number("a", 0, 3), constant(0.5)), "whole number from 1"),
        (lambda: extreme([number("a", 0, 3)], largest=True), "at least two numbers"),
        (lambda: name_bin(number("a", 0, 3), [2, 1], ["x", "y", "z"]), "strictly increasing"),
        (lambda: name_bin(number("a", 0, 3), [1], ["x"]), "one more label"),
        (lambda: logic([number("a", 0, 3)], all_of=True), "takes truths"),
        (lambda: member(number("a", 0, 3), ["x"]), "with a label"),
        (lambda: constant(math.inf), "no float holds"),
    ],
)
def test_what_has_no_domain_is_refused(make: Callable[[], Operand], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
