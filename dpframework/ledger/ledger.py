"""The ledger: what was planned, approved and spent on a data set, in one file."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.accountant import PlanCharge
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.parameters import is_whole_number
from dpframework.facts.privacy import Amount, Relation, decimal_text, exact
from dpframework.facts.schema import Schema
from dpframework.facts.unit import PrivacyUnit
from dpframework.ledger.binding import Binding
from dpframework.ledger.chain import Chain, Entry, Head, LedgerTampered, Transaction
from dpframework.ledger.records import DataSet, Records
from dpframework.ledger.run import LedgerRun
from dpframework.ledger.signatures import SignatureError, sign, signed_text
from dpframework.plan.plan import Budget, Plan, hash_of
from dpframework.plan.reading import plan_from_json
from dpframework.study.registry import registry
from dpframework.study.study_plan import StudyPlan


def _text(value: str, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InputError(f"{what} is {value!r}; a text of one line is needed")
    return value


def _files(data: Iterable[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(data, str):
        raise InputError(f"data is one text, {data!r}; give a list of files")
    return [Path(file) for file in data]


def opening(
    name: str,
    *,
    epsilon: Amount,
    delta: Amount,
    relation: Relation | str,
    verified: Amount | None,
    unit: str | None,
    rows_per_unit: int,
    schema: Schema | None = None,
) -> dict[str, Any]:
    """Return what is recorded of a data set that is opened (see `Ledger.open`).

    Raises
    ------
    InputError
        If a number, a name or the relation cannot be used.
    """
    cap, protected = Budget(epsilon, delta), PrivacyUnit(unit, rows_per_unit)
    tightness = None if verified is None else exact(verified, "the tightness")
    if tightness is not None and tightness > 1:
        raise InputError(f"the tightness is {decimal_text(tightness)}; a share of a claim, at most 1, is needed")
    return {
        "data_set": _text(name, "the data set's name"),
        "relation": Relation.parse(relation).value,
        "epsilon": str(cap.epsilon),
        "delta": str(cap.delta),
        "schema": None if schema is None else schema.fingerprint,
        **({} if tightness is None else {"verified": str(tightness)}),
        **({} if protected.is_row else {"unit": protected.to_dict()}),
    }


@final
class Ledger:
    """A file of data sets with their caps, the plans approved for them, and what runs were charged; never data.

    Parameters
    ----------
    path
        A file that `Ledger.create` made.

    Raises
    ------
    InputError
        If there is none, or it is something else.

    Examples
    --------
    >>> import tempfile, dpframework as dpf
    >>> ledger = dpf.Ledger.create(tempfile.mkdtemp() + "/hospital.ledger")
    >>> ledger.open("patients", epsilon=2)
    >>> print(ledger.data_set("patients").left)
    2
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._chain = Chain(path)

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Ledger:
        """Make a ledger; one that exists is opened.

        Raises
        ------
        InputError
            If the file cannot be written, or is something else.
        """
        ledger = cls.__new__(cls)
        ledger._chain = Chain.create(path, {"id": secrets.token_hex(16)})
        return ledger

    @property
    def path(self) -> Path:
        """The file."""
        return self._chain.path

    def open(
        self,
        name: str,
        *,
        epsilon: Amount,
        delta: Amount = 0,
        relation: Relation | str = Relation.ADD_OR_REMOVE_ONE,
        schema: Schema | None = None,
        verified: Amount | None = None,
        unit: str | None = None,
        rows_per_unit: int = 1,
    ) -> None:
        """Open a data set with a cap that all its runs must fit together.

        Parameters
        ----------
        name
            What the ledger calls it.
        epsilon, delta
            The cap. Runs are composed in pure epsilon, and with delta above 0 also in Renyi divergence (see
            `AdaptiveBudget`).
        relation
            The neighbouring relation that the cap holds for; plans of the other one are refused.
        schema
            Plans made from any other schema are refused; by default every schema is accepted.
        verified
            Plans are approved only if the very code of each of their miners and mechanisms was verified, at this
            tightness or more (see `StudyPlan.with_verified`). By default none needs to be.
        unit, rows_per_unit
            Whom the cap protects (see `Study`), by default one row; plans for another privacy unit are refused: what
            they cost cannot be added up.

        Raises
        ------
        InputError
            If the name is taken, or a number, a name or the relation cannot be used.
        """
        content = opening(
            name,
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            schema=schema,
            verified=verified,
            unit=unit,
            rows_per_unit=rows_per_unit,
        )
        with self._chain.writing() as transaction:
            if name in self._books(transaction).data_sets:
                raise InputError(f"{self.path}: has a data set named '{name}'; its cap is fixed")
            transaction.append("data set", content)

    def approve(
        self,
        name: str,
        plan: StudyPlan,
        *,
        by: str,
        runs: int = 1,
        note: str = "",
        data: Iterable[str | os.PathLike[str]] = (),
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        """Approve runs of one plan: of exactly this content, by its hash.

        Parameters
        ----------
        name
            The data set.
        plan
            The plan.
        by
            Who approves.
        runs
            For how many runs; each is charged the plan's whole total.
        note
            A note to keep with the approval.
        data
            The data files that the runs must be on, as the study names them: a salted digest of their bytes is kept
            (see `Binding`). By default any.
        key
            The file of an SSH key to sign with: private, or public and held by an agent. By default it is unsigned.

        Raises
        ------
        PlanRefused
            If a check refuses the plan, it is of another relation or schema, it does not fit what is left, or its code
            was not verified and has to be.
        InputError
            If there is no such data set, or a parameter cannot be used.
        """
        if not is_whole_number(runs):
            raise InputError(f"runs is {runs!r}; a positive whole number is needed")
        approval = {"data_set": name, "plan": plan.hash, "by": _text(by, "by"), "runs": runs}
        approval["note"] = _text(note, "the note") if note else ""
        if plan.verified is not None:
            approval["verified"] = plan.verified.digest
        bound = _files(data)
        if refused := plan.refusals():
            raise PlanRefused("; ".join(str(finding) for finding in refused))
        content = {**approval, **({"data": attrs.asdict(Binding.of(bound))} if bound else {})}
        with self._chain.writing() as transaction:
            records = self._books(transaction)
            data_set = records.data_set(name)
            data_set.require_fit(plan)
            data_set.require_verified(plan)
            if plan.hash not in data_set.plans:
                transaction.append("plan", {"data_set": name, "plan": {**plan.content(), "hash": plan.hash}})
            if key is not None:
                content["signature"] = sign(key, signed_text(records.id, transaction.head.hash, content))
            transaction.append("approval", content)

    def revoke(self, name: str, plan: str, *, by: str) -> None:
        """Take the approvals of a plan back: no run of it is opened, resumed, or makes another release.

        Parameters
        ----------
        name
            The data set.
        plan
            The plan's hash, or its beginning.
        by
            Who takes them back.

        Raises
        ------
        InputError
            If no approved plan, or more than one, has such a hash.
        """
        by = _text(by, "by")
        with self._chain.writing() as transaction:
            data_set = self._books(transaction).data_set(name)
            given = {a.plan for a in data_set.approvals if a.revoked is None and a.plan.startswith(plan)}
            if len(given) != 1:
                number = "no" if not given else "more than one"
                raise InputError(f"data set '{name}': {number} approved plan has a hash that begins with '{plan}'")
            transaction.append("revocation", {"data_set": name, "plan": given.pop(), "by": by})

    def _books(self, transaction: Transaction) -> Records:
        return Records(self.path, transaction.read())

    def records(self) -> Records:
        """Return every data set, as it is now, with the head of the chain."""
        with self._chain.reading() as transaction:
            return self._books(transaction)

    def data_set(self, name: str) -> DataSet:
        """Return one data set, as it is now.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        return self.records().data_set(name)

    def run(
        self,
        name: str,
        *,
        journal: str | os.PathLike[str] | None = None,
        data: Iterable[str | os.PathLike[str]] = (),
    ) -> LedgerRun:
        """Return a run on a data set, for `Study.run`, which opens it if its plan is approved and fits.

        Parameters
        ----------
        name
            The data set.
        journal
            A file for the outputs of the run while it is unfinished: with the same journal it can be resumed.
            `LedgerRun.discard` removes it. By default there is none, and a run that is killed is lost.
        data
            The files that the table is read from: needed where the approval is for some data only.
        """
        made = LedgerRun(self._chain, name, None if journal is None else Path(journal))
        made.data = [Path(file) for file in data]
        return made

    def verify(self, head: str | None = None, *, runs: Mapping[str, str] | None = None) -> Head:
        """Recompute every hash, and whether each run was approved and fitted; return the head.

        Parameters
        ----------
        head
            The hash of a head that was noted earlier, which must still be in the chain.
        runs
            Runs that must be in the ledger: for each run's id the head that its results hold.

        Raises
        ------
        LedgerTampered
            With the first entry that is not as it was written.
        """
        with self._chain.reading() as transaction:
            entries = transaction.read()
            transaction.require_untouched()
        records = Records(self.path)
        for entry in entries:
            records.require_form(entry)
            try:
                self._require_possible(records, entry)
            except (KeyError, TypeError, AttributeError, ValueError, PlanRefused) as error:
                reason = str(error) if isinstance(error, PlanRefused) else f"its content is not that of a {entry.kind}"
                raise records.not_made(entry, reason) from None
            records.add(entry)
        if not entries or entries[0].kind != "ledger":
            raise LedgerTampered(f"{self.path}: the first entry is missing")
        if head is not None and head not in {entry.hash for entry in entries}:
            raise LedgerTampered(
                f"{self.path}: no entry has the hash {head}; the ledger was cut, written anew, or is another one"
            )
        known = {entry.hash for entry in entries}
        for run, noted in (runs or {}).items():
            if not records.has_run(run):
                raise LedgerTampered(f"{self.path}: run {run} is gone; the ledger was put back, or is another one")
            if noted not in known:
                raise LedgerTampered(
                    f"{self.path}: what run {run} recorded last is gone; the ledger was put back, or written anew"
                )
        return entries[-1].head

    def signatures(self, signers: str | os.PathLike[str] | None = None) -> list[str]:
        """Verify the signature of every approval; return a line each, the unsigned ones too.

        Parameters
        ----------
        signers
            A file of allowed signers, which says whose a key is. By default any key will do.

        Raises
        ------
        LedgerTampered
            If a signature is not of its approval, or of nobody who is allowed.
        """
        lines = []
        for data_set in self.records().data_sets.values():
            for approval in data_set.approvals:
                what = f"'{data_set.name}', plan {approval.plan[:12]}, approved by {approval.by} on {approval.time}"
                try:
                    lines.append(f"{what}: {approval.signer(signers)}")
                except SignatureError as error:
                    raise LedgerTampered(f"{self.path}: {what}: {error}") from None
        return lines

    def _require_possible(self, records: Records, entry: Entry) -> None:
        content = entry.content
        if entry.kind == "plan":
            claims = {key: value for key, value in content["plan"].items() if key != "hash"}
            if hash_of(claims) != content["plan"]["hash"]:
                raise PlanRefused("the plan does not fit its hash")
        records.require_possible(entry)
        if entry.kind == "run":
            self._require_same_amount(records.data_set(content["data_set"]), content)

    def _require_same_amount(self, data_set: DataSet, content: Mapping[str, Any]) -> None:
        """Refuse a charge that is not what the accountant makes of the plan, where its plan can be read here."""
        mechanisms = [brought.component for brought in registry().mechanisms.values()]
        try:
            plan = plan_from_json(json.dumps(data_set.plans[content["plan"]]), mechanisms, kind=Plan)
        except InputError:  # of a plugin that is not installed, or of another version
            return
        amount = PlanCharge.from_dict(content["amount"])
        due = attrs.evolve(data_set.budget, order=amount.order).plan_charge(plan)
        if (due.pure, due.rdp if amount.order else None) != (amount.pure, amount.rdp):
            raise PlanRefused("what was charged is not the total of its plan")
