"""Reports on three plans, whole, in every format and in colour: this command writes them anew.

python tests/printed_reports.py

The plans hold what `printed_outputs.py` does not have: units of several rows, every kind of node, links between
releases, blocks of which a miner chooses the releases, deltas, assumptions, more nodes than a page shows at once, and
a run that stopped. What happened in the run is written here by hand, so that nothing is drawn.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
from printed_outputs import page_text, write_anew
from rich.console import Console

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian
from dpframework.plan import Node, VerificationRecords, VerifiedCode
from dpframework.reports import About, RunSummary, dot, mermaid, terminal_report, tree
from dpframework.reports.difference import difference
from dpframework.reports.dossier import dossier, registry_entry, registry_text
from dpframework.reports.dossier.dossier_content import LedgerState
from dpframework.reports.dossier.dossier_formats import dossier_file
from dpframework.reports.dossier.owner_statements import TOPICS, Statements
from dpframework.reports.formats import ReportFormat
from dpframework.reports.html import html_difference, html_report
from dpframework.reports.markdown import markdown_report
from dpframework.reports.report_files_and_release_list import lay_out, releases_csv, releases_json
from dpframework.reports.text_plan_drawings import difference_dot, difference_mermaid, difference_tree
from dpframework.results.matrix import Matrix
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.version import __version__

REPLACED = (  # what differs from run to run, or from one version of the code to the next
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{12,}\b"), "HEX"),
    (re.compile(re.escape(__version__)), "VERSION"),
)
PRINTED = Path(__file__).parent / "reports" / "printed"
WIDTH = 100
TOWNS = ["North", "South", "West"]
SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill", view="left"),
        dpf.Categorical("town", TOWNS, view="right"),
        dpf.Numeric("age", 0, 100, cuts=[18, 65], view="left"),
        dpf.Numeric("dose", -1.5, 2.5, bins=4, missing=True, view="right"),
        dpf.Open("job"),
    ],
    about_rows=2000,
)
COUNT, TOWN, ILL, AGE = dpf.queries.Count(), *(dpf.queries.Histogram(SCHEMA[name]) for name in ("town", "ill", "age"))


def count(name: str, epsilon: Any, **options: Any) -> Node:
    return dpf.step(name, COUNT, DiscreteLaplace(epsilon), **options)


def search(least: str, rounds: int) -> Node:
    """Every kind of node, and what is chosen by a release."""
    return dpf.sequential(
        dpf.step("towns", TOWN, DiscreteLaplace("0.25"), assumptions=["real-arithmetic"]),
        dpf.post("largest", uses=["towns"]),
        dpf.parallel(
            dpf.sequential(dpf.step("ages", AGE, Gaussian("0.01")), count("rows", "0.125", threshold=20)),
            by=SCHEMA["town"],
            name="each town",
        ),
        dpf.either(count("few", "0.1"), dpf.step("sick", ILL, DiscreteLaplace("0.3"), uses=["largest"])),
        dpf.repeat(rounds, dpf.step("pick", TOWN, Exponential("0.05"))),
        dpf.spend(
            "rounds",
            dpf.kind("choose", TOWN, Exponential, times=2),
            dpf.kind("measure", AGE, DiscreteLaplace, least=least),
            epsilon="0.5",
        ),
        name="search",
    )


def clinic() -> dpf.StudyPlan:
    """Units of two rows, a delta, miners of every result, and a plan of somebody's own."""
    study = dpf.Study(
        SCHEMA, epsilon=9, delta="1e-6", unit="owner", rows_per_unit=2, allow=["real-arithmetic", "mcmc-converged"]
    )
    study.add("sick", dpf.miner("histogram", attribute="ill", epsilon="0.5"))
    study.add("ages", dpf.miner("mean", attribute="age", by=["ill"], epsilon="0.5"))
    study.add("jobs", dpf.miner("keys", attribute="job", epsilon="0.5", delta="1e-7"))
    study.add("cross", dpf.miner("crosstab", attributes=["ill", "town"], rho="0.02"))
    study.add("middle", dpf.miner("quantile", attribute="dose", epsilon="0.25"))
    study.add("first", dpf.miner("dp-id3", target="ill", attributes=["town", "dose"], max_depth=2, epsilon=1))
    study.add("second", dpf.miner("dp-id3", target="ill", attributes=["town", "dose"], max_depth=2, epsilon=1))
    study.add_plan("own", search("0.05", 3))
    return study.plan()


