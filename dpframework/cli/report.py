"""The command `report`, which shows a plan or a run to the people who decide on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from dpframework import ledger as ledgers, reports  # both load lazily, so other commands do not wait for them
from dpframework.cli.command_classes import Command
from dpframework.cli.common import (
    AboutRows,
    Json,
    VerifiedFile,
    choice_option,
    console,
    ledger_and_data_set,
    open_plan,
    path_argument,
    path_option,
    print_json,
    print_page,
    refuse_beside_json,
    refuse_without_effect,
    warn_of_problems,
    write,
)
from dpframework.cli.dossier_registry_entry_and_owner_statements import ledger_state, write_dossier, write_entry
from dpframework.cli.ledger_tables import certainty_sentences
from dpframework.cli.run import Authority
from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.output_overwrite_rule import require_output
from dpframework.reports.formats import REPORT_FILES, ReportFormat, format_of
from dpframework.study.results import PLAN, Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:
    from dpframework.reports.dossier.dossier_content import LedgerState

Form = Annotated[
    ReportFormat | None,
    choice_option(
        "FORMAT",
        ReportFormat,
        "The report's format: terminal, md, html (a page for a browser), csv or json. The last two list only the "
        "releases. By default the ending of --out decides, and without --out the format is terminal.",
        "--format",
    ),
]
Owner = Annotated[Path | None, path_option("FILE", "The owner's statements (see 'dpframework statements').", "--owner")]


app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework report study.toml --out report.html")
def report(
    subject: Annotated[Path, path_argument("STUDY", "A study file (.toml), a plan (.json), or the folder of a run.")],
    form: Form = None,
    out: Annotated[
        Path | None, path_option("FILE", "Write to this file, such as report.html, report.md or releases.csv.")
    ] = None,
    ledger: Annotated[Path | None, path_option("FILE", "Show the approvals of the plan in this ledger.")] = None,
    data_set: Annotated[
        str | None, typer.Option(metavar="NAME", help="The data set in the ledger that the study reads.")
    ] = None,
    verified: VerifiedFile = None,
    rows: AboutRows = None,
    dossier: Annotated[
        bool,
        typer.Option("--dossier", help="Write a dossier, which answers a review board's questions."),
    ] = False,
    registry: Annotated[
        bool, typer.Option("--registry", help="Write an entry for the public registry of deployments, in YAML.")
    ] = False,
    owner: Owner = None,
    as_json: Json = False,
) -> None:
    """Report on a plan or a run, with totals, steps, sensitivities, expected errors, findings and results."""
    warn_of_problems()
    refuse_beside_json(as_json, format=form, out=out)
    if registry and (dossier or form is not None):
        raise InputError("--registry writes one file in YAML, so it cannot be combined with --dossier or --format")
    if dossier or registry:
        plan, results, title, _ = _read_subject(subject, verified, rows)
        asked = ledger is not None or data_set is not None
        state = _state_in_ledger(ledger, data_set, plan, results) if asked else None
        if registry:
            write_entry(plan, title=title, owner=owner, ledger=state, out=out, as_json=as_json)
        else:
            write_dossier(plan, results, title=title, owner=owner, ledger=state, form=form, out=out, as_json=as_json)
        return
    if owner is not None:
        raise InputError("only --dossier and --registry read --owner; add one of them, or leave --owner out")
    from dpframework.reports.report_files_and_release_list import lay_out

    chosen = form or (ReportFormat.TERMINAL if out is None else format_of(out))
    if chosen in (ReportFormat.CSV, ReportFormat.JSON) and not as_json:
        refuse_without_effect(f"a list of releases ({chosen})", rows=rows, ledger=ledger, data_set=data_set)
    if out is not None:
        require_output(out, REPORT_FILES[chosen])
    plan, results, title, about = _read_subject(subject, verified, rows)
    if ledger is not None or data_set is not None:
        about = facts_in_ledger(ledger, data_set, plan, about, results)
    if as_json:
        print_json(_report_form(plan, results, about))
    elif out is not None:
        write_whole(out, lay_out(chosen, plan, results, title=title, about=about), REPORT_FILES[chosen])
        write(f"wrote {out}")
    elif chosen is ReportFormat.TERMINAL:
        _show_report(plan, results, title, about)
    elif chosen is ReportFormat.HTML:
        print_page(lay_out(chosen, plan, results, title=title, about=about))
    else:
        write(lay_out(chosen, plan, results, title=title, about=about), end="")


def _show_report(plan: StudyPlan, results: Results | None, title: str, about: reports.About) -> None:
    """Print a report on a terminal."""
    from dpframework.reports.terminal_renderer import terminal_report

    shown = terminal_report(plan, results, title=title, about=about)
    console().print(shown, soft_wrap=not console().is_terminal, crop=False)


def _data_set(ledger: Path | None, data_set: str | None) -> tuple[ledgers.Records, ledgers.DataSet]:
    """Return a ledger's records, and the data set of that name."""
    file, name = ledger_and_data_set(ledger, data_set)
    records = ledgers.Ledger(file).records()
    return records, records.data_set(name)


