"""Texts of reports at their edges: odds, lines that fit a terminal, amounts of blocks, and changes of steps."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import PrivacyLoss, Relation
from dpframework.facts.privacy_unit import ROW
from dpframework.plan.spend_block_node import Amounts
from dpframework.queries import Sensitivity
from dpframework.reports.difference.value_text import from_to
from dpframework.reports.epsilon_as_odds import (
    PRIORS,
    SLACK,
    TIMES_DELTA,
    CertaintyGain,
    certainty_gains,
    certainty_sentence,
    share_text,
)
from dpframework.reports.plan_and_node_losses import share_of
from dpframework.reports.spend_block_table import BlockSums, _amounts_text, _sums_text
from dpframework.reports.step_row import _change
from dpframework.reports.terminal_line_breaks import fit_facts, fit_prose, fit_tree
from dpframework.reports.text_plan_drawings import place_lines

ADD, REPLACE = Relation
TWO = dpf.PrivacyUnit("owner", 2)


@pytest.mark.parametrize(
    ("odds", "text"),
    [
        (1.0, "1"),
        (1.0001, "1.01"),
        (2.718, "2.72"),
        (99.91, "100"),
        (100.1, "101"),
        (1_234.5, "1,240"),
        (999_999, "1,000,000"),
        (1e6, "over a million"),
        (math.inf, "over a million"),
    ],
)
def test_odds_are_rounded_up_to_three_digits(odds: float, text: str) -> None:
    assert CertaintyGain("that", odds, (0.5, 0.7109)).odds_text == text
    assert CertaintyGain("that", odds, (0.5, 0.7109)).share_texts == ("50 %", "71.1 %")


@pytest.mark.parametrize("data", [(), ("place one",), ("place one", "place two")])
@pytest.mark.parametrize("engine", [None, "", "tcp://10.0.0.1:8786"])
def test_a_drawn_plan_names_the_places_of_its_table_and_its_engine_if_it_names_any(
    data: tuple[str, ...], engine: str | None
) -> None:
    plan: Any = SimpleNamespace(data=data, engine=engine)
    told = [] if engine is None else [f"engine: counts are evaluated at {engine}"]
    assert place_lines(plan) == [*(f"data: {place}" for place in data), *told]


def test_a_share_is_rounded_up_to_a_tenth_of_a_percent() -> None:
    shares = (0, 0.0001, 0.001, 0.0101, 0.9989, 0.999, 0.9991, 1)
    assert [share_text(share) for share in shares] == [
        *("0 %", "0.1 %", "0.1 %", "1.1 %", "99.9 %", "99.9 %", "nearly 100 %", "nearly 100 %")
    ]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "349", "350.5", "699.5", "700", "700.5", "800"])
@pytest.mark.parametrize("delta", ["0", "1e-9", "1e-100"])
def test_what_can_be_learned_follows_from_the_odds(epsilon: str, delta: str) -> None:
    """Presence costs epsilon; a fact about somebody who is there twice that, where rows are added or removed."""
    loss, e, d = PrivacyLoss(epsilon, delta=delta), float(epsilon), float(delta)
    slack = SLACK if d else 0
    there, fact = certainty_gains(loss, ADD, ROW)
    (replaced,) = certainty_gains(loss, REPLACE, ROW)
    fails = (d, d * (1 + math.exp(min(e, 700))), d)
    for found, exponent, share in zip((there, fact, replaced), (e, 2 * e, e), fails, strict=True):
        exponent += slack
        assert found.odds == (math.exp(exponent) if exponent < 700 else math.inf)
        assert found.fails == min(TIMES_DELTA * share, 1)
        for prior, sure in zip(PRIORS, found.shares, strict=True):
            expected = 1 / (1 + (1 - prior) / prior * math.exp(-min(exponent, 700)))
            assert sure == pytest.approx(expected, rel=1e-9)
    assert there.claim == "that one person, who has one row, is in the table"
    assert fact.claim == replaced.claim == "something about one person, who is known to be in the table"
    assert TIMES_DELTA > 1 / (1 - math.exp(-SLACK)) > TIMES_DELTA - 1


def test_whom_something_is_learned_of_and_in_which_sentence() -> None:
    one = PrivacyLoss(1)
    month = dpf.PrivacyUnit("owner", 2, period="month", date="day")
    assert [certainty_gains(one, ADD, unit)[0].claim for unit in (TWO, dpf.PrivacyUnit(rows=2), month)] == [
        "that one owner is in the table",
        "that one unit is in the table",
        "that one owner in one month is in the table",
    ]
    assert certainty_gains(None, ADD, ROW) == certainty_gains(PrivacyLoss(), ADD, ROW) == []
    assert certainty_sentence([]) == "no claim is valid, so nothing bounds what somebody can learn"
    told = certainty_sentence(certainty_gains(PrivacyLoss(1, delta="1e-6"), ADD, TWO))
    assert told == (
        "a guess of 50 % that one owner is in the table can rise to at most 75.1 %, "
        "except with a probability of 1.1e-05"
    )


def test_a_share_is_that_of_two_finite_epsilons_above_0() -> None:
    one = PrivacyLoss(1)
    assert share_of(PrivacyLoss("0.25"), one) == 0.25
    assert share_of(PrivacyLoss(0), one) == 0
    for loss, whole in ((None, one), (one, None), (None, None), (PrivacyLoss(rho=1), one), (one, PrivacyLoss(0))):
        assert share_of(loss, whole) is None


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (False, True, "from no to yes"),
        (None, (), "from None to ()"),  # which read alike
        (None, Fraction(1, 3), "from none to ~0.3333"),
        (Fraction(2), ["a", Fraction(5, 2), True], "from 2 to a, 2.5, yes"),
        (Fraction(33333, 99998), Fraction(1, 3), "from 33333/99998 to 1/3"),
        (0.5, "x", "from 0.5 to x"),
        ("1", 1, "from '1' to 1"),
    ],
)
def test_unequal_values_never_read_alike(before: Any, after: Any, text: str) -> None:
    assert from_to(before, after) == text


# Lines


def test_lines_of_a_tree_are_broken_under_their_branch_where_there_is_room() -> None:
    line = "├─ one: " + "word " * 8 + "[epsilon 0.5]"
    assert fit_tree(line, None) == fit_tree(line, len(line)) == line
    broken = fit_tree(line, len(line) - 1).split("\n")
    assert broken == ["├─ one: " + "word " * 7 + "word", "│      [epsilon 0.5]"]
    assert fit_tree(line.replace("├", "└"), len(line) - 1).split("\n")[1] == "       [epsilon 0.5]"
    assert fit_tree(line, 30) == line  # 23 columns would be left
    assert all(len(part) <= 31 for part in fit_tree(line, 31).split("\n"))
    assert fit_tree("a\n" + line, 40).startswith("a\n├─ one")
    assert "[epsilon 0.5]" in fit_tree(line, 45)
    assert fit_tree("~ │  └─ " + "word " * 10, 40).split("\n")[1] == "~ │         word word word word word"


def test_prose_is_broken_between_words_each_line_after_an_indent() -> None:
    text = "one two  three\nfour\n\nfive-six " + "x" * 40
    assert fit_prose(text, None, "  ").split("\n")[:2] == ["  one two  three", "  four"]
    assert fit_prose(text, 10, "  ") == f"  one two three four\n\n  five-six\n  {'x' * 40}"  # 24 columns are the least
    assert fit_prose(text, 27, "  ").split("\n")[0] == "  one two three four"
    assert fit_prose("aa bb", 5) == "aa bb"


def test_long_values_of_facts_stand_beside_or_below_their_names() -> None:
    value = "word " * 6 + "end"
    rows = [("name", value), ("n", "short")]
    assert fit_facts(rows, None) == [("name  ", value), ("n     ", "short")]
    assert fit_facts(rows, 39) == [("name  ", value), ("n     ", "short")]
    assert fit_facts(rows, 38) == [("name  ", "word " * 5 + "word"), ("      ", "end"), ("n     ", "short")]
    assert fit_facts(rows, 30)[:2] == [("name  ", "word word word word word"), ("      ", "word end")]
    below = fit_facts(rows, 29)
    assert below[0] == ("name", "")
    assert below[1] == ("    ", "word " * 4 + "word")
    assert fit_facts([], 20) == []
    long = fit_facts([("n", "x" * 50)], 40)
    assert long == [("n", ""), ("    ", "x" * 50)]


def test_values_of_facts_are_wrapped_at_spaces_and_only_where_they_must_be() -> None:
    assert fit_facts([("n", "0123456789")], 13) == [("n  ", "0123456789")]  # it fits, to the last column
    assert fit_facts([("n", "0123456789")], 12) == [("n", ""), ("    ", "0123456789")]
    word = "x" * 24
    assert fit_facts([("n", f"{word} y")], 27) == [("n  ", word), ("   ", "y")]
    assert fit_facts([("n", f"{'x' * 20} yy-zz")], 27) == [("n  ", "x" * 20), ("   ", "yy-zz")]
    value = f"{'x' * 30} {'y' * 20} {'z' * 15} {'a' * 20} {'b' * 16}"
    below = fit_facts([("the name of it", value)], 40)  # 36 columns, 4 from the left
    assert [text for _, text in below] == ["", "x" * 30, f"{'y' * 20} {'z' * 15}", "a" * 20, "b" * 16]
    below = fit_facts([("a long name of it", f"{'y' * 20} {'z' * 4}-{'x' * 12}")], 30)
    assert [text for _, text in below] == ["", "y" * 20, f"{'z' * 4}-{'x' * 12}"]


# Blocks and steps


def test_the_largest_part_of_a_block_is_told() -> None:
    few, many = BlockSums(1, Amounts(epsilon="0.5")), BlockSums(3, Amounts(epsilon="0.75"))
    assert _sums_text({}) == "nothing"
    assert _sums_text({"a": few}) == "1 release, epsilon 0.5"
    assert _sums_text({"a": many}) == "3 releases, epsilon 0.75"
    assert _sums_text({"a": few, "b": many}) == "3 releases, epsilon 0.75, the largest of 2 parts"
    assert _amounts_text(Amounts(epsilon=1, delta=0)) == "epsilon 1.0"
    assert _amounts_text(Amounts(rho="0.1", delta="0.001")) == "rho 0.1, delta 0.001"


@pytest.mark.parametrize(
    ("declared", "added", "replaced"),
    [
        (Sensitivity("l1", 1, 2, source="s"), "1 (l1)", "2 (l1)"),
        (Sensitivity("l1", 1, None, source="s"), "1 (l1)", None),
        (Sensitivity("l1", "1/2", source="s"), "0.5 (l1)", None),
        (Sensitivity("linf", 1, fall=0, source="s"), "1 (linf)", None),
        (Sensitivity("linf", 1, source="s"), "1 (linf)", None),
        (Sensitivity("linf", 1, fall="1/2", source="s"), "1 (linf, spread 1.5)", None),
    ],
)
def test_a_change_with_its_norm_and_an_odd_spread(declared: Any, added: str, replaced: str | None) -> None:
    assert _change(declared, ADD) == added
    if replaced is not None:
        assert _change(declared, REPLACE) == replaced
    nothing = SimpleNamespace(change=SimpleNamespace(under=lambda _: None), norm=declared.norm)
    assert _change(nothing, ADD) == "no claim"  # type: ignore[arg-type]


def test_a_row_of_a_step_says_that_its_claim_assumes_something() -> None:
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill")]), epsilon=1)
    study.add("n", dpf.miner("count", epsilon="1/2"))
    (row,) = dpf.reports.step_rows(study.plan())
    assert not row.assumes
    assert attrs.evolve(row, assumptions="x").assumes
    assert (row.sensitivity, row.monotonic, row.assumptions) == ("1 (l1)", "yes", "—")
    assert row.loss == "epsilon 0.5"
    assert Fraction(1, 2) == study.plan().total().epsilon
