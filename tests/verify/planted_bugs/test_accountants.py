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
from verify.test_accountant_conformance import Pure

import dpframework as dpf
from dpframework.accountant import composition
from dpframework.facts import ByRelation
from dpframework.facts.privacy_losses import Relation
from dpframework.plan.nodes import Either, Node, Parallel, Repeat, Sample
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


PLANTED: dict[type[dpf.Accountant[Any]], str] = {
    KeptById: "a count under add-or-remove-one totals epsilon ",
    FirstTermOfRates: "a count of a tiny sample under add-or-remove-one totals epsilon 0.0002, and loses 0.00063",
    SmallExponents: "a count of a sample, with a large epsilon under add-or-remove-one totals epsilon 3.81",
    SkipsBranches: "a choice between such a step and a count under add-or-remove-one totals epsilon 1.0, although",
    FreeOnce: "the same histogram, once under add-or-remove-one totals epsilon 0.0, and loses 0.5",
    NextPart: "three parts, of which the first and the last are expensive under replace-one totals epsilon 0.625, and",
    LargerDelta: "a histogram with Gaussian noise under add-or-remove-one totals epsilon 2.86",
    FewOrders: "a histogram with much Gaussian noise under add-or-remove-one totals epsilon 0.13",
    DearestAlone: "Laplace or Gaussian noise, 12 times under add-or-remove-one totals epsilon 7.76",
    SamplesTogether: "a count of a sample, twice under add-or-remove-one totals epsilon 0.454",
    SamplesOfParts: "a sample of each part under add-or-remove-one totals epsilon 0.229",
    FirstChoice: "a choice within a choice under add-or-remove-one totals epsilon 1.0, and loses 2",
    FewMove: "four parts, all equally expensive under replace-one totals epsilon 0.25, and loses 0.5",
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda kind: kind.__name__)
def test_a_plan_that_few_write_tells_the_mistake(planted: type[dpf.Accountant[Any]], record_property: Any) -> None:
    found = check_accountant(planted).wrong
    record_property("planted bug", (planted.__name__, bool(found)))
    assert any(f"accountant 'planted': {PLANTED[planted]}" in sentence for sentence in found), found


@pytest.mark.parametrize("honest", [Curves, ByKind], ids=lambda kind: kind.__name__)
def test_the_honest_accountant_passes(honest: type[dpf.Accountant[Any]], record_property: Any) -> None:
    found = check_accountant(honest)
    record_property("correct version", (honest.__name__, found.passed))
    assert found.passed, found
