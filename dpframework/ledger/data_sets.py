"""The class of a ledger's data sets: a cap on the total loss, approved plans, and the charges of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan, AdaptiveBudget, PlanCharge
from dpframework.facts.calendar_periods import Period
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import PrivacyLoss, Relation, decimal_text
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.ledger.approvals import Approval
from dpframework.ledger.outside_releases import Outside
from dpframework.ledger.recorded_run import RecordedRun
from dpframework.plan.code_digests import changes
from dpframework.plan.plan import Plan
from dpframework.plan.verification_records_file import VerificationRecords, code_verdicts


@final
@attrs.define(eq=False)
class DataSet:
    """A data set of a ledger.

    Attributes
    ----------
    name
        The name of the data set in the ledger.
    relation
        The neighbouring relation for which the cap holds.
    epsilon, delta
        The cap: the largest loss that all runs may have together. If the unit is a person in a period, epsilon caps all
        runs on one period.
    schema
        The fingerprint of the schema from which plans must be made; None for any schema.
    time
        The time at which the data set was opened.
    verified
        The smallest tightness with which a plan's code must have been verified; None if unverified code is accepted.
        The tightness is the loss that `verify` found, as a share of the claim.
    unit
        The privacy unit that the cap protects.
    reserve
        The part of delta that is held back for later releases with an exact delta (see `AdaptiveBudget`).
    plans
        The approved plans in JSON-safe form, by their hashes.
    approvals
        The approvals, in the order of their entries.
    runs
        The runs by their ids, in the order of their entries.
    outside
        The releases that were made outside of this ledger, in the order of their entries.
    budget
        The cap, with the charges of all runs and of private releases outside of the ledger. Plugins' accountants are
        not used here, since every reader of the ledger must compute the same charges. If the unit is a person in a
        period, this is the budget of a person's whole history, since the losses of all periods add up.
    history
        If the unit is a person in a period, the largest epsilon over a person's whole history, at the same delta.
    periods
        The budget of each period that has a charged run, by the period's name. Periods are disjoint, so each has its
        own budget.
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
        """The largest epsilon of all runs together, over all periods if there are any."""
        return self.epsilon if self.history is None else self.history

    def of_period(self, period: str) -> AdaptiveBudget:
        """Return the budget of one period: the charges of its runs, and the deltas of releases outside the ledger."""
        unused = AdaptiveBudget(self.relation, self.epsilon, self.delta, reserve=self.reserve)
        return attrs.evolve(self.periods.get(period, unused), outside=self.budget.outside)

    @property
    def spent(self) -> PrivacyLoss:
        """An upper bound on the loss of all runs.

        It includes private releases outside of the ledger. For other releases outside there is no bound.
        """
        loss = self.budget.loss()
        assert loss is not None  # an amount without a finite total is never charged
        return loss

    def release_outside(self, one: Outside, amount: PlanCharge | None) -> None:
        """Add a release made outside the ledger. A private one is charged even above the cap: it was already made."""
        self.outside.append(one)
        if amount is not None:
            self.budget = attrs.evolve(self.budget.after(amount), outside=self.budget.outside + one.delta)

    @property
    def left(self) -> Fraction:
        """The part of the cap's epsilon that is not spent. It is 0 if the total delta exceeds the cap's delta."""
        spent = self.spent
        return Fraction(0) if spent.delta > self.delta else max(self.cap - (spent.epsilon or 0), Fraction(0))

    def require_fit(self, plan: Plan, period: str = "") -> PlanCharge:
        """Return the charge for a run of a plan, if it fits what is left of the cap.

        If the data set has periods and `period` is empty, the plan must also fit a period without charges. `charges`
        checks that the plan fits what is left of a given period.

        Raises
        ------
        PlanRefused
            If the plan does not fit what is left of the cap, if it is for another relation, privacy unit or schema, or
            if it has no finite total.
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
        if self.unit.period is not None and not period:  # approvals are not limited to a period
            self.require_room_in("", self.of_period("").plan_charge(plan))
        return amount

    def charges(self, plan: Plan, period: str) -> dict[str, Any]:
        """Return the charges for a run's entry: to the data set's budget and, with a period, to the period's budget.

        Raises
        ------
        PlanRefused
            As in `require_fit`. Also if the data set cannot have this period, or if the plan does not fit what is left
            of the period's cap.
        """
        amounts = {"amount": self.require_fit(plan, period).to_dict()}
        self.require_period(period)
        if not period:
            return amounts
        own = self.of_period(period).plan_charge(plan)
        self.require_room_in(period, own)
        return {**amounts, "of_period": own.to_dict()}

    def require_period(self, period: str) -> None:
        """Refuse a run that names none of the data set's periods, or names a period of a data set without periods.

        All periods of a data set have the same length, such as a month. So two periods are either equal or disjoint.
        """
        if self.unit.period is None and period:
            raise PlanRefused(f"data set '{self.name}' has no periods, and the run is of period '{period}'")
        if self.unit.period is not None:
            try:
                Period.parse(self.unit.period, period)
            except InputError as error:
                raise PlanRefused(f"data set '{self.name}': {error}") from None

    def require_room_in(self, period: str, amount: PlanCharge) -> None:
        """Refuse an amount above what is left of one period's cap.

        Private releases outside the ledger count in every period, since their entries name no period.
        """
        which = f"period '{period}'" if period else f"one {self.unit.period}"
        try:
            loss = self.of_period(period).after(amount).loss()
        except PlanRefused as refused:
            raise PlanRefused(f"data set '{self.name}': {which}: {refused}") from None
        outside = sum((one.epsilon for one in self.outside), Fraction(0))
        if loss is not None and loss.delta > self.delta:
            raise PlanRefused(
                f"data set '{self.name}': over the cap of {which}: with this plan and with releases outside this "
                f"ledger, the total delta is {float(loss.delta):.6g}, and the cap is {float(self.delta):.6g}"
            )
        if loss is None or loss.epsilon is None or loss.epsilon + outside > self.epsilon:
            total = "no finite total" if loss is None or loss.epsilon is None else decimal_text(loss.epsilon + outside)
            raise PlanRefused(
                f"data set '{self.name}': over the cap of {which}: with this plan the total is {total}, and the cap is "
                f"{decimal_text(self.epsilon)}"
            )

    def holds(self, budget: AdaptiveBudget) -> bool:
        """Tell whether the charges of a budget are within the cap."""
        loss = budget.loss()
        if loss is None or loss.epsilon is None:
            return False
        return loss.epsilon <= self.cap and loss.delta <= self.delta

    def require_room(self, amount: PlanCharge) -> None:
        """Refuse an amount above what is left of the cap."""
        try:
            together = self.budget.after(amount).loss()
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
                f"and the cap is {decimal_text(self.cap)}"
            )
        if together.delta > self.delta:
            raise PlanRefused(
                f"data set '{self.name}': over the cap: with this plan and with releases outside this ledger, the "
                f"total delta is {float(together.delta):.6g}, and the cap is {float(self.delta):.6g}"
            )

    def require_verified(self, plan: AccountedPlan) -> None:
        """Refuse a plan with unverified code of a miner or mechanism, if the data set requires verified code.

        Raises
        ------
        PlanRefused
            If code was not verified, or not with the tightness that the data set requires.
        """
        if self.verified is None:
            return
        found = code_verdicts(plan, plan.verified or VerificationRecords())
        missed = [str(one) for one in found if not one.reaches(float(self.verified))]
        if missed:
            raise PlanRefused(
                f"data set '{self.name}': all code of a plan must have been verified, at a tightness of "
                f"{float(self.verified):g} or more: {'; '.join(missed)}; verify it with "
                "'dpframework verify --record FILE', and approve the plan with --verified FILE"
            )

    def require_approved(self, plan: Plan, files: Sequence[bytes] = ()) -> Approval:
        """Return the approval for a run of a plan. A refusal says how the plan differs from an approved one.

        Parameters
        ----------
        plan
            The plan.
        files
            The SHA-256 digests of the files that the run reads. They are needed if the approval is limited to certain
            files.

        Raises
        ------
        PlanRefused
            As in `approval_of`. Also if the plan is approved with other code, for another place of its data or engine,
            or for other data.
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
        """Refuse a plan if the same plan is approved with other code, or for another place of its data or engine."""
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
        """Tell whether at least one approval of a plan is limited to certain data files."""
        return any(approval.plan == plan and approval.data is not None for approval in self.approvals)

    def approval_of(self, plan: str, data: str | None = None) -> Approval:
        """Return an approval with runs left, for the plan with the hash `plan`.

        The approval must be limited to the data files with the digest `data`, or for any data if `data` is None.

        Raises
        ------
        PlanRefused
            If there is no such approval, or if all such approvals are used up or revoked.
        """
        given = [approval for approval in self.approvals if approval.plan == plan]
        for approval in given:
            if approval.left and (None if approval.data is None else approval.data.digest) == data:
                return approval
        what = f"data set '{self.name}': plan {plan[:12]}"
        if not given:
            raise PlanRefused(f"{what} is not approved; approve it with 'dpframework ledger approve'")
        if given[-1].revoked is not None:
            raise PlanRefused(f"{what} is no longer approved; {given[-1].revoked} revoked the approval")
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
    """Return the place of a plan's engine, or the places of its data, as a text."""
    return "not named" if not place else ", ".join(place) if isinstance(place, list) else str(place)
