"""The report as one HTML page, which fetches nothing and can be read, folded and printed offline."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from dpframework.facts.control_character_escapes import printable_lines
from dpframework.plan.node_kind_table import KINDS
from dpframework.reports.difference.merged_plan_node import Mark
from dpframework.reports.html_plan_drawing import difference_on_page
from dpframework.reports.report_headlines import About, brief, headlines, is_alarming, public_facts
from dpframework.reports.run_summary import RunSummary, summarize
from dpframework.reports.section_blocks import SectionBlock
from dpframework.reports.sections import PlanFacts, ReportSubject, Section, report_sections
from dpframework.reports.step_row import NONE
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.version import __version__

if TYPE_CHECKING:  # functions that make a page import these packages themselves
    from jinja2 import Environment
    from markupsafe import Markup

    from dpframework.reports.difference import Difference

# The next four are limits of the table of results on a page.
MOST_RESULTS = 100  # the most results
MOST_NAMES = 24  # the most names of attributes per result; "Loss by attribute" names them all
MOST_KINDS = 6  # the most kinds of release per result
MOST_ALIKE = 12  # the most further names in a row that stands for several results
_INDENTED = re.compile(r"\n\s+")  # indentation would be a tenth of a large page, so it is removed
_VERBATIM = re.compile(r"(<(?:pre|style|script)\b.*?</(?:pre|style|script)>)", re.DOTALL)


# --- pages ----------------------------------------------------------------------------------------------------------


def html_report(
    plan: StudyPlan,
    results: Results | RunSummary | None = None,
    *,
    title: str = "A differential-privacy study",
    about: About | None = None,
    facts: PlanFacts | None = None,
) -> str:
    """Return a plan and the facts of its run as an HTML page. The parameters are those of `markdown_report`.

    In addition, `facts` may be the plan's facts from `require_reportable`. By default they are worked out here.
    """
    run, about = summarize(results, about)
    return html_sections(
        report_sections(ReportSubject(facts or PlanFacts(plan), run, about)),
        headlines(plan, run, about),
        title=title,
        subtitle="Report on a plan" if run is None else "Report on a run",
        brief=brief(plan),
    )


def require_reportable(plan: StudyPlan) -> PlanFacts:
    """Return a plan's facts, after making all sections of a report on the plan and loading their templates.

    If this is called before a run, most faults of the report show before the run spends anything.
    """
    facts = PlanFacts(plan)
    for section in report_sections(ReportSubject(facts, None, About())):
        for block in section.blocks:
            _environment().get_template(_template(block))
    _environment().get_template("report.html.jinja")
    return facts


def _block(block: SectionBlock) -> str:
    """Return a block of a section as HTML."""
    if not block.template:
        return "".join(map(_block, block.plain()))
    return _environment().get_template(_template(block)).render(block=block)


def _template(block: SectionBlock) -> str:
    return f"blocks/{block.template}.html.jinja" if block.template else "report.html.jinja"


def html_difference(difference: Difference, *, before: str = "before", after: str = "after") -> str:
    """Return the changes between two plans as an HTML page.

    Parameters
    ----------
    difference
        The changes.
    before, after
        The names that the page gives to the two plans.
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


def html_sections(
    sections: Iterable[Section], lines: Sequence[str], *, title: str, subtitle: str, brief: str = ""
) -> str:
    """Return sections as an HTML page, below `lines` as headlines and the sentences of `brief`."""
    return _page(
        "report.html.jinja",
        title=title,
        subtitle=subtitle,
        headlines=[(text, is_alarming(text)) for text in lines],
        brief=brief,
        sections=[(section, [_as_is(_block(block)) for block in section.blocks]) for section in sections],
    )


def html_tables(
    sections: Iterable[tuple[str, str, Sequence[str], Sequence[Sequence[str]]]],
    sentences: Iterable[str],
    *,
    title: str,
    subtitle: str,
) -> str:
    """Return tables, such as those of a ledger, as an HTML page.

    Parameters
    ----------
    sections
        For each table its heading, its caption, the heads of its columns and its rows.
    sentences
        The sentences above the tables.
    title, subtitle
        The page's title and subtitle.
    """
    page = {"title": title, "subtitle": subtitle, "sections": list(sections), "sentences": list(sentences)}
    return _page("tables.html.jinja", **page)


def _page(template: str, **content: Any) -> str:
    """Return a whole page. `template` makes its content, and `base.html.jinja` everything around the content."""
    environment = _environment()
    styles, script = (_read(name) for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; img-src data:; style-src {_hash_source(styles)}; script-src {_hash_source(script)}"
    shown = {"styles": _as_is(styles), "script": _as_is(script), "policy": policy, "kinds": KINDS.values()}
    inner = _as_is(environment.get_template(template).render(**content))
    heads = {"title": content["title"], "subtitle": content["subtitle"], "version": __version__}
    text = environment.get_template("base.html.jinja").render(content=inner, **heads, **shown)
    # Some characters cannot stand in a page, and others are invisible there. All of them are written as escapes.
    text = printable_lines(text)
    parts = _VERBATIM.split(text)  # the verbatim elements have odd indices
    return "".join(part if place % 2 else _INDENTED.sub("\n", part) for place, part in enumerate(parts))


@functools.cache
def _environment() -> Environment:
    from dpframework.reports.compiled_page_templates import environment as made

    environment = made()
    environment.globals.update(
        most_results=MOST_RESULTS, most_names=MOST_NAMES, most_kinds=MOST_KINDS, most_alike=MOST_ALIKE
    )
    return environment


def _as_is(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)


@functools.cache
def _read(name: str) -> str:
    return (resources.files("dpframework.reports") / "page" / name).read_text(encoding="utf-8")


def _hash_source(text: str) -> str:
    """Return the source expression with which a content security policy allows this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
