"""A test of accountants: their totals are compared with the exact losses of small plans.

Plans, checks, runs and audits rely on the accountant. If it is wrong, the claim of every study that it totals is wrong,
and no release shows that. So each rule of composition is tried on plans that are so small that all their outputs on two
neighbouring tables can be listed (see `exact_loss_oracle`). Each plan is tried under both relations, some for units of
several rows.
"""

from __future__ import annotations

import copy
import functools
import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs

from dpframework.accountant import Accountant
from dpframework.facts.errors import PlanRefused
from dpframework.facts.privacy_losses import Amount, PrivacyLoss, Relation, decimal_text, exact
from dpframework.facts.privacy_unit import ROW
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan.node_kind_table import kind_of
from dpframework.plan.nodes import Node, either, repeat, sequential, step, walk
from dpframework.plan.plan import Plan
from dpframework.queries import Count
from dpframework.verify.accountants.accountant_plans import CASES, MISTAKES, Case
from dpframework.verify.accountants.exact_loss_oracle import RAREST, delta_at, largest_ratio, pairs_of, renyi
from dpframework.verify.accountants.nested_plans import CHOSEN, nested_cases, nested_noise
from dpframework.verify.problem_report_base import ProblemReport

#: An accountant is tried for studies with these deltas. Deltas that the accountant does not admit are left out.
DELTAS = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10))
TINY = Fraction(1, 10**10)  # single releases are tried at this delta, too, since formulas may fail at small deltas
#: The check with deleted plans ends after `DELETED` plans, or after `REUSED` plans in which a node has the id of a
#: deleted one.
DELETED, REUSED = 60, 3
ROUNDING = 1e-6  # how far a loss may exceed a total, both relative and absolute, since losses are rounded
ORDERS = (1.5, 8.0)  # the orders of the Renyi divergences with which rho is compared

Kind: TypeAlias = "type[Accountant[Any]]"


