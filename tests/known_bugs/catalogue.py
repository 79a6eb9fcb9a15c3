"""A published bug: who had it, the plugin that has it here, and the test of the kit that finds it."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Mechanism
from dpframework.queries import Norm, Query, Sensitivity
from dpframework.verify import audit, check_losses, check_sampler, search_sensitivity, verify_examples
from dpframework.verify.mechanisms.neighbour_answers import Answers, Pairs

ADD, REPLACE = dpf.Relation.ADD_OR_REMOVE_ONE, dpf.Relation.REPLACE_ONE
PAIRS = 120  # of neighbours in a search of a sensitivity, with little patience
REPLAYS = 100  # of an audit
DRAWS = 1_000  # of a sampler test
TOWN = dpf.Categorical("town", ["A", "B", "C"])
ILL = dpf.Boolean("ill")
AGE = dpf.Numeric("age", -1, 8, cuts=[4])
SCHEMA = dpf.Schema([TOWN, ILL, AGE])
HISTOGRAM, DISCRETE = dpf.queries.Histogram(TOWN), DiscreteLaplace(1)


class Tool(enum.Enum):
    """The tests of `dpframework verify` that find such bugs."""

    SENSITIVITY = "sensitivity search"
    AUDIT = "replay audit"
    LOSSES = "claims of a mechanism"
    SAMPLER = "sampler test"
    ENGINE = "suite of engines"
    CHECKS = "checks of a plan"
    BOUNDING = "bounding of people's rows"


@attrs.frozen
class Counts(dpf.Miner):
    """Ask one query with noise; the base of the miners with a bug of their own."""

    name = "counts"
    asked: Query = HISTOGRAM
    noise: Mechanism = DISCRETE
    right: bool = False

    def plan(self, schema):
        return dpf.step("counts", self.asked, self.noise)

    def mine(self, table):
        return table.release("counts")


@attrs.frozen
class Number(Query):
    """A real number about the ages of all rows, of a declared change."""

    name = "number"
    integer = False
    answer_length = 1
    right: bool = True

    #: The change that is declared by mistake, and the right one.
    declared = (1, 1)

    @property
    def sensitivities(self):
        change = self.declared[self.right]
        return (Sensitivity(Norm.L1, None if self.of_replaced else change, change, source="planted"),)

    #: Whether only the change by a replaced row is declared.
    of_replaced = False

    def count(self, block, **inputs):
        """Return how many rows have an age, the sum of the ages, and that of their squares."""
        ages = self.ages(block.values("age"))
        return np.array([len(ages), ages.sum(), np.square(ages).sum()])

    def ages(self, ages: Any) -> Any:
        return ages[~np.isnan(ages)]


@attrs.frozen(eq=False)
class KnownBug:
    """A published bug.

    Attributes
    ----------
    name
        The bug in a few words.
    had
        Who had it: library and version, or paper.
    reference
        An address, or a place in a paper.
    tool
        The test that finds it.
    says
        A pattern of the sentence that reports it.
    example
        Makes an example with the bug, or its twin.
    relation
        The neighbouring relation of the claim that is broken.
    pairs
        For claims of a mechanism: yields pairs of answers to compare it on; None for the kit's.
    own
        The test, where it is none of one example.
    """

    name: str
    had: str
    reference: str
    tool: Tool
    says: str
    example: Callable[[bool], dpf.Example] | None
    relation: dpf.Relation = ADD
    pairs: Pairs | None = None
    own: Callable[[bool], list[str]] | None = None

    def found(self, right: bool, patience: int = 1) -> list[str]:
        """Return what its test says of the bug, or of its twin."""
        if self.own is not None:
            return self.own(right)
        assert self.example is not None
        example = self.example(right)
        step = _first_step(example)
        match self.tool:
            case Tool.SENSITIVITY:
                report = search_sensitivity(step.query, example.schema, self.relation, pairs=PAIRS * patience)
                return [] if report.passed else [str(report)]
            case Tool.AUDIT:
                replays, delta = REPLAYS * patience, example.delta
                report = audit(example.miner, example.schema, self.relation, delta=delta, replays=replays)
                return [str(violation) for violation in report.violations]
            case Tool.LOSSES:
                given = None if self.pairs is None else [Answers(step.query.facts(), self.pairs)]
                report = check_losses(step.mechanism, given=given, relations=[self.relation])
                return [] if report.passed else [str(report)]
            case Tool.SAMPLER:
                return list(check_sampler(step.mechanism, draws=DRAWS * patience).wrong)
        raise AssertionError(self.tool)

    def verified(self, right: bool, replays: int) -> list[str]:
        """Return what `dpframework verify` says of the example under this relation."""
        assert self.example is not None
        examples = {"planted": self.example(right)}
        found = verify_examples(self.name, examples, relations=[self.relation], replays=replays, runs=0)
        return list(found.problems())

    def named(self, sentences: list[str]) -> str | None:
        """Return the first line of the report that names the bug, or None."""
        for sentence in sentences:
            if re.search(self.says, sentence):
                return next(line for line in sentence.splitlines() if re.search(self.says, line))
        return None


def _first_step(example: dpf.Example) -> Any:
    node = example.miner.plan(example.schema)
    while not hasattr(node, "query"):
        node = node.children[0]
    return node


def asked(
    make: Callable[[bool], Query], noise: Mechanism | None = None, schema: dpf.Schema = SCHEMA
) -> Callable[[bool], dpf.Example]:
    """Return examples of a query with the bug and without it, with noise that is right."""
    mechanism = dpf.mechanisms.Laplace(1) if noise is None else noise
    return lambda right: dpf.Example(schema, Counts(asked=make(right), noise=mechanism))


def drawn(make: Callable[[bool], Mechanism], query: Query | None = None) -> Callable[[bool], dpf.Example]:
    """Return examples of a mechanism with the bug and without it, on a query that is right."""
    return lambda right: dpf.Example(SCHEMA, Counts(asked=query or Counts().asked, noise=make(right)))


def mined(make: Callable[..., dpf.Miner], delta: Any = 0, schema: dpf.Schema = SCHEMA) -> Callable[[bool], dpf.Example]:
    """Return examples of a miner with the bug and without it."""
    return lambda right: dpf.Example(schema, make(right=right), delta=delta)