def changed() -> dpf.StudyPlan:
    """The same, with one part less, one more, one renamed, one whose budget is halved, and another unit."""
    facts = dpf.Schema(
        [
            SCHEMA["town"],
            SCHEMA["ill"],
            dpf.Numeric("age", 0, 100, cuts=[18, 50, 65], view="left"),
            SCHEMA["dose"],
            dpf.Boolean("tall"),
            SCHEMA["job"],
        ],
        max_rows=4000,
        inferred=["bounds of age: looked at"],
    )
    study = dpf.Study(facts, epsilon=5, delta="1e-7", relation="replace-one", allow=["real-arithmetic"])
    study.add("ill people", dpf.miner("histogram", attribute="ill", epsilon="0.5"))
    study.add("ages", dpf.miner("mean", attribute="age", by=["ill"], epsilon="0.25"))
    study.add("cross", dpf.miner("crosstab", attributes=["ill", "town"], epsilon="0.25"))
    study.add("first", dpf.miner("dp-id3", target="ill", attributes=["town"], max_depth=1, epsilon=1))
    study.add("heights", dpf.miner("histogram", attribute="tall", epsilon="0.125"))
    study.add_plan("own", dpf.repeat(2, search("0.1", 4)))
    return study.plan()


def many() -> dpf.StudyPlan:
    """More nodes than a page shows at once, most of them alike, and nothing that bounds the rows."""
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("tall")]), epsilon=1, relation="replace-one")
    groups = [
        dpf.sequential(*[count(f"{name} {k}", "0.001") for k in range(size)], name=name)
        for name, size in (("a", 4), ("b", 4), ("c", 30), ("d", 31))
    ]
    study.add_plan("many", dpf.sequential(*groups, dpf.parallel(count("by illness", "0.25"), by=dpf.Boolean("ill"))))
    return study.plan()


def monthly() -> dpf.StudyPlan:
    """Normal noise alone, of a person in one month, on a number of rows that is public."""
    schema = dpf.Schema([dpf.Boolean("ill")], rows=800)
    study = dpf.Study(
        schema,
        epsilon=1,
        delta="1e-6",
        unit="owner",
        rows_per_unit=3,
        period="month",
        date="day",
        relation="replace-one",
    )
    study.add_plan("n", dpf.step("n", dpf.queries.Histogram(schema["ill"]), Gaussian("0.015")))
    return study.plan()


@attrs.frozen
class Anything(dpf.Query):  # type: ignore[misc] # as a plugin's
    """A query that does not say what it reads, nor how much a row changes it."""

    name = "anything"

    def count(self, block: Any, **inputs: Any) -> Any:
        return block.rows


def bare() -> dpf.StudyPlan:
    """Steps without a claim, and normal noise without a delta: no total is valid."""
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("tall")]), epsilon=1)
    ill = dpf.queries.Histogram(dpf.Boolean("ill"))
    study.add_plan("normal", dpf.step("n", ill, Gaussian("0.02")))
    study.add_plan("any", dpf.sequential(dpf.step("any", Anything(), DiscreteLaplace("0.5")), count("rows", "0.125")))
    study.add_plan("chosen", dpf.step("best", COUNT, dpf.mechanisms.PartitionSelection("0.25", "1e-7")))
    return study.plan()


