"""The report in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dpframework.checks import Severity
from dpframework.reports.about import About, brief, verdict_facts
from dpframework.reports.drawing import tree
from dpframework.reports.facts import assumption_rows, headlines, part_rows, public_facts
from dpframework.reports.losses import loss_text
from dpframework.reports.meaning import PRIORS, learned, share_text
from dpframework.reports.ran import Ran, told_of
from dpframework.reports.reads import losses_by_attribute
from dpframework.reports.steps import step_rows
from dpframework.reports.summary import result_rows
from dpframework.study.results import Results
from dpframework.study.study_plan import StudyPlan

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$])")


def cell(text: str) -> str:
    r"""Escape a text for a table's cell: it shows as it is, on one line.

    Examples
    --------
    >>> print(cell("a|b <i>"))
    a\|b \<i\>
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"
    yield ""


def _block(text: str) -> Iterator[str]:
    """Yield a fenced block whose fence the text cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}text", text.rstrip("\n"), fence, "")


def markdown_report(
    plan: StudyPlan,
    results: Results | Ran | None = None,
    *,
    title: str = "A differential-privacy study",
    about: About | None = None,
) -> str:
    """Return a plan, and what its run did, as Markdown.

    Parameters
    ----------
    plan
        The plan.
    results
        What its run released, or None before a run.
    title
        The first heading.
    about
        What the plan does not hold: the data, the date, who approved.
    """
    ran, about = told_of(results, about)
    lines = [f"# {cell(title)}", ""]
    for headline in headlines(plan, ran, about):
        lines += [f"**{cell(headline)}.**", ""]
    lines += [cell(brief(plan)), "", "## What is published", "", *_published(plan)]
    lines += ["## What somebody could learn about one person", "", *_learned(plan)]
    lines += ["## Who is protected, and what this is about", ""]
    lines += _table(("fact", "value"), [*public_facts(plan), *verdict_facts(plan, about)])
    if ran is not None:
        for name, text in ran.texts.items():
            lines += [f"## Result: {cell(name)}", "", *_block(text)]
    lines += ["## Plan", "", *_block(tree(plan))]
    lines += ["## Steps", "", *_steps(plan, ran)]
    lines += ["## Loss by attribute", "", *_by_attribute(plan)]
    lines += ["## Totals under each accounting", "", *_totals(plan)]
    lines += ["## Assumptions", "", *_assumptions(plan)]
    lines += ["## Findings", "", *_findings(plan)]
    if ran is not None:
        lines += ["## Run", "", *_table(("fact", "value"), ran.facts(plan))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _published(plan: StudyPlan) -> Iterator[str]:
    rows = []
    for row in result_rows(plan):
        reads = "any" if row.reads is None else ", ".join(row.reads) or "none"
        share = "" if row.share is None else f" ({100 * row.share:.3g} %)"
        kinds = "; ".join(kind.line for kind in row.published)
        rows.append((row.name, row.made_by, reads, kinds, f"{row.loss}{share}"))
    yield from _table(("result", "miner", "may read", "what comes out, and how exact (95 %)", "loss"), rows)


def _learned(plan: StudyPlan) -> Iterator[str]:
    total = plan.smallest_total()
    found = learned(total, plan.relation, plan.unit)
    if not found:
        yield "No claim is valid, so nothing bounds what somebody can learn.\n"
        return
    heads = ["of what", "odds grow by", *(f"{share_text(prior)} sure before" for prior in PRIORS)]
    rows = [[one.claim, f"{one.odds_text} times", *one.share_texts] for one in found]
    if found[0].fails:
        heads.append("but for a probability of")
        rows = [[*row, f"{one.fails:.2g}"] for row, one in zip(rows, found, strict=True)]
    yield from _table(heads, rows)


def _by_attribute(plan: StudyPlan) -> Iterator[str]:
    rows = [
        (
            ", ".join(row.attributes) or "any other",
            ", ".join(row.parts) or "nothing",
            str(row.steps),
            loss_text(row.loss) if row.steps else "none",
        )
        for row in losses_by_attribute(plan)
    ]
    yield from _table(("attributes", "read for", "steps", "loss together"), rows)


def _steps(plan: StudyPlan, ran: Ran | None) -> Iterator[str]:
    heads = ["step", "query", "sensitivity", "monotonic", "source", "mechanism", "assumes", "loss", "expected error"]
    made = {} if ran is None else ran.made(plan)
    rows = []
    for row in step_rows(plan):
        cells = list(row.to_dict().values())
        rows.append(cells if ran is None else [*cells, str(made.get(row.path, 0))])
    yield from _table(heads if ran is None else [*heads, "released"], rows)
    if ran is not None:
        yield (
            "`released` says how often. Below a partition that is once for each part; parts are disjoint, so only the "
            "most expensive one is charged.\n"
        )


def _totals(plan: StudyPlan) -> Iterator[str]:
    rows = part_rows(plan)
    notions = list(rows[-1][1])
    yield from _table(("part", *notions), [(name, *losses.values()) for name, losses in rows])
    if len(notions) > 1:
        yield "Each row is composed by itself: epsilons that hold but for a delta do not add up to the last one.\n"


def _assumptions(plan: StudyPlan) -> Iterator[str]:
    rows = assumption_rows(plan)
    if rows:
        yield from _table(("assumption", "needed by", "allowed by name"), rows)
    else:
        yield "None.\n"


def _findings(plan: StudyPlan) -> Iterator[str]:
    found = plan.check()
    if not found:
        yield "None: every check passes.\n"
        return
    yield from _table(("code", "severity", "message"), [(f.code, f.severity.value, f.message) for f in found])
    if any(f.severity is Severity.ERROR for f in found):
        yield "An error refuses the plan: it cannot be run.\n"
