"""The state of a ledger, computed from its entries: data sets, approvals, runs and charges."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterable
from typing import final

from dpframework.accountant import PlanCharge
from dpframework.facts.errors import InputError, PlanRefused, nearest
from dpframework.facts.json_reader_and_schema_check import require_form
from dpframework.facts.privacy_losses import NOTHING
from dpframework.ledger.approvals import Approval, Binding
from dpframework.ledger.data_set_opening_entry import opened_data_set
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.entry_hash_chain import START, Entry, LedgerTampered
from dpframework.ledger.outside_releases import Outside
from dpframework.ledger.recorded_run import RecordedRun
from dpframework.ledger.run_results_person_and_purpose import RunSubject
from dpframework.ledger.signed_decisions import DECISIONS, Decision
from dpframework.ledger.signers import Signers
from dpframework.ledger.ssh_signatures import SignatureError, text_to_sign

#: The kinds of entries. Those in the first row record what people decide, those in the second what runs do.
KINDS = (
    *("ledger", "data set", "plan", "approval", "revocation", "signers", "outside"),
    *("reading", "unread", "run", "refusal", "charge", "redraw", "resumption", "end"),
)


def refusal(why: str) -> str:
    """Return the recorded end of a run that was refused while its rows were read."""
    return f"refused: {why}"


@final
class Records:
    """The data sets of a ledger, its signers, and its head (the number and hash of the last entry).

    Parameters
    ----------
    source
        The name of the ledger in messages.
    entries
        The ledger's entries, beginning with the first.
    """

    def __init__(self, source: str | os.PathLike[str], entries: Iterable[Entry] = ()) -> None:
        self.id = ""
        self.head = START
        self.signers: Signers | None = None
        self.decisions: list[Decision] = []
        self.data_sets: dict[str, DataSet] = {}
        self._source = source
        self._runs: dict[str, tuple[DataSet, RecordedRun]] = {}
        for entry in entries:
            self.add(entry)

    @property
    def authority(self) -> str:
        """A sentence about who must sign decisions."""
        if self.signers is None:
            return "this ledger has no signers: whoever can write its file can open data sets and approve plans"
        return f"caps, approvals and revocations are signed; the signers are {self.signers}"

    def data_set(self, name: str) -> DataSet:
        """Return a data set.

        Raises
        ------
        InputError
            If no data set has that name.
        """
        if name not in self.data_sets:
            raise InputError(f"no data set is named '{name}' in this ledger; {nearest(name, self.data_sets)}")
        return self.data_sets[name]

    def has_run(self, run: str) -> bool:
        """Tell whether a run with this id is recorded."""
        return run in self._runs

    def misfit(self, run: str | None, plan: str, releases: Iterable[str], data_set: str | None = None) -> str:
        """Say why results cannot come from a given run of this ledger. The text is empty if they can.

        Parameters
        ----------
        run, plan, releases
            The id of the run, the hash of its plan, and the paths of its releases, as the results hold them.
        data_set
            The name of the data set that the run must have read; None for any.
        """
        if run is None:
            return "its run was made without a ledger"
        if not self.has_run(run) or (data_set is not None and self._runs[run][0].name != data_set):
            return f"run {run} is not recorded"
        recorded = self._runs[run][1]
        if recorded.plan != plan:
            return f"run {run} was of plan {recorded.plan[:12]}, and the results are of plan {plan[:12]}"
        if collections.Counter(releases) - collections.Counter(recorded.charges):
            return f"run {run} was not charged for all releases of the results"
        return ""

    def require_possible(self, entry: Entry) -> None:
        """Refuse an entry that dpframework would not have made in this state, such as a run without an approval.

        Raises
        ------
        PlanRefused
            If dpframework would not have made the entry in this state.
        """
        content = entry.content
        if entry.kind in ("reading", "run", "refusal"):
            data_set = self.data_set(content["data_set"])
            if not (entry.kind == "run" and self.has_run(content["run"])):
                data_set.approval_of(content["plan"], content.get("data"))
        if entry.kind == "run":
            data_set.require_room(PlanCharge.from_dict(content["amount"]))
            data_set.require_period(content.get("period", ""))
            if "period" in content:
                data_set.require_room_in(content["period"], PlanCharge.from_dict(content["of_period"]))
        elif entry.kind in ("unread", "charge", "redraw", "resumption", "end"):
            run = self._runs[content["run"]][1]
            if run.end is not None:
                raise PlanRefused(f"run {run.id} had ended")
            if run.charged and entry.kind == "unread":
                raise PlanRefused(f"run {run.id} had read its table")
            if not run.charged and entry.kind in ("charge", "redraw"):
                raise PlanRefused(f"run {run.id} had not been charged")

    def require_form(self, entry: Entry) -> None:
        """Refuse an entry of an unknown kind, or whose content does not have the form of its kind (see `add`)."""
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
        """Apply one more entry to the state.

        Raises
        ------
        LedgerTampered
            If the content of the entry does not fit its kind or the entries before it, or if the entry needs a
            signature and has no valid one.
        InputError
            If the kind of the entry is unknown.
        """
        self.require_form(entry)
        if (entry.kind == "ledger") != (entry.number == 1):
            raise self.not_made(entry, "the first entry says which ledger it is, and no other one does")
        by = self._signer_of(entry) if entry.kind in DECISIONS else None
        try:
            self._add(entry, by)
        except InputError as error:
            raise self.not_made(entry, str(error)) from None
        except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError, PlanRefused):
            raise self.not_made(entry, f"its content does not fit kind '{entry.kind}'") from None

    def not_made(self, entry: Entry, why: str) -> LedgerTampered:
        """Return the error for an entry that dpframework would not have made."""
        return LedgerTampered(f"{self._source}: entry {entry.number} is not one that dpframework makes: {why}")

    def _add(self, entry: Entry, by: str | None) -> None:
        content = entry.content
        self.head = entry.head
        match entry.kind:
            case "ledger":
                self.id = content["id"]
                self.signers = Signers(content["signers"]) if "signers" in content else None
            case "signers":
                if self.signers is None:
                    raise ValueError("a ledger has signers from its first entry on, or never")
                self.signers = self.signers.changed(content["add"], content["remove"])
            case "data set":
                if content["data_set"] in self.data_sets:
                    raise ValueError("a data set is opened once")
                self.data_sets[content["data_set"]] = opened_data_set(content, entry.time)
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
                    signed_by=by,
                )
                self.data_sets[content["data_set"]].approvals.append(approval)
            case "revocation":
                for approval in self.data_sets[content["data_set"]].approvals:
                    if approval.plan == content["plan"] and approval.revoked is None:
                        approval.revoked = content["by"]
            case "outside":
                amount = PlanCharge.from_dict(content["amount"]) if "amount" in content else None
                self.data_sets[content["data_set"]].release_outside(Outside.of_entry(content, entry.time), amount)
            case "reading":
                self._open(entry)
            case "unread":
                data_set, run = self._runs.pop(content["run"])
                if run.charged:
                    raise ValueError("a run that was charged has read its table")
                del data_set.runs[run.id]
                run.approval.used -= 1
            case "run":
                self._charge(entry)
            case "refusal":
                self._open(entry).end = refusal(content["why"])
            case "charge":
                self._runs[content["run"]][1].charges.append(content["path"])
            case "redraw":
                self._runs[content["run"]][1].redrawn += 1
            case "resumption":
                self._runs[content["run"]][1].resumed += 1
            case "end":
                self._runs[content["run"]][1].end = content["how"]

    def _signer_of(self, entry: Entry) -> str | None:
        """Verify a decision's signature and return the signer's name, or None if the ledger has no signers."""
        signature = entry.content.get("signature")
        text = text_to_sign(self.id, entry.previous, entry.kind, entry.content)
        self.decisions.append(Decision(entry, signature, text))
        if self.signers is None:
            return None
        what = f"{self._source}: entry {entry.number} ({entry.kind})"
        if signature is None:
            raise LedgerTampered(f"{what} is not signed, and this ledger needs a signature by {self.signers}")
        try:
            return self.signers.signer_of(signature, text)
        except SignatureError as error:
            raise LedgerTampered(f"{what}: {error}") from None

    def _open(self, entry: Entry) -> RecordedRun:
        """Add a new run, which uses up one run of an approval."""
        content = entry.content
        if self.has_run(content["run"]):
            raise ValueError("a run is opened once")
        data_set = self.data_sets[content["data_set"]]
        approval = data_set.approval_of(content["plan"], content.get("data"))
        approval.used += 1
        run = RecordedRun(content["run"], content["plan"], entry.time, PlanCharge(NOTHING), approval)
        run.subject = RunSubject.of_entry(content)
        data_set.runs[run.id] = run
        self._runs[run.id] = data_set, run
        return run

    def _charge(self, entry: Entry) -> None:
        """Charge a run. A run on a table in memory is added first, since no reading of its table was recorded."""
        content = entry.content
        if not self.has_run(content["run"]):
            self._open(entry)
        data_set, run = self._runs[content["run"]]
        digest = None if run.approval.data is None else run.approval.data.digest
        approved = (data_set.name, run.plan, digest) == (content["data_set"], content["plan"], content.get("data"))
        if run.charged or run.end is not None or not approved:
            raise ValueError("a run is charged once, for the plan whose approval it used up")
        run.amount, run.charged = PlanCharge.from_dict(content["amount"]), True
        data_set.budget = data_set.budget.after(run.amount)
        if "period" in content:
            own = data_set.of_period(content["period"]).after(PlanCharge.from_dict(content["of_period"]))
            data_set.periods[content["period"]] = own
