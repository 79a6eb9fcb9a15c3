"""Reports: all that an auditor asks of a plan, and what a run did, in Markdown and on a terminal."""

import io
import re

import attrs
import pytest
from reported import Twice, forty_rows, studied
from rich.console import Console

import dpframework as dpf
from dpframework.reports import RunSummary, markdown_report, step_rows, terminal_report
from dpframework.reports.markdown import cell
from dpframework.tables.coded_table import Table

SCHEMA = dpf.Schema([dpf.Boolean("ill|or *not*"), dpf.Numeric("age", 0, 100, bins=4)])


@attrs.frozen
class Fenced(Twice):
    """Tell what no Markdown may hold as it is."""

    told = "```\nhandmade | fence\n```"


@pytest.fixture
def study():
    return studied(SCHEMA, Fenced())


@pytest.fixture
def table():
    return forty_rows(SCHEMA)


def shown(renderable):
    stream = io.StringIO()
    Console(file=stream, width=120).print(renderable, soft_wrap=True)
    return stream.getvalue()


def test_rows_say_what_an_auditor_asks(study):
    outer, inner = step_rows(study.plan())
    assert (outer.path, inner.path) == ("both/outer", "both/parts/inner")
    assert outer.query == "histogram of ill|or *not*"
    assert (outer.sensitivity, outer.monotonic) == ("1 (l1)", "yes")
    assert outer.source == "counts of disjoint cells: a row lies in one cell"
    assert (outer.mechanism, outer.loss) == ("discrete-laplace", "epsilon 0.5")
    assert "95 %" in outer.expected
    assert (outer.assumptions, inner.assumptions) == ("—", "mcmc-converged")


def test_rows_of_steps_without_a_claim_or_a_pure_epsilon():
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    study.add_plan("noisy", dpf.step("s", dpf.queries.Histogram(SCHEMA["age"]), dpf.mechanisms.Gaussian("0.1")))
    (row,) = step_rows(study.plan())
    assert row.loss == "rho 0.1"
    assert row.sensitivity == "1 (squared-l2)"


def test_markdown_before_a_run(study):
    text = markdown_report(study.plan(), title="A | B")
    assert text.startswith("# A \\| B\n")
    for part in ("pure accounting", "zcdp accounting", "pld accounting", "| mcmc-converged | inner | yes |"):
        assert part in text
    assert "## Charges of the run" not in text
    assert "DP012" in text
    assert "└─ both  [epsilon 1.0]" in text
    assert "**Checks passed; no approval is shown.**" in text
    assert "| part | pure | zcdp | rdp | pld |" in text


def test_cells_are_escaped_and_tables_keep_their_shape(study):
    text = markdown_report(study.plan())
    assert "histogram of ill\\|or \\*not\\*" in text
    rows = [line for line in text.splitlines() if line.startswith("| both/")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {11}
    assert cell("two\nlines") == "two lines"


def test_markdown_after_a_private_run(study, table):
    results = study.run(table)
    text = markdown_report(results.plan, results)
    assert "**private: the noise was drawn from the operating system's cryptographic generator.**" in text
    assert "NOT PRIVATE" not in text
    assert re.search(r"\| the whole plan \| .* \| 3 \| ", text)
    assert [line.rsplit("|", 2)[1].strip() for line in text.splitlines() if line.startswith("| both/")] == ["1", "2"]
    assert "````text\n```\nhandmade | fence\n```\n````" in text


def test_a_report_names_samplers_that_were_asked_for(study, table):
    found = {name: study.run(table, samplers=name) for name in ("arrays", "opendp")}
    texts = {name: markdown_report(results.plan, results) for name, results in found.items()}
    assert {name: "by OpenDP's samplers" in text for name, text in texts.items()} == {"arrays": False, "opendp": True}
    assert study.run(table).samplers == "arrays"
    assert found["arrays"].plan.hash == found["opendp"].plan.hash


def test_a_seeded_run_is_marked(study, table):
    results = study.run(table, seed=1)
    assert "**NOT PRIVATE: this run was seeded" in markdown_report(results.plan, results)
    assert "NOT PRIVATE: this run was seeded" in shown(terminal_report(results.plan, results))


def test_a_run_that_stopped_is_marked(study, table):
    results = study.run(table)
    ran = attrs.evolve(RunSummary.of(results), stopped="step 'both': a|b")
    assert markdown_report(results.plan, ran).splitlines()[2] == "**STOPPED before its end: step 'both': a\\|b.**"
    assert "STOPPED before its end: step 'both': a|b\n" in shown(terminal_report(results.plan, ran))


def test_an_inferred_schema_is_marked(table):
    schema = attrs.evolve(SCHEMA, inferred=["numeric bounds: observed"])
    study = dpf.Study(schema, epsilon=2, allow=["schema-inferred-from-data", "mcmc-converged"])
    study.add("both", Fenced())
    results = study.run(Table.from_codes(schema, table.codes))
    assert "NOT PRIVATE: the schema was inferred" in markdown_report(results.plan, results)


def test_the_terminal_shows_the_same(study, table):
    results = study.run(table)
    text = shown(terminal_report(results.plan, results, title="[bold]A study[/bold]"))
    for part in (
        "[bold]A study[/bold]",
        "Plan\n",
        "Steps\n",
        "Assumptions\n",
        "Findings\n",
        "Charges of the run\n",
        "Result: both",
    ):
        assert part in text
    assert "Result: both" in text
    assert "both/parts/inner: histogram of age, by discrete-laplace, epsilon 0.5, releases made: 2" in text


def test_a_refused_plan_can_be_reported():
    study = dpf.Study(SCHEMA, epsilon="0.1")
    study.add("both", Fenced())
    text = markdown_report(study.plan())
    assert "**REFUSED: the plan cannot be run; see DP001, DP005 among the findings.**" in text
    assert "| DP001 | error |" in text
    assert "A plan with an error is refused" in text
    assert "DP001 error" in shown(terminal_report(study.plan()))
