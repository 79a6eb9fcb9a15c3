"""The list of a report's sections. It is the same in HTML, in Markdown and on a terminal.

To add a section, write a function that returns it and put the function in `SECTIONS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias, final

import attrs

from dpframework.checks import check_page
from dpframework.facts.privacy_losses import PrivacyLoss, readable
from dpframework.formulas.mathml_writer import shape_mathml
from dpframework.formulas.score_structures import Shape
from dpframework.plan.node_kind_table import KINDS
from dpframework.reports import section_blocks
from dpframework.reports.attribute_losses import AttributeLoss, losses_by_attribute
from dpframework.reports.epsilon_as_odds import certainty_gains
from dpframework.reports.html_plan_drawing import plan_on_page
from dpframework.reports.plan_and_node_losses import loss_text
from dpframework.reports.plan_tree_with_losses import NodeRow, node_tree
from dpframework.reports.planned_result_rows import ResultRow, merge, result_rows, size_sentence
from dpframework.reports.report_headlines import (
    About,
    attribute_rows,
    part_rows,
    public_facts,
    stated_row_number,
    verdict_facts,
)
from dpframework.reports.run_summary import RunSummary
from dpframework.reports.section_blocks import Paragraph, SectionBlock, TableBlock
from dpframework.reports.spend_block_table import block_table
from dpframework.reports.step_row import NONE, StepRow, step_rows
from dpframework.reports.step_table import PlacedStep, StepTable
from dpframework.reports.text_plan_drawings import tree
from dpframework.study.plugin_registry import registry
from dpframework.study.study_plan_totals_and_findings import StudyPlan

MOST_CELLS = 30  # the most rows or columns of a heat map; a larger matrix is shown as text only


@final
@attrs.frozen
class Section:
    """A section of a report.

    Attributes
    ----------
    id
        The section's anchor on a page. It is unique in a report and made of letters, digits and hyphens.
    title
        The heading of the section.
    blocks
        The contents of the section.
    """

    id: str
    title: str
    blocks: tuple[SectionBlock, ...] = attrs.field(converter=tuple[SectionBlock, ...])


@final
@attrs.frozen(eq=False)
class PlanFacts:
    """The facts that the sections of a report show about a plan, without facts about a run.

    Each fact is worked out only once, even if reports before and after a run both show the fact.
    """

    plan: StudyPlan

    @functools.cached_property
    def top(self) -> NodeRow:
        """The top node of the plan, with its cost and all nodes below it."""
        return node_tree(self.plan)

    @functools.cached_property
    def tree(self) -> str:
        """The plan as a tree of text."""
        return tree(self.plan)

    @functools.cached_property
    def parts(self) -> list[tuple[str, dict[str, str]]]:
        """The cost of each part of the study, and finally the cost of the whole plan (see `part_rows`)."""
        return part_rows(self.plan)

    @functools.cached_property
    def results(self) -> tuple[ResultRow, ...]:
        """The planned results of the study."""
        return tuple(result_rows(self.plan))

    @functools.cached_property
    def steps(self) -> list[StepRow]:
        """The facts of the steps, in the order of `StudyPlan.placed_steps`."""
        return step_rows(self.plan)

    @functools.cached_property
    def attributes(self) -> tuple[AttributeLoss, ...]:
        """For each attribute, the loss of the releases that may read it."""
        return tuple(losses_by_attribute(self.plan))

    @functools.cached_property
    def findings(self) -> tuple[section_blocks.ExplainedFinding, ...]:
        """The findings, with the titles of their checks. A check's first finding also has the check's documentation."""
        titles = {check.code: check.title for check in registry().checks}
        told: set[str] = set()  # the codes of the checks whose documentation a finding already has
        explained = []
        for finding in self.plan.check():
            page = None if finding.code in told else check_page(finding.code)
            told.add(finding.code)
            names = () if page is None else ("What it finds", "Why it matters", "How to fix it")
            parts = tuple((name, text) for name in names if page is not None and (text := page.section(name)))
            explained.append(section_blocks.ExplainedFinding(finding, titles.get(finding.code, ""), parts))
        return tuple(explained)


@final
@attrs.frozen
class ReportSubject:
    """The plan or the run that a report is about.

    Attributes
    ----------
    facts
        The plan with its facts.
    run
        The summary of the run; None before a run.
    about
        The facts that the plan does not hold.
    """

    facts: PlanFacts
    run: RunSummary | None
    about: About

    @functools.cached_property
    def plan(self) -> StudyPlan:
        """The plan that the report is about."""
        return self.facts.plan

    @functools.cached_property
    def release_counts(self) -> Mapping[str, int]:
        """How often each step was released, by the path of the step. Empty before a run."""
        return {} if self.run is None else self.run.release_counts(self.plan)


#: A function that returns a section of a report on a subject, or None if there is nothing to say.
SectionMaker: TypeAlias = Callable[[ReportSubject], Section | None]


def report_sections(subject: ReportSubject) -> list[Section]:
    """Return the sections of a report, in order."""
    return [section for make in SECTIONS if (section := make(subject)) is not None]


def _publish(subject: ReportSubject) -> Section:
    plan = subject.plan
    total, costs = plan.smallest_total(), plan.run_costs()
    whole = "No total is valid." if total is None else f"All results together cost at most {loss_text(total)}."
    results, left_out = tuple(merge(subject.facts.results)), plan.unit.left_out(per_unit=plan.facts.per_unit)
    found: list[SectionBlock] = [section_blocks.PublishedResults(results, whole, size_sentence(plan), left_out)]
    if costs:
        caption = "The time and memory of results, computed from the plan. Reading and holding the rows is not counted."
        rows = [(name, cost.text) for name, cost in costs.items()]
        found.append(TableBlock(("result", "time and memory"), rows, caption))
    return Section("published", "What is published", found)


def _meaning(subject: ReportSubject) -> Section:
    plan = subject.plan
    found = certainty_gains(plan.smallest_total(), plan.relation, plan.unit)
    title = "What somebody could learn about one person"
    return Section("meaning", title, [section_blocks.LearnedShares(tuple(found), str(plan.unit))])


def _who(subject: ReportSubject) -> Section:
    facts = (*public_facts(subject.plan), *verdict_facts(subject.plan, subject.about))
    total = subject.plan.smallest_total()
    amounts: list[tuple[str, Fraction | None]] = [("budget", subject.plan.budget.epsilon)]
    amounts.append(("planned", None if total is None else total.epsilon))
    if subject.run is not None:
        amounts.append(("spent", subject.run.epsilon))
    largest = max(amount for _, amount in amounts if amount is not None)
    gauges = tuple(
        section_blocks.Gauge(
            name, "no finite epsilon" if amount is None else readable(amount), float((amount or 0) / largest)
        )
        for name, amount in amounts
    )
    return Section("who", "Who is protected, and what this is about", [section_blocks.SummaryBlock(facts, gauges)])


def _results(subject: ReportSubject) -> Section | None:
    if subject.run is None:
        return None
    found: list[SectionBlock] = []
    for number, (name, text) in enumerate(subject.run.texts.items(), start=1):
        matrices = subject.run.matrices.get(name, ())
        small = tuple(matrix for matrix in matrices if max(len(matrix.rows), len(matrix.columns)) <= MOST_CELLS)
        found.append(section_blocks.ResultText(number, name, text, small, mapped=0 < len(small) == len(matrices)))
    return Section("results", "Results", found or [Paragraph("No miner finished.")])


def _findings(subject: ReportSubject) -> Section:
    return Section("findings", "Findings", [section_blocks.FindingList(subject.facts.findings)])


def _plan(subject: ReportSubject) -> Section:
    plan = subject.plan
    root = plan_on_page(plan, subject.facts.top, subject.run, subject.release_counts)
    kinds = {placed.kind.name for placed in plan.index.nodes}
    rules = {kind.name: kind.rule[plan.relation] for kind in KINDS.values() if kind.name in kinds}
    return Section(
        "plan",
        "Plan",
        [section_blocks.PlanDrawing(subject.facts.tree, root, rules, str(plan.relation), len(plan.totals()))],
    )


def _steps(subject: ReportSubject) -> Section:
    plan, release_counts = subject.plan, subject.release_counts
    sources: dict[str, list[int]] = {}
    formulas: dict[Shape, list[int]] = {}
    by_path = dict(plan.placed_steps())
    groups: dict[str, list[PlacedStep]] = {}
    for number, node in enumerate([n for n in subject.facts.top.walk() if n.step is not None], start=1):
        row = node.step
        assert row is not None
        if row.source != NONE:
            sources.setdefault(row.source, []).append(number)
        for one in by_path[row.path].facts.formulas:
            formulas.setdefault(one.shape, []).append(number)
        source = f"S{list(sources).index(row.source) + 1}" if row.source in sources else ""
        # A loss that the row rounds is shown as a ratio, too, unless the ratio is too long to read.
        amounts = dict(node.exact)
        ratio = next((amounts[notion] for notion in ("epsilon", "rho") if row.loss.startswith(f"{notion} ~")), None)
        ratio = ratio if len(str(ratio)) <= 24 else None
        step = PlacedStep(number, node.number, row, ratio, source, release_counts.get(row.path, 0))
        groups.setdefault(row.path.partition("/")[0] if "/" in row.path else "", []).append(step)
    table = StepTable(
        tuple((name, tuple(steps)) for name, steps in groups.items()),
        tuple((f"S{k}", text, tuple(steps)) for k, (text, steps) in enumerate(sources.items(), start=1)),
        tuple((row, release_counts.get(row.path, 0)) for row in subject.facts.steps),
        subject.run is not None,
        str(plan.relation),
        "" if plan.unit.is_row else str(plan.unit),
        tuple((shape.text, shape_mathml(shape), tuple(steps)) for shape, steps in formulas.items()),
        plan.verified is not None,
    )
    return Section("steps", "Steps", [table])


def _spend_blocks(subject: ReportSubject) -> Section | None:
    table = block_table(subject.plan, None if subject.run is None else subject.run.charges)
    return None if table is None else Section("blocks", "Spend blocks", [table])


def _attributes(subject: ReportSubject) -> Section:
    return Section("attributes", "Loss by attribute", [section_blocks.AttributeLosses(subject.facts.attributes)])


def _schema(subject: ReportSubject) -> Section | None:
    schema = subject.about.known(subject.plan)
    if schema is None:
        return None
    numbers = {"": schema.rows, "at most ": schema.max_rows, "about ": schema.about_rows}
    known = [f"{how}{number:,} rows" for how, number in numbers.items() if number is not None]
    number = f"It has {', '.join(known)}." if known else "Nothing is public about the number of rows."
    inferred = f" Inferred from private data: {'; '.join(schema.inferred)}." if schema.inferred else ""
    options, columns = schema.in_files.read, schema.derivation
    read = f" Its files are read with {', '.join(options.option_lines())}." if not options.is_plain else ""
    derived = f" Derived columns: {'; '.join(column.definition for column in columns)}." if columns else ""
    caption = f"What anyone may know of the table. {number}{inferred}{read}{derived}"
    return Section("schema", "Schema", [TableBlock(("attribute", "kind", "values"), attribute_rows(schema), caption)])


def _accounting(subject: ReportSubject) -> Section:
    plan = subject.plan
    parts = subject.facts.parts
    notions = list(parts[-1][1])
    budget = loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta))
    caption = f"The cost of each part of the study alone, and of the whole plan. The budget is {budget}."
    rows = [(name, *losses.values()) for name, losses in parts]
    found: list[SectionBlock] = [TableBlock(("part", *notions), rows, caption, sums=True, alike=True)]
    if len(notions) > 1:
        found.append(
            Paragraph(
                "Pure epsilons compose as the plan says. Epsilons at a delta do not add up to the last row, since each "
                "row is composed first and converted afterwards. The budget must cover the smallest total.",
                aside=True,
            )
        )
    return Section("accounting", "Totals under each accounting", found)


def _assumptions(subject: ReportSubject) -> Section:
    allowed = subject.plan.budget.allow
    rows = [
        (name, ", ".join(steps) or "the whole plan", "yes" if name in allowed else "no")
        for name, steps in subject.plan.assumptions.items()
    ]
    heads, caption = (
        ("assumption", "needed by", "allowed by name"),
        "The privacy claims need these assumptions beyond their theorems.",
    )
    stated = stated_row_number(subject.plan.facts)
    found: list[SectionBlock] = [TableBlock(heads, rows, caption)] if rows else []
    if stated or not rows:
        found.append(Paragraph(f"The claims need that {stated}." if stated else "None."))
    return Section("assumptions", "Assumptions", found)


def _run(subject: ReportSubject) -> Section | None:
    run = subject.run
    if run is None:
        return None
    *parts, (name, whole) = subject.facts.parts
    counted = [str(sum(path.partition("/")[0] == part for path in run.charges)) for part, _ in parts]
    rows = [
        (part, losses.get(run.accounting, NONE), releases, NONE)
        for (part, losses), releases in zip(parts, counted, strict=True)
    ]
    rows.append((name, whole.get(run.accounting, NONE), str(len(run.charges)), run.spent))
    heads = ("part", f"planned at most, {run.accounting} accounting", "releases", "spent")
    caption = "What was planned, and what the run spent. The table of steps says how often each step was released."
    found: list[SectionBlock] = [TableBlock(heads, rows, caption, sums=True, alike=True)]
    if run.period is not None:
        found.append(Paragraph(f"The run read the rows of {run.period}."))
    if run.run is not None:
        found.append(Paragraph(f"Recorded in a ledger as run {run.run}; the ledger's head after it is {run.head}."))
    early = "The loss spent is known for the whole run only. It is less than planned if branches ended early."
    found.append(Paragraph(early, aside=True))
    if run.charges:
        found.append(section_blocks.ChargeList(run.charges))
    return Section("run", "Charges of the run", found)


#: The sections of a report, in order.
SECTIONS: tuple[SectionMaker, ...] = (
    _publish,
    _meaning,
    _who,
    _results,
    _findings,
    _plan,
    _steps,
    _spend_blocks,
    _attributes,
    _schema,
    _accounting,
    _assumptions,
    _run,
)
