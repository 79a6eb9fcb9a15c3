"""The audit of a ledger. It checks for each entry whether dpframework would have made it at that point."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dpframework.accountant import PlanCharge
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.entry_hash_chain import Entry, Head, LedgerTampered
from dpframework.ledger.ledger_state import Records
from dpframework.ledger.outside_releases import charge_of_outside
from dpframework.ledger.run_results_person_and_purpose import recorded_results
from dpframework.plan.plan import Plan, hash_of
from dpframework.plan.plan_reader import plan_from_json
from dpframework.study.plugin_registry import registry


def audit_entries(path: Path, entries: Sequence[Entry], head: str | None, runs: Mapping[str, str]) -> Head:
    """Check that each run was approved and fitted the cap, and return the last entry's head (see `Ledger.verify`).

    Raises
    ------
    LedgerTampered
        If dpframework would not have made one of the entries (the message names it), or if a given head or run is
        missing.
    """
    records = Records(path)
    for entry in entries:
        records.require_form(entry)
        try:
            content = entry.content
            if entry.kind == "plan":
                claims = {key: value for key, value in content["plan"].items() if key != "hash"}
                if hash_of(claims) != content["plan"]["hash"]:
                    raise PlanRefused("the plan does not fit its hash")
            records.require_possible(entry)
            if entry.kind == "run":
                _require_same_amount(records.data_set(content["data_set"]), content)
            if entry.kind == "outside":
                due = charge_of_outside(records.data_set(content["data_set"]).budget, content)
                if content.get("amount") != due.get("amount"):
                    raise PlanRefused("what was charged is not the epsilon of its release")
        except (KeyError, TypeError, AttributeError, ValueError, PlanRefused) as error:
            reason = str(error) if isinstance(error, PlanRefused) else f"its content does not fit kind '{entry.kind}'"
            raise records.not_made(entry, reason) from None
        records.add(entry)
    if not entries:
        raise LedgerTampered(f"{path}: the first entry is missing")
    known = {entry.hash for entry in entries}
    if head is not None and head not in known:
        raise LedgerTampered(
            f"{path}: no entry has the hash {head}; the ledger was cut or rewritten, or is another ledger"
        )
    for run, noted in runs.items():
        if not records.has_run(run):
            raise LedgerTampered(
                f"{path}: run {run} is gone; the ledger was replaced by an older copy, or is another ledger"
            )
        if noted not in known:
            raise LedgerTampered(
                f"{path}: the last entry of run {run} is gone; the ledger was replaced by an older copy, or rewritten"
            )
    return entries[-1].head


def noted_heads(results: Mapping[Path, Mapping[str, Any]]) -> dict[str, str]:
    """Return, for the id of each run that some results name, the ledger's head that these results hold.

    Parameters
    ----------
    results
        The content of each file of results, by its path.

    Raises
    ------
    InputError
        If results are of a run that no ledger records, or two different results claim one run.
    """
    of_run: dict[str, Mapping[str, Any]] = {}
    for path, form in results.items():
        run = form.get("run")
        if run is None or form.get("head") is None:
            raise InputError(f"{path}: these results are of a run that no ledger records")
        if of_run.setdefault(run, form) != form:
            raise InputError(f"{path}: these results are of run {run}, and so are others that differ from them")
    return {run: form["head"] for run, form in of_run.items()}


def require_recorded(records: Records, results: Mapping[Path, Mapping[str, Any]]) -> None:
    """Refuse results that name a run of another plan, or releases that the run was not charged for.

    Raises
    ------
    LedgerTampered
        If there are such results. The message names them.
    """
    for path, form in results.items():
        why = records.misfit(form["run"], form["plan"], form["charges"])
        if why:
            raise LedgerTampered(f"{path}: these results are not of the run that they name: {why}")


def _require_same_amount(data_set: DataSet, content: Mapping[str, Any]) -> None:
    """Refuse a charge that differs from its plan's total. If the plan cannot be read, the charge is not checked."""
    mechanisms = [brought.component for brought in registry().mechanisms.values()]
    try:
        plan = plan_from_json(json.dumps(data_set.plans[content["plan"]]), mechanisms, kind=Plan)
    except InputError:  # a plugin that the plan uses is not installed, or has another version
        return
    amount = PlanCharge.from_dict(content["amount"])
    due = attrs.evolve(data_set.budget, order=amount.order).plan_charge(plan)
    if "period" in content:
        own = PlanCharge.from_dict(content["of_period"])
        of_period = attrs.evolve(data_set.of_period(content["period"]), order=own.order).plan_charge(plan)
        if (of_period.pure, of_period.delta, of_period.rdp if own.order else None) != (own.pure, own.delta, own.rdp):
            raise PlanRefused("what was charged to its period is not the total of its plan")
    if (due.pure, due.delta, due.rdp if amount.order else None) != (amount.pure, amount.delta, amount.rdp):
        raise PlanRefused("what was charged is not the total of its plan")
    if "results" in content and content["results"] != [result.to_dict() for result in recorded_results(plan)]:
        raise PlanRefused("its results are not the results of its plan")
