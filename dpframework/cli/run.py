"""The commands `run` and `report`, which run a study and show its results."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, final

import attrs
import typer

from dpframework import ledger as ledgers, reports  # lazy: other commands do not wait for them
from dpframework.cli.common import (
    REFUSED,
    AboutRows,
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
    write,
)
from dpframework.cli.parameters import Command
from dpframework.cli.progress import progress
from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.facts.files import require_writable, staged, write_whole
from dpframework.facts.interrupts import uninterrupted
from dpframework.facts.outputs import require_output
from dpframework.facts.privacy import PrivacyLoss
from dpframework.reports.formats import REPORT_FILES, ReportFormat, format_of
from dpframework.study.results import PLAN, RESULTS, Results
from dpframework.study.study_file import EngineChoice, StudyFile, load_study
from dpframework.study.study_plan import StudyPlan
from dpframework.study.study_run import StudyRun
from dpframework.tables.engines import Engine
from dpframework.tables.files import TableFiles
from dpframework.tables.table import Table

if TYPE_CHECKING:
    from dpframework.reports.sections import PlanFacts

REPORT = "report.html"
FILES = (PLAN, RESULTS, REPORT)

#: The results of a run, and the error that stopped it before its end, if there was one.
Outcome: TypeAlias = "tuple[Results, DPFrameworkError | None]"


@final
@attrs.frozen
class Authority:
    """The approvals of a ledger for a plan, and the signers that the ledger needs, in sentences."""

    approvals: tuple[str, ...]
    ledger: str

    @classmethod
    def of(cls, records: ledgers.Records, data_set: str, plan: StudyPlan) -> Authority:
        """Return a ledger's authority for a plan."""
        given = [one.sentence for one in records.data_set(data_set).approvals if one.plan == plan.hash]
        return cls(tuple(given), records.authority)


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
    pin: Annotated[
        Path | None,
        path_option(
            "PIN", "A file of yours that notes the ledger's last entry: a ledger that was put back is refused."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a study, open its data, make its releases and write the results."""
    warn_of_problems()
    if study.suffix == ".json":
        raise InputError(f"{study}: a plan cannot be run; give the study file (.toml) that it was made from")
    if engine is not None:
        EngineChoice(engine).made()  # an error in the command is reported before one in the study
    recorded = _open_run(ledger, data_set, pin, out)
    file = load_study(study)
    chosen = engine_of(file, engine)
    ready, facts = _prepare(file, chosen, as_json)
    plan = ready.plan
    if recorded is not None:
        recorded.data = file.data.paths()
    authority = None
    if ledger is not None and data_set is not None:
        authority = Authority.of(ledgers.Ledger(ledger).records(), data_set, plan)
    results, stop = _keep(out, study.stem, authority, facts, recorded, lambda: _make(file, ready, seed, recorded))
    ran = reports.RunSummary.of(results)
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
        write(f"{name}\n{text}\n")
    write(f"{releases}, {ran.spent} spent ({ran.accounting} accounting)")
    write(ran.verdict(plan))
    if recorded is not None:
        before = f"; {counted(recorded.before, 'release')} made before it was resumed" if recorded.before else ""
        write(f"run {recorded.id} of data set '{data_set}' in {ledger}{before}")
        if authority is not None:
            write(authority.ledger)
    write(f"wrote {', '.join(str(out / name) for name in FILES)}")


def _prepare(file: StudyFile, engine: Engine, as_json: bool) -> tuple[StudyRun, PlanFacts]:
    """Return a study that may be run, and its report's facts on the plan. The data is not opened."""
    study, ready = file.source, file.study.prepare(engine)
    plan = ready.plan
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

    from dpframework.reports.html import require_reportable

    return ready, require_reportable(plan)  # a report that fails must fail before the run is paid for


def _make(file: StudyFile, ready: StudyRun, seed: int | None, recorded: ledgers.LedgerRun | None) -> Outcome:
    """Make the run, with a progress bar."""
    engine = ready.engine

    def read() -> Table | TableFiles:
        key = None if seed is None else hashlib.sha256(str(seed).encode()).digest()
        if recorded is not None:
            key = recorded.key
        return file.table_files(key) if engine.reads_files else file.read(key, mapped=engine.mapped)

    with progress() as observer, contextlib.closing(engine):
        try:
            results = ready.make(read, seed=seed, observers=[observer], ledger=recorded)
            return attrs.evolve(results, data=file.data.files), None
        except DPFrameworkError as error:
            if recorded is not None and recorded.unfinished:
                say(f"run {recorded.id} is unfinished; the same command goes on with it, at no further charge")
                raise
            if error.results is None:
                raise
            return attrs.evolve(error.results, data=file.data.files), error


def _keep(
    out: Path,
    title: str,
    authority: Authority | None,
    facts: PlanFacts,
    recorded: ledgers.LedgerRun | None,
    make: Callable[[], Outcome],
) -> Outcome:
    """Make a run and write its results, all of them or nothing."""

    def write(folder: Path) -> None:
        with uninterrupted():
            write_outputs(folder, results, title=title, out=out, authority=authority, facts=facts)

    if recorded is None:
        with staged(out, FILES) as folder:
            results, stop = make()
            try:
                write(folder)
            except InputError as error:  # no ledger could give them again
                print_json(results.to_dict())
                raise InputError(f"{error}; its results are on standard output, in JSON: keep them") from None
    else:
        # The journal keeps the releases, so no folder is left behind if the run is killed before there are results. A
        # run that was killed between writing its results and removing its journal has left one here.
        from dpframework.study.loader import read_record

        with contextlib.suppress(DPFrameworkError):  # whatever else is there is for others to judge
            if (out / RESULTS).exists():
                recorded.discard_of(str(read_record(out).get("run")))
        require_writable(out, FILES)
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


def _open_run(ledger: Path | None, data_set: str | None, pin: Path | None, out: Path) -> ledgers.LedgerRun | None:
    """Return the run in a ledger, with its journal beside the place of the results."""
    if ledger is None and data_set is None and pin is None:
        return None
    if ledger is None or data_set is None:
        raise InputError("--ledger and --data-set belong together: the file, and the data set in it")
    pinned = None if pin is None else ledgers.Pin(pin)
    place = out.absolute()
    return ledgers.Ledger(ledger, pinned).run(data_set, journal=place.parent / f".{place.name}.unfinished")


def write_outputs(
    folder: Path,
    results: Results,
    *,
    title: str,
    out: Path | None = None,
    authority: Authority | None = None,
    facts: PlanFacts | None = None,
) -> None:
    """Write the plan, the results and the report of a run, which names the approvals that a ledger has.

    `out` is the folder that they will be moved to, which an error names. When this returns, they are on the disk, and
    the run's journal may be removed.
    """
    from dpframework.reports.html import html_report

    about = reports.About.of(results)
    if authority is not None:
        about = attrs.evolve(about, approvals=authority.approvals, held=(authority.ledger,))
    texts = {
        PLAN: results.plan.to_json(),
        RESULTS: results.to_json(),
        REPORT: html_report(results.plan, results, title=title, about=about, facts=facts),
    }
    for name, text in texts.items():
        write_whole(folder / name, text, called=(out or folder) / name)


def report(
    subject: Annotated[
        Path, path_argument("STUDY", "A study file (.toml), a plan (.json), or a folder that run wrote.")
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
        Path | None, path_option("FILE", "Write it here, such as report.html, report.md or releases.csv.")
    ] = None,
    ledger: Annotated[Path | None, path_option("FILE", "Say who approved the plan in this ledger.")] = None,
    data_set: Annotated[str | None, typer.Option(metavar="NAME", help="Which data set of the ledger it is on.")] = None,
    verified: VerifiedFile = None,
    rows: AboutRows = None,
    as_json: Json = False,
) -> None:
    """Report on a plan or a run, with totals, steps, sensitivities, expected errors, findings and results."""
    warn_of_problems()
    from dpframework.reports.report_files import laid_out

    chosen = form or (ReportFormat.TERMINAL if out is None else format_of(out))
    if out is not None:
        require_output(out, REPORT_FILES[chosen])
    plan, results, title, about = _read_subject(subject, verified, rows)
    if ledger is not None or data_set is not None:
        about = approved_in(ledger, data_set, plan, about)
    if as_json:
        print_json(_report_form(plan, results, about))
    elif out is not None:
        write_whole(out, laid_out(chosen, plan, results, title=title, about=about), REPORT_FILES[chosen])
        write(f"wrote {out}")
    elif chosen is ReportFormat.TERMINAL:
        from dpframework.reports.terminal import terminal_report

        shown = terminal_report(plan, results, title=title, about=about)
        console().print(shown, soft_wrap=not console().is_terminal, crop=False)
    elif chosen is ReportFormat.HTML:
        print_page(laid_out(chosen, plan, results, title=title, about=about))
    else:
        write(laid_out(chosen, plan, results, title=title, about=about), end="")


def _report_form(plan: StudyPlan, results: Results | None, about: reports.About) -> dict[str, Any]:
    """Return the contents of a report, JSON-safe."""
    from dpframework.reports.about import verdict_facts
    from dpframework.reports.facts import part_rows, public_facts
    from dpframework.reports.steps import step_rows
    from dpframework.reports.summary import result_rows

    return {
        "facts": {**dict(public_facts(plan)), **dict(verdict_facts(plan, about))},
        "results": [row.to_dict() for row in result_rows(plan)],
        "steps": [row.to_dict() for row in step_rows(plan)],
        "parts": dict(part_rows(plan)),
        "findings": [finding.to_dict() for finding in plan.check()],
        "run": None if results is None else results.to_dict(),
    }


def approved_in(ledger: Path | None, data_set: str | None, plan: StudyPlan, about: reports.About) -> reports.About:
    """Return the facts for a report, with a ledger's entries on its plan and its data set."""
    if ledger is None or data_set is None:
        raise InputError("--ledger and --data-set belong together: the file, and the data set in it")
    records = ledgers.Ledger(ledger).records()
    known, authority = records.data_set(data_set), Authority.of(records, data_set, plan)
    spent, cap = (
        reports.learned_sentence(reports.learned(loss, known.relation, known.unit))
        for loss in (known.spent, PrivacyLoss(known.epsilon, delta=known.delta))
    )
    held = (
        authority.ledger,
        f"'{known.name}', over all that it has charged: {spent}",
        f"over all that its cap admits: {cap}",
    )
    return attrs.evolve(about, approvals=authority.approvals, held=held)


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
        return plan, None, subject.stem, about_of(subject)
    results = Results.load(subject)
    plan = results.plan.with_rows(rows)
    if verified is not None:
        plan = attrs.evolve(open_plan(subject / PLAN, verified=verified, rows=rows), schema=plan.schema)
    return plan, results, subject.resolve().name, reports.About.of(results)
