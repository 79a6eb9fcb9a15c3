"""The content of the entry that opens a data set in a ledger: its caps and its privacy unit, written and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, Relation, decimal_text, exact
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import read_ratio
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.run_results_person_and_purpose import one_line
from dpframework.plan.plan import Budget


def opening(
    name: str,
    *,
    epsilon: Amount,
    delta: Amount,
    reserve: Amount = 0,
    relation: Relation | str,
    verified: Amount | None,
    unit: str | PrivacyUnit | None,
    rows_per_unit: int,
    history: Amount | None = None,
    schema: Schema | None = None,
) -> dict[str, Any]:
    """Return the content of the entry that opens a data set (see `Ledger.open`).

    Raises
    ------
    InputError
        If a number, a name or the relation cannot be used. Also if `history` is given for a unit without a period, or
        is missing for a unit with a period.
    """
    cap = Budget(epsilon, delta)
    held_back = exact(reserve, "the reserve")
    if held_back > cap.delta:
        raise InputError(
            f"the reserve is {decimal_text(held_back)}; it is a part of delta, so it must be at most "
            f"{decimal_text(cap.delta)}"
        )
    protected = unit if isinstance(unit, PrivacyUnit) else PrivacyUnit(unit, rows_per_unit)
    if (history is None) != (protected.period is None):
        raise InputError(
            f"the cap protects {protected}, whose periods need a second cap over a person's whole history (history)"
            if history is None
            else f"a cap over a person's history needs a unit with a period, but this cap protects {protected}"
        )
    whole = None if history is None else Budget(history, delta).epsilon
    if whole is not None and whole < cap.epsilon:
        raise InputError(f"the cap over a person's history is {decimal_text(whole)}, below the cap of one period")
    tightness = None if verified is None else exact(verified, "the tightness")
    if tightness is not None and tightness > 1:
        raise InputError(
            f"the tightness is {decimal_text(tightness)}; it is a share of the claimed loss, so it must be at most 1"
        )
    return {
        "data_set": one_line(name, "the data set's name"),
        "relation": Relation.parse(relation).value,
        "epsilon": str(cap.epsilon),
        "delta": str(cap.delta),
        **({"reserve": str(held_back)} if held_back else {}),
        "schema": None if schema is None else schema.fingerprint,
        **({} if tightness is None else {"verified": str(tightness)}),
        **({} if protected.is_row else {"unit": protected.to_dict()}),
        **({} if whole is None else {"history": str(whole)}),
    }


def opened_data_set(content: Mapping[str, Any], time: str) -> DataSet:
    """Return the data set that an entry with this content opened at the time `time`."""
    return DataSet(
        content["data_set"],
        Relation.parse(content["relation"]),
        read_ratio(content["epsilon"]),
        read_ratio(content["delta"]),
        content["schema"],
        time,
        read_ratio(content["verified"]) if "verified" in content else None,
        PrivacyUnit(**content.get("unit", {})),
        read_ratio(content.get("reserve", 0)),
        history=read_ratio(content["history"]) if "history" in content else None,
    )
