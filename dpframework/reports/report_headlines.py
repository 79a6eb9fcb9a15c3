"""The facts of a report about a plan as a whole. Some of them are not in the plan, such as the approval.

The headlines are what a reader needs first. The brief is a few sentences on whom the plan protects, what it costs and
what it assumes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.checks import Severity
from dpframework.checks.weak_protection_checks import ONE_ROW_PER_PERSON
from dpframework.facts.privacy_losses import PrivacyLoss, Relation
from dpframework.facts.privacy_unit import ROWS_ASSERTED
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import as_texts
from dpframework.plan.nodes import Sequential
from dpframework.plan.plan import Plan, PublicFacts
from dpframework.reports.plan_and_node_losses import loss_text
from dpframework.study.results import Results, now
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.version import __version__

if TYPE_CHECKING:
    from dpframework.reports.run_summary import RunSummary


@final
@attrs.frozen
class About:
    """The facts of a report that the plan does not hold.

    Attributes
    ----------
    schema
        The plan's schema; None if the plan was read from a file, which holds no schema.
    data
        The names of the study's data files, as the study file writes them.
    time
        The time of the run; before a run the time of the report.
    version
        The version of dpframework that ran the plan; before a run the version that wrote the report.
    approvals
        One sentence for each approval of the plan, saying who gave it. None if no ledger was asked.
    ledger_facts
        Sentences on who signs the ledger's entries, and on what the ledger says about the data set.
    ran
        Who ran the plan, when and what for, according to a ledger; empty if no ledger was asked.
    counting_summary
        A sentence on which database evaluated counts and how much was asked of it. None if no database did.
    """

    schema: Schema | None = None
    data: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    time: str = attrs.field(factory=now)
    version: str = __version__
    approvals: tuple[str, ...] | None = None
    ledger_facts: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    ran: str = ""
    counting_summary: str | None = None

    @classmethod
    def of(cls, results: Results) -> About:
        """Return the facts that the results of a run hold."""
        return cls(
            results.plan.schema, results.data, results.time, results.version, counting_summary=results.counting_summary
        )

    def known(self, plan: Plan) -> Schema | None:
        """Return the schema of a plan, or None if neither the plan nor these facts hold it.

        Raises
        ------
        InputError
            If `schema` is not the schema of the plan.
        """
        if plan.schema is not None or self.schema is None:
            return plan.schema
        plan.require_schema(self.schema)
        return self.schema


def part_rows(plan: StudyPlan) -> list[tuple[str, dict[str, str]]]:
    """Return the cost of each part of the study alone, and finally the cost of the whole plan.

    Each row is the name of a part, and a dict that gives the part's losses in words by the name of the accounting.
    """
    top = plan.index.nodes[0]
    parts = plan.index.children(top) if isinstance(top.node, Sequential) else ()
    named = [(part.name or part.label, part.node) for part in parts]
    return [
        (name, {notion: loss_text(loss) for notion, loss in plan.losses(node).items()})
        for name, node in [*named, ("the whole plan", top.node)]
    ]


def headlines(plan: StudyPlan, ran: RunSummary | None, about: About) -> list[str]:
    """Return the facts that a reader needs first, about the run if there was one, else about the plan."""
    if ran is None:
        return [describe_approval(plan, about)]
    # If the ledger did not charge this run, the plan's approval is left out, since it would seem to cover the run.
    approved = () if is_alarming(about.ran) else (about.approvals or ())[-1:]
    by_whom = "; ".join(filter(None, (about.ran, *approved)))
    return [*ran.headlines(plan), *([by_whom] if by_whom else [])]


def is_alarming(headline: str) -> bool:
    """Tell whether a headline reports a problem. Such headlines begin with a word in capitals."""
    return headline.startswith(("NOT", "REFUSED", "STOPPED", "OPEN"))


def public_facts(plan: AccountedPlan) -> list[tuple[str, str]]:
    """Return the facts at the head of a report, each as a name and a text.

    The facts are the unit, the relation, the budget, the totals, the schema and the hash of the plan.
    """
    neighbours = {
        Relation.ADD_OR_REMOVE_ONE: "tables that differ by one row's presence",
        Relation.REPLACE_ONE: "tables of one public size that differ in one row",
    }[plan.relation]
    if not plan.unit.is_row:
        neighbours = {
            Relation.ADD_OR_REMOVE_ONE: "tables that differ by one unit's presence",
            Relation.REPLACE_ONE: "tables of one public number of units that differ in one unit",
        }[plan.relation]
    known = plan.totals()
    rows = [
        ("protects", str(plan.unit)),
        *([("does not protect", plan.unit.gap)] if plan.unit.gap else []),
        ("relation", f"{plan.relation} ({neighbours})"),
        ("budget", loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta))),
    ]
    rows += [(f"total, {name} accounting", loss_text(loss)) for name, loss in known.items()]
    if not known:
        rows.append(("total", f"none is valid under {plan.relation}"))
    facts = plan.facts
    texts = [facts.fingerprint]
    if facts.rows is not None:
        texts.append(f"public row count {facts.rows}")
    elif facts.row_bound is not None:
        texts.append(f"at most {facts.row_bound} rows")
    if facts.inferred:
        texts.append(f"inferred from private data: {', '.join(facts.inferred)}")
    if facts.read:
        texts.append(f"files are read with {', '.join(facts.read)}")
    if facts.derive:
        texts.append(f"derived: {', '.join(facts.derive)}")
    return [*rows, ("schema", "; ".join(texts)), ("plan", plan.hash)]


def verdict_facts(plan: StudyPlan, about: About) -> list[tuple[str, str]]:
    """Return facts on the data, the engine, the date, the version, the verification of the code, and the approval.

    The facts also say who ran the plan and what a ledger holds, if that is known. If the plan was made from a study
    file, the place of the data is taken from the plan, since an approval covers that place.
    """
    verified = ["not shown; give a file of 'verify --record' with --verified"]
    if plan.verified is not None:
        from dpframework.plan.verification_records_file import code_verdicts

        verified = [str(one) for one in code_verdicts(plan, plan.verified)]
    approved = ["not shown; name a ledger with --ledger and --data-set"]
    if about.approvals is not None:
        approved = list(about.approvals) or ["nobody has approved this plan"]
    return [
        ("data", ", ".join(plan.data or about.data) or "not named in the plan"),
        *([] if plan.engine is None else [("engine", f"counts are evaluated at {plan.engine}")]),
        *([] if about.counting_summary is None else [("counted by", about.counting_summary)]),
        ("date", about.time),
        ("dpframework", about.version),
        *(("verification", text) for text in verified),
        *(("approval", text) for text in approved),
        *([("run", about.ran)] if about.ran else []),
        *(("ledger", text) for text in about.ledger_facts),
    ]


def attribute_rows(schema: Schema) -> list[tuple[str, str, str]]:
    """Return the name, the kind and the public domain of each attribute of a schema."""
    rows = []
    for attribute in schema:
        view = "" if attribute.view is None else f", {attribute.view} view"
        rows.append((attribute.name, f"{type(attribute).__name__.lower()}{view}", attribute.domain_text))
    return rows


def describe_approval(plan: StudyPlan, about: About) -> str:
    """Say in one sentence whether a plan may be run, and whether somebody has approved it."""
    codes = dict.fromkeys(finding.code for finding in plan.check() if finding.severity is Severity.ERROR)
    if codes:
        return f"REFUSED: the plan cannot be run; see {', '.join(codes)} among the findings"
    if about.approvals:
        return f"Checks passed; {about.approvals[-1]}"
    return "Checks passed; not yet approved" if about.approvals is not None else "Checks passed; no approval is shown"


#: Assumptions in words, as the end of a sentence, by their names.
_PLAIN = {
    "mcmc-converged": "that a Markov chain has come close to its target",
    "real-arithmetic": "that noise in floating point is as good as in real numbers",
    "rows-from-query": "that a query computes each of its rows from one unit's rows only",
    "row-count-public": "that the number of rows may be known",
}


def stated_row_number(facts: PublicFacts) -> str | None:
    """Return a clause on the owner's statement of the number of rows, or its bound; None if there is no statement."""
    if facts.row_bound is None:
        return None
    return f"the table has {'at most ' if facts.rows is None else ''}{facts.row_bound:,} rows, as the owner states"


