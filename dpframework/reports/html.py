"""The report as one HTML page: it fetches nothing, and can be looked at, folded and printed without a network."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.checks import Finding, check_page
from dpframework.facts.privacy import PrivacyLoss, Relation, readable
from dpframework.reports.about import About, attribute_rows, brief, verdict_facts
from dpframework.reports.boxes import difference_on_page, plan_on_page
from dpframework.reports.difference import Difference, Mark
from dpframework.reports.facts import assumption_rows, headlines, is_alarming, part_rows, public_facts
from dpframework.reports.losses import loss_text
from dpframework.reports.meaning import PRIORS, learned, share_text
from dpframework.reports.nodes import NodeRow, node_tree
from dpframework.reports.ran import Ran, told_of
from dpframework.reports.reads import losses_by_attribute
from dpframework.reports.steps import NONE, StepRow
from dpframework.reports.summary import result_rows
from dpframework.study.registry import registry
from dpframework.study.results import Results
from dpframework.study.study_plan import StudyPlan
from dpframework.version import __version__

if TYPE_CHECKING:  # imported by those who write a page
    from jinja2 import Environment
    from markupsafe import Markup

MOST_RESULTS = 100  # in the first table
MOST_NAMES = 24  # of attributes in the first table; those of `Loss by attribute` are all there
MOST_KINDS = 6  # of releases of one result in the first table
MOST_CELLS = 30  # of a heat map, either way; a larger one is shown as text
_INDENTED = re.compile(r"\n\s+")  # a tenth of a large page
_KEPT = re.compile(r"(<(?:pre|style|script)\b.*?</(?:pre|style|script)>)", re.DOTALL)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def composition_rules(relation: Relation) -> dict[str, str]:
    """Return how each kind of node composes, in a sentence."""
    parts = {
        Relation.ADD_OR_REMOVE_ONE: "over disjoint parts: a row lies in one of them; the largest loss counts",
        Relation.REPLACE_ONE: "over disjoint parts: a row stays in its part, or leaves one and enters another; the "
        "larger of the largest loss and the two largest add-or-remove losses together counts",
    }
    return {
        "step": "one release: a query, answered by a mechanism at a loss",
        "sequential": "all of these, from the same rows: losses add up",
        "parallel": parts[relation],
        "either": "one of these, chosen by what has been released: the largest loss counts",
        "repeat": "the same, several times on the same rows: its loss counts each time",
        "post": "post-processing of what has been released: free",
    }


@final
@attrs.frozen
class TableStep:
    """A step in the table of steps."""

    number: int
    node: str
    row: StepRow
    exact: str
    source: str
    released: int


@final
@attrs.frozen
class Source:
    """A reason for sensitivities, and the steps that rest on it."""

    id: str
    text: str
    steps: tuple[int, ...]


def _table_groups(root: NodeRow, made: Mapping[str, int]) -> tuple[list[tuple[str, list[TableStep]]], list[Source]]:
    """Return the steps by the part of the study that they are in, and what their sensitivities rest on."""
    sources: dict[str, list[int]] = {}
    groups: dict[str, list[TableStep]] = {}
    for number, node in enumerate((n for n in root.walk() if n.step is not None), start=1):
        row = node.step
        assert row is not None
        group = row.path.partition("/")[0] if "/" in row.path else ""
        if row.source != NONE:
            sources.setdefault(row.source, []).append(number)
        source = f"S{list(sources).index(row.source) + 1}" if row.source in sources else ""
        step = TableStep(number, f"node-{node.number}", row, _exact_text(row, node), source, made.get(row.path, 0))
        groups.setdefault(group, []).append(step)
    listed = [Source(f"S{k}", text, tuple(steps)) for k, (text, steps) in enumerate(sources.items(), start=1)]
    return list(groups.items()), listed


def _exact_text(row: StepRow, node: NodeRow) -> str:
    """Return a step's loss as a ratio, if it is rounded in the row and the ratio can be read."""
    amounts = dict(node.exact)
    found = next((amounts[notion] for notion in ("epsilon", "rho") if row.loss.startswith(f"{notion} ~")), None)
    text = "" if found is None else str(found)
    return text if len(text) <= 24 else ""


