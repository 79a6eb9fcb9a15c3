"""The facts of a plan as a whole: its headlines, its public facts, and the cost of each of its parts."""

from __future__ import annotations

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy_losses import PrivacyLoss, Relation
from dpframework.plan.nodes import Sequential
from dpframework.reports.loss_text import loss_text
from dpframework.reports.report_facts import About, describe_approval
from dpframework.reports.run_summary import RunSummary
from dpframework.study.study_plan import StudyPlan


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
    by_whom = "; ".join(filter(None, (about.ran, *(about.approvals or ())[-1:])))
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