@final
@attrs.frozen
class AccountantReport(ProblemReport):
    """The findings on one accountant.

    Attributes
    ----------
    accountant
        The name of the accountant.
    tried
        How many totals were compared with exact losses.
    wrong
        The problems, one sentence for each; empty if there are none.
    unclaimed
        The rules of composition for which the accountant has no total, and so claims nothing. That is sound.
    """

    accountant: str
    tried: int
    wrong: tuple[str, ...]
    unclaimed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write the problems, or the number of totals that were tried."""
        if self.wrong:
            return "\n".join(self.wrong)
        nothing = f"; it claims nothing for: {', '.join(self.unclaimed)}" if self.unclaimed else ""
        return (
            f"accountant '{self.accountant}': {self.tried} totals of small plans are at least what their outputs lose"
            f"{nothing}"
        )


def check_accountant(
    accountant: Kind, *, deltas: Iterable[Amount] = DELTAS, relations: Iterable[Relation] = tuple(Relation)
) -> AccountantReport:
    """Compare an accountant's totals and charges with the exact losses of small plans.

    Parameters
    ----------
    accountant
        The class of the accountant.
    deltas
        The deltas of the studies for which the accountant is tried. A delta that it does not admit is left out.
    relations
        The neighbouring relations under which the accountant is tried.
    """
    checked = _AccountantCheck(accountant, [exact(delta, "delta") for delta in deltas], tuple(relations))
    return checked.report()


@final
class _AccountantCheck:
    """The check of one accountant, and its findings so far."""

    def __init__(self, kind: Kind, deltas: Sequence[Fraction], relations: Sequence[Relation]) -> None:
        self.kind, self.relations = kind, relations
        self.name = getattr(kind, "name", kind.__name__)
        self.tried = 0
        self.claimed: set[str] = set()
        self.faults: dict[tuple[str, Relation], str] = {}
        self.others: dict[str, str] = {}
        found = [
            self._try(f"delta_for({decimal_text(delta)})", functools.partial(self.kind.delta_for, delta))
            for delta in deltas
        ]
        self.deltas = list(dict.fromkeys(delta for delta in found if delta is not None))

    def report(self) -> AccountantReport:
        for delta in self.deltas:
            for relation in self.relations:
                self._totals(relation, delta, CASES)
                for check in (self._charges, self._chosen) if delta else (self._charges,):
                    if not (self.faults or self.others):
                        check(relation, delta)
                if delta == self.deltas[0] and not (self.faults or self.others):
                    self._deleted(relation, delta)
                    self._totals(relation, delta, nested_cases() + (nested_noise() if delta else ()))
        tiny = self._try(f"delta_for({decimal_text(TINY)})", functools.partial(self.kind.delta_for, TINY))
        if tiny and any(self.deltas) and not (self.faults or self.others):
            for relation in self.relations:
                self._totals(relation, tiny, [case for case in CASES if case.rule == "release"])
        if not self.deltas:
            self.others["deltas"] = f"accountant '{self.name}' admits none of the deltas to try"
        elif not self.claimed:
            self.others.setdefault("nothing", f"accountant '{self.name}' has no total of any plan, not even of a count")
        rules = {case.rule for case in CASES} - {"no claim", "replaced sample", "sample anew"}
        unclaimed = [rule for rule in MISTAKES if rule in rules - self.claimed]
        return AccountantReport(self.name, self.tried, (*self.others.values(), *self._sentences()), tuple(unclaimed))

    def _try(self, what: str, call: Callable[[], Any]) -> Any:
        """Return the result of a call of the accountant. If the call fails, note that, and return None.

        A `PlanRefused` is not noted but raised again.
        """
        try:
            return call()
        except PlanRefused:
            raise
        except Exception as error:
            self.others.setdefault(what, f"accountant '{self.name}': {what} fails with {type(error).__name__}: {error}")
            return None

    def _totals(self, relation: Relation, delta: Fraction, cases: Sequence[Case]) -> None:
        """Compare the total of each plan with its exact loss. After a rule's first fault, skip its other plans."""
        for case in cases:
            rule = case.rule_under(relation)
            if (rule, relation) in self.faults or (rule == "sample anew" and not self.kind.samples_anew):
                continue
            plan = case.plan(relation, delta)
            total = self._total(case, plan, delta)
            if total is None or total.epsilon is None:
                continue
            self.claimed.add(case.rule)
            self.tried += 1
            # A pure loss is the same for each delta of a study. At one delta for all, outputs are listed only once.
            listed = case.listed_plan(relation, delta if total.delta else Fraction(0))
            if found := self._excess(listed, total, has_claim(plan)):
                made = case.listed_plan(relation, delta)
                self.faults[rule, relation] = self._sentence(case, plan, made, total, found)

    def _total(self, case: Case, plan: Plan, delta: Fraction) -> PrivacyLoss | None:
        what = f"the total of {case.text} under {plan.relation}"
        total = self._try(what, lambda: self.kind(plan.relation, delta=delta).total(plan))
        if isinstance(total, PrivacyLoss) and total.delta > delta:
            held, asked = decimal_text(total.delta), decimal_text(delta)
            self.others.setdefault(what, f"accountant '{self.name}': {what} holds at delta {held}, above {asked}")
            return None
        if total is None or isinstance(total, PrivacyLoss):
            return total
        self.others.setdefault(
            what, f"accountant '{self.name}': {what} is of type {type(total).__name__}, not PrivacyLoss"
        )
        return None

    def _excess(self, plan: Plan, total: PrivacyLoss, claim: bool) -> str:
        """Describe how far the loss of a plan exceeds a total, or return an empty text if it does not.

        `claim` tells whether each step of the plan has a claim. If a step has no claim, any total is wrong.
        """
        assert total.epsilon is not None
        epsilon, text = float(total.epsilon), decimal_text(total.epsilon)
        if not claim:
            return f"totals epsilon {text}, although a step of it has no claim"
        allowed, pairs = float(total.delta), pairs_of(plan, few=True)
        if not allowed:
            lost = _largest(plan)
            return "" if lost <= epsilon * (1 + ROUNDING) + ROUNDING else f"totals epsilon {text}, and loses {lost:.6g}"
        found = delta_at(plan, epsilon, pairs)
        if found > allowed * (1 + ROUNDING) + RAREST:
            return f"totals epsilon {text} at delta {allowed:g}, and its delta at this epsilon is {found:.3g}"
        if total.rho is not None and not plan.has_exact_delta:
            for order in ORDERS:
                rho = renyi(plan, order, pairs) / order
                if rho > float(total.rho) * (1 + ROUNDING) + ROUNDING:
                    return f"totals rho {decimal_text(total.rho)}, and loses {rho:.6g} at order {order:g}"
        return ""

    def _sentence(self, case: Case, plan: Plan, made: Plan, total: PrivacyLoss, found: str) -> str:
        """Describe the mistake in the total of a plan."""
        whom = "" if case.unit is ROW else f", for {case.unit}"
        why = MISTAKES[case.rule_under(plan.relation)]
        own = self._total_by_rules(plan)
        if own is not None and own.epsilon is not None and not self._excess(made, own, has_claim(plan)):
            told = f"; its rules compose to {decimal_text(own.epsilon)}, so the mistake is in `total` or `amount_of`"
            why += f"{told}, such as a total kept from another plan"
        elif not total.delta and self._holds_at_delta(total, made):
            why = "the delta is dropped: this epsilon holds at the study's delta only"
        return f"accountant '{self.name}': {case.text} under {plan.relation}{whom} {found}: {why}"

    def _holds_at_delta(self, total: PrivacyLoss, plan: Plan) -> bool:
        """Tell whether the epsilon of a total holds at the study's delta."""
        assert total.epsilon is not None
        allowed = float(plan.budget.delta)
        return bool(allowed) and delta_at(plan, float(total.epsilon), pairs_of(plan, few=True)) <= allowed * (
            1 + ROUNDING
        )

    def _total_by_rules(self, plan: Plan) -> PrivacyLoss | None:
        """Return a plan's total from the accountant's rules, without a call of its `total`. None if a rule fails."""
        try:
            accountant = self.kind(plan.relation, delta=self.kind.delta_for(plan.budget.delta) or 0)
            return accountant.loss(_compose(accountant, plan.root, plan))
        except Exception:  # the rules of a plugin may fail, which is reported elsewhere
            return None

    def _sentences(self) -> Iterator[str]:
        """Yield the faults. If a single release is wrong, leave out compositions, which are then wrong, too."""
        found, simplest = sorted(self.faults, key=lambda key: list(MISTAKES).index(key[0])), ("release", "no claim")
        alone = [key for key in found if key[0] in simplest]
        for rule, relation in alone if any(key[0] == "release" for key in alone) else found:
            apart = relation is Relation.REPLACE_ONE and (rule, Relation.ADD_OR_REMOVE_ONE) not in self.faults
            ignored = apart and rule in ("release", "sequential", "repeat", "either", "unit", "unit in parts")
            yield self.faults[rule, relation] + (
                "; under add-or-remove-one the total holds: the relation is ignored" if ignored else ""
            )

    def _deleted(self, relation: Relation, delta: Fraction) -> None:
        """Total plans one after another, each deleted before the next, until new nodes get the ids of deleted ones.

        An accountant that keeps amounts by id then returns the total of another plan.
        """
        seen: set[int] = set()
        again = 0
        for k in range(1, DELETED + 1):
            node = step("n", Count(), DiscreteLaplace(Fraction(k, 4)))
            plan = Case("release", f"a count of epsilon {k / 4}", node).new_plan(relation, delta)
            own = {id(one) for one in walk(plan.root)}
            again += bool(own & seen)
            seen |= own
            accountant = self.kind(relation, delta=delta)
            total = self._try("the total of a new plan", functools.partial(accountant.total, plan))
            # The cache of exact losses keeps its plans. So it gets a copy, and the plan itself can be deleted.
            claims = total is not None and total.epsilon is not None
            found = self._excess(attrs.evolve(plan), total, True) if claims else ""
            if found:
                self.others["deleted"] = (
                    f"accountant '{self.name}': a count under {relation} {found}, after other plans were totalled and "
                    "deleted: is an amount kept by the id of a node or a plan? Another object may get the same id"
                )
            if found or again == REUSED:
                return
            del node, plan, accountant, total
            gc.collect(0)  # a plan and its index refer to each other

    def _charges(self, relation: Relation, delta: Fraction) -> None:
        """Note whether an accountant forgets plans that were opened, or opens a plan beyond its budget.

        Opening a plan charges its total to the accountant. One plan is opened by the accountant and a second one by a
        copy of it. As copies share their charges, `spent` of the accountant must cover both plans. If the first plan
        uses up the budget, or leaves less than the second one needs, the second must be refused.
        """
        count, histogram = (case.plan(relation, delta) for case in CASES[:2])
        where = f"accountant '{self.name}' under {relation}"

        def spend() -> str:
            alone = self.kind(relation, delta=delta).total(histogram)
            if alone is None or alone.epsilon is None:
                return ""
            both = attrs.evolve(count, root=sequential(count.root, histogram.root))
            for again in (copy.copy, copy.deepcopy, _unpickle):
                accountant = self.kind(relation, delta=delta)
                accountant.open(count)
                again(accountant).open(histogram)
                spent = accountant.spent
                if spent is None or self._excess(both, spent, True):
                    return (
                        "two plans that are opened one after another are charged less than they lose, as if one were "
                        "forgotten"
                    )
            limited = self.kind(relation, epsilon=alone.epsilon, delta=delta)
            limited.open(histogram)
            if self._opens(limited, histogram):
                return "a second plan is opened for which the budget has nothing left"
            if alone.epsilon and self._opens(self.kind(relation, epsilon=alone.epsilon / 2, delta=delta), histogram):
                return "a plan is opened that costs more than the budget"
            together = self.kind(relation, delta=delta).total(attrs.evolve(both, root=repeat(2, histogram.root)))
            if together is None or together.epsilon is None or together.epsilon <= alone.epsilon:
                return ""
            limited = self.kind(relation, epsilon=(alone.epsilon + together.epsilon) / 2, delta=delta)
            limited.open(histogram)
            return "a second plan is opened that costs more than is left" if self._opens(limited, histogram) else ""

        try:
            wrong = self._try("opening two plans", spend)
        except PlanRefused as refused:
            wrong = f"a plan that fits the budget is refused: {refused}"
        if wrong:
            self.others.setdefault("charges", f"{where}: {wrong}")

    @staticmethod
    def _opens(accountant: Accountant[Any], plan: Plan) -> bool:
        """Tell whether an accountant opens a plan."""
        try:
            accountant.open(plan)
        except PlanRefused:
            return False
        return True

    def _chosen(self, relation: Relation, delta: Fraction) -> None:
        """Let the first plan's output decide which plan is opened next, if the accountant says that this may be done.

        Take the largest epsilon that the accountant says is spent, over the choices of the second plan. At this epsilon
        and the study's delta, the claim must hold for the first plan and the chosen one together.
        """
        if not self.kind.chosen_plans:
            return
        for first, choices in CHOSEN:
            one, *others = (Case("chosen", "", node).plan(relation, delta) for node in (first, *choices))
            spent = [self._try("opening two plans", functools.partial(self._spent, one, other)) for other in others]
            known = [loss.epsilon for loss in spent if loss is not None and loss.epsilon is not None]
            if len(known) < len(spent):
                continue
            total = PrivacyLoss(epsilon=max(known), delta=delta)
            together = Case("chosen", "", sequential(first, either(*choices))).plan(relation, delta)
            found = self._excess(together, total, claim=True)
            if found:
                self.others["chosen"] = (
                    f"accountant '{self.name}': two plans, of which the second is chosen by what the first one "
                    f"releases, under {relation} {found}: its `chosen_plans` is wrong"
                )
                return

    def _spent(self, *plans: Plan) -> PrivacyLoss | None:
        """Return what an accountant has spent after it has opened some plans."""
        accountant = self.kind(plans[0].relation, delta=plans[0].budget.delta)
        for plan in plans:
            accountant.open(plan)
        return accountant.spent


@functools.lru_cache(maxsize=1024)
def _largest(plan: Plan) -> float:
    """Return a plan's largest loss, which is cached, since it does not depend on the accountant."""
    return largest_ratio(plan, pairs_of(plan, few=True))


def has_claim(plan: Plan) -> bool:
    """Tell whether each step of a plan has a claim under its relation."""
    return all(plan.calibration(step) is not None for step in plan.steps())


def _unpickle(accountant: Accountant[Any]) -> Accountant[Any]:
    """Return a copy of an accountant made by pickling, or the accountant itself if it cannot be pickled."""
    try:
        pickled = pickle.dumps(accountant)
    except (pickle.PicklingError, AttributeError):
        return accountant
    return pickle.loads(pickled)  # type: ignore[no-any-return]


def _compose(accountant: Accountant[Any], node: Node, plan: Plan) -> Any:
    """Return the charge of a node, composed by the accountant's rules from the charges of its children."""
    parts = [_compose(accountant, child, plan) for child in node.children]
    return kind_of(node).compose(node, parts, accountant, plan)
