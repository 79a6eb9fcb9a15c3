"""The commands `plan`, `check` and `epsilon`, which read no data."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Annotated

import typer

from dpframework.checks import Severity
from dpframework.cli import argument_completion
from dpframework.cli.command_classes import Command
from dpframework.cli.common import (
    REFUSED,
    AboutRows,
    EngineName,
    Json,
    Subject,
    VerifiedFile,
    choice_option,
    console,
    on_terminal,
    open_plan,
    path_argument,
    path_option,
    print_json,
    print_page,
    refuse_beside_json,
    refuse_without_effect,
    show_lines,
    warn_of_problems,
    write,
)
from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.output_formats_times_and_csv import format_by_name
from dpframework.facts.output_overwrite_rule import FileKind, require_output
from dpframework.facts.privacy_losses import decimal_text
from dpframework.plan.plan import PLAN_FILE
from dpframework.reports.formats import PAGE_FILE
from dpframework.study.plugin_registry import registry
from dpframework.study.study_file import load_study
from dpframework.study.study_plan_totals_and_findings import StudyPlan


class PlanFormat(enum.StrEnum):
    """The format of a drawn plan."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"
    HTML = "html"


SUFFIXES = {
    ".json": PlanFormat.JSON,
    ".html": PlanFormat.HTML,
    ".htm": PlanFormat.HTML,
    ".mmd": PlanFormat.MERMAID,
    ".dot": PlanFormat.DOT,
    ".txt": PlanFormat.TREE,
}


#: The pattern by which the files of each format are recognized.
PLAN_FILES = {
    PlanFormat.TREE: FileKind.of_pattern(
        "a drawn plan",
        r"^[^\n]*  \[[^\n]*\]\n[\s\S]*\n((data|engine): [^\n]*\n)*total: [^\n]* \(budget [^\n]*\)[^\n]*\n",
    ),
    PlanFormat.MERMAID: FileKind.of_pattern("a drawn plan", r'^flowchart TD\n(    place\d[^\n]*\n)*    n0[\[(]+"'),
    PlanFormat.DOT: FileKind.of_pattern("a drawn plan", r"^digraph plan \{\n    node \[fontname=sans\];\n"),
    PlanFormat.JSON: PLAN_FILE,
    PlanFormat.HTML: PAGE_FILE,
}


#: The formats of a plan that show neither the errors of results nor what was verified.
WITHOUT_ERRORS = (PlanFormat.MERMAID, PlanFormat.DOT, PlanFormat.JSON)

app = typer.Typer()


