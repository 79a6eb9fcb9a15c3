"""Accountants that are wrong on plans of a kind that few write: planted, each beside the honest one that it is made of.

One keeps Renyi divergences at many orders, as arrays. Others compose pure epsilons by the kinds of a plan's nodes.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from verify.test_accountant_conformance import Pure, scaled

import dpframework as dpf
from dpframework.accountant import composition
from dpframework.facts import ByRelation
from dpframework.facts.privacy_losses import Relation
from dpframework.plan.nodes import Either, Node, Parallel, Post, Repeat, Sample, Sequential
from dpframework.plan.plan import Plan
from dpframework.verify import check_accountant

ORDERS = np.array([*(1 + k / 10 for k in range(1, 100)), *range(11, 65), 128, 256, 512], dtype=np.float64)


class Curves(dpf.Accountant[Any]):
    """Renyi divergences at many orders, for an added row and for a replaced one: an honest accountant."""

    name = "planted"
    needs_delta = True

    def of_rho(self, rho: float) -> Any:
        return ORDERS * rho

    def amount(self, calibration: Any) -> Any:
        curves = []
        for relation in Relation:
            pure, rho = (
                None if calibration is None else getattr(calibration.losses, name).under(relation)
                for name in ("pure", "zcdp")
            )
            known = [self.of_rho(float(rho))] if rho is not None else []
            known += [np.full(len(ORDERS), float(pure))] if pure is not None else []
            curves.append(np.min(known, axis=0) if known else np.full(len(ORDERS), np.inf))
        return np.array(curves)

    def sequential(self, parts: Any) -> Any:
        return np.sum([np.zeros((2, len(ORDERS))), *parts], axis=0)

    def either(self, parts: Any) -> Any:
        return np.max([np.zeros((2, len(ORDERS))), *parts], axis=0)

    def parallel(self, parts: Any) -> Any:
        added, stays = self.either(parts)
        moves = np.sort([np.zeros(len(ORDERS)), *(part[0] for part in parts)], axis=0)[-2:].sum(axis=0)
        return np.array([added, np.maximum(moves, stays)])

    def convert(self, curve: Any) -> float:
        delta = float(self.delta)
        found = curve + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
        return max(float(found.min()), 0.0)

    def loss(self, amount: Any) -> Any:
        epsilon = self.convert(amount[list(Relation).index(self.relation)])
        return dpf.PrivacyLoss(epsilon=Fraction(epsilon), delta=self.delta) if math.isfinite(epsilon) else None


class FewOrders(Curves):
    """Orders beyond 64 lose what that of 64 does."""

    def of_rho(self, rho: float) -> Any:
        return np.minimum(ORDERS, 64) * rho


class DearestAlone(Curves):
    """A choice costs the branch that costs most alone, at the study's delta."""

    def either(self, parts: Any) -> Any:
        whole = super().either(parts)
        return np.array([max([part[k] for part in parts], key=self.convert, default=whole[k]) for k in range(2)])


class ByKind(Pure):
    """Pure epsilon, with a rule of its own for some kinds of nodes."""

    inside = 0

    def amount_of(self, node: Node, plan: Plan) -> ByRelation:
        self.inside += isinstance(node, Parallel)
        own = self.own(node, plan)
        amount = super().amount_of(node, plan) if own is None else own
        self.inside -= isinstance(node, Parallel)
        return amount

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        return None


class SamplesTogether(ByKind):
    """Samples that are drawn one after another are amplified together, at the product of their rates."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if isinstance(node, Repeat) and isinstance(node.part, Sample):
            return self.sample(
                self.repeat(self.amount_of(node.part.part, plan), node.times), node.part.rate**node.times
            )
        return None


class SamplesOfParts(ByKind):
    """A sample of a part counts as one of half the rate, since other rows are in other parts."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        return super().sample(part, rate / 2 if self.inside else rate)


