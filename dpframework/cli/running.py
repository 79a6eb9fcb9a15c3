"""Commands that run a study and show what came out: `run` and `report`."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import attrs
import typer

from dpframework import ledger as ledgers, reports  # lazy: other commands do not wait for them
from dpframework.cli.parameters import Command
from dpframework.cli.progress import progress
from dpframework.cli.shared import (
    REFUSED,
    EngineName,
    Json,
    NewFolder,
    Seed,
    VerifiedFile,
    about_of,
    choice_option,
    console,
    counted,
    engine_of,
    open_plan,
    path_argument,
    path_option,
    print_json,
    print_page,
    say,
    warn_of_problems,
)
from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.facts.files import require_usable, staged, uninterrupted, write_whole
from dpframework.facts.privacy import PrivacyLoss
from dpframework.reports.formats import ReportFormat, format_of
from dpframework.study.results import PLAN, RESULTS, Results
from dpframework.study.study_file import EngineChoice, StudyFile, load_study
from dpframework.study.study_plan import StudyPlan
from dpframework.tables.engines import Engine
from dpframework.tables.files import TableFiles
from dpframework.tables.table import Table

REPORT = "report.html"
FILES = (PLAN, RESULTS, REPORT)

#: What a run found, and what stopped it before its end, if anything did.
Outcome: TypeAlias = "tuple[Results, DPFrameworkError | None]"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(cls=Command, epilog="Example: dpframework run study.toml --out results")(run)
    app.command(cls=Command, epilog="Example: dpframework report study.toml --out report.html")(report)


def run(
    study: Annotated[Path, path_argument("STUDY", "A study file (.toml).")],
    out: Annotated[Path, NewFolder],
    seed: Seed = None,
    engine: EngineName = None,
    ledger: Annotated[
        Path | None,
        path_option(
            "FILE",
            "Charge this run to a ledger that has approved its plan. If it is killed, repeat the command to resume it.",
        ),
    ] = None,
    data_set: Annotated[
        str | None, typer.Option(metavar="NAME", help="The ledger's data set that this run reads.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a study, then open its data, make its releases and write what came out."""
    warn_of_problems()
    if study.suffix == ".json":
        raise InputError(f"{study}: a plan cannot be run; give the study file (.toml) that it was made from")
    if engine is not None:
        EngineChoice(engine).made()  # what is wrong with the command is said first
    recorded = _recorded(ledger, data_set, out)
    file = load_study(study)
    chosen = engine_of(file, engine)
    plan = _accepted(file, chosen, as_json)
    if recorded is not None:
        recorded.data = file.data.paths()
    approvals = None
    if recorded is not None:
        approvals = approved_in(ledger, data_set, plan, reports.About()).approvals
    results, stop = _kept(out, study.stem, approvals, recorded, lambda: _made(file, seed, chosen, recorded))
    ran = reports.Ran.of(results)
    releases = counted(len(ran.charges), "release")
    if stop is not None:
        say(f"stopped after {releases}, {ran.spent} spent; what had finished before is in {out}")
    if as_json:
        print_json(results.to_dict())
    if stop is not None:
        raise stop
    if as_json:
        return
    for name, text in ran.texts.items():
        print(f"{name}\n{text}\n")
    print(f"{releases}, {ran.spent} spent ({ran.accounting} accounting)")
    print(ran.verdict(plan))
    if recorded is not None:
        before = f"; {counted(recorded.before, 'release')} made before it was resumed" if recorded.before else ""
        print(f"run {recorded.id} of data set '{data_set}' in {ledger}{before}")
    print(f"wrote {', '.join(str(out / name) for name in FILES)}")


