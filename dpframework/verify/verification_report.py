"""The findings of the verification kit on a miner, a mechanism or an accountant, with a verdict in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, final

import attrs

from dpframework.facts.privacy_losses import Relation
from dpframework.verify.accountants.accountant_total_check import AccountantReport
from dpframework.verify.mechanisms.loss_report import LossReport
from dpframework.verify.mechanisms.sampler_check import SamplerReport
from dpframework.verify.miners.audit_report import NOTHING_LOST, NOTHING_SHOWN, AuditReport, reach
from dpframework.verify.miners.delta_tail_test import TailReport
from dpframework.verify.miners.distinguisher import DistinguishingEvent
from dpframework.verify.queries.sensitivity_report import SensitivityReport
from dpframework.verify.tables.contribution_bounding_checks import BoundingReport
from dpframework.verify.tables.derived_cell_checks import DerivationReport


@final
@attrs.frozen
class ExampleAudit:
    """The findings on one example under one relation.

    Attributes
    ----------
    example
        The example's name.
    report
        The replay audit; None if the plan claims nothing under the relation.
    told_apart
        The lower bound on epsilon from many runs on the worst pair of tables, the pair with the largest loss. None if
        the audit found no such pair, or if the runs were not asked for or take too long.
    loose
        The example's reason why no run can lose all that is claimed; empty if it gives none.
    """

    example: str
    relation: Relation
    report: AuditReport | None = None
    told_apart: DistinguishingEvent | None = None
    loose: str = ""

    @property
    def claimed(self) -> bool:
        """Whether the plan claims anything under the relation."""
        return self.report is not None

    @property
    def tail(self) -> TailReport | None:
        """The tail test; None if no claim with a delta was tested."""
        return None if self.report is None else self.report.tail

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        if self.report is None:
            return True
        return self.report.passed and (self.told_apart is None or self.told_apart.epsilon <= self.report.claim)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "example": self.example,
            "relation": self.relation.value,
            "loose": self.loose,
            "claimed": self.claimed,
            "audit": None if self.report is None else self.report.to_dict(),
            "distinguished": None if self.told_apart is None else attrs.asdict(self.told_apart),
            "passed": self.passed,
        }


@final
@attrs.frozen
class Verification:
    """The findings of the kit on one miner, mechanism or accountant.

    Attributes
    ----------
    name
        The name of what was verified.
    audits
        One entry for each example and relation, even if the example claims nothing under the relation.
    sensitivities
        The reports of the searches for the sensitivities of queries.
    samplers
        One entry for each mechanism whose draws were tested.
    losses
        One entry for each comparison of a mechanism's claims with its losses.
    left_out
        Checks that were skipped or cut short: for lack of time, or because a query cannot be sent to another process.
    bounding
        Whether reading bounds the rows of each unit independently of other units; None if no column of ids names units.
    derivation
        Whether derived cells follow from their own row or unit alone; None if nothing is derived.
    accountants
        One entry for each tested accountant: a plugin's accountant that gives an example its total, or the one that
        was verified by itself.
    related_runs
        Problems of runs on schemas unlike the examples', or with other parameters: one text for each way in which such
        a run depends on more than its releases.
    """

    name: str
    audits: tuple[ExampleAudit, ...]
    sensitivities: tuple[SensitivityReport, ...]
    samplers: tuple[SamplerReport, ...]
    losses: tuple[LossReport, ...] = ()
    left_out: tuple[str, ...] = ()
    bounding: BoundingReport | None = None
    accountants: tuple[AccountantReport, ...] = ()
    derivation: DerivationReport | None = None
    related_runs: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong. If there are examples, at least one of them must claim something."""
        return next(self.problems(), None) is None

    @property
    def tightness(self) -> float:
        """The smallest tightness of the audits with a claim above 0.

        Tightness is the share of a claim that a search reached.

        If no audit has a claim above 0, this is the smallest tightness of the comparisons of losses with claims. NaN if
        there are no comparisons.
        """
        audits = [one.report.tightness for one in self.audits if one.report is not None and one.report.claim]
        return min(audits or [compared.tightness for compared in self.losses], default=math.nan)

    @property
    def verdict(self) -> str:
        """A sentence that says whether every claim held, and the least share of a claim that a search reached."""
        if not self.passed:
            return "A CLAIM DOES NOT HOLD"
        if self.accountants and not self.audits and not self.losses:
            return "every claim held"  # accountants are not searched for a largest loss
        if unseen := [one for one in self.audits if one.report and one.report.showed_nothing]:
            where = ", ".join(f"{one.example} under {one.relation}" for one in unseen)
            return NOTHING_SHOWN if len(unseen) == len(self.audits) else f"for {where}, {NOTHING_SHOWN}"
        if self.audits and not any(one.report and one.report.claim for one in self.audits):
            return f"every claim held; {NOTHING_LOST}"
        least = next((one for one in self.audits if one.report and one.report.tightness == self.tightness), None)
        where = "" if least is None or len(self.audits) == 1 else f" ({least.example}, {least.relation})"
        loose = f"; this claim is loose: {least.loose}" if least is not None and least.loose else ""
        return f"every claim held; {reach(self.tightness)}{where}{loose}"

    def problems(self) -> Iterator[str]:
        """Yield a text for each problem that was found, with the tables that show it if there are any."""
        if self.audits and not any(audited.claimed for audited in self.audits):
            yield "no example claims a finite epsilon, so there is nothing to replay"
        for audited in self.audits:
            where = f"{audited.example}, {audited.relation}: "
            if audited.report is not None:
                yield from (where + str(violation) for violation in audited.report.violations)
                if audited.told_apart is not None and audited.told_apart.epsilon > audited.report.claim:
                    yield where + str(audited.told_apart)
        yield from (f"{one.relation}: {one}" for one in self.sensitivities if not one.passed)
        yield from self.related_runs
        yield from (str(one) for one in self.samplers if not one.passed)
        yield from (str(one) for one in self.losses if not one.passed)
        yield from (str(one) for one in self.accountants if not one.passed)
        yield from () if self.bounding is None else self.bounding.violations
        yield from () if self.derivation is None else self.derivation.violations

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "verified": self.name,
            "passed": self.passed,
            "verdict": self.verdict,
            "tightness": self.tightness if math.isfinite(self.tightness) else None,
            "audits": [one.to_dict() for one in self.audits],
            "sensitivities": [one.to_dict() for one in self.sensitivities],
            "related_runs": list(self.related_runs),
            "samplers": [one.to_dict() for one in self.samplers],
            "losses": [one.to_dict() for one in self.losses],
            "left_out": list(self.left_out),
            "bounding": None if self.bounding is None else self.bounding.to_dict(),
            "derivation": None if self.derivation is None else self.derivation.to_dict(),
            "accountants": [one.to_dict() for one in self.accountants],
        }