class FirstChoice(ByKind):
    """A choice with another choice in it costs its first branch."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        inner = isinstance(node, Either) and any(isinstance(part, Either) for part in node.parts)
        return self.amount_of(node.children[0], plan) if inner else None


class FewMove(ByKind):
    """Among more than three parts, a row that moves costs what one costs that stays."""

    def parallel(self, parts: Any) -> ByRelation:
        whole = super().parallel(parts)
        few = len(parts) <= 3
        return whole if few else ByRelation(whole.add_or_remove_one, composition.either(parts).replace_one)


class KeptById(ByKind):
    """Amounts are kept by the id of a node, which another node may get after the plan is deleted."""

    known: ClassVar[dict[Any, ByRelation]] = {}

    def amount_of(self, node: Node, plan: Plan) -> ByRelation:
        if (id(node), self.relation) not in self.known:
            self.known[id(node), self.relation] = super().amount_of(node, plan)
        return self.known[id(node), self.relation]


class FirstTermOfRates(ByKind):
    """At rates below 1/200 a sample costs its rate times epsilon."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        if rate >= Fraction(1, 200):
            return super().sample(part, rate)
        return ByRelation(None if part.add_or_remove_one is None else rate * part.add_or_remove_one, None)


class SmallExponents(ByKind):
    """An epsilon above 5 is amplified as 5, so that its exponential is small."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        return super().sample(part.map(lambda epsilon: min(epsilon, Fraction(5))), rate)


class SkipsBranches(ByKind):
    """Branches without a claim cost nothing."""

    def either(self, parts: Any) -> ByRelation:
        return super().either([part for part in parts if part.under(self.relation) is not None])


class FreeOnce(ByKind):
    """A repeat that is made once costs nothing."""

    def repeat(self, part: Any, times: int) -> ByRelation:
        return super().repeat(part, times if times > 1 else 0)


class NextPart(ByKind):
    """A row moves to the next part only."""

    def parallel(self, parts: Any) -> ByRelation:
        whole, added = super().parallel(parts), [part.add_or_remove_one for part in parts]
        if len(parts) < 3 or whole.replace_one is None:
            return whole
        moved = max(one + other for one, other in itertools.pairwise(added))
        return ByRelation(whole.add_or_remove_one, max(moved, *(part.replace_one for part in parts)))


class LargerDelta(Curves):
    """Converts at a delta of 1e-8 if the study's is smaller."""

    def convert(self, curve: Any) -> float:
        delta = max(float(self.delta), 1e-8)
        found = curve + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
        return max(float(found.min()), 0.0)


class ByEnds(ByKind):
    """A choice costs the larger of its first and its last branch."""

    def either(self, parts: Any) -> ByRelation:
        return super().either([parts[0], parts[-1]])


class RowsInPairs(ByKind):
    """The rows of a unit move in pairs, and the odd one is forgotten."""

    def spread(self, parts: Any, rows: int) -> ByRelation:
        return scaled(composition.parallel(parts), Fraction(rows - rows % 2, rows))


class NormalSums(ByKind):
    """Thirty or more releases from the same rows compose by the root of their number."""

    def sequential(self, parts: Any) -> ByRelation:
        whole = super().sequential(parts)
        return whole if len(parts) < 30 else scaled(whole, Fraction(2, math.isqrt(len(parts))))


class LargestOfFive(ByKind):
    """Of five or more parts the two most expensive are looked up by a partition the wrong way round."""

    def parallel(self, parts: Any) -> ByRelation:
        whole, added = super().parallel(parts), [part.add_or_remove_one for part in parts]
        if len(parts) < 5 or whole.replace_one is None:
            return whole
        moved = sum((added[k] for k in np.argpartition(np.array(added, float), 2)[:2]), Fraction(0))
        return ByRelation(whole.add_or_remove_one, max(moved, *(part.replace_one for part in parts)))


class PartitionsOnce(ByKind):
    """Two partitions by the same attribute count as one that has the parts of both."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if isinstance(node, Sequential) and len({getattr(part, "by", part) for part in node.parts}) == 1:
            return self.over_parts([self.amount_of(part, plan) for part in node.parts], plan)
        return None


class PartByPart(ByKind):
    """Two partitions by the same attribute cost what one costs that makes both releases in each part: honest."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if not isinstance(node, Sequential) or not all(isinstance(part, Parallel) for part in node.parts):
            return None
        if len({(part.by, len(part.parts)) for part in node.parts}) > 1 or len(node.parts[0].children) < 2:
            return None
        columns = zip(*(plan.index.parts_of(part) for part in node.parts), strict=True)
        costs = [self.sequential([self.amount_of(part, plan) for part in column]) for column in columns]
        return self.over_parts(costs, plan)


class FreeAfterwards(ByKind):
    """What is released after post-processing counts as post-processing."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if not isinstance(node, Sequential):
            return None
        before = itertools.takewhile(lambda part: not isinstance(part, Post), node.parts)
        return self.sequential([self.amount_of(part, plan) for part in before])


class RepeatsOfRepeats(ByKind):
    """A repeat within a repeat is made as often as the larger number says."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if isinstance(node, Repeat) and isinstance(node.part, Repeat):
            return self.repeat(self.amount_of(node.part.part, plan), max(node.times, node.part.times))
        return None