def _accepted(file: StudyFile, engine: Engine, as_json: bool) -> StudyPlan:
    """Return the plan of a study if it may be run: all that can stop it is found before its data is opened."""
    study = file.source
    plan = file.study.plan(engine)
    refusals = plan.refusals()
    if refusals:
        if as_json:
            print_json({"plan": plan.hash, "refused": True, "findings": [finding.to_dict() for finding in refusals]})
        say(f"refused: {study}: " + "; ".join(str(finding) for finding in refusals))
        raise typer.Exit(REFUSED)
    if engine.reads_files:
        file.table_files()
    try:
        file.data.paths()
    except InputError as error:
        raise InputError(f"{study}: {error}") from None

    from dpframework.reports.html import html_report

    html_report(plan, title=study.stem)  # a plan that cannot be reported stops here, not after its run was paid for
    return plan


def _made(file: StudyFile, seed: int | None, engine: Engine, recorded: ledgers.LedgerRun | None) -> Outcome:
    """Make the run, with a progress bar."""

    def read() -> Table | TableFiles:
        key = None if seed is None else hashlib.sha256(str(seed).encode()).digest()
        if recorded is not None:
            key = recorded.key
        return file.table_files(key) if engine.reads_files else file.read(key, mapped=engine.mapped)

    with progress() as observer, contextlib.closing(engine):
        try:
            results = file.study.run(read, seed=seed, engine=engine, observers=[observer], ledger=recorded)
            return attrs.evolve(results, data=file.data.files), None
        except DPFrameworkError as error:
            if recorded is not None and recorded.unfinished:
                say(f"run {recorded.id} is unfinished; the same command goes on with it, at no further charge")
                raise
            if error.results is None:
                raise
            return attrs.evolve(error.results, data=file.data.files), error


def _kept(
    out: Path,
    title: str,
    approvals: tuple[str, ...] | None,
    recorded: ledgers.LedgerRun | None,
    make: Callable[[], Outcome],
) -> Outcome:
    """Make a run and write what came out, all of it or nothing."""

    def write(folder: Path) -> None:
        with uninterrupted():
            write_outputs(folder, results, title=title, out=out, approvals=approvals)

    if recorded is None:
        with staged(out, FILES) as folder:
            results, stop = make()
            try:
                write(folder)
            except InputError as error:  # no ledger could give them again
                print_json(results.to_dict())
                raise InputError(f"{error}; its results are on standard output, in JSON: keep them") from None
    else:
        # Its releases are kept in its journal: no folder is left behind if it is killed before there are results.
        require_usable(out, FILES)
        results, stop = make()
        try:
            with staged(out, FILES) as folder:
                write(folder)
        except InputError as error:
            raise InputError(
                f"{error}; the ledger holds run {recorded.id}, and once there is room the same command writes its "
                "results, at no further charge"
            ) from None
        recorded.discard()
    return results, stop


def _recorded(ledger: Path | None, data_set: str | None, out: Path) -> ledgers.LedgerRun | None:
    """Return the run in a ledger, with its journal beside the results to be."""
    if ledger is None and data_set is None:
        return None
    if ledger is None or data_set is None:
        raise InputError("--ledger and --data-set belong together: the file, and the data set in it")
    place = out.absolute()
    return ledgers.Ledger(ledger).run(data_set, journal=place.parent / f".{place.name}.unfinished")


def write_outputs(
    folder: Path,
    results: Results,
    *,
    title: str,
    out: Path | None = None,
    approvals: tuple[str, ...] | None = None,
) -> None:
    """Write the plan, the results and the report of a run, which names the approvals that a ledger has.

    `out` is the folder that they will be moved to, which an error names. They are on the disk when this returns: the
    journal of the run, from which they could be written again, may be removed.
    """
    from dpframework.reports.html import html_report

    about = attrs.evolve(reports.About.of(results), approvals=approvals)
    texts = {
        PLAN: results.plan.to_json(),
        RESULTS: results.to_json(),
        REPORT: html_report(results.plan, results, title=title, about=about),
    }
    for name, text in texts.items():
        write_whole(folder / name, text, called=(out or folder) / name)