def with_records(plan: dpf.StudyPlan) -> dpf.StudyPlan:
    """A plan whose code was verified on one day, but for what is called dp-id3, and one mechanism that failed."""
    records = [
        VerifiedCode(
            one,
            tuple(plan.code["packages"]),
            plan.relation,
            "2026-11-01",
            ("all",),
            passed=one["name"] != "gaussian",
            tightness=0.875,
        )
        for one in plan.code["components"]
        if one["name"] != "dp-id3"
    ]
    return plan.with_verified(VerificationRecords(tuple(records)))


CHARGES = (
    *("sick/counts", "ages/counts", "first/counts", "own/search/towns"),
    *("own/search/each town[North]/rows", "own/search/each town[South]/rows"),
    *("own/search/pick", "own/search/pick", "own/search/rounds/measure (epsilon 1/10)"),
    "own/search/rounds/choose (epsilon 1/20)",
)
WIDE = Matrix("shares", ["a", "b"], [f"c{k}" for k in range(11)], [[k / 20 for k in range(11)], [0.5] * 11])
RUN = RunSummary(
    True,
    "pure",
    "epsilon 2.5",
    CHARGES,
    {
        "sick": "no 1200\nyes 800\n" + "as wide as a table is " * 6,
        "ages": "a mean | of <many> ``` or ````` and `",
        "cross": "a table",
    },
    "ReleaseRefused: the budget is spent",
    Fraction("2.5"),
    "run-1",
    "0123456789abcdef" * 4,
    {"ages": (WIDE,), "cross": (Matrix("rows", ["a"], ["x", "y"], [[20, 5]]),)},
    "2026-11",
    "opendp",
)
SEEDED = RunSummary(False, "zcdp", "rho 0.5", CHARGES[:1], {}, None, None)
MADE: Any = RunSummary(True, "zcdp", "rho 0.015", ("n/n", "n/n"), {})
UNKNOWN = RunSummary(True, "pure", "no finite epsilon", ("normal/n", "any/rows", "any/rows"), {})
ABOUT = About(
    SCHEMA,
    ["people.csv", "more.csv"],
    "2026-11-28 10:00 UTC",
    approvals=["approved by Ann, for one run", "approved by board, for two runs"],
    ledger_facts=["capped at epsilon 10.", "spent: epsilon 2."],
    ran="run by Ann, for the press",
    counting_summary="counted by DuckDB, in 7 queries",
)
SAID = {f"{topic}.{key}": f"the {key} of {topic}" for topic, keys in TOPICS.items() for key in keys}
STATED = Statements(SAID | {"choices.looks": "", "justification.harm": ""})
SAID |= {
    "product.name": "Yearly (clinics)",
    "product.type": "Summary statistics",
    "product.sector": "Healthcare",
    "product.publication_date": "2026-12-01",
    "product.releases": "Many releases, one a year",
}
FULL = Statements(SAID | {"product.data_source": "Dynamic"})
MONTHLY = Statements(SAID | {"product.data_source": "", "owner.authors": "", "owner.organisation": "Board, and Sons"})
LITTLE = Statements(
    SAID | {"product.releases": "One", "product.data_source": "", "trust.actors": "", "choices.looks": ""}
)
LEDGER = LedgerState(["capped at 2"], ["table 3 (exact): no epsilon"], ["looked at twice"])


def coloured(shown: Any, width: int | None = WIDTH) -> str:
    """Return what a terminal of this width shows, with its colours as numbers in braces."""
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=True, color_system="standard", highlight=False).print(shown)
    return re.sub(r"\x1b\[([0-9;]*)m", r"{\1}", stream.getvalue())


def part_of_page(page: str, *sections: str) -> str:
    """Return the head and some sections of a page, without styles and scripts."""
    text = page_text(page)
    found = {
        name: part for part, name in re.findall(r'(<section aria-labelledby="(.*?)">.*?</section>)', text, re.DOTALL)
    }
    return "\n".join([text.partition("<section")[0], *(found[name] for name in sections)])


