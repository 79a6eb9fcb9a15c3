"""The small plans on which accountants are tried, each with the rule of composition that it tests."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.logical_descriptions_of_rows import And, Cases, Equals
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Mechanism, PartitionSelection, PermuteAndFlip
from dpframework.plan.nodes import (
    FromRelease,
    Node,
    Step,
    either,
    parallel,
    post,
    repeat,
    sample,
    sequential,
    step,
)
from dpframework.plan.plan import Budget, Plan, PublicFacts
from dpframework.plan.spend_block_node import kind, spend
from dpframework.queries import Count, Histogram, Query, Sensitivity
from dpframework.tables.encoded_row_blocks import Block
from dpframework.verify.accountants.exact_loss_oracle import SCHEMA

A, C = SCHEMA["a"], SCHEMA["c"]
PERSON = PrivacyUnit("person", 2)
ASSERTED = PrivacyUnit(rows=2)  # no column names the units: the owner of the data asserts that a unit has 2 rows
TRIO = PrivacyUnit("trio", 3)
FAMILY = PrivacyUnit("family", 4)
FOUR_ROWS = PrivacyUnit(rows=4)
LARGE, SMALL = 8, Fraction(1, 32)  # epsilons so large, or so small, that an accountant may use another formula there
LARGEST, SMALLEST = 40, Fraction(1, 1000)
LITTLE = Fraction(1, 512)  # a rho so small that Renyi divergences of orders above 64 give its epsilon
MANY = 6  # a number of releases beyond which an accountant may use another formula
VERY_MANY = 100  # so many releases that bounds which grow with the root of this number are smaller than sums
MOST = 256  # so many releases that an accountant may approximate their loss by a normal distribution
ADD, REPLACE = Relation

#: For each rule of composition, the mistake that its plans reveal. The simplest rules come first: if one of them fails,
#: the later ones fail as a consequence. A block stands for releases that are chosen during a run, up to caps on what
#: they spend.
MISTAKES = {
    "release": "a single release is charged less than it loses",
    "no claim": "a step without a claim is charged as if it had one",
    "sequential": "releases from the same rows are charged less than they lose together; their losses add up",
    "repeat": "a repeat is charged less than all its repetitions lose together",
    "either": "a choice is charged less than its most expensive branch",
    "parallel": "parts are charged less than the most expensive of them loses",
    "move": "parts are charged less than is lost when a row leaves one of them and enters another",
    "overlap": "the parts of two partitions are charged as disjoint, although each row lies in a part of both",
    "sample": "releases from a sample are charged less than they lose (the rate times epsilon is not an upper bound)",
    "sample anew": "its `samples_anew` is wrong: releases from a sample are charged less than is lost if a resumed run "
    "draws the sample again",
    "replaced sample": "a release from a sample is charged less than one from all rows, but its output may show that "
    "the replaced row is in the sample",
    "exact delta": "the delta that releases have of their own is dropped, or is not subtracted from the study's delta "
    "before their losses are converted to an epsilon",
    "unit": "a unit of several rows is charged less than its rows lose, as if it had fewer",
    "unit in parts": "parts are charged less than is lost by a unit with rows in one part or in several",
    "unit in a sample": "releases from a sample are charged less than a unit of several rows loses",
    "block": "a block is charged less than its caps, which its miner can reach",
    "block in a plan": "blocks in parts, branches, repetitions or samples are charged less than their caps cost there",
    "nested": "compositions within compositions are charged less than they lose",
}


@final
@attrs.frozen(eq=False)
class Case:
    """A small plan, on which accountants are tried.

    Attributes
    ----------
    rule
        One of `MISTAKES`.
    text
        What is released, in words.
    node
        The root of the plan's nodes.
    unit
        The privacy unit that the plan protects.
    spent
        The root of the plan whose exact loss is computed. It has steps that spend a block's caps in place of the block,
        or one branch in place of a choice. None if this is `node` itself.
    """

    rule: str
    text: str
    node: Node
    unit: PrivacyUnit = ROW
    spent: Node | None = None

    def plan(self, relation: Relation, delta: Fraction) -> Plan:
        """Return the plan under a relation and a delta. Equal arguments return the same object."""
        return self._plan(self.node, relation, delta)

    def listed_plan(self, relation: Relation, delta: Fraction) -> Plan:
        """Return the plan whose exact loss is computed: the plan of `spent`, or the plan itself."""
        return self._plan(self.node if self.spent is None else self.spent, relation, delta)

    def new_plan(self, relation: Relation, delta: Fraction) -> Plan:
        """Return the plan as a new object, which nothing else refers to."""
        return self._build(self.node, relation, delta)

    @functools.lru_cache(maxsize=1024)  # noqa: B019 the cases are module constants
    def _plan(self, node: Node, relation: Relation, delta: Fraction) -> Plan:
        return self._build(node, relation, delta)

    def _build(self, node: Node, relation: Relation, delta: Fraction) -> Plan:
        facts, budget = PublicFacts.of(SCHEMA), Budget(1, delta)
        return Plan(sequential(node), relation, facts, budget, SCHEMA, unit=self.unit)

    def rule_under(self, relation: Relation) -> str:
        """Return the rule that this case tests under a relation."""
        moves = relation is REPLACE and self.rule == "parallel"
        return "move" if moves else self.rule


@attrs.frozen
class _IllAndRows(Query):
    """The number of rows with a = true plus 20 times the number of all rows, which is public under replace-one."""

    name = "ill-and-rows"
    answer_length = 1
    sensitivities = (Sensitivity("l1", None, 1, source="the number of rows does not change"),)

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return the number that the class describes, shape (1,)."""
        ill = block.codes("a")
        return np.array([int(ill.sum()) + 20 * len(ill)])


