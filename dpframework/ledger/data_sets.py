"""A data set in a ledger, with its cap, its approved plans and the charges of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan, AdaptiveBudget, PlanCharge
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.periods import Period
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import PrivacyLoss, Relation, decimal_text
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.ledger.approvals import Approval, RecordedRun
from dpframework.ledger.outside_releases import Outside
from dpframework.plan.code import changes
from dpframework.plan.plan import Plan
from dpframework.plan.verification_records import VerificationRecords, code_verdicts


@final
@attrs.define(eq=False)
class DataSet:
    """A data set, with its cap, its approvals and its charges.

    Attributes
    ----------
    name
        The name of the data set in the ledger.
    relation
        The neighbouring relation that its cap holds for.
    epsilon, delta
        The cap: the most that all runs may cost together. If the unit is a person in a period, epsilon is the most that
        all runs on one period may cost together.
    schema
        The fingerprint of the only schema that plans may be made from; None for any.
    time
        When the data set was opened.
    verified
        The least tightness at which the code of a plan must have been verified; None if unverified code is accepted.
    unit
        Whom the cap protects.
    reserve
        The part of delta that is held back for releases with a delta of their own (see `AdaptiveBudget`).
    plans
        The approved plans, as JSON-safe content, by their hashes.
    approvals
        The approvals, in the order of their entries.
    runs
        The runs by their ids, in the order of their entries.
    outside
        The releases that no run of this ledger made, in the order of their entries.
    budget
        The cap, with the charges of all runs and of private releases outside. A plugin's accountant never makes these
        charges, since a charge must mean the same wherever the ledger is read. If the unit is a person in a period, it
        is the budget of a person's whole history, since losses of all periods add up.
    history
        The cap over a person's whole history, if the unit is a person in a period. It holds at the same delta.
    periods
        The budget of each period that some run was charged to, by the period's name. Periods are disjoint, so a charge
        to one does not count in another.
    """

    name: str
    relation: Relation
    epsilon: Fraction
    delta: Fraction
    schema: str | None
    time: str
    verified: Fraction | None = None
    unit: PrivacyUnit = ROW
    reserve: Fraction = Fraction(0)
    plans: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    approvals: list[Approval] = attrs.field(factory=list)
    runs: dict[str, RecordedRun] = attrs.field(factory=dict)
    outside: list[Outside] = attrs.field(factory=list)
    history: Fraction | None = None
    periods: dict[str, AdaptiveBudget] = attrs.field(factory=dict)
    budget: AdaptiveBudget = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.budget = AdaptiveBudget(self.relation, self.cap, self.delta, reserve=self.reserve)

    @property
    def cap(self) -> Fraction:
        """The most that all runs may cost a person together, over all periods if there are any."""
        return self.epsilon if self.history is None else self.history

    def of_period(self, period: str) -> AdaptiveBudget:
        """Return the budget of one period, with the charges of its runs."""
        return self.periods.get(period) or AdaptiveBudget(self.relation, self.epsilon, self.delta, reserve=self.reserve)

    @property
    def spent(self) -> PrivacyLoss:
        """An upper bound on the cost of all runs: the smallest total by an accounting that the cap allows.

        Of the releases outside the ledger, only private ones count.
        """
        loss = self._loss(self.budget)
        assert loss is not None  # an amount without a finite total is never charged
        return loss

    def _loss(self, budget: AdaptiveBudget) -> PrivacyLoss | None:
        """Return the total of a budget's charges, with the delta of private releases outside (see `Outside`)."""
        loss, more = budget.loss(), sum((one.delta for one in self.outside), Fraction(0))
        return loss if loss is None or not more else attrs.evolve(loss, delta=loss.delta + more)

    def release_outside(self, one: Outside, amount: PlanCharge | None) -> None:
        """Add a release outside, with its charge if it is private. Since it has been made, it may go above the cap."""
        self.outside.append(one)
        if amount is not None:
            self.budget = self.budget.after(amount)

    @property
    def left(self) -> Fraction:
        """The epsilon of the cap that is not spent. It is 0 if the total delta exceeds the cap's."""
        spent = self.spent
        return Fraction(0) if spent.delta > self.delta else max(self.cap - (spent.epsilon or 0), Fraction(0))

    def require_fit(self, plan: Plan, period: str = "") -> PlanCharge:
        """Return the charge of a run of a plan, if it fits the rest of the cap.

        Without a period, in a data set with periods, it must also fit a period that has no charge yet. Whether it fits
        the rest of a certain period is checked by `charges`.

        Raises
        ------
        PlanRefused
            If the plan does not fit the rest of the cap, is for another relation, privacy unit or schema, or has no
            finite total in the accountings that the cap allows.
        """
        if plan.relation is not self.relation:
            raise PlanRefused(
                f"the plan holds under {plan.relation}, the cap of data set '{self.name}' under {self.relation}"
            )
        if plan.unit != self.unit:
            raise PlanRefused(f"the plan protects {plan.unit}, the cap of data set '{self.name}' protects {self.unit}")
        if self.schema not in (None, plan.facts.fingerprint):
            raise PlanRefused(f"the plan was made from another schema than that of data set '{self.name}'")
        amount = self.budget.plan_charge(plan)
        self.require_room(amount)
        if self.unit.period is not None and not period:  # an approval is not for a certain period
            self.require_room_in("", self.of_period("").plan_charge(plan))
        return amount

    def charges(self, plan: Plan, period: str) -> dict[str, Any]:
        """Return the charges for the entry of a run: to the whole budget and, if it has a period, to the period's.

        Raises
        ------
        PlanRefused
            As in `require_fit`, or if the data set cannot have this period, or the plan does not fit the period's cap.
        """
        amounts = {"amount": self.require_fit(plan, period).to_dict()}
        self.require_period(period)
        if not period:
            return amounts
        own = self.of_period(period).plan_charge(plan)
        self.require_room_in(period, own)
        return {**amounts, "of_period": own.to_dict()}

    def require_period(self, period: str) -> None:
        """Refuse a run whose period the data set cannot have, and one without a period if the data set has periods.

        All periods of a data set have one length. Two of them are equal or disjoint, so they cannot overlap partly.
        """
        if self.unit.period is None and period:
            raise PlanRefused(f"data set '{self.name}' has no periods, and the run is of period '{period}'")
        if self.unit.period is not None:
            try:
                Period.parse(self.unit.period, period)
            except InputError as error:
                raise PlanRefused(f"data set '{self.name}': {error}") from None

    def require_room_in(self, period: str, amount: PlanCharge) -> None:
        """Refuse an amount above the rest of one period's cap. Private releases outside count in each period."""
        which = f"period '{period}'" if period else f"one {self.unit.period}"
        try:
            loss = self._loss(self.of_period(period).after(amount))
        except PlanRefused as refused:
            raise PlanRefused(f"data set '{self.name}': {which}: {refused}") from None
        outside = sum((one.epsilon for one in self.outside), Fraction(0))
        if loss is not None and loss.delta > self.delta:
            raise PlanRefused(
                f"data set '{self.name}': over the cap of {which}: with releases outside and this plan the total delta "
                f"is {float(loss.delta):.6g}, the cap is {float(self.delta):.6g}"
            )
        if loss is None or loss.epsilon is None or loss.epsilon + outside > self.epsilon:
            total = "no finite total" if loss is None or loss.epsilon is None else decimal_text(loss.epsilon + outside)
            raise PlanRefused(
                f"data set '{self.name}': over the cap of {which}: with this plan the total is {total}, the cap is "
                f"{decimal_text(self.epsilon)}"
            )

    def holds(self, budget: AdaptiveBudget) -> bool:
        """Tell whether a budget's charges stay within the cap."""
        loss = self._loss(budget)
        if loss is None or loss.epsilon is None:
            return False
        return loss.epsilon <= self.cap and loss.delta <= self.delta

    def require_room(self, amount: PlanCharge) -> None:
        """Refuse an amount that does not fit the rest of the cap."""
        try:
            together = self._loss(self.budget.after(amount))
        except PlanRefused as refused:
            raise PlanRefused(f"data set '{self.name}': {refused}") from None
        if together is None or together.epsilon is None:
            named = "any accounting that caps use" if self.delta else "pure accounting"
            raise PlanRefused(
                f"data set '{self.name}': the plan has no finite total in {named}"
                + ("" if self.delta else "; a cap with a delta allows for zCDP")
            )
        if together.epsilon > self.cap:
            over = "over the cap" if self.history is None else "over the cap of a person's whole history"
            raise PlanRefused(
                f"data set '{self.name}': {over}: with this plan the total is {decimal_text(together.epsilon)}, "
                f"the cap is {decimal_text(self.cap)}"
            )
        if together.delta > self.delta:
            raise PlanRefused(
                f"data set '{self.name}': over the cap: with releases outside and this plan the total delta is "
                f"{float(together.delta):.6g}, the cap is {float(self.delta):.6g}"
            )

    def require_verified(self, plan: AccountedPlan) -> None:
        """Refuse a plan with code of a miner or mechanism that was not verified, if the data set needs verified code.

        Raises
        ------
        PlanRefused
            If some code was not verified, or not at the tightness that the data set asks for.
        """
        if self.verified is None:
            return
        found = code_verdicts(plan, plan.verified or VerificationRecords())
        missed = [str(one) for one in found if not one.reaches(float(self.verified))]
        if missed:
            raise PlanRefused(
                f"data set '{self.name}': all code of a plan must have been verified, at a tightness of "
                f"{float(self.verified):g} or more: {'; '.join(missed)}; record it by "
                "'dpframework verify --record FILE' and approve with --verified FILE"
            )

    def require_approved(self, plan: Plan, files: Sequence[bytes] = ()) -> Approval:
        """Return the approval for a run of a plan, or refuse the plan and say how it differs from an approved one.

        Parameters
        ----------
        plan
            The plan.
        files
            The SHA-256 digests of the files that the run reads. They matter only to approvals for certain data.

        Raises
        ------
        PlanRefused
            As in `approval_of`, or if the plan is approved only with other code, for another place of its data or
            engine, or for other data.
        """
        if not any(approval.plan == plan.hash for approval in self.approvals):
            self._refuse_other_code_or_place(plan)
        left = [approval for approval in self.approvals if approval.plan == plan.hash and approval.left]
        for approval in left:
            if approval.data is None or approval.data.holds(files):
                return approval
        if left:
            other = "for other data: run it on the approved data, or have it approved for this data"
            which = other if files else "for certain data only: say which files the run reads"
            raise PlanRefused(f"data set '{self.name}': plan {plan.hash[:12]} is approved, but {which}")
        return self.approval_of(plan.hash)

    def _refuse_other_code_or_place(self, plan: Plan) -> None:
        """Refuse a plan whose claims are approved, but with other code or for another place of its data or engine."""
        content = plan.content()

        def find_approved(*ignored: str) -> Mapping[str, Any] | None:
            claims = _without(content, ignored)
            return next((old for old in reversed(self.plans.values()) if _without(old, ignored) == claims), None)

        if (old := find_approved("code")) is not None:
            told = changes(old["code"], plan.code) or ["it names other code"]
            what, remedy = "with this code", "run it with the code that was approved"
        elif (old := find_approved("code", "data", "engine")) is not None:
            places = [(key, _place_text(old.get(key)), _place_text(content.get(key))) for key in ("data", "engine")]
            told = [f"{key} was {before}, is {after}" for key, before, after in places if before != after]
            what, remedy = "for this place", "run it at the approved place"
        else:
            return
        raise PlanRefused(
            f"data set '{self.name}': plan {old['hash'][:12]} is approved, but not {what}: {'; '.join(told)}; "
            f"{remedy}, or have this plan approved"
        )

    def binds(self, plan: str) -> bool:
        """Tell whether some approval of a plan is for certain data only."""
        return any(approval.plan == plan and approval.data is not None for approval in self.approvals)

    def approval_of(self, plan: str, data: str | None = None) -> Approval:
        """Return an approval of a plan with runs left, for data with this digest, or for any data if `data` is None.

        Raises
        ------
        PlanRefused
            If there is no such approval, or it is used up or revoked.
        """
        given = [approval for approval in self.approvals if approval.plan == plan]
        for approval in given:
            if approval.left and (None if approval.data is None else approval.data.digest) == data:
                return approval
        what = f"data set '{self.name}': plan {plan[:12]}"
        if not given:
            raise PlanRefused(f"{what} is not approved; 'dpframework ledger approve' approves it, by its hash")
        if given[-1].revoked is not None:
            raise PlanRefused(f"{what} is no longer approved; {given[-1].revoked} took the approval back")
        if any(approval.left for approval in given):
            raise PlanRefused(f"{what} is approved, but not for this data")
        runs = sum(approval.runs for approval in given)
        raise PlanRefused(
            f"{what} was approved for {count_text(runs, 'run')}, which {'was' if runs == 1 else 'were'} "
            "opened before; another one needs an approval of its own"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        spent = self.spent
        of_periods: dict[str, Any] = {}
        if self.history is not None:
            losses = {name: budget.loss() for name, budget in sorted(self.periods.items())}
            periods = {name: None if loss is None else str(loss.epsilon) for name, loss in losses.items()}
            of_periods = {"history": str(self.history), "periods": periods}
        return {
            "data_set": self.name,
            "relation": self.relation.value,
            "unit": self.unit.to_dict(),
            "order": None if self.budget.order is None else str(self.budget.order),
            "schema": self.schema,
            "verified": None if self.verified is None else str(self.verified),
            "opened": self.time,
            "cap": {
                "epsilon": str(self.epsilon),
                "delta": str(self.delta),
                **({"reserve": str(self.reserve)} if self.reserve else {}),
            },
            **of_periods,
            "spent": {"epsilon": str(spent.epsilon), "delta": str(spent.delta)},
            "left": {"epsilon": str(self.left)},
            "approvals": [approval.to_dict() for approval in self.approvals],
            "runs": [run.to_dict() for run in self.runs.values()],
            "outside": [one.to_dict() for one in self.outside],
        }


def _without(content: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != "hash" and key not in keys}


def _place_text(place: Any) -> str:
    """Return the place of a plan's engine, or the list of places of its data, as a text."""
    return "not named" if not place else ", ".join(place) if isinstance(place, list) else str(place)