def reports() -> dict[str, Callable[[], str]]:
    """Return how each file is made."""
    before, after, large, noisy = clinic(), changed(), many(), monthly()
    nothing, tested = bare(), with_records(before)
    told = difference(before, after)
    back = difference(after, before)
    same = difference(before, before)
    asked = dossier(before, STATED, ledger=LEDGER)
    less = dossier(after)
    return {
        "terminal-run": lambda: coloured(terminal_report(before, RUN, title="a clinic", about=ABOUT)),
        "terminal-plan": lambda: coloured(terminal_report(after, title="a clinic"), 80),
        "terminal-seeded": lambda: coloured(terminal_report(before, SEEDED, about=About(time="now"))),
        "markdown-run": lambda: markdown_report(before, RUN, title="a clinic", about=ABOUT),
        "markdown-many": lambda: markdown_report(large, title="many", about=About(time="now")),
        "page-run": lambda: page_text(html_report(before, RUN, title="a clinic", about=ABOUT)),
        "page-plan": lambda: part_of_page(html_report(after, about=About(time="now", approvals=())), "who", "findings"),
        "page-many": lambda: part_of_page(html_report(large), "plan"),
        "releases": lambda: releases_csv(before, RUN) + releases_json(after),
        "releases-made": lambda: "".join(
            lay_out(form, noisy, MADE, title="n") for form in (ReportFormat.JSON, ReportFormat.CSV)
        ),
        "drawings": lambda: "\n".join([tree(before), mermaid(before), dot(before)]),
        "difference": lambda: "\n".join(
            str(line) for one in (told, back, same) for line in (*one.headlines, *one.changes)
        ),
        "difference-json": lambda: json.dumps(told.to_dict(), indent=1),
        "difference-drawn": lambda: "\n".join(
            draw(told) for draw in (difference_tree, difference_mermaid, difference_dot)
        ),
        "difference-page": lambda: page_text(html_difference(told, before="old", after="new")),
        "difference-many": lambda: part_of_page(html_difference(difference(large, large)), "graph"),
        **{
            f"dossier-{form}": lambda form=form: page_text(dossier_file(form, asked, title="a clinic"))
            for form in ReportFormat
        },
        "dossier-open": lambda: dossier_file(ReportFormat.MARKDOWN, less, title="a clinic"),
        "terminal-bare": lambda: coloured(terminal_report(nothing, UNKNOWN, about=About(time="now"))),
        "markdown-of-a-file": lambda: markdown_report(
            StudyPlan.from_json(nothing.to_json()), title="bare", about=About(time="now", approvals=("by board",))
        ),
        "page-bare": lambda: part_of_page(html_report(nothing, UNKNOWN), "who", "plan", "attributes", "accounting"),
        "page-verified": lambda: part_of_page(html_report(tested), "steps", "assumptions"),
        "terminal-verified": lambda: coloured(terminal_report(tested, about=About(time="now"))),
        "run-facts": lambda: "\n".join(
            str(line) for one in (RUN, SEEDED, UNKNOWN) for line in (*one.facts(before), *one.headlines(after))
        ),
        "registry": lambda: registry_text(registry_entry(before, FULL, name="clinic", ledger=LEDGER)),
        "registry-of-a-file": lambda: registry_text(
            registry_entry(StudyPlan.from_json(noisy.to_json()), MONTHLY, name="monthly")
        ),
        "registry-of-rows": lambda: registry_text(registry_entry(large, LITTLE, name="many")),
    }


def printed() -> Iterator[tuple[str, str]]:
    """Yield the name of each file and what it should hold."""
    for name, make in reports().items():
        text = make()
        for pattern, word in REPLACED:
            text = pattern.sub(word, text)
        yield f"{name}.txt", "\n".join([line.rstrip() for line in text.splitlines()] + [""])


if __name__ == "__main__":
    write_anew(PRINTED, printed())