@final
@attrs.frozen
class Gauge:
    """One of several amounts that are drawn to one scale."""

    name: str
    text: str
    share: float


def _gauges(plan: StudyPlan, ran: Ran | None) -> list[Gauge]:
    """Return budget, plan and run as bars."""
    total = plan.smallest_total()
    amounts: list[tuple[str, Fraction | None]] = [("budget", plan.budget.epsilon)]
    amounts.append(("planned", None if total is None else total.epsilon))
    if ran is not None:
        amounts.append(("spent", ran.epsilon))
    largest = max(amount for _, amount in amounts if amount is not None)
    return [
        Gauge(name, "no finite epsilon" if amount is None else readable(amount), float((amount or 0) / largest))
        for name, amount in amounts
    ]


def _charged(parts: list[tuple[str, dict[str, str]]], ran: Ran) -> list[tuple[str, str, str, str]]:
    """Return what was planned, released and spent of each part of the study, and of the whole plan, last."""
    rows = []
    for name, losses in parts[:-1]:
        releases = sum(path.partition("/")[0] == name for path in ran.charges)
        rows.append((name, losses.get(ran.accounting, NONE), str(releases), NONE))
    name, losses = parts[-1]
    return [*rows, (name, losses.get(ran.accounting, NONE), str(len(ran.charges)), ran.spent)]


def _titled(found: Iterable[Finding]) -> Iterator[tuple[Finding, str, list[tuple[str, str]]]]:
    """Return each finding with its check's title and, the first time, what the check's page says of it."""
    titles = {check.code: check.title for check in registry().checks}
    told: dict[str, list[tuple[str, str]]] = {}
    for finding in found:
        page = None if finding.code in told else check_page(finding.code)
        names = () if page is None else ("What it finds", "Why it matters", "How to fix it")
        explained = [(name, page.section(name)) for name in names if page is not None and page.section(name)]
        told.setdefault(finding.code, explained)
        yield finding, titles.get(finding.code, ""), explained


# --- pages ----------------------------------------------------------------------------------------------------------


def html_report(
    plan: StudyPlan,
    results: Results | Ran | None = None,
    *,
    title: str = "A differential-privacy study",
    about: About | None = None,
) -> str:
    """Return a plan, and what its run did, as an HTML page (see `markdown_report`)."""
    ran, about = told_of(results, about)
    made = {} if ran is None else ran.made(plan)
    root = node_tree(plan)
    groups, sources = _table_groups(root, made)
    graph = plan_on_page(plan, root, ran, made)
    kinds = {node.kind for node in graph.walk()}
    parts = part_rows(plan)
    assuming = any(step.row.assumptions != NONE for _, rows in groups for step in rows)
    heads = ["step", "query", "mechanism", "sensitivity", "assumes", "loss", "expected error", "released"]
    hidden = {"assumes": not assuming, "released": ran is None}
    return _page(
        "report.html.jinja",
        title=title,
        subtitle="Report on a plan" if ran is None else "Report on a run",
        headlines=[(text, is_alarming(text)) for text in headlines(plan, ran, about)],
        plan=plan,
        ran=ran,
        facts=[*public_facts(plan), *verdict_facts(plan, about)],
        gauges=_gauges(plan, ran),
        findings=list(_titled(plan.check())),
        graph=graph,
        rules={kind: rule for kind, rule in composition_rules(plan.relation).items() if kind in kinds},
        groups=groups,
        heads=[head for head in heads if not hidden.get(head)],
        assuming=assuming,
        sources=sources,
        parts=parts,
        wide=set() if ran is None else _wide(ran),
        charged=[] if ran is None else _charged(parts, ran),
        planned=plan.totals(),
        budget=loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta)),
        assumptions=assumption_rows(plan),
        **_opening(plan, about),
    )


def _wide(ran: Ran) -> set[str]:
    """Return the results whose text is too wide for paper, and whose heat maps show all of it."""
    return {
        name
        for name, some in ran.matrices.items()
        if any(len(matrix.columns) > 10 for matrix in some)
        and all(max(len(matrix.rows), len(matrix.columns)) <= MOST_CELLS for matrix in some)
    }


