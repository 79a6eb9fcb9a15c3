"""The verification kit's checks as assertions, for a plugin author's own tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dpframework.facts.privacy_losses import Amount, Relation
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.mechanisms import Mechanism
from dpframework.queries import Query
from dpframework.run.miner_base_and_examples import Miner, Witness
from dpframework.tables.derived_column_cells import with_derived
from dpframework.verify.mechanisms.loss_claim_check import check_losses
from dpframework.verify.mechanisms.loss_report import LossReport
from dpframework.verify.mechanisms.neighbour_answers import Answers
from dpframework.verify.mechanisms.probe_query_answers import Probe
from dpframework.verify.mechanisms.sampler_check import SamplerReport, check_sampler
from dpframework.verify.miners.audit_report import AuditReport, reach
from dpframework.verify.miners.distinguisher import DistinguishingEvent, distinguish
from dpframework.verify.miners.replay_audit import audit
from dpframework.verify.queries.sensitivity_report import SensitivityReport
from dpframework.verify.queries.sensitivity_search import search_sensitivity
from dpframework.verify.tables.contribution_bounding_checks import BoundingReport, UnitReader, check_bounding
from dpframework.verify.tables.derived_cell_checks import DerivationReport, Deriving, check_derivation
from dpframework.verify.tables.row_independence_checks import Reader, ReadingReport, check_reading
from dpframework.verify.tables.unit_derivation_checks import Aggregating, columns_of_units


def assert_private(
    miner: Miner,
    schema: Schema,
    relation: Relation | str,
    *,
    delta: Amount = 0,
    replays: int = 12_000,
    seed: int = 0,
    min_tightness: float = 0.0,
    witnesses: Sequence[Witness] = (),
    unit: PrivacyUnit = ROW,
) -> AuditReport:
    """Fail if a replay audit finds that a miner breaks its plan, or loses more than the plan claims (see `audit`).

    It also fails if the largest loss found is less than the share `min_tightness` of a pure claim.

    Raises
    ------
    AssertionError
        With the violations and small tables that show them, or with the share of the claim that was reached.
    """
    report = audit(miner, schema, relation, delta=delta, replays=replays, seed=seed, witnesses=witnesses, unit=unit)
    assert report.passed, "\n".join(map(str, report.violations))
    if not report.delta:
        _assert_tight(f"{miner.name} under {report.relation}", report.tightness, min_tightness, "replays or witnesses")
    return report


def _assert_tight(what: str, tightness: float, least: float, more: str) -> None:
    """Fail if a search reached a smaller share of a claim than `least`. `more` names what would make a search longer.

    A claim of 0 has no share to reach, and its tightness is NaN.
    """
    assert math.isnan(tightness) or tightness >= least, (
        f"{what}: {reach(tightness)}. {least:.0%} is required; give more {more}, claim less, or lower "
        "min_tightness, with the reason in a comment"
    )


def assert_sensitivity_holds(
    query: Query,
    schema: Schema,
    relation: Relation | str,
    *,
    inputs: Mapping[str, Any] | None = None,
    pairs: int = 3_000,
    min_tightness: float = 0.0,
) -> SensitivityReport:
    """Fail if a query's answer changes by more than it declares (see `search_sensitivity`).

    It also fails if the largest change found is less than the share `min_tightness` of one of the declared
    sensitivities.

    Raises
    ------
    AssertionError
        With the tables that show the change, or with the share of the sensitivity that was reached.
    """
    report = search_sensitivity(query, schema, relation, inputs=inputs, pairs=pairs)
    assert report.passed, str(report)
    _assert_tight(f"{report.query} under {report.relation}", report.tightness, min_tightness, "pairs")
    return report


def assert_loses_as_claimed(
    mechanism: Mechanism, *, given: Sequence[Answers] | None = None, min_tightness: float = 0.0
) -> LossReport:
    """Fail if a mechanism's own log-density shows a larger loss than it claims (see `check_losses`).

    It also fails if the losses are less than the share `min_tightness` of what the mechanism claims.

    Raises
    ------
    AssertionError
        With the claims that do not hold, or with the share of the claim that was reached.
    """
    report = check_losses(mechanism, given=given)
    assert report.passed, str(report)
    _assert_tight(report.mechanism, report.tightness, min_tightness, "answers")
    return report


def assert_samples_as_stated(
    mechanism: Mechanism, *, given: Sequence[Probe] | None = None, draws: int = 2_000
) -> SamplerReport:
    """Fail if a mechanism does not draw from the distribution that it states (see `check_sampler`).

    Raises
    ------
    AssertionError
        With the problems, one sentence for each.
    """
    report = check_sampler(mechanism, given=given, draws=draws)
    assert report.passed, str(report)
    return report


def assert_not_told_apart(
    one: Callable[[int], Any],
    other: Callable[[int], Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 4_000,
) -> DistinguishingEvent:
    """Fail if runs on two neighbouring tables prove a larger epsilon than claimed (see `distinguish`).

    Raises
    ------
    AssertionError
        With the set of outputs that proves it.
    """
    told_apart = distinguish(one, other, runs=runs, delta=delta)
    assert told_apart.epsilon <= epsilon, f"epsilon {epsilon:g} is claimed, but {told_apart}"
    return told_apart


def assert_read_row_by_row(
    schema: Schema, *, readers: Iterable[Reader] | None = None, tables: int = 200, seed: int = 0
) -> ReadingReport:
    """Fail if one row changes how another row is read, or whether it is read (see `check_reading`).

    Raises
    ------
    AssertionError
        With made-up cells that are read differently if one more row is there.
    """
    report = check_reading(schema, readers=readers, tables=tables, seed=seed)
    assert report.passed, str(report)
    return report


def assert_derived_row_by_row(
    schema: Schema,
    *,
    deriving: Deriving = with_derived,
    aggregating: Aggregating = columns_of_units,
    tables: int = 60,
    seed: int = 0,
) -> DerivationReport:
    """Fail if a derived cell does not follow from its own row or unit, or leaves its domain (see `check_derivation`).

    Raises
    ------
    AssertionError
        With the violations, one sentence for each.
    """
    report = check_derivation(schema, deriving=deriving, aggregating=aggregating, tables=tables, seed=seed)
    assert report.passed, str(report)
    return report


def assert_bounded(
    schema: Schema, unit: PrivacyUnit, *, readers: Iterable[UnitReader] | None = None, tables: int = 9
) -> BoundingReport:
    """Fail if one more unit adds more rows than it may, or changes which rows other units keep (see `check_bounding`).

    Raises
    ------
    AssertionError
        With the names of the reader and of the table for which this happens.
    """
    report = check_bounding(schema, unit, readers=readers, tables=tables)
    assert report.passed, str(report)
    return report