def _report_form(plan: StudyPlan, results: Results | None, about: reports.About) -> dict[str, Any]:
    """Return the contents of a report as a JSON-safe form."""
    from dpframework.reports.planned_result_rows import result_rows
    from dpframework.reports.report_headlines import part_rows, public_facts, verdict_facts
    from dpframework.reports.step_row import step_rows

    return {
        "facts": {**dict(public_facts(plan)), **dict(verdict_facts(plan, about))},
        "results": [row.to_dict() for row in result_rows(plan)],
        "steps": [row.to_dict() for row in step_rows(plan)],
        "parts": dict(part_rows(plan)),
        "findings": [finding.to_dict() for finding in plan.check()],
        "run": None if results is None else results.to_dict(),
    }


def _not_charged(records: ledgers.Records, known: ledgers.DataSet, plan: StudyPlan, results: Results | None) -> str:
    """Return a sentence if a data set was not charged for results; "" if it was charged, or if there are no results."""
    if results is None:
        return ""
    why = records.misfit(results.run, plan.hash, [charge.path for charge in results.charges], known.name)
    return why and f"NOT CHARGED: data set '{known.name}' of this ledger holds no run with these results; {why}"


def _state_in_ledger(
    ledger: Path | None, data_set: str | None, plan: StudyPlan, results: Results | None
) -> LedgerState:
    """Return a dossier's sentences about the ledger. If the results were not charged, the first sentence says so."""
    records, known = _data_set(ledger, data_set)
    return ledger_state(known, _not_charged(records, known, plan, results))


def facts_in_ledger(
    ledger: Path | None, data_set: str | None, plan: StudyPlan, about: reports.About, results: Results | None
) -> reports.About:
    """Return the facts for a report, with the ledger's entries on the plan, the data set and the run.

    If the ledger was not charged for the results, the report says so first. Otherwise a reader could take the plan's
    approvals for approvals of these results.
    """
    records, known = _data_set(ledger, data_set)
    authority = Authority.of(records, known.name, plan, None if results is None else results.run)
    uncharged = _not_charged(records, known, plan, results)
    if uncharged:
        authority = attrs.evolve(authority, ran=uncharged)
    spent, whole = certainty_sentences(known)
    ledger_facts = (
        authority.ledger,
        f"'{known.name}', after all releases charged so far: {spent}",
        f"if its whole cap is spent: {whole}",
    )
    return attrs.evolve(about, approvals=authority.approvals, ledger_facts=ledger_facts, ran=authority.ran)


def _read_subject(
    subject: Path, verified: Path | None, rows: int | None
) -> tuple[StudyPlan, Results | None, str, reports.About]:
    if not subject.exists():
        raise InputError(
            f"{subject}: there is no such file or folder; "
            "a study file (.toml), a plan (.json) or a folder that run wrote is expected"
        )
    if not subject.is_dir():
        plan = open_plan(subject, verified=verified, rows=rows)
        return plan, None, subject.stem, reports.About()
    results = Results.load(subject)
    plan = results.plan.with_rows(rows)
    if verified is not None:
        plan = attrs.evolve(open_plan(subject / PLAN, verified=verified, rows=rows), schema=plan.schema)
    return plan, results, subject.resolve().name, reports.About.of(results)