def report(
    subject: Annotated[
        Path,
        path_argument("STUDY", "A study file (.toml), a plan (.json), or a folder that run wrote."),
    ],
    form: Annotated[
        ReportFormat | None,
        choice_option(
            "FORMAT",
            ReportFormat,
            "How to lay it out: terminal, md, html, which is a page for a browser, or csv or json, which list the "
            "releases alone. By default as the name of the file to write ends, else for the terminal.",
            "--format",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        path_option("FILE", "Write it here, such as report.html, report.md or releases.csv."),
    ] = None,
    ledger: Annotated[Path | None, path_option("FILE", "Say who approved the plan in this ledger.")] = None,
    data_set: Annotated[str | None, typer.Option(metavar="NAME", help="Which data set of the ledger it is on.")] = None,
    verified: VerifiedFile = None,
    as_json: Json = False,
) -> None:
    """Report on a plan or a run: totals, steps with sensitivities and expected errors, findings, results."""
    warn_of_problems()
    from dpframework.reports.written import laid_out

    chosen = form or (ReportFormat.TERMINAL if out is None else format_of(out))
    plan, results, title, about = _reported(subject, verified)
    if ledger is not None or data_set is not None:
        about = approved_in(ledger, data_set, plan, about)
    if as_json:
        from dpframework.reports.about import verdict_facts
        from dpframework.reports.facts import part_rows, public_facts
        from dpframework.reports.steps import step_rows
        from dpframework.reports.summary import result_rows

        print_json(
            {
                "facts": {**dict(public_facts(plan)), **dict(verdict_facts(plan, about))},
                "results": [row.to_dict() for row in result_rows(plan)],
                "steps": [row.to_dict() for row in step_rows(plan)],
                "parts": dict(part_rows(plan)),
                "findings": [finding.to_dict() for finding in plan.check()],
                "run": None if results is None else results.to_dict(),
            }
        )
    elif out is not None:
        write_whole(out, laid_out(chosen, plan, results, title=title, about=about))
        print(f"wrote {out}")
    elif chosen is ReportFormat.TERMINAL:
        from dpframework.reports.terminal import terminal_report

        shown = terminal_report(plan, results, title=title, about=about)
        console().print(shown, soft_wrap=not console().is_terminal, crop=False)
    elif chosen is ReportFormat.HTML:
        print_page(laid_out(chosen, plan, results, title=title, about=about))
    else:
        print(laid_out(chosen, plan, results, title=title, about=about), end="")


def approved_in(ledger: Path | None, data_set: str | None, plan: StudyPlan, about: reports.About) -> reports.About:
    """Return what a report says of a study, with what a ledger says of its plan and of its data set."""
    if ledger is None or data_set is None:
        raise InputError("--ledger and --data-set belong together: the file, and the data set in it")
    known = ledgers.Ledger(ledger).records().data_set(data_set)
    approvals = [approval.sentence for approval in known.approvals if approval.plan == plan.hash]
    spent, cap = (
        reports.learned_sentence(reports.learned(loss, known.relation, known.unit))
        for loss in (known.spent, PrivacyLoss(known.epsilon, delta=known.delta))
    )
    held = (f"'{known.name}', over all that it has charged: {spent}", f"over all that its cap admits: {cap}")
    return attrs.evolve(about, approvals=tuple(approvals), held=held)


def _reported(subject: Path, verified: Path | None) -> tuple[StudyPlan, Results | None, str, reports.About]:
    if not subject.exists():
        raise InputError(
            f"{subject}: there is no such file or folder; "
            "a study file (.toml), a plan (.json) or a folder that run wrote is expected"
        )
    if not subject.is_dir():
        plan = open_plan(subject, verified=verified)
        return plan, None, subject.stem, about_of(subject)
    results = Results.load(subject)
    plan = results.plan
    if verified is not None:
        plan = open_plan(subject / PLAN, verified=verified)
    return plan, results, subject.resolve().name, reports.About.of(results)
