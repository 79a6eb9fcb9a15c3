"""What a ledger's entries add up to: data sets with their caps, approvals, and runs with what they were charged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan, AdaptiveBudget, PlanCharge
from dpframework.facts.errors import InputError, PlanRefused, nearest
from dpframework.facts.formats import require_form
from dpframework.facts.privacy import NOTHING, PrivacyLoss, Relation, decimal_text
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.ledger.approvals import Approval, RecordedRun
from dpframework.ledger.binding import Binding
from dpframework.ledger.chain import START, Entry, LedgerTampered
from dpframework.ledger.signatures import signed_text
from dpframework.plan.code import changes
from dpframework.plan.plan import Plan
from dpframework.plan.verified import Verified, judged

KINDS = (
    "ledger",
    "data set",
    "plan",
    "approval",
    "revocation",
    "run",
    "refusal",
    "charge",
    "redraw",
    "resumption",
    "end",
)


def refused(why: str) -> str:
    """Return how a run ended that its rows stopped while they were read."""
    return f"refused: {why}"


@final
@attrs.define(eq=False)
class DataSet:
    """A data set: its cap, and all that was approved and charged.

    Attributes
    ----------
    name
        What it is called in the ledger.
    relation
        The neighbouring relation that its cap holds for.
    epsilon, delta
        The cap: the most that all runs may cost together.
    schema
        The fingerprint of the only schema that plans may be made from; None for any.
    time
        When it was opened.
    verified
        The least tightness at which the code of a plan must have been verified; None if it need not be.
    unit
        Whom the cap protects.
    plans
        The approved plans, as JSON-safe content, by their hashes.
    approvals
        In order.
    runs
        By their ids, in order.
    budget
        The cap with what all runs were charged: never by a plugin's accountant, since a charge must mean the same
        wherever the ledger is read.
    """

    name: str
    relation: Relation
    epsilon: Fraction
    delta: Fraction
    schema: str | None
    time: str
    verified: Fraction | None = None
    unit: PrivacyUnit = ROW
    plans: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    approvals: list[Approval] = attrs.field(factory=list)
    runs: dict[str, RecordedRun] = attrs.field(factory=dict)
    budget: AdaptiveBudget = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Begin with nothing charged."""
        self.budget = AdaptiveBudget(self.relation, self.epsilon, self.delta)

    @property
    def spent(self) -> PrivacyLoss:
        """What the runs cost at most, together: by the smaller of the totals that the cap is kept by."""
        loss = self.budget.loss()
        assert loss is not None  # an amount without a finite total is never charged
        return loss

    @property
    def left(self) -> Fraction:
        """The epsilon of the cap that is not spent."""
        return max(self.epsilon - (self.spent.epsilon or 0), Fraction(0))

    def require_fit(self, plan: Plan) -> PlanCharge:
        """Return what a run of a plan is charged, if it fits what is left of the cap.

        Raises
        ------
        PlanRefused
            If it does not fit, or is of another relation, privacy unit or schema, or has no finite total here.
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
        return amount

    def require_room(self, amount: PlanCharge) -> None:
        """Refuse an amount that does not fit what is left of the cap."""
        together = self.budget.after(amount).loss()
        if together is None or together.epsilon is None:
            named = "any accounting that a cap is kept by" if self.delta else "pure accounting"
            raise PlanRefused(
                f"data set '{self.name}': the plan has no finite total in {named}"
                + ("" if self.delta else "; a cap with a delta allows for zCDP")
            )
        if together.epsilon > self.epsilon:
            raise PlanRefused(
                f"data set '{self.name}': over the cap: with this plan the total is {decimal_text(together.epsilon)}, "
                f"the cap is {decimal_text(self.epsilon)}"
            )

    def require_verified(self, plan: AccountedPlan) -> None:
        """Refuse a plan of which some miner's or mechanism's code was not verified, if the data set asks for it.

        Raises
        ------
        PlanRefused
            If it was not, or not at the tightness that is asked for.
        """
        if self.verified is None:
            return
        found = judged(plan, plan.verified or Verified())
        missed = [str(one) for one in found if not one.reaches(float(self.verified))]
        if missed:
            raise PlanRefused(
                f"data set '{self.name}': all code of a plan must have been verified, at a tightness of "
                f"{float(self.verified):g} or more: {'; '.join(missed)}; record it by "
                "'dpframework verify --record FILE' and approve with --verified FILE"
            )

    def require_approved(self, plan: Plan, files: Sequence[bytes] = ()) -> Approval:
        """Return the approval that a run of a plan is opened under; say so where only the code is another.

        Parameters
        ----------
        plan
            The plan.
        files
            The SHA-256 digests of the files that the run is on, for approvals that are for some data only.

        Raises
        ------
        PlanRefused
            As `approval_of`.
        """
        if not any(approval.plan == plan.hash for approval in self.approvals):
            claims = _without_code(plan.content())
            same = [approved for approved in self.plans.values() if _without_code(approved) == claims]
            if same:
                told = "; ".join(changes(same[-1]["code"], plan.code)) or "it names other code"
                raise PlanRefused(
                    f"data set '{self.name}': plan {same[-1]['hash'][:12]} is approved, but not with this code: "
                    f"{told}; run it with the code that was approved, or have this plan approved"
                )
        left = [approval for approval in self.approvals if approval.plan == plan.hash and approval.left]
        for approval in left:
            if approval.data is None or approval.data.holds(files):
                return approval
        if left:
            remedy = (
                "run it on the approved data, or have it approved for this" if files else "say which files it is on"
            )
            raise PlanRefused(
                f"data set '{self.name}': plan {plan.hash[:12]} is approved, but for other data: {remedy}"
            )
        return self.approval_of(plan.hash)

    def binds(self, plan: str) -> bool:
        """Tell whether an approval of a plan is for some data only."""
        return any(approval.plan == plan and approval.data is not None for approval in self.approvals)

    def approval_of(self, plan: str, data: str | None = None) -> Approval:
        """Return the approval that a run of a plan was opened under: one for data of a digest, if that is given.

        Raises
        ------
        PlanRefused
            If there is none, or it is used up or taken back.
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
        runs = sum(approval.runs for approval in given)
        raise PlanRefused(
            f"{what} was approved for {runs} {'run' if runs == 1 else 'runs'}, which {'was' if runs == 1 else 'were'} "
            "opened before; another one needs an approval of its own"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        spent = self.spent
        return {
            "data_set": self.name,
            "relation": self.relation.value,
            "unit": self.unit.to_dict(),
            "order": None if self.budget.order is None else str(self.budget.order),
            "schema": self.schema,
            "verified": None if self.verified is None else str(self.verified),
            "opened": self.time,
            "cap": {"epsilon": str(self.epsilon), "delta": str(self.delta)},
            "spent": {"epsilon": str(spent.epsilon), "delta": str(spent.delta)},
            "left": {"epsilon": str(self.left)},
            "approvals": [approval.to_dict() for approval in self.approvals],
            "runs": [run.to_dict() for run in self.runs.values()],
        }


def _without_code(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in ("code", "hash")}


@final
class Records:
    """The data sets of a ledger, as its entries tell, and the head of its chain: the last of those entries.

    Parameters
    ----------
    source
        The ledger's name, for errors.
    entries
        In order.
    """

    def __init__(self, source: str | os.PathLike[str], entries: Iterable[Entry] = ()) -> None:
        self.id = ""
        self.head = START
        self.data_sets: dict[str, DataSet] = {}
        self._source = source
        self._runs: dict[str, tuple[DataSet, RecordedRun]] = {}
        for entry in entries:
            self.add(entry)

    def data_set(self, name: str) -> DataSet:
        """Return a data set.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        if name not in self.data_sets:
            raise InputError(f"no data set is named '{name}' in this ledger; {nearest(name, self.data_sets)}")
        return self.data_sets[name]

    def has_run(self, run: str) -> bool:
        """Tell whether a run of this id was recorded."""
        return run in self._runs

    def require_possible(self, entry: Entry) -> None:
        """Refuse an entry that dpframework would not have made now: a run that was not approved, or did not fit.

        Raises
        ------
        PlanRefused
            If it would not.
        """
        content = entry.content
        if entry.kind in ("run", "refusal"):
            data_set = self.data_set(content["data_set"])
            data_set.approval_of(content["plan"], content.get("data"))
        if entry.kind == "run":
            data_set.require_room(PlanCharge.from_dict(content["amount"]))
        elif entry.kind in ("charge", "redraw", "resumption", "end") and self._runs[content["run"]][1].end is not None:
            raise PlanRefused(f"run {content['run']} had ended")

    def require_form(self, entry: Entry) -> None:
        """Refuse an entry that is not in the form of its kind, before anything else of it is read (see `add`)."""
        if entry.kind not in KINDS:
            raise InputError(
                f"{self._source}: entry {entry.number} is of the unknown kind '{entry.kind}'; "
                "was this ledger made by a later dpframework?"
            )
        try:
            require_form(entry.content, "dpframework.ledger", "entries.schema.json", entry.kind)
        except InputError as error:
            raise self.not_made(entry, str(error)) from None

    def add(self, entry: Entry) -> None:
        """Take note of one more entry.

        Raises
        ------
        LedgerTampered
            If its content is not what its kind holds.
        InputError
            If its kind is unknown.
        """
        self.require_form(entry)
        try:
            self._add(entry)
        except InputError as error:
            raise self.not_made(entry, str(error)) from None
        except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError, PlanRefused):
            raise self.not_made(entry, f"its content is not that of a {entry.kind}") from None

    def not_made(self, entry: Entry, why: str) -> LedgerTampered:
        """Return the error that an entry is none that dpframework makes."""
        return LedgerTampered(f"{self._source}: entry {entry.number} is not one that dpframework makes: {why}")

    def _add(self, entry: Entry) -> None:
        content = entry.content
        self.head = entry.head
        match entry.kind:
            case "ledger":
                self.id = content["id"]
            case "data set":
                if content["data_set"] in self.data_sets:
                    raise ValueError("a data set is opened once")
                self.data_sets[content["data_set"]] = DataSet(
                    content["data_set"],
                    Relation.parse(content["relation"]),
                    Fraction(content["epsilon"]),
                    Fraction(content["delta"]),
                    content["schema"],
                    entry.time,
                    Fraction(content["verified"]) if "verified" in content else None,
                    PrivacyUnit(**content.get("unit", {})),
                )
            case "plan":
                self.data_sets[content["data_set"]].plans[content["plan"]["hash"]] = content["plan"]
            case "approval":
                approval = Approval(
                    content["plan"],
                    content["by"],
                    entry.time,
                    content["runs"],
                    content["note"],
                    verified=content.get("verified"),
                    data=Binding(**content["data"]) if "data" in content else None,
                    signature=content.get("signature"),
                    text=signed_text(self.id, entry.previous, content),
                )
                self.data_sets[content["data_set"]].approvals.append(approval)
            case "revocation":
                for approval in self.data_sets[content["data_set"]].approvals:
                    if approval.plan == content["plan"] and approval.revoked is None:
                        approval.revoked = content["by"]
            case "run":
                self._open(entry, PlanCharge.from_dict(content["amount"]))
            case "refusal":
                self._open(entry, None)
                self._runs[content["run"]][1].end = refused(content["why"])
            case "charge":
                self._runs[content["run"]][1].charges.append(content["path"])
            case "redraw":
                self._runs[content["run"]][1].redrawn += 1
            case "resumption":
                self._runs[content["run"]][1].resumed += 1
            case "end":
                self._runs[content["run"]][1].end = content["how"]

    def _open(self, entry: Entry, amount: PlanCharge | None) -> None:
        content = entry.content
        data_set = self.data_sets[content["data_set"]]
        approval = data_set.approval_of(content["plan"], content.get("data"))
        approval.used += 1
        if amount is not None:
            data_set.budget = data_set.budget.after(amount)
        run = RecordedRun(content["run"], content["plan"], entry.time, amount or PlanCharge(NOTHING), approval)
        data_set.runs[run.id] = run
        self._runs[run.id] = data_set, run