def _count(name: str, epsilon: Any = 1) -> Step:
    return step(name, Count(), DiscreteLaplace(epsilon))


def _histogram(name: str, mechanism: Mechanism, attribute: Any = C) -> Step:
    return step(name, Histogram(attribute), mechanism)


_ONE, _TWO = _histogram("h", DiscreteLaplace(1)), _histogram("h", DiscreteLaplace(2))
_HALF, _GAUSSIAN = _histogram("h", DiscreteLaplace("0.5")), _histogram("g", Gaussian("0.125"))
_SELECTED = step("n", Count(), PartitionSelection(1, "0.02"))
_PRECISE = _histogram("h", Gaussian(8))  # with so little noise, a converted rho is near the loss
_SIX = Cases(
    [
        And([Equals("a", "true"), Equals("c", "x")]),
        And([Equals("a", "true"), Equals("c", "y")]),
        Equals("a", "true"),
        Equals("c", "x"),
        Equals("c", "y"),
    ]
)
_UNEQUAL = parallel(_count("n", "0.5"), sequential(_count("m"), _count("k", "0.5")), by=A)
_UNCLAIMED = step("r", _IllAndRows(), DiscreteLaplace(1))  # has no claim under add-or-remove-one
_KIND = kind("h", Histogram(C), DiscreteLaplace)
_BLOCK = spend("b", _KIND, epsilon=1)

