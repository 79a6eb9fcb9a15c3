"""The class of ledgers. A ledger is one file with the plans, approvals and charges of data sets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, final

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.ledger.approvals import approval_entry
from dpframework.ledger.data_set_opening_entry import opening
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.entry_hash_chain import Chain, Head
from dpframework.ledger.ledger_audit import audit_entries
from dpframework.ledger.ledger_pin_file import Pin
from dpframework.ledger.ledger_run import LedgerRun
from dpframework.ledger.ledger_state import Records
from dpframework.ledger.outside_releases import OutsideKind, charge_of_outside, outside_losses
from dpframework.ledger.run_results_person_and_purpose import RunSubject, one_line, require_unlike
from dpframework.ledger.signed_decisions import append_decision, signature_lines
from dpframework.study.study_plan_totals_and_findings import StudyPlan


@final
class Ledger:
    """A file that records, for each data set, a cap on the total loss, approved plans, and charges. It holds no data.

    Parameters
    ----------
    path
        A file that `Ledger.create` made.
    pin
        The owner's pin (see `Pin`). By default there is no pin, and nobody notices if an older copy replaces the file.

    Raises
    ------
    InputError
        If there is no such file, or it is not a ledger.

    Examples
    --------
    >>> import tempfile, dpframework as dpf
    >>> ledger = dpf.Ledger.create(tempfile.mkdtemp() + "/hospital.ledger")
    >>> ledger.open("patients", epsilon=2)
    >>> print(ledger.data_set("patients").left)
    2
    """

    @typechecked
    def __init__(self, path: str | os.PathLike[str], pin: Pin | None = None) -> None:
        self._chain = Chain(path, pin)

    @classmethod
    @typechecked
    def create(
        cls, path: str | os.PathLike[str], *, signers: Mapping[str, str] | None = None, pin: Pin | None = None
    ) -> Ledger:
        """Make a ledger, or open an existing ledger.

        Parameters
        ----------
        path
            The file.
        signers
            The public keys of the signers, by name (see `read_signers`). One of them must sign each decision, such as
            an approval. By default decisions need no signature.
        pin
            The owner's pin.

        Raises
        ------
        InputError
            If the file cannot be written, if it is not a ledger, or if it is an existing ledger with other signers.
        """
        ledger = cls.__new__(cls)
        first = {} if signers is None else {"signers": dict(signers)}
        ledger._chain = Chain.create(path, {"id": secrets.token_hex(16), **first}, pin)
        if signers is not None:
            own = ledger.records().signers
            if own is None:
                raise InputError(f"{path}: is a ledger without signers, and none can be added to it; give a new file")
            if dict(own.keys) != dict(signers):
                raise InputError(
                    f"{path}: is a ledger whose signers are {own}; change them with 'dpframework ledger signers', or "
                    "give a new file"
                )
        return ledger

    @property
    def path(self) -> Path:
        """The path of the ledger's file."""
        return self._chain.path

    @typechecked
    def open(
        self,
        name: str,
        *,
        epsilon: Amount,
        delta: Amount = 0,
        reserve: Amount = 0,
        relation: Relation | str = Relation.ADD_OR_REMOVE_ONE,
        schema: Schema | None = None,
        verified: Amount | None = None,
        unit: str | PrivacyUnit | None = None,
        rows_per_unit: int = 1,
        history: Amount | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        """Add a data set to the ledger, with a cap on the total loss of all its runs.

        Parameters
        ----------
        name
            The name of the data set in the ledger.
        epsilon, delta
            The cap. Runs are composed in pure epsilon and, if delta is above 0, in Renyi divergence (see
            `AdaptiveBudget`).
        reserve
            The part of delta that is held back for later releases with an exact delta, such as keys above a threshold.
            The first plan composed in Renyi divergence uses all other delta, so later releases of this kind need a
            reserve.
        relation
            The neighbouring relation for which the cap holds. Plans under the other relation are refused.
        schema
            The schema from which plans must be made. By default every schema is accepted.
        verified
            The smallest tightness, from 0 to 1, with which the code of a plan's miners and mechanisms must have been
            verified (see `StudyPlan.with_verified`). The tightness is the loss that `verify` found, as a share of the
            claim. Plans with other code cannot be approved. By default unverified code is accepted.
        unit, rows_per_unit
            The unit that the cap protects (see `Study`), by default one row. Plans for another unit are refused.
        history
            If the unit is a person in a period, the cap over a person's whole history. `epsilon` is then the cap of
            each period.
        key
            The file of an SSH key to sign with, if the ledger has signers.

        Raises
        ------
        InputError
            If the name is taken or looks like a taken one, if a value cannot be used, or if a signature is missing.
        """
        cap: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "reserve": reserve, "relation": relation}
        whom: dict[str, Any] = {"unit": unit, "rows_per_unit": rows_per_unit, "history": history}
        content = opening(name, **cap, **whom, schema=schema, verified=verified)
        with self._chain.writing() as transaction:
            records = Records(self.path, transaction.read())
            if name in records.data_sets:
                raise InputError(f"{self.path}: has a data set named '{name}'; its cap is fixed")
            require_unlike(name, records.data_sets)
            append_decision(transaction, records, "data set", content, key)

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
        """Approve runs of exactly this plan. The ledger stores the plan and its hash.

        Parameters
        ----------
        name
            The data set.
        plan
            The plan.
        by
            The name of the approver.
        runs
            The number of approved runs. Each run is charged the whole total of the plan.
        note
            A note that is stored with the approval.
        data
            The data files that the runs must read, in the study's order. The ledger stores a salted digest of their
            bytes (see `Binding`). By default runs may read any data.
        key
            The file of the SSH key that signs the approval: a private key, or a public key whose private key is in an
            SSH agent. By default the approval is not signed, which a ledger with signers refuses.

        Raises
        ------
        PlanRefused
            If a check refuses the plan, if it is for another relation, unit or schema, if it does not fit what is left
            of the cap, or if its code must be verified and is not.
        InputError
            If there is no such data set, or a parameter cannot be used.
        """
        plan.require_checks()
        content = approval_entry(name, plan, by=by, runs=runs, note=note, data=data)
        with self._chain.writing() as transaction:
            records = Records(self.path, transaction.read())
            data_set = records.data_set(name)
            data_set.require_fit(plan)
            data_set.require_verified(plan)
            if plan.hash not in data_set.plans:
                transaction.append("plan", {"data_set": name, "plan": {**plan.content(), "hash": plan.hash}})
            append_decision(transaction, records, "approval", content, key)

    def revoke(self, name: str, plan: str, *, by: str, key: str | os.PathLike[str] | None = None) -> str:
        """Revoke the approvals of a plan, and return the plan's hash. Its runs can no longer be opened or resumed.

        Parameters
        ----------
        name
            The data set.
        plan
            The plan's hash, or the beginning of the hash. An empty text stands for the only approved plan.
        by
            The name of the person who revokes the approvals.
        key
            The file of an SSH key to sign with, if the ledger has signers.

        Raises
        ------
        InputError
            If no approved plan or more than one has such a hash, or if a signature is missing.
        """
        by = one_line(by, "by")
        with self._chain.writing() as transaction:
            records = Records(self.path, transaction.read())
            data_set = records.data_set(name)
            given = {a.plan for a in data_set.approvals if a.revoked is None and a.plan.startswith(plan)}
            if len(given) != 1:
                number = "no" if not given else "more than one"
                raise InputError(f"data set '{name}': {number} approved plan has a hash that begins with '{plan}'")
            revoked = given.pop()
            append_decision(transaction, records, "revocation", {"data_set": name, "plan": revoked, "by": by}, key)
        return revoked

    def record_outside(
        self,
        name: str,
        what: str,
        *,
        kind: OutsideKind | str,
        by: str,
        attributes: Iterable[str] = (),
        epsilon: Amount | None = None,
        delta: Amount = 0,
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        """Record a release from a data set that was made outside of this ledger.

        Parameters
        ----------
        name
            The data set.
        what
            A description of what was released, on one line.
        kind
            "exact" for numbers without noise, "private" for a differentially private release, "look" if someone looked
            at the rows.
        by
            The name of the person who states this.
        attributes
            The attributes about which the release reveals something. By default it may be about any attribute.
        epsilon, delta
            The loss of a private release, under the data set's relation and for its unit. This is charged to the cap.
        key
            The file of an SSH key to sign with, if the ledger has signers.
        """
        said = {"data_set": name, "what": one_line(what, "what was released"), "by": one_line(by, "by")}
        losses = outside_losses(kind, attributes, epsilon, delta)
        with self._chain.writing() as transaction:
            records = Records(self.path, transaction.read())
            content = {**said, **losses, **charge_of_outside(records.data_set(name).budget, losses)}
            append_decision(transaction, records, "outside", content, key)

    def change_signers(
        self, *, by: str, key: str | os.PathLike[str], add: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Add signers, remove signers, or do both at once. Earlier signatures of a removed signer stay valid.

        Parameters
        ----------
        by
            The name of the person who decides the change.
        key
            The file of the SSH key of a present signer.
        add
            The public keys of new signers, by name (see `read_signers`).
        remove
            The names of signers to remove.

        Raises
        ------
        InputError
            If the ledger has no signers, if the key belongs to none of them, or if the change cannot be made.
        """
        added, removed = dict(add or {}), sorted(remove)
        content = {"add": added, "remove": removed, "by": one_line(by, "by")}
        with self._chain.writing() as transaction:
            records = Records(self.path, transaction.read())
            if records.signers is None:
                raise InputError(
                    f"{self.path}: has no signers, and none can be added, since a ledger's first entry names them; "
                    "'dpframework ledger open --signers' makes a new ledger with signers"
                )
            records.signers.changed(added, removed)
            append_decision(transaction, records, "signers", content, key)

    def records(self) -> Records:
        """Return every data set, with the head of the chain."""
        with self._chain.reading() as transaction:
            return Records(self.path, transaction.read())

    def data_set(self, name: str) -> DataSet:
        """Return the current state of one data set. An unknown name raises an InputError."""
        return self.records().data_set(name)

    def run(
        self,
        name: str,
        *,
        journal: str | os.PathLike[str] | None = None,
        data: Iterable[str | os.PathLike[str]] = (),
        study: str = "",
        by: str = "",
        purpose: str = "",
        period: str = "",
    ) -> LedgerRun:
        """Return a run on a data set, for `Study.run`. It will be opened if its plan is approved and fits the cap.

        Parameters
        ----------
        name
            The data set.
        journal
            A file that stores the outputs of the run until it is finished. If the file holds an unfinished run, this
            run is resumed. `LedgerRun.discard` removes the file. By default there is no journal, and a killed run
            cannot be resumed.
        data
            The files from which the table is read. They are needed if the approval is limited to certain files.
        study, by, purpose
            The name of the study, the name of the person who runs it, and the purpose. The ledger records them with the
            run.
        period
            The period whose rows the run reads, if the unit is a person in a period.
        """
        for text, what in ((study, "study"), (by, "by"), (purpose, "purpose")):
            if text:
                one_line(text, what)
        subject = RunSubject(study, by, purpose, period=period)
        made = LedgerRun(self._chain, name, None if journal is None else Path(journal), subject)
        made.data = [Path(file) for file in data]
        return made

    def verify(self, head: str | None = None, *, runs: Mapping[str, str] | None = None) -> Head:
        """Recompute every hash, check that each run was approved and fitted the cap, and return the last entry.

        Parameters
        ----------
        head
            The hash of an entry that must be in the ledger. It may be a last entry that was noted earlier, or the first
            entry, which identifies the ledger.
        runs
            Runs that must be in the ledger: for the id of each run, the ledger's head that the run's results hold.

        Raises
        ------
        LedgerTampered
            If an entry was changed (the message names it), or if a given head or run is missing.
        """
        with self._chain.reading() as transaction:
            entries = transaction.read()
        found = audit_entries(self.path, entries, head, runs or {})
        if self._chain.pin is not None:
            self._chain.pin.note(entries[0].hash, found)
        return found

    def signatures(self, signers: str | os.PathLike[str] | None = None) -> list[str]:
        """Verify the signatures of decisions, and return one line of text for each decision.

        In a ledger without signers only approvals are listed.

        Parameters
        ----------
        signers
            A file of allowed signers, which names the owner of each key. One of these signers must have signed each
            decision. By default the ledger's own signers are accepted or, in a ledger without signers, any key.

        Raises
        ------
        LedgerTampered
            If a signature does not fit its entry, if its signer is not allowed, or if `signers` is given and a
            signature is missing.
        """
        return signature_lines(self.path, self.records(), signers)
