"""A report is one list of sections: each format shows all of them, in their order."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.reports import markdown_report, section_blocks, sections
from dpframework.reports.formats import ReportFormat
from dpframework.reports.html import html_report, require_reportable
from dpframework.reports.report_headlines import About, part_rows
from dpframework.reports.run_summary import RunSummary
from dpframework.reports.sections import PlanFacts, ReportSubject, Section, report_sections
from dpframework.reports.terminal_renderer import terminal_text

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("smokes")], max_rows=900)
FORMATS: dict[ReportFormat, Callable[..., str]] = {
    ReportFormat.HTML: html_report,
    ReportFormat.MARKDOWN: markdown_report,
    ReportFormat.TERMINAL: lambda *given: terminal_text(*given, title="it"),
}


@pytest.fixture(scope="module")
def study() -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=3, delta="1e-6")
    made.add("first", dpf.miner("histogram", attribute="ill", epsilon=1))
    made.add_plan("second", dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1), assumptions=["mcmc-converged"]))
    return made


@pytest.fixture(scope="module")
def results(study: dpf.Study) -> dpf.Results:
    study.budget = dpf.plan.Budget(3, "1e-6", ["mcmc-converged"])
    return study.run(dpf.Table.from_codes(SCHEMA, [[0, 1], [1, 1]]), seed=1)


@pytest.mark.parametrize("form", FORMATS)
def test_every_section_is_in_every_format_in_order(results: dpf.Results, form: ReportFormat) -> None:
    shown = FORMATS[form](results.plan, results)
    summary = RunSummary.of(results)
    titles = [s.title for s in report_sections(ReportSubject(PlanFacts(results.plan), summary, About.of(results)))]
    assert len(titles) == 12
    before = {ReportFormat.HTML: ">", ReportFormat.MARKDOWN: "## ", ReportFormat.TERMINAL: "\n"}[form]
    after = {ReportFormat.HTML: "</h2>"}.get(form, "\n")
    places = [shown.index(f"{before}{title}{after}") for title in titles]
    assert places == sorted(places)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_losses_by_attribute_and_totals(results: dpf.Results, form: ReportFormat) -> None:
    shown = FORMATS[form](results.plan, results).replace("\\", "")
    for text in ("smokes", "nothing", "the whole plan", "zcdp", "pld", "at most 900 rows", "mcmc-converged"):
        assert text in shown
    for loss in results.plan.totals().values():
        assert loss.text in shown


def _weather(subject: ReportSubject) -> Section:
    """Return a section that a plugin author might want."""
    table = section_blocks.TableBlock(("day", "sun"), [("Monday", "7 hours <b>|")], "How the sun shone.")
    plain = [
        section_blocks.Paragraph("It was fine."),
        section_blocks.Facts([("wind", "none")]),
        table,
        section_blocks.Text("a\n  b", "Hours"),
    ]
    return Section("weather", f"Weather of {len(subject.plan.index.steps)} steps", plain)


@pytest.mark.parametrize("form", FORMATS)
def test_a_new_section_appears_in_every_format(
    results: dpf.Results, form: ReportFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, _weather))
    for given in ((results.plan,), (results.plan, results)):
        shown = FORMATS[form](*given).replace("\\", "").replace("&lt;", "<").replace("&gt;", ">")
        for text in (
            "Weather of 2 steps",
            "It was fine.",
            "wind",
            "Monday",
            "7 hours <b>|",
            "How the sun shone.",
            "a\n  b",
            "Hours",
        ):
            assert text in shown
        assert ('href="#weather"' in shown) == (form is ReportFormat.HTML)


def test_a_part_is_called_by_its_name_or_else_by_what_it_is() -> None:
    study = dpf.Study(SCHEMA, epsilon=3)
    study.add_plan("first", dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1)))
    assert [name for name, _ in part_rows(study.plan())] == ["first", "the whole plan"]
    plan = study.plan()
    repeated = attrs.evolve(plan, root=dpf.sequential(dpf.repeat(2, plan.root)))
    assert [name for name, _ in part_rows(repeated)] == ["repeat 2 times", "the whole plan"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_ends_with_a_line_end(results: dpf.Results, form: ReportFormat) -> None:
    shown = FORMATS[form](results.plan, results)
    assert shown.endswith("\n")
    assert not shown.endswith("\n\n")


def test_the_facts_of_a_plan_serve_its_report_after_the_run(results: dpf.Results) -> None:
    plan = results.plan
    facts = require_reportable(plan)
    about = About.of(results)
    assert html_report(plan, results, about=about, facts=facts) == html_report(plan, results, about=about)


def test_a_plan_that_cannot_be_shown_is_known_before_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mumbling(DiscreteLaplace):
        def preview(self, calibration: dpf.Calibration) -> dpf.mechanisms.Preview:
            raise ArithmeticError("no preview")

    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Mumbling(1)))
    with pytest.raises(ArithmeticError):
        require_reportable(study.plan())