#: All plans, the simplest first.
CASES = (
    # single releases, and rules of composition
    Case("release", "a count", _count("n", "0.5")),
    Case("release", "a histogram", _ONE),
    Case("release", "a selection", _histogram("s", PermuteAndFlip(1))),
    Case("release", "a histogram with Gaussian noise", _GAUSSIAN),
    Case("release", "a count with a large epsilon", _count("n", LARGE)),
    Case("release", "a count with a small epsilon", _count("n", SMALL)),
    Case("release", "a histogram with much Gaussian noise", _histogram("g", Gaussian(LITTLE))),
    Case("release", "a count with a very large epsilon", _count("n", LARGEST)),
    Case("release", "a count with a very small epsilon", _count("n", SMALLEST)),
    Case(
        "no claim",
        "a step that has a claim under replace-one only, beside a count",
        sequential(_count("n"), _UNCLAIMED),
    ),
    Case("no claim", "a choice between a step without a claim and a count", either(_count("n"), _UNCLAIMED)),
    Case("no claim", "a step without a claim, twice", repeat(2, _UNCLAIMED)),
    Case("no claim", "a step without a claim in one of two parts", parallel(_count("n"), _UNCLAIMED, by=A)),
    Case(
        "sequential",
        "two histograms of epsilon 0.5 and 1",
        sequential(_histogram("k", DiscreteLaplace("0.5")), _ONE),
    ),
    Case("sequential", "two equal histograms", sequential(_ONE, _histogram("k", DiscreteLaplace(1)))),
    Case("sequential", "two releases with Gaussian noise", sequential(_GAUSSIAN, _histogram("k", Gaussian("0.125")))),
    Case("repeat", "the same histogram, once", repeat(1, _HALF)),
    Case("repeat", "the same histogram, three times", repeat(3, _HALF)),
    Case("repeat", "Gaussian noise, twice", repeat(2, _GAUSSIAN)),
    Case(
        "sequential",
        f"{MANY} counts, one after another",
        sequential(*(_count(f"n{k}", "0.25") for k in range(MANY))),
    ),
    Case("repeat", f"the same count, {2 * MANY} times", repeat(2 * MANY, _count("n", "0.125"))),
    Case("repeat", f"the same count, {VERY_MANY} times", repeat(VERY_MANY, _count("n", "0.5"))),
    Case(
        "repeat", f"the same selection, {VERY_MANY} times", repeat(VERY_MANY, _histogram("s", PermuteAndFlip("0.5"), A))
    ),
    Case("repeat", f"the same selection, {MOST} times", repeat(MOST, _histogram("s", PermuteAndFlip("0.0625"), A))),
    Case(
        "sequential",
        f"{VERY_MANY // 2} counts, one after another",
        sequential(*(_count(f"n{k}", "0.25") for k in range(VERY_MANY // 2))),
    ),
    Case("sequential", "a count, post-processing, and a count", sequential(_count("n"), post("p", ["n"]), _count("m"))),
    Case("either", "a cheap branch or an expensive one", either(_histogram("k", DiscreteLaplace("0.5")), _TWO)),
    Case("either", "an expensive branch or a cheap one", either(_TWO, _histogram("k", DiscreteLaplace("0.5")))),
    Case(
        "either",
        "a choice of branches after a selection, with post-processing",
        sequential(
            _histogram("s", Exponential("0.5")),
            either(_histogram("k", DiscreteLaplace("0.5")), _ONE),
            post("p", ["s"]),
        ),
    ),
    Case(
        "either",
        "a choice of five branches, of which the fourth is expensive",
        either(*(_count(f"n{k}", "0.25") for k in range(3)), _ONE, _count("m", "0.5")),
    ),
    Case("either", "a choice within a choice", either(_ONE, either(_histogram("k", DiscreteLaplace("0.5")), _TWO))),
    # At a small delta, one release costs more with Gaussian noise than with Laplace noise, since its loss has longer
    # tails. A long sequence of such releases costs less.
    Case(
        "either",
        f"Laplace or Gaussian noise, {2 * MANY} times",
        repeat(2 * MANY, either(_ONE, _histogram("k", Gaussian("0.3")))),
        spent=repeat(2 * MANY, _ONE),
    ),
    # parts
    Case("parallel", "a count in each part", parallel(_count("n"), by=C)),
    Case("parallel", "a histogram in each part", parallel(_ONE, by=A)),
    Case("parallel", "Gaussian noise in each part", parallel(_GAUSSIAN, by=A)),
    Case("parallel", "a cheap part and an expensive one", _UNEQUAL),
    Case("parallel", "an expensive part and a cheap one", parallel(_ONE, _count("n", "0.25"), by=A)),
    Case(
        "parallel",
        "three parts, each more expensive than the one before",
        parallel(_count("n", "0.25"), _count("m", "0.5"), _count("k"), by=C),
    ),
    Case(
        "parallel",
        "three parts, of which the first and the last are expensive",
        parallel(_count("n"), _count("m", "0.25"), _count("k"), by=C),
    ),
    Case(
        "parallel",
        "four parts, all equally expensive",
        parallel(
            *(_count(f"n{k}", "0.5") for k in range(4)),
            by=Cases([Equals("c", "x"), Equals("c", "y"), Equals("a", "true")]),
        ),
    ),
    Case(
        "parallel",
        "six parts, of which the fifth and the sixth are expensive",
        parallel(*(_count(f"n{k}", "0.25") for k in range(4)), _count("k"), _count("m", "0.5"), by=_SIX),
    ),
    Case(
        "parallel",
        "six parts, of which the first and the fourth are expensive",
        parallel(*(_count(f"n{k}", Fraction(k, 8)) for k in (8, 1, 2, 7, 3, 4)), by=_SIX),
    ),
    Case(
        "parallel",
        "one part, of the rows that a description holds for",
        parallel(_count("n"), by=[Equals("a", "true")]),
    ),
    Case("parallel", "parts of parts", parallel(sequential(_count("n", "0.5"), parallel(_count("m"), by=C)), by=A)),
    Case("parallel", "parts, twice", repeat(2, parallel(_count("n", "0.5"), by=A))),
    Case(
        "overlap",
        "a partition, and another of the same rows",
        sequential(parallel(_count("n"), by=A, name="one"), parallel(_count("m"), by=C, name="two")),
    ),
    Case(
        "overlap",
        "two partitions by the same attribute",
        sequential(parallel(_count("n"), by=A, name="one"), parallel(_count("m"), by=A, name="two")),
    ),
    Case(
        "overlap",
        "all rows, and then their parts",
        sequential(_ONE, parallel(_histogram("k", DiscreteLaplace(1), A), by=C)),
    ),
    Case(
        "overlap",
        "a tree: a selection, and then a leaf or the parts that were selected",
        sequential(
            _histogram("split", PermuteAndFlip("0.5")),
            either(
                _histogram("leaf", DiscreteLaplace("0.5")),
                parallel(_histogram("leaves", DiscreteLaplace(1)), by=FromRelease("split")),
            ),
        ),
    ),
    # samples
    Case("sample", "a count of a sample", sample("0.3", _count("n"))),
    Case("sample", "a count of a small sample", sample("0.01", _count("n", 2))),
    Case("sample", "a count of a tiny sample", sample("0.0001", _count("n", 2))),
    Case("sample", "a count of a large sample", sample("0.9", _count("n"))),
    Case("sample", "a count of a sample, with a large epsilon", sample("0.3", _count("n", LARGE))),
    Case("sample", "two counts of one sample", sample("0.3", sequential(_count("n", "0.75"), _count("m")))),
    Case("sample", "Gaussian noise on a sample", sample("0.3", step("n", Count(), Gaussian("0.125")))),
    Case(
        "sample",
        "counts of two samples",
        sequential(sample("0.3", _count("n"), name="one"), sample("0.6", _count("m"), name="two")),
    ),
    Case("sample", "a sample of a sample", sample("0.5", sample("0.4", _count("n")))),
    Case("sample", "parts of a sample", sample("0.3", parallel(_count("n"), by=A))),
    Case("sample", "a sample of each part", parallel(sample("0.3", _count("n")), by=A)),
    Case("sample", "a count of a sample, twice", repeat(2, sample("0.3", _count("n")))),
    Case("sample", "little Gaussian noise on a small sample", sample("0.01", step("n", Count(), Gaussian(2)))),
    Case("sample", "little Gaussian noise on a sample", sample("0.3", step("n", Count(), Gaussian(2)))),
    Case(
        "sample anew",
        "two counts of one sample, each of its own sample in a resumed run",
        sample("0.1", repeat(2, _count("n", 3))),
        spent=repeat(2, sample("0.1", _count("n", 3))),
    ),
    Case(
        "replaced sample",
        "a number that shows whether a row is in the sample",
        sample("0.3", step("r", _IllAndRows(), DiscreteLaplace(1))),
    ),
    # releases with a delta of their own
    Case("exact delta", "a count with an exact delta", _SELECTED),
    Case(
        "exact delta",
        "a count with an exact delta beside Gaussian noise",
        sequential(_SELECTED, step("g", Count(), Gaussian("0.125"))),
    ),
    Case("exact delta", "a count with an exact delta in each part", parallel(_SELECTED, by=C)),
    Case("exact delta", "a count with an exact delta on a sample", sample("0.3", _SELECTED)),
    Case("exact delta", "a count with an exact delta for people", _SELECTED, PERSON),
    Case("exact delta", "a count with an exact delta, twice", repeat(2, _SELECTED)),
    # units of several rows
    Case("unit", "a histogram", _ONE, PERSON),
    Case("unit", "two histograms", sequential(_ONE, _histogram("k", DiscreteLaplace("0.5"))), PERSON),
    Case("unit", "Gaussian noise", _GAUSSIAN, PERSON),
    Case("unit in parts", "a count in each part", parallel(_count("n"), by=C), PERSON),
    Case("unit in parts", "a cheap part and an expensive one", _UNEQUAL, PERSON),
    Case("unit", "little Gaussian noise, for families of four", _PRECISE, FAMILY),
    Case("unit in parts", "a count in each part, for trios", parallel(_count("n", "0.5"), by=A), TRIO),
    Case("unit", "a count, for families of four", _count("n", "0.5"), FAMILY),
    Case("unit in parts", "a count in each part, for families of four", parallel(_count("n", "0.5"), by=C), FAMILY),
    Case("unit in a sample", "a count of a sample of people", sample("0.3", _count("n")), PERSON),
    Case("unit in a sample", "a count of a sample of rows", sample("0.3", _count("n")), ASSERTED),
    Case("unit in a sample", "a count of a sample of rows, for four rows", sample("0.3", _count("n")), FOUR_ROWS),
    # blocks of releases that are chosen during a run
    Case("block", "a block, spent on one histogram", _BLOCK, spent=_ONE),
    Case("block", "a block, spent on two histograms", _BLOCK, spent=repeat(2, _HALF)),
    Case(
        "block",
        "a block with Gaussian noise",
        spend("b", kind("h", Histogram(C), Gaussian), rho="0.125"),
        spent=_GAUSSIAN,
    ),
    Case(
        "block",
        "a block with a cap on delta",
        spend("b", kind("n", Count(), PartitionSelection), epsilon=1, delta="0.02"),
        spent=_SELECTED,
    ),
    Case("block", "a block for people", _BLOCK, PERSON, spent=_ONE),
    Case("block in a plan", "a block in each part", parallel(_BLOCK, by=A), spent=parallel(_ONE, by=A)),
    Case(
        "block in a plan",
        "a block, or two others",
        either(_BLOCK, repeat(2, spend("c", _KIND, epsilon="0.75"))),
        spent=either(_ONE, repeat(2, _histogram("k", DiscreteLaplace("0.75")))),
    ),
    Case(
        "block in a plan",
        "a block on a sample",
        sample("0.3", spend("b", kind("n", Count(), DiscreteLaplace), epsilon=1)),
        spent=sample("0.3", _count("n")),
    ),
    Case(
        "block in a plan",
        "a block in each part, for people",
        parallel(_BLOCK, by=A),
        PERSON,
        spent=parallel(_ONE, by=A),
    ),
)
