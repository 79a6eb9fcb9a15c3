"""The small plans on which accountants are tried, beside their totals by hand, and the tables of these plans."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from dpframework.accountant import PureAccountant, ZCDPAccountant
from dpframework.facts.privacy_losses import Relation
from dpframework.verify.accountants.accountant_plans import CASES, MISTAKES
from dpframework.verify.accountants.exact_loss_oracle import (
    KINDS,
    SOME_KINDS,
    delta_at,
    largest_ratio,
    neighbours,
    pairs_of,
    renyi,
    unit_neighbours,
)
from dpframework.verify.accountants.nested_plans import nested_cases, nested_noise

ADD, REPLACE = Relation


def sampled(rate: float, epsilon: float) -> float:
    """The epsilon of a release of a sample (Balle, Barthe and Gaboardi 2018, Theorem 8)."""
    return math.log1p(rate * math.expm1(epsilon))


NO = None  # no claim
# Epsilon and rho where a row is added, then where one is replaced, by hand. A step of epsilon e has a rho of e**2 / 2,
# one with Gaussian noise no epsilon. A row that is replaced enters one part and leaves another, and no count of all
# rows changes then. A sample keeps rho as it is, and hides no replaced row.
TOTALS: list[tuple[str, str, Any, Any, Any, Any]] = [
    ("release", "a count", 0.5, 0.125, 0.5, 0.125),
    ("release", "a histogram", 1, 0.5, 1, 0.5),
    ("release", "a selection", 1, 0.5, 1, 0.5),
    ("release", "a histogram with Gaussian noise", NO, 0.125, NO, 0.125),
    ("release", "a count with a large epsilon", 8, 32, 8, 32),
    ("release", "a count with a small epsilon", 1 / 32, 1 / 2048, 1 / 32, 1 / 2048),
    ("release", "a histogram with much Gaussian noise", NO, 1 / 512, NO, 1 / 512),
    ("release", "a count with a very large epsilon", 40, 800, 40, 800),
    ("release", "a count with a very small epsilon", 0.001, 5e-7, 0.001, 5e-7),
    ("no claim", "a step that has a claim under replace-one only, beside a count", NO, NO, 2, 1),
    ("no claim", "a choice between a step without a claim and a count", NO, NO, 1, 0.5),
    ("no claim", "a step without a claim, twice", NO, NO, 2, 1),
    ("no claim", "a step without a claim in one of two parts", NO, NO, NO, NO),
    ("sequential", "two histograms of epsilon 0.5 and 1", 1.5, 0.625, 1.5, 0.625),
    ("sequential", "two equal histograms", 2, 1, 2, 1),
    ("sequential", "two releases with Gaussian noise", NO, 0.25, NO, 0.25),
    ("repeat", "the same histogram, once", 0.5, 0.125, 0.5, 0.125),
    ("repeat", "the same histogram, three times", 1.5, 0.375, 1.5, 0.375),
    ("repeat", "Gaussian noise, twice", NO, 0.25, NO, 0.25),
    ("sequential", "6 counts, one after another", 1.5, 0.1875, 1.5, 0.1875),
    ("repeat", "the same count, 12 times", 1.5, 0.09375, 1.5, 0.09375),
    ("repeat", "the same count, 100 times", 50, 12.5, 50, 12.5),
    ("repeat", "the same selection, 100 times", 50, 12.5, 50, 12.5),
    ("repeat", "the same selection, 256 times", 16, 0.5, 16, 0.5),
    ("sequential", "50 counts, one after another", 12.5, 1.5625, 12.5, 1.5625),
    ("sequential", "a count, post-processing, and a count", 2, 1, 2, 1),
    ("either", "a cheap branch or an expensive one", 2, 2, 2, 2),
    ("either", "an expensive branch or a cheap one", 2, 2, 2, 2),
    ("either", "a choice of branches after a selection, with post-processing", 1.5, 17 / 32, 1.5, 17 / 32),
    ("either", "a choice of five branches, of which the fourth is expensive", 1, 0.5, 1, 0.5),
    ("either", "a choice within a choice", 2, 2, 2, 2),
    ("either", "Laplace or Gaussian noise, 12 times", NO, 6, NO, 6),
    ("parallel", "a count in each part", 1, 0.5, 1, 0.25),
    ("parallel", "a histogram in each part", 1, 0.5, 1, 0.5),
    ("parallel", "Gaussian noise in each part", NO, 0.125, NO, 0.125),
    ("parallel", "a cheap part and an expensive one", 1.5, 0.625, 1, 0.1875),
    ("parallel", "an expensive part and a cheap one", 1, 0.5, 1, 0.5),
    ("parallel", "three parts, each more expensive than the one before", 1, 0.5, 0.75, 0.15625),
    ("parallel", "three parts, of which the first and the last are expensive", 1, 0.5, 1, 0.25),
    ("parallel", "four parts, all equally expensive", 0.5, 0.125, 0.5, 0.0625),
    ("parallel", "six parts, of which the fifth and the sixth are expensive", 1, 0.5, 0.75, 0.15625),
    ("parallel", "six parts, of which the first and the fourth are expensive", 1, 0.5, 0.9375, 113 / 512),
    ("parallel", "one part, of the rows that a description holds for", 1, 0.5, 0.5, 0.125),
    ("parallel", "parts of parts", 1.5, 0.625, 1.5, 0.3125),
    ("parallel", "parts, twice", 1, 0.25, 1, 0.125),
    ("overlap", "a partition, and another of the same rows", 2, 1, 2, 0.5),
    ("overlap", "two partitions by the same attribute", 2, 1, 2, 0.5),
    ("overlap", "all rows, and then their parts", 2, 1, 2, 1),
    ("overlap", "a tree: a selection, and then a leaf or the parts that were selected", 1.5, 0.625, 1.5, 0.625),
    ("sample", "a count of a sample", sampled(0.3, 1), 0.5, NO, NO),
    ("sample", "a count of a small sample", sampled(0.01, 2), 2, NO, NO),
    ("sample", "a count of a tiny sample", sampled(0.0001, 2), 2, NO, NO),
    ("sample", "a count of a large sample", sampled(0.9, 1), 0.5, NO, NO),
    ("sample", "a count of a sample, with a large epsilon", sampled(0.3, 8), 32, NO, NO),
    ("sample", "two counts of one sample", sampled(0.3, 1.75), 0.78125, NO, NO),
    ("sample", "Gaussian noise on a sample", NO, 0.125, NO, NO),
    ("sample", "counts of two samples", sampled(0.3, 1) + sampled(0.6, 1), 1, NO, NO),
    ("sample", "a sample of a sample", sampled(0.2, 1), 0.5, NO, NO),
    ("sample", "parts of a sample", sampled(0.3, 1), 0.5, NO, NO),
    ("sample", "a sample of each part", sampled(0.3, 1), 0.5, NO, NO),
    ("sample", "a count of a sample, twice", 2 * sampled(0.3, 1), 1, NO, NO),
    ("sample", "little Gaussian noise on a small sample", NO, 2, NO, NO),
    ("sample", "little Gaussian noise on a sample", NO, 2, NO, NO),
    (
        "sample anew",
        "two counts of one sample, each of its own sample in a resumed run",
        3.71947848,
        9,
        NO,
        NO,
    ),
    ("replaced sample", "a number that shows whether a row is in the sample", NO, NO, NO, NO),
    ("exact delta", "a count with an exact delta", NO, 0.5, NO, 0.5),
    ("exact delta", "a count with an exact delta beside Gaussian noise", NO, 0.625, NO, 0.625),
    ("exact delta", "a count with an exact delta in each part", NO, 0.5, NO, 0.25),
    ("exact delta", "a count with an exact delta on a sample", NO, 0.5, NO, NO),
    ("exact delta", "a count with an exact delta for people", NO, 0.5, NO, 0.5),
    ("exact delta", "a count with an exact delta, twice", NO, 1, NO, 1),
    ("unit", "a histogram", 1, 0.5, 1, 0.5),
    ("unit", "two histograms", 1.5, 0.625, 1.5, 0.625),
    ("unit", "Gaussian noise", NO, 0.125, NO, 0.125),
    ("unit in parts", "a count in each part", 1, 0.5, 1, 0.25),
    ("unit in parts", "a cheap part and an expensive one", 1.5, 0.625, 1, 0.1875),
    ("unit", "little Gaussian noise, for families of four", NO, 8, NO, 8),
    ("unit in parts", "a count in each part, for trios", 0.5, 0.125, 0.5, 0.0625),
    ("unit", "a count, for families of four", 0.5, 0.125, 0.5, 0.125),
    ("unit in parts", "a count in each part, for families of four", 0.5, 0.125, 0.5, 0.0625),
    ("unit in a sample", "a count of a sample of people", sampled(0.3, 1), 0.5, NO, NO),
    ("unit in a sample", "a count of a sample of rows", 2 * sampled(0.3, 0.5), 0.5, NO, NO),
    ("unit in a sample", "a count of a sample of rows, for four rows", 4 * sampled(0.3, 0.25), 0.5, NO, NO),
    # a block costs its caps; in parts half of them for a row that moves, whose new place costs what the old one does
    ("block", "a block, spent on one histogram", 1, 0.5, 1, 0.5),
    ("block", "a block, spent on two histograms", 1, 0.5, 1, 0.5),
    ("block", "a block with Gaussian noise", NO, 0.125, NO, 0.125),
    ("block", "a block with a cap on delta", NO, 0.5, NO, 0.5),
    ("block", "a block for people", 1, 0.5, 1, 0.5),
    ("block in a plan", "a block in each part", 1, 0.5, 1, 0.5),
    ("block in a plan", "a block, or two others", 1.5, 0.5625, 1.5, 0.5625),
    ("block in a plan", "a block on a sample", sampled(0.3, 1), 0.5, NO, NO),
    ("block in a plan", "a block in each part, for people", 1, 0.5, 1, 0.5),
]


def test_the_plans_are_those_that_are_totalled_by_hand() -> None:
    assert [(case.rule, case.text) for case in CASES] == [case[:2] for case in TOTALS]
    assert list(dict.fromkeys(case.rule for case in CASES if case.rule in MISTAKES)) == [
        rule for rule in MISTAKES if rule not in ("move", "nested")
    ]
    rows = [(case.unit.rows, case.text) for case in CASES if case.unit.rows > 1]
    assert [number for number, _ in rows] == [2, *[2] * 5, 4, 3, 4, 4, 2, 2, 4, 2, 2]
    assert [text for number, text in rows if number == 3] == ["a count in each part, for trios"]
    assert [case.unit.id for case in CASES if case.unit.rows == 2] == ["person"] * 7 + [None] + ["person"] * 2


def test_compositions_are_nested_two_and_three_deep_and_in_a_tree() -> None:
    """The expensive release is listed, not the choice: with epsilon 1, twice in each repeat, beside 0.75 elsewhere."""
    cases = {(case.text, case.unit.rows): case for case in nested_cases()}
    assert len(cases) == len(nested_cases()) == 5**2 + 5 * 4 * 3 + 1 + 5 * 4
    assert {case.rule for case in cases.values()} == {"nested"}
    assert len(nested_noise()) == 5 * 4
    for text, epsilon in (
        ("a selection in a repeat in a repeat", 4),
        ("a selection in a choice in a sample", sampled(0.3, 1)),
        ("a selection in a sample in a choice", 0.5),
        ("a selection in a sequence in a repeat in parts", 3.5),
    ):
        case = cases[text, 1]
        assert PureAccountant(ADD).total(case.plan(ADD, Fraction(0))).epsilon == pytest.approx(epsilon, rel=1e-9)
    listed = cases["a selection in a choice in a repeat", 1].listed_plan(ADD, Fraction(0))
    assert [step.name for step in listed.steps()] == ["n"]
    assert largest_ratio(listed) == pytest.approx(2, rel=1e-6)
    deep = max(cases.values(), key=lambda case: len(case.text))
    assert PureAccountant(ADD).total(deep.plan(ADD, Fraction(0))).epsilon == 1 + 3 * Fraction(3, 4)


@pytest.mark.parametrize(
    ("number", "totals"), [*enumerate(TOTALS)], ids=lambda one: one[1] if type(one) is tuple else ""
)
def test_totals_are_those_by_hand(number: int, totals: tuple[Any, ...]) -> None:
    case = CASES[number]
    for relation, epsilon, rho in ((ADD, *totals[2:4]), (REPLACE, *totals[4:6])):
        pure = PureAccountant(relation, delta=0).total(case.plan(relation, Fraction(0)))
        zcdp = ZCDPAccountant(relation, delta="0.1").total(case.plan(relation, Fraction(1, 10)))
        if epsilon is None:
            assert pure is None or pure.epsilon is None
        else:
            assert float(pure.epsilon) == pytest.approx(epsilon, rel=1e-9, abs=2e-9)
        assert (None if zcdp is None or zcdp.rho is None else float(zcdp.rho)) == rho
        assert case.plan(relation, Fraction(0)) is case.plan(relation, Fraction(0))
        assert (case.rule_under(relation) == "move") is (relation is REPLACE and case.rule == "parallel")


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("named", [False, True])
def test_neighbours_differ_by_one_unit_of_every_kind(rows: int, named: bool) -> None:
    """Beside no other row, or one of another unit; tables of different sizes only where units may differ in size."""
    mine, theirs = (("one's",), ("another's",)) if named else ((), ())
    groups = [
        tuple((*row, *mine) for row in group)
        for size in range(1, rows + 1)
        for group in itertools.combinations_with_replacement(SOME_KINDS, size)
    ]
    rests = [(), ((*KINDS[1], *theirs),)]
    added = {(rest + group, rest) for rest in rests for group in groups}
    both = added | {(other, one) for one, other in added}
    found = list(unit_neighbours(ADD, rows, named=named))
    assert len(found) == len(set(found))
    assert set(found) == both
    moved = {(rest + one, rest + other) for rest in rests for one in groups for other in groups if one != other}
    assert set(unit_neighbours(REPLACE, rows, named=named)) == moved | both
    same_size = {pair for pair in moved if len(pair[0]) == len(pair[1])}
    assert set(unit_neighbours(REPLACE, rows, resizes=False, named=named)) == same_size
    assert len(SOME_KINDS) == 4


def test_neighbours_of_rows_are_beside_no_other_row_or_one_of_each_kind() -> None:
    rests = [(), *((kind,) for kind in KINDS)]
    added = {((*rest, kind), rest) for rest in rests for kind in KINDS}
    assert set(neighbours(ADD)) == added | {(other, one) for one, other in added}
    assert set(neighbours(REPLACE)) == {
        ((*rest, one), (*rest, other)) for rest in rests for one in KINDS for other in KINDS if one != other
    }


def test_the_pairs_of_a_plan_are_of_its_unit() -> None:
    for case in CASES:
        for relation in Relation:
            plan = case.plan(relation, Fraction(0))
            named = any(len(row) == 3 for pair in pairs_of(plan, few=True) for side in pair for row in side)
            assert named is (case.text in ("a count of a sample of people",))
            few, every = pairs_of(plan, few=True), pairs_of(plan)
            assert max(min(map(len, pair)) for pair in few) == 1
            assert max(abs(len(one) - len(other)) for one, other in few) == (
                case.unit.rows if relation is ADD or case.unit.rows > 1 else 0
            )
            if case.unit.rows == 1:
                assert set(every) == set(neighbours(relation))
            else:
                assert set(few) == {pair for pair in every if min(map(len, pair)) <= 1}


def test_what_a_count_loses_is_that_of_its_noise() -> None:
    """Discrete Laplace noise of epsilon 1/2: ratios of exp(1/2), and the sums over all outputs in closed form."""
    plan, q = CASES[0].plan(ADD, Fraction(0)), math.exp(-0.5)
    assert largest_ratio(plan) == pytest.approx(0.5, abs=1e-9)
    below = 1 / (1 + q)  # the probability of 0 or less, where the other count is 1
    for epsilon in (0.0, 0.2, 0.5, 0.7):
        expected = max(0.0, below - math.exp(epsilon) * (1 - below))
        assert delta_at(plan, epsilon) == pytest.approx(expected, abs=1e-9)
    for order in (1.5, 2.0, 8.0):
        moment = below * math.exp(0.5 * (order - 1)) + (1 - below) * math.exp(-0.5 * (order - 1))
        assert renyi(plan, order) == pytest.approx(math.log(moment) / (order - 1), abs=1e-9)