def _opening(plan: StudyPlan, about: About) -> dict[str, Any]:
    """Return what the first screen says: what is published, from what, at which cost, and what that means."""
    total = plan.smallest_total()
    schema = about.known(plan)
    return {
        "brief": brief(plan),
        "results": result_rows(plan),
        "most_results": MOST_RESULTS,
        "most_names": MOST_NAMES,
        "most_kinds": MOST_KINDS,
        "most_cells": MOST_CELLS,
        "whole": "No total is valid." if total is None else f"Together they cost {loss_text(total)} at most.",
        "learned": learned(total, plan.relation, plan.unit),
        "priors": [share_text(prior) for prior in PRIORS],
        "delta": 0 if total is None else total.delta,
        "unit": str(plan.unit),
        "by_attribute": losses_by_attribute(plan),
        "loss_text": loss_text,
        "schema": schema,
        "schema_rows": [] if schema is None else attribute_rows(schema),
    }


def html_difference(difference: Difference, *, before: str = "before", after: str = "after") -> str:
    """Return what changes between two plans as an HTML page.

    Parameters
    ----------
    difference
        What changes.
    before, after
        What to call the plans.
    """
    old, new = dict(public_facts(difference.before)), dict(public_facts(difference.after))
    topics: dict[str, list[str]] = {}
    for change in difference.changes:
        topics.setdefault(change.topic.value, []).append(change.text)
    marks = [node.mark for node in difference.nodes()]
    return _page(
        "difference.html.jinja",
        title=f"From {before} to {after}",
        subtitle="What changes between two plans",
        before=before,
        after=after,
        headlines=difference.headlines,
        facts=[(name, old.get(name, NONE), new.get(name, NONE)) for name in dict.fromkeys((*old, *new))],
        topics=topics,
        graph=difference_on_page(difference),
        marks={mark.value: marks.count(mark) for mark in (Mark.ADDED, Mark.REMOVED, Mark.CHANGED, Mark.SAME)},
    )


def html_tables(
    sections: Iterable[tuple[str, str, Sequence[str], Sequence[Sequence[str]]]],
    sentences: Iterable[str] = (),
    *,
    title: str,
    subtitle: str,
) -> str:
    """Return tables as an HTML page, such as a ledger's.

    Parameters
    ----------
    sections
        A heading, a caption, the heads of the columns and the rows, of each table.
    sentences
        What to say first.
    title, subtitle
        The page's.
    """
    page = {"title": title, "subtitle": subtitle, "sections": list(sections), "sentences": list(sentences)}
    return _page("tables.html.jinja", **page)


def _page(template: str, **content: Any) -> str:
    environment = _environment()
    styles, script = (_read(name) for name in ("page.css", "page.js"))
    page = environment.get_template(template)
    policy = f"default-src 'none'; img-src data:; style-src {_hash_source(styles)}; script-src {_hash_source(script)}"
    text = page.render(styles=_as_is(styles), script=_as_is(script), policy=policy, version=__version__, **content)
    parts = _KEPT.split(text)  # what is kept as it stands is at the odd places
    return "".join(part if place % 2 else _INDENTED.sub("\n", part) for place, part in enumerate(parts))


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dpframework.reports", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=_visible,
    )
    environment.filters["breakable"] = _breakable
    return environment


def _visible(value: Any) -> Any:
    """Replace characters that a page cannot hold, or that are not seen in it, by the sign for that."""
    return _UNSEEN.sub("\ufffd", value) if type(value) is str else value


def _breakable(path: str) -> Markup:
    """Escape a path, so that a line may break after each slash."""
    from markupsafe import Markup, escape

    return Markup("/<wbr>").join(escape(_visible(part)) for part in path.split("/"))


def _as_is(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)


@functools.cache
def _read(name: str) -> str:
    return (resources.files("dpframework.reports") / "page" / name).read_text(encoding="utf-8")


def _hash_source(text: str) -> str:
    """Return the source expression by which a content security policy lets a text in, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
