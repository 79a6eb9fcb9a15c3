"""What a report says of a plan as a whole: its verdict, its totals, its assumptions."""

from __future__ import annotations

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy import PrivacyLoss, Relation
from dpframework.plan.graph import label_of
from dpframework.plan.nodes import Sequential
from dpframework.reports.about import About, approved_or_not
from dpframework.reports.losses import loss_text
from dpframework.reports.ran import Ran
from dpframework.study.study_plan import StudyPlan


def part_rows(plan: StudyPlan) -> list[tuple[str, dict[str, str]]]:
    """Return what each part of the study would cost alone under each accounting, and the whole plan, last."""
    root = plan.root
    parts = list(root.children) if isinstance(root, Sequential) else []
    named = [(getattr(part, "name", None) or label_of(part), part) for part in parts]
    return [
        (name, {notion: loss_text(loss) for notion, loss in plan.losses(node).items()})
        for name, node in [*named, ("the whole plan", root)]
    ]


def headlines(plan: StudyPlan, ran: Ran | None, about: About) -> list[str]:
    """Return what a reader must know first: of a run if there was one, else of the plan."""
    return [approved_or_not(plan, about)] if ran is None else ran.headlines(plan)


def is_alarming(headline: str) -> bool:
    """Tell whether a headline says that something is not as it should be: it then begins in capitals."""
    return headline.startswith(("NOT", "REFUSED", "STOPPED"))


def public_facts(plan: AccountedPlan) -> list[tuple[str, str]]:
    """Return what heads a report: the relation, the budget, and the total under each accounting."""
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
        ("relation", f"{plan.relation} ({neighbours})"),
        ("budget", loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta))),
    ]
    rows += [(f"total, {name} accounting", loss_text(loss)) for name, loss in known.items()]
    if not known:
        rows.append(("total", f"none is valid under {plan.relation}"))
    return [*rows, ("schema", _schema_text(plan)), ("plan", plan.hash)]


def _schema_text(plan: AccountedPlan) -> str:
    """Return what the plan claims of its schema."""
    facts = plan.facts
    texts = [facts.fingerprint]
    if facts.rows is not None:
        texts.append(f"public row count {facts.rows}")
    elif facts.row_bound is not None:
        texts.append(f"at most {facts.row_bound} rows")
    if facts.inferred:
        texts.append(f"inferred from private data: {', '.join(facts.inferred)}")
    return "; ".join(texts)


def assumption_rows(plan: StudyPlan) -> list[tuple[str, str, str]]:
    """Return (name, who needs it, whether the study allows it) for each assumption."""
    return [
        (name, ", ".join(steps) or "the whole plan", "yes" if name in plan.budget.allow else "no")
        for name, steps in plan.assumptions.items()
    ]