def brief(plan: StudyPlan) -> str:
    """Return a few sentences on one line about whom a plan protects, its cost and its assumptions."""
    total = plan.smallest_total()
    allowed = loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta))
    cost = "It has no valid total." if total is None else f"It costs {loss_text(total)}; {allowed} is allowed."
    unit = plan.unit
    who, share = unit.who, unit.share
    if unit.is_row and ONE_ROW_PER_PERSON in plan.budget.allow:
        who, share = "each person", "Nobody has a second row, as the owner states."
    facts = plan.facts
    assumed = [_PLAIN.get(name, f"'{name}'") for name in plan.assumptions if name != ROWS_ASSERTED]  # `share` says it
    if stated := stated_row_number(facts):
        assumed.append(f"that {stated}")
    rests = f"It assumes {', '.join(assumed)}." if assumed else "It assumes nothing but correct code."
    gap = f" {unit.gap[0].upper()}{unit.gap[1:]}." if unit.gap else ""
    own, exist = ("its", "it is") if who == "each row" else ("their", "they are")
    hidden = {
        Relation.ADD_OR_REMOVE_ONE: f"{own} values, and whether {exist} in the table",
        Relation.REPLACE_ONE: f"{own} values, but not that {exist} in the table",
    }[plan.relation]
    return f"This plan protects {who}: {hidden}. {share} {cost} {rests}{gap}"
