"""The base class of accountants. Each composes losses in one notion of loss, such as zCDP, and charges plans."""

from __future__ import annotations

import abc
import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from dpframework.accountant.exact_delta_composition import DeltaComposition, exact_delta_of
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.fork_detection import ProcessMark, this_process
from dpframework.facts.privacy_losses import Amount, PrivacyLoss, Relation, decimal_text, exact, exact_or_none
from dpframework.facts.privacy_unit import ONE_ROW, PrivacyUnit
from dpframework.mechanisms.base import Calibration
from dpframework.plan.node_kind_table import Composition, kind_of
from dpframework.plan.nodes import Node
from dpframework.plan.plan import Plan
from dpframework.run.run_scopes_and_charges import Run

A = TypeVar("A")

_LIVE: weakref.WeakValueDictionary[str, Accountant[Any]] = weakref.WeakValueDictionary()


class Accountant(abc.ABC, Generic[A]):
    """Composes losses, and charges plans to a budget. A plan is charged as a whole before its run, or refused.

    The total of a plan before its run and the charges of its run are composed by the same methods, so they cannot
    disagree. An accountant is one budget. So copies, scikit-learn's `clone` and unpickling in the same process all
    return the same object. An accountant unpickled in another process knows what was spent by then, and refuses to
    spend more.

    Parameters
    ----------
    relation
        The neighbouring relation for which the totals hold.
    epsilon
        The budget. None for no limit, for an accountant that only computes totals.
    delta
        The delta of the budget, at least 0 and below 1. `delta_for` must return the same delta.

    Raises
    ------
    InputError
        If totals in this notion of loss cannot hold at this delta.
    """

    name: ClassVar[str]
    needs_delta: ClassVar[bool] = False  # whether totals are finite only at a delta above 0
    of_units: ClassVar[bool] = False  # whether `amount` accepts a calibration for units of several rows
    samples_anew: ClassVar[bool] = False  # whether a resumed run may draw a sample again
    chosen_plans: ClassVar[bool] = False  # whether a plan may be chosen after seeing earlier releases
    converts: ClassVar[bool] = True  # whether totals use delta, apart from the exact deltas of releases

    def __init__(self, relation: Relation | str, *, epsilon: Amount | None = None, delta: Amount = 0) -> None:
        self._relation = Relation.parse(relation)
        self._epsilon = exact_or_none(epsilon)
        self._delta = exact(delta, "delta")
        if self.delta >= 1:
            raise InputError(f"delta is {decimal_text(self.delta)}; it must be below 1, such as 1e-6")
        admitted = self.delta_for(self.delta)
        if admitted is None:
            raise InputError(f"{self.name} accounting needs a delta above {decimal_text(self.delta)}")
        if admitted != self.delta:
            raise InputError(
                f"{self.name} accounting does not hold at a delta of {decimal_text(self.delta)}, but only at "
                f"{decimal_text(admitted)}; give that delta, or use another accounting"
            )
        self._charged: list[A] = []
        self._exact = Fraction(0)  # the exact delta of the charged plans
        self._unit: PrivacyUnit | None = None  # the unit of the first plan
        self._opened: list[Run] = []  # no plan is accepted once one of these runs has made a release
        self._lock = threading.RLock()
        self._token = uuid.uuid4().hex
        # None for a copy outside the process that holds the budget.
        self._process: ProcessMark | None = this_process()
        _LIVE[self._token] = self

    @property
    def relation(self) -> Relation:
        """The neighbouring relation for which the totals hold."""
        return self._relation

    @property
    def epsilon(self) -> Fraction | None:
        """The budget, or None for no limit. It cannot be changed: a new budget needs a new accountant."""
        return self._epsilon

    @property
    def delta(self) -> Fraction:
        """The delta of the budget."""
        return self._delta

    @property
    def unit(self) -> PrivacyUnit | None:
        """The privacy unit of the first plan that was opened; None before that."""
        return self._unit

    @classmethod
    def delta_for(cls, delta: Fraction) -> Fraction | None:
        """Return the delta at which this accountant's totals hold in a study with this delta; None if it is too small.

        By default it is the study's delta, which must be above 0 if `needs_delta` is set.
        """
        return delta if delta or not cls.needs_delta else None

    @abc.abstractmethod
    def amount(self, calibration: Calibration | None) -> A:
        """Return the cost of one calibrated release. The calibration is None for a step without a valid claim."""

    @abc.abstractmethod
    def sequential(self, parts: Sequence[A]) -> A:
        """Compose releases from the same rows. The cost of no parts is 0."""

    @abc.abstractmethod
    def parallel(self, parts: Sequence[A]) -> A:
        """Compose releases from disjoint rows. A part that may occur more than once is given twice."""

    def spread(self, parts: Sequence[A], rows: int) -> A:
        """Compose releases from disjoint rows, over which the rows of one unit may spread.

        By default this composes the most expensive part once for each part that can change. Each of these parts holds
        some of the unit's rows, and loses no more than if it held all of them. Under add-or-remove-one at most `rows`
        parts change. Under replace-one, `rows` rows leave parts and `rows` rows enter parts, 2 `rows` moves in all. A
        part that rows only leave, or only enter, takes at least one move, and loses as if rows were removed or added. A
        part that rows leave and enter takes at least two moves. `parallel` bounds the loss of a unit that stays in one
        part, and of a unit that moves from one part to another. So two moves cost at most what `parallel` states. This
        bound is valid wherever losses compose. Override this method for a notion in which less is lost.

        Parameters
        ----------
        parts
            As for `parallel`.
        rows
            The largest number of rows of one unit, above 1.
        """
        most = self.either(parts)
        moved = most if self.relation is Relation.ADD_OR_REMOVE_ONE else self.parallel([most, most])
        return self.repeat(moved, rows)

    @abc.abstractmethod
    def either(self, parts: Sequence[A]) -> A:
        """Bound the cost of a choice between branches, whichever of them runs."""

    @abc.abstractmethod
    def loss(self, amount: A) -> PrivacyLoss | None:
        """Return an amount as a loss under the accountant's relation and delta, or None without a valid claim."""

    def sample(self, part: A, rate: Fraction) -> A:
        """Bound the cost of releases from a random sample, for one unit added or removed.

        With probability `rate` a unit is in the sample, with all its rows. By default nothing is claimed. Under
        replace-one nothing may be claimed, since no bound for such samples is derived here.
        """
        return self.amount(None)

    def sample_of_rows(self, part: A, rate: Fraction, rows: int) -> A:
        """Bound the cost of releases from a sample of rows, for a unit of several rows.

        Each row is in the sample with probability `rate`. Where no ids tell to whom rows belong, a sample may hold some
        of a unit's rows and not the rest. By default nothing is claimed.
        """
        return self.amount(None)

    def over_sample(self, part: A, rate: Fraction, plan: Plan) -> A:
        """Compose releases from a sample, of units or of rows.

        Sampling rows does not lower the cost in a plan with an exact delta (`exact_delta_composition` says why).
        """
        if not plan.unit.asserted:
            return self.sample(part, rate)
        if not plan.has_exact_delta:
            return self.sample_of_rows(part, rate, plan.unit.rows)
        return part if self.relation is Relation.ADD_OR_REMOVE_ONE else self.amount(None)

    def repeat(self, part: A, times: int) -> A:
        """Compose the same part several times."""
        return self.sequential([part] * times)

    def release(self, calibration: Calibration | None) -> A:
        """Return the cost of one release. No cost is claimed for a unit that the accountant does not support."""
        claimed = self.of_units or calibration is None or calibration.by == ONE_ROW
        return self.amount(calibration if claimed else None)

    def over_parts(self, parts: Sequence[A], plan: Plan) -> A:
        """Compose releases from parts of a table, for the plan's privacy unit."""
        rows = plan.unit.rows
        return self.parallel(parts) if rows == 1 else self.spread(parts, rows)

    def amount_of(self, node: Node, plan: Plan) -> A:
        """Return an upper bound on the cost of all releases below a node."""
        parts = [self.amount_of(child, plan) for child in plan.index.parts_of(node)]
        amount: A = kind_of(node).compose(node, parts, self, plan)
        return amount

    def total(self, plan: Plan) -> PrivacyLoss | None:
        """Return an upper bound on a plan's cost, or None without a valid claim under the relation at the delta."""
        exact = exact_delta_of(plan.root, plan).under(self.relation)
        return self.loss_with_exact_delta(self.amount_of(plan.root, plan), exact)

    def loss_with_exact_delta(self, amount: A, exact: Fraction | None) -> PrivacyLoss | None:
        """Return the loss of releases that have an exact delta, from the amount that their cores cost.

        On neighbours u and v, the output's distributions M(u) and M(v) are mixtures. They have a core, P or Q, with
        weight 1 - d, and a rest with weight d. The amount bounds the loss between P and Q. Let x = e**epsilon, and
        write y+ for the larger of y and 0. The plan's delta at epsilon is the sum of (M(u) - x M(v))+ over all outputs.
        It is at most d + (1 - d) S, where S is the sum of (P - x Q)+. So the cores may use the delta that is left after
        d.

        Returns
        -------
        PrivacyLoss or None
            None without a valid claim, or if the accountant does not work at the delta that is left.
        """
        if exact == 0:
            return self.loss(amount)
        if exact is None or exact > self.delta:
            return None
        rest = self.delta_for(self.delta - exact)
        if rest is None:
            return None
        left = type(self)(self.relation, delta=rest)
        left._charged = self._charged
        loss = left.loss(amount)
        return None if loss is None else attrs.evolve(loss, delta=loss.delta + exact)

    @property
    def spent(self) -> PrivacyLoss | None:
        """An upper bound on the cost of all plans that were opened."""
        with self._lock:
            return self.loss_with_exact_delta(self.sequential(self._charged), self._exact)

    def loss_of_releases(self, compose: Callable[[Composition], Any], plan: Plan) -> PrivacyLoss | None:
        """Return the loss of some of a plan's releases. `compose` is given the rules by which to combine them."""
        exact = compose(DeltaComposition()).under(self.relation) if plan.has_exact_delta else Fraction(0)
        return self.loss_with_exact_delta(compose(self), exact)

    def open(self, plan: Plan) -> Run:
        """Charge a whole plan and return the run that may make its releases. A refused plan is not charged.

        Raises
        ------
        PlanRefused
            If the plan is for another relation or privacy unit, has no valid total, or needs more than is left of the
            budget. If this accountant is a copy outside the process that holds the budget. If its totals need all plans
            before the first release (`chosen_plans` is False), and an earlier plan has made a release. Or if the plan
            has an exact delta, but an earlier plan has already fixed the delta at which the accountant converts.
        """
        with self._lock:
            self._charged.append(self.require_fit(plan))
            self._exact += exact_delta_of(plan.root, plan).under(self.relation) or 0
            self._unit = plan.unit
            run = Run(plan, self)
            if not self.chosen_plans:
                self._opened.append(run)
        return run

    def require_fit(self, plan: Plan) -> A:
        """Return the charge of a plan, if `open` would accept it now.

        Raises
        ------
        PlanRefused
            As `open` does.
        """
        with self._lock:
            self.require_process()
            if plan.relation is not self.relation:
                raise PlanRefused(f"the plan holds under {plan.relation}, the accountant's relation is {self.relation}")
            if self._unit not in (None, plan.unit):
                raise PlanRefused(f"the plan protects {plan.unit}, the accountant's budget protects {self._unit}")
            if any(run.charges for run in self._opened):
                raise PlanRefused(
                    f"{self.name} accounting holds for plans that are fixed before the first release, and an earlier "
                    "plan of this budget has made a release; plan both in one study, or use a ledger or another "
                    "accounting"
                )
            amount = self.amount_of(plan.root, plan)
            exact = exact_delta_of(plan.root, plan).under(self.relation)
            if exact and self._charged and self.converts:
                raise PlanRefused(
                    f"the plan's releases have a delta of {decimal_text(exact)} of their own, and the first plan has "
                    f"fixed the delta at which {self.name} accounting converts; plan them together, or use a ledger, "
                    "which can hold some delta back"
                )
            together = self.loss_with_exact_delta(
                self.sequential([*self._charged, amount]), None if exact is None else self._exact + exact
            )
        if together is None or together.epsilon is None:
            raise PlanRefused(f"the plan has no finite total under {self.relation} in {self.name} accounting")
        if self.epsilon is not None and together.epsilon > self.epsilon:
            raise PlanRefused(
                f"over budget: with this plan the total is {decimal_text(together.epsilon)}, "
                f"and the budget is {decimal_text(self.epsilon)}"
            )
        return amount

    def require_process(self) -> None:
        """Refuse to go on in any process but the one that holds the budget.

        Raises
        ------
        PlanRefused
            If this accountant was unpickled or forked into another process.
        """
        if self._process != this_process():
            raise PlanRefused(
                "this accountant is a copy from another process and cannot spend its budget; "
                "run where the accountant was made, or give each process its own share"
            )

    def __copy__(self) -> Accountant[A]:
        """Return itself, since a copy shares the budget."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Accountant[A]:
        """Return itself, since a copy shares the budget."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the charges and the identity of the budget."""
        budget = type(self), self._token, self.relation.value, self.epsilon, self.delta
        return _revive, (*budget, list(self._charged), self._exact, self._unit)

    def __repr__(self) -> str:
        """Show the budget and the charges."""
        budget = "no limit" if self.epsilon is None else decimal_text(self.epsilon)
        return f"{type(self).__name__}({self.relation.value}, budget={budget}, spent={self.spent})"


def _revive(
    kind: type[Accountant[A]],
    token: str,
    relation: str,
    epsilon: Fraction | None,
    delta: Fraction,
    charged: list[A],
    exact_delta: Fraction,
    unit: PrivacyUnit | None,
) -> Accountant[A]:
    """Return the live accountant with that token or, in another process, a detached copy of it."""
    live = _LIVE.get(token)
    if live is not None:
        return live
    copy = kind(relation, epsilon=epsilon, delta=delta)
    copy._token, copy._charged, copy._process, copy._unit = token, list(charged), None, unit
    copy._exact = exact_delta
    _LIVE[token] = copy
    return copy