class SampledBranches(ByKind):
    """The rate of a sample in a branch is applied to the branch, too."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if not isinstance(node, Either):
            return None
        costs = [(part, self.amount_of(part, plan)) for part in node.parts]
        return self.either([self.sample(cost, part.rate) if isinstance(part, Sample) else cost for part, cost in costs])


class SampledChoice(ByKind):
    """A sample of which a choice is released costs the first branch."""

    def own(self, node: Node, plan: Plan) -> ByRelation | None:
        if isinstance(node, Sample) and isinstance(node.part, Either):
            return self.over_sample(self.amount_of(node.part.parts[0], plan), node.rate, plan)
        return None


class WhileAnythingIsLeft(ByKind):
    """A plan is opened as long as anything is left of the budget."""

    def require_fit(self, plan: Plan) -> Any:
        spent = self.spent
        if self.epsilon is not None and spent is not None and (spent.epsilon or 0) >= self.epsilon:
            raise dpf.PlanRefused("nothing is left")
        return self.amount_of(plan.root, plan)


class HalfLeft(ByKind):
    """A plan after the first one is opened if half of its cost is left of the budget."""

    def require_fit(self, plan: Plan) -> Any:
        cost = self.amount_of(plan.root, plan)
        charged = [*self._charged, scaled(cost, Fraction(1, 2)) if self._charged else cost]
        together = self.loss(self.sequential(charged))
        if self.epsilon is not None and together is not None and (together.epsilon or 0) > self.epsilon:
            raise dpf.PlanRefused("too little is left")
        return cost


class TwoOutcomes(dpf.Accountant[Any]):
    """Loss distributions: each release is the worst of its pure epsilon, and samples are mixtures. An honest one."""

    name = "planted"
    needs_delta = True

    def amount(self, calibration: Any) -> Any:
        pure = ByRelation(None, None) if calibration is None else calibration.losses.pure
        return [None if (e := pure.under(relation)) is None else (float(e),) for relation in Relation]

    def sequential(self, parts: Any) -> Any:
        return [None if None in side else sum(side, ()) for side in zip(*parts, strict=True)] if parts else [(), ()]

    def largest(self, events: Any) -> float:
        return sum(
            math.log1p(one[0] * math.expm1(self.largest(one[1]))) if isinstance(one, tuple) else one for one in events
        )

    def either(self, parts: Any) -> Any:
        return [None if None in side else (max(map(self.largest, side)),) for side in zip(*parts, strict=True)]

    def parallel(self, parts: Any) -> Any:
        added, stays = self.either(parts)
        if added is None or stays is None:
            return [added, None]
        return [added, (max(sum(sorted(self.largest(part[0]) for part in parts)[-2:]), stays[0]),)]

    def sample(self, part: Any, rate: Fraction) -> Any:
        return [None if part[0] is None else ((float(rate), part[0]),), None]

    def outputs(self, events: Any) -> Any:
        """The probabilities of all outputs on both tables, of which those with one ratio are added up."""
        found = np.ones((1, 2))
        for one in events:
            if isinstance(one, tuple):
                own = self.outputs(one[1])
                own = np.column_stack([one[0] * own[:, 0] + (1 - one[0]) * own[:, 1], own[:, 1]])
            else:
                own = np.array([[1.0, math.exp(-one)], [math.exp(-one), 1.0]]) / (1 + math.exp(-one))
            pairs = (found[:, None] * own[None]).reshape(-1, 2)
            same = np.unique(np.round(np.log(pairs[:, 0] / pairs[:, 1]), 9), return_inverse=True)[1]
            found = np.column_stack([np.bincount(same, side) for side in pairs.T])
        return found

    def loss(self, amount: Any) -> Any:
        events = amount[list(Relation).index(self.relation)]
        if events is None:
            return None
        p, q = self.outputs(events).T
        low, high, delta = 0.0, self.largest(events) * (1 + 1e-9), float(self.delta)
        for _ in range(40):
            middle = (low + high) / 2
            found = max(np.maximum(one - math.exp(middle) * other, 0).sum() for one, other in ((p, q), (q, p)))
            low, high = (low, middle) if found <= delta else (middle, high)
        return dpf.PrivacyLoss(epsilon=Fraction(high), delta=self.delta)


class DrawsAnew(TwoOutcomes):
    """The total is said to hold if a sample is drawn again."""

    samples_anew = True


class ChoosesPlans(TwoOutcomes):
    """The total is said to hold if the next plan is chosen by what was released."""

    chosen_plans = True


PLANTED: dict[type[dpf.Accountant[Any]], str] = {
    KeptById: "a count under add-or-remove-one totals epsilon ",
    FirstTermOfRates: "a count of a tiny sample under add-or-remove-one totals epsilon 0.0002, and loses 0.00063",
    SmallExponents: "a count of a sample, with a large epsilon under add-or-remove-one totals epsilon 3.81",
    SkipsBranches: "a choice between a step without a claim and a count under add-or-remove-one totals epsilon 1.0,",
    FreeOnce: "the same histogram, once under add-or-remove-one totals epsilon 0.0, and loses 0.5",
    NextPart: "three parts, of which the first and the last are expensive under replace-one totals epsilon 0.625, and",
    LargerDelta: "a histogram with Gaussian noise under add-or-remove-one totals epsilon 2.86",
    FewOrders: "a histogram with much Gaussian noise under add-or-remove-one totals epsilon 0.13",
    DearestAlone: "Laplace or Gaussian noise, 12 times under add-or-remove-one totals epsilon 7.76",
    SamplesTogether: "a count of a sample, twice under add-or-remove-one totals epsilon 0.454",
    SamplesOfParts: "a sample of each part under add-or-remove-one totals epsilon 0.229",
    FirstChoice: "a choice within a choice under add-or-remove-one totals epsilon 1.0, and loses 2",
    ByEnds: "a choice of five branches, of which the fourth is expensive under add-or-remove-one totals epsilon 0.5",
    RowsInPairs: "a count in each part, for trios under add-or-remove-one, for one trio, by at most 3 of its rows",
    NormalSums: "50 counts, one after another under add-or-remove-one totals epsilon 25/7, and loses 12.5",
    LargestOfFive: "six parts, of which the fifth and the sixth are expensive under replace-one totals epsilon 0.5",
    PartitionsOnce: "two partitions by the same attribute under add-or-remove-one totals epsilon 1.0, and loses 2",
    FreeAfterwards: "a count, post-processing, and a count under add-or-remove-one totals epsilon 1.0, and loses 2",
    RepeatsOfRepeats: "a selection in a repeat in a repeat under add-or-remove-one totals epsilon 2.0, and loses 4",
    SampledBranches: "a selection in a repeat in a sample in a choice under add-or-remove-one totals epsilon 0.5",
    SampledChoice: "a selection in a choice in a sample under add-or-remove-one totals epsilon 0.0817",
    DrawsAnew: "two counts of one sample, each of its own sample in a resumed run under add-or-remove-one totals",
    FewMove: "four parts, all equally expensive under replace-one totals epsilon 0.25, and loses 0.5",
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda kind: kind.__name__)
def test_a_plan_that_few_write_tells_the_mistake(planted: type[dpf.Accountant[Any]], record_property: Any) -> None:
    found = check_accountant(planted).wrong
    record_property("planted bug", (planted.__name__, bool(found)))
    assert any(f"accountant 'planted': {PLANTED[planted]}" in sentence for sentence in found), found


BUDGETS: dict[type[dpf.Accountant[Any]], str] = {
    WhileAnythingIsLeft: "a plan is opened that costs more than the budget",
    HalfLeft: "a second plan is opened that costs more than is left",
    ChoosesPlans: "two plans, of which the second is chosen by what the first one releases, under add-or-remove-one",
}


@pytest.mark.parametrize("planted", BUDGETS, ids=lambda kind: kind.__name__)
def test_plans_that_are_opened_one_after_another_tell_the_mistake(
    planted: type[dpf.Accountant[Any]], record_property: Any
) -> None:
    found = check_accountant(planted, deltas=["0.1"] if planted is ChoosesPlans else [0]).wrong
    record_property("planted bug", (planted.__name__, bool(found)))
    assert any(BUDGETS[planted] in sentence for sentence in found), found


@pytest.mark.parametrize("honest", [Curves, ByKind, PartByPart, TwoOutcomes], ids=lambda kind: kind.__name__)
def test_the_honest_accountant_passes(honest: type[dpf.Accountant[Any]], record_property: Any) -> None:
    found = check_accountant(honest)
    record_property("correct version", (honest.__name__, found.passed))
    assert found.passed, found
