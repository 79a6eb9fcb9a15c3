"""Bugs of miners of other kinds: itemsets, subgroups and moments, each beside its twin.

A weight of larger itemsets than the example has flags for, a prior beyond a half, and squares of numbers below 1.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import PlantedSteps, require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import ADD
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import CandidateScores, Norm, Sensitivity
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.audit_subject_variants import subject_variants
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import with_other_costs

BASKETS = dpf.Schema([dpf.Boolean("bread"), dpf.Boolean("milk"), dpf.Boolean("tea")])
WARDS = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("ward", ["x", "y"])])
RATES = dpf.Schema([dpf.Numeric("rate", 0, 8, bins=2)])


@attrs.frozen
class Supports(CandidateScores):
    """The supports of all itemsets of one size, weighted by the pairs in them."""

    name = "weighted-supports"
    items: tuple[str, ...]
    size: int
    bound: int

    @property
    def attributes(self):
        return self.items

    @property
    def answer_length(self):
        return len(self.candidates())

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, self.bound, fall=0, source="a row is in each itemset once"),)

    def candidates(self, **inputs):
        return list(itertools.combinations(self.items, self.size))

    def count(self, block, **inputs):
        held = {name: block.codes(name) == 1 for name in self.items}
        return np.array([np.logical_and.reduce([held[name] for name in found]).sum() for found in self.candidates()])

    def answer(self, counts, **inputs):
        return counts * max(self.size * (self.size - 1) // 2, 1)


@attrs.frozen
class Itemsets(Makes):
    """Select an itemset from at least two; one of three items has three pairs, which the bound leaves out."""

    right: Any
    size: int = attrs.field(default=2, validator=attrs.validators.ge(1))

    def plan(self, schema):
        items = tuple(own.name for own in schema if isinstance(own, dpf.Boolean))
        query = Supports(items, self.size, max(self.size * (self.size - 1) // 2, 1) if self.right else 1)
        if len(query.candidates()) < 2:
            raise dpf.InputError("there are fewer than two itemsets")
        return dpf.step("asked", query, dpf.mechanisms.PermuteAndFlip(1))


@attrs.frozen
class Subgroup(Makes):
    """Add 1 - prior for an ill row, and take the prior from any other."""

    right: Any
    prior: Fraction = attrs.field(default=Fraction(1, 4), validator=[attrs.validators.ge(0), attrs.validators.le(1)])

    def query(self, schema):
        bound = max(self.prior, 1 - self.prior) if self.right else 1 - self.prior
        return Adds(bound, lambda block: (block.codes("ill") == 1) - float(self.prior))


@attrs.frozen
class Moments(Makes):
    """Add up numbers with their squares, and take a square for the larger of the two."""

    right: Any

    def query(self, schema):
        most = max(abs(Fraction(schema["rate"].lower)), abs(Fraction(schema["rate"].upper)))
        bound = most + most**2 if self.right else 2 * most**2
        return Adds(bound, lambda block: np.abs(block.values("rate")) + block.values("rate") ** 2)


PLANTED: PlantedSteps = {
    "a weight of itemsets of three": (
        Itemsets,
        BASKETS,
        "with another attribute of each kind, with size = 3: linf declared 1, largest found 3",
    ),
    "a prior above a half": (Subgroup, WARDS, "with prior = Fraction(3, 4): l1 declared 0.25, largest found 0.75"),
    "squares of numbers below 1": (
        Moments,
        RATES,
        "with other sizes of numbers: l1 declared 0.125, largest found 0.31",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_of_another_kind_of_mining_is_named(bug, record_property):
    require_named(PLANTED, bug, record_property)


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(PLANTED, bug, record_property)


def test_repeated_releases_count_where_a_plan_may_become_too_large():
    """Else a constant such as 65,536 becomes a number of rounds, and the verification does not end in its time."""

    @attrs.frozen
    class Rounds(dpf.Miner):
        """Releases a number of rows in each round; the code has the constants 5 and 65,536."""

        name = "rounds"
        rounds: int = 2

        def plan(self, schema):
            once = dpf.step("rows", dpf.queries.Count(), DiscreteLaplace(1))
            return dpf.repeat(self.rounds, once)

        def mine(self, table):
            rows = [table.release("rows") for _ in range(self.rounds)]
            return [round(number / 65_536) for number in rows[:5]]

    found = [one.how for one in subject_variants(Subject(Rounds(), WARDS, ADD))]
    assert "with rounds = 6" in found
    assert not any("65537" in how for how in found)


@attrs.frozen
class Halving(dpf.Miner):
    """Spends half of the budget in the first round, a quarter in the second, and an eighth in each later one."""

    name = "halving"
    rounds: int = attrs.field(default=2, validator=attrs.validators.ge(1))
    least: int = 3
    epsilon: Fraction = Fraction(1)

    def plan(self, schema):
        shares = [self.epsilon / 2 ** min(k + 1, self.least) for k in range(self.rounds)]
        counts = [dpf.step(f"rows{k}", dpf.queries.Count(), DiscreteLaplace(share)) for k, share in enumerate(shares)]
        return dpf.sequential(*counts)

    def mine(self, table):
        return [table.release(f"rows{k}") for k in range(self.rounds)]


@attrs.frozen
class OneFree(Halving):
    """Spends the whole budget twice if there is one round only."""

    name = "one-free"
    rounds: int = attrs.field(default=4, validator=attrs.validators.ge(1))

    def plan(self, schema):
        share = self.epsilon / self.rounds
        count = dpf.step("rows0", dpf.queries.Count(), DiscreteLaplace(share))
        every = dpf.step("more", dpf.queries.Count(), DiscreteLaplace(share))
        return dpf.sequential(count, every) if self.rounds == 1 else dpf.repeat(self.rounds, count)


@pytest.mark.parametrize(
    ("miner", "wrong"),
    [
        (Halving(), {"with rounds = 5"}),
        (Halving(least=9), set()),
        (OneFree(), {"with rounds = 1"}),
    ],
)
def test_budgets_that_add_up_for_some_numbers_of_rounds_only_are_found(miner: Halving, wrong: set[str]) -> None:
    tried = [("as it is", miner), *with_other_costs(miner, WARDS)]
    rounds = [(how, other) for how, other in tried if other.rounds > 0 and other.least == miner.least]
    assert {how for how, other in rounds if Subject(other, WARDS, ADD).overspent} == wrong