@app.command(
    cls=Command,
    epilog="Example: dpframework plan study.toml --format html; dpframework plan approved.json --diff study.toml",
)
def plan(
    study: Subject,
    form: Annotated[
        PlanFormat | None,
        choice_option(
            "FORMAT",
            PlanFormat,
            "How to draw the plan: tree, mermaid, dot, html, or json (a file that 'check' can read later).",
            "--format",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        path_option("FILE", "Write the plan to this file, such as plan.html. The ending chooses the format."),
    ] = None,
    other: Annotated[
        Path | None,
        path_option(
            "OTHER",
            "Say what changes from STUDY to this study file or plan, and draw both in one drawing. "
            "The exit code is 0 even if something changes.",
            "--diff",
        ),
    ] = None,
    engine: EngineName = None,
    verified: VerifiedFile = None,
    rows: AboutRows = None,
    as_json: Json = False,
) -> None:
    """Draw every release of a study, its loss, the total, and how accurate the results are. The data is not opened."""
    warn_of_problems()
    refuse_beside_json(as_json, format=form, out=out)
    by_name = PlanFormat.TREE if out is None or form else format_by_name(out, SUFFIXES)
    chosen = PlanFormat.JSON if as_json else form or by_name
    if out is not None:
        if other is not None:
            raise InputError("--out writes one plan; to keep a difference, send the output of --diff to a file")
        require_output(out, PLAN_FILES[chosen])
    if other is not None:
        refuse_without_effect("a difference", rows=rows)
        _show_difference((study, other), _plans_to_compare((study, other), engine, verified), chosen)
        return
    if chosen in WITHOUT_ERRORS:
        refuse_without_effect(f"a plan in the format {chosen}", rows=rows, verified=verified)
    planned = open_plan(study, engine, verified, rows)
    if out is not None:
        write_whole(out, _draw_plan(planned, chosen, study), PLAN_FILES[chosen])
        write(f"wrote {out}")
    elif chosen is PlanFormat.TREE and on_terminal():
        _show_tree(planned)
    elif chosen is PlanFormat.HTML:
        print_page(_draw_plan(planned, chosen, study))
    else:
        write(_draw_plan(planned, chosen, study), end="")


def _show_tree(planned: StudyPlan) -> None:
    """Print a plan as a tree on a terminal, with the errors of its results and what was verified."""
    from dpframework.reports.planned_result_rows import cost_lines, standing_lines
    from dpframework.reports.terminal_renderer import errors_text, plan_tree, prose_text

    show_lines(plan_tree(planned, console().width))
    if planned.verified is not None:
        show_lines(prose_text(standing_lines(planned), console().width))
    show_lines(errors_text(planned, console().width))
    if planned.run_costs():
        show_lines(prose_text(cost_lines(planned), console().width))


def _draw_plan(planned: StudyPlan, form: PlanFormat, study: Path) -> str:
    """Return a plan in a format."""
    from dpframework.reports import text_plan_drawings

    match form:
        case PlanFormat.JSON:
            return planned.to_json()
        case PlanFormat.MERMAID:
            return text_plan_drawings.mermaid(planned)
        case PlanFormat.DOT:
            return text_plan_drawings.dot(planned)
        case PlanFormat.HTML:
            from dpframework.reports.html import html_report

            return html_report(planned, title=study.stem)
        case PlanFormat.TREE:
            from dpframework.reports.planned_result_rows import cost_lines, error_lines, standing_lines

            lines = [*standing_lines(planned), "", *error_lines(planned), *cost_lines(planned)]
            return "\n".join([text_plan_drawings.tree(planned), *lines]) + "\n"


def _plans_to_compare(files: tuple[Path, Path], engine: str | None, verified: Path | None) -> list[StudyPlan]:
    """Return the plans of two files. Both get the same options, so that no option shows as a change."""
    studies = [file for file in files if file.suffix != ".json"]
    if not studies:
        refuse_without_effect("two plans, which were made for their engines", engine=engine)
    return [open_plan(file, engine if file in studies else None, verified) for file in files]


def _show_difference(files: tuple[Path, Path], plans: list[StudyPlan], form: PlanFormat) -> None:
    """Describe the changes from one plan to another."""
    from dpframework.reports import text_plan_drawings
    from dpframework.reports.difference import difference
    from dpframework.reports.terminal_line_breaks import fit_tree

    (study, other), (before, after) = files, plans
    found = difference(before, after, registry().checks)
    if form is PlanFormat.JSON:
        print_json(found.to_dict())
    elif form is PlanFormat.MERMAID:
        write(text_plan_drawings.difference_mermaid(found), end="")
    elif form is PlanFormat.DOT:
        write(text_plan_drawings.difference_dot(found), end="")
    elif form is PlanFormat.HTML:
        from dpframework.reports.html import html_difference

        print_page(html_difference(found, before=str(study), after=str(other)))
    else:
        write(f"before: {study} (plan {found.before.hash[:12]})")
        write(f"after:  {other} (plan {found.after.hash[:12]})\n")
        for headline in found.headlines:
            write(headline)
        if not found.changes:
            write("no difference")
            return
        write("\n" + "\n".join(map(str, found.changes)))
        write("\nthe steps (+ added, - removed, ~ changed):")
        drawn = text_plan_drawings.difference_tree(found)
        if not console().is_terminal:
            write(drawn)
            return
        from rich.text import Text

        # A changed line has a colour besides its sign.
        text = Text(fit_tree(drawn, console().width), no_wrap=True, overflow="ignore")
        for sign, style in (("+", "green"), ("-", "red"), ("~", "yellow")):
            text.highlight_regex(rf"(?m)^{re.escape(sign)} .*$", style)
        show_lines(text)


@app.command(cls=Command, epilog="Example: dpframework check study.toml")
def check(study: Subject, verified: VerifiedFile = None, rows: AboutRows = None, as_json: Json = False) -> None:
    """Say whether a plan may be run, and if not, why. The data is not opened. Exit code 1 if a check refuses it."""
    warn_of_problems()
    planned = open_plan(study, verified=verified, rows=rows)
    found = planned.check()
    refused = any(finding.severity is Severity.ERROR for finding in found)
    if as_json:
        print_json(
            {
                "plan": planned.hash,
                "refused": refused,
                "findings": [finding.to_dict() for finding in found],
                "errors": {
                    name: [bound.to_dict() for bound in bounds] for name, bounds in planned.error_bounds().items()
                },
                "costs": {name: cost.to_dict() for name, cost in planned.run_costs().items()},
            }
        )
    else:
        from dpframework.reports.terminal_renderer import findings_text
        from dpframework.reports.text_plan_drawings import total_line

        # In a pipe each finding is one line, for grep.
        console().print(findings_text(found), soft_wrap=not console().is_terminal)
        write(total_line(planned))
        write("refused" if refused else "checks passed; not yet approved")
    if refused:
        raise typer.Exit(REFUSED)


@app.command(cls=Command, epilog='Example: dpframework epsilon study.toml age --within "2 %" --rows 50000')
def epsilon(
    study: Annotated[Path, path_argument("STUDY", "A study file (.toml).")],
    step: Annotated[
        str,
        typer.Argument(
            metavar="STEP", autocompletion=argument_completion.steps, help="A step, or the path of one of its releases."
        ),
    ],
    within: Annotated[
        str,
        typer.Option(
            "--within",
            metavar="ERROR",
            help="The error that 95 % of runs stay below: a number of rows for counts, or an amount in the attribute's "
            'unit for a sum or a mean. A percentage such as "2 %" is taken of the rows, of a mean\'s range, or of the '
            "largest sum.",
        ),
    ],
    rows: AboutRows = None,
    as_json: Json = False,
) -> None:
    """Say which epsilon makes a result as accurate as you need. The data is not opened."""
    warn_of_problems()
    found = load_study(study).study.accuracy(step, within=within, rows=rows)
    text, whose = decimal_text(found.epsilon), "study" if found.of_study else "step"
    if as_json:
        bound = found.bound.to_dict()
        print_json({"step": step, "within": within, "epsilon": text, "of": whose, "error": bound})
    else:
        write(f"'{step}' needs epsilon = {text} for the {whose}.")
        write(found.bound.sentence)
