"""The command `run`, which runs a study and writes its results."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, final

import attrs
import typer

from dpframework import ledger as ledgers, reports  # both load lazily, so other commands do not wait for them
from dpframework.cli.command_classes import Command
from dpframework.cli.common import (
    REFUSED,
    EngineName,
    Json,
    NewFolder,
    SamplersName,
    Seed,
    engine_of,
    ledger_and_data_set,
    path_argument,
    path_option,
    print_json,
    refuse_without_effect,
    say,
    warn_of_problems,
    write,
)
from dpframework.cli.progress import progress
from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.facts.files import require_writable, stage_folder, write_whole
from dpframework.facts.interrupts import uninterrupted
from dpframework.facts.phrases import count_text
from dpframework.facts.toml import prefix_errors
from dpframework.study.results import PLAN, RESULTS, Results
from dpframework.study.study_file import EngineChoice, StudyFile, load_study
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.study.study_run import StudyRun
from dpframework.study.table_opener import require_joined
from dpframework.tables.coded_table import Table
from dpframework.tables.engine_base import Engine
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles

if TYPE_CHECKING:
    from dpframework.reports.sections import PlanFacts

REPORT = "report.html"
FILES = (PLAN, RESULTS, REPORT)

#: The results of a run, and the error that stopped it before its end, if there was one.
Outcome: TypeAlias = "tuple[Results, DPFrameworkError | None]"


Runner = Annotated[
    str | None, typer.Option("--by", metavar="WHO", help="Who makes this run; by default the name of your account.")
]
Purpose = Annotated[str, typer.Option("--purpose", metavar="TEXT", help="What the run is for; the ledger keeps it.")]
PeriodName = Annotated[
    str,
    typer.Option("--period", metavar="NAME", help="The period to read, such as 2026-03, if the study has periods."),
]


@final
@attrs.frozen
class Authority:
    """Sentences on the approvals of a plan in a ledger, on the signers of the ledger, and on who ran the plan."""

    approvals: tuple[str, ...]
    ledger: str
    ran: str = ""

    @classmethod
    def of(cls, records: ledgers.Records, data_set: str, plan: StudyPlan, run: str | None = None) -> Authority:
        """Return what the records of a ledger say about a plan, and about a run of the plan if its id is given."""
        known = records.data_set(data_set)
        given = [one.sentence for one in known.approvals if one.plan == plan.hash]
        ran = known.runs.get(run) if run is not None else None
        return cls(tuple(given), records.authority, "" if ran is None else ran.subject.sentence)


app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework run study.toml --out results")
def run(
    study: Annotated[Path, path_argument("STUDY", "A study file (.toml).")],
    out: Annotated[Path, NewFolder],
    seed: Seed = None,
    samplers: SamplersName = "arrays",
    engine: EngineName = None,
    ledger: Annotated[
        Path | None,
        path_option(
            "FILE",
            "Charge this run to a ledger that holds an approval of its plan. To resume a killed run, repeat the "
            "command.",
        ),
    ] = None,
    data_set: Annotated[
        str | None, typer.Option(metavar="NAME", help="The ledger's data set that this run reads.")
    ] = None,
    by: Runner = None,
    purpose: Purpose = "",
    period: PeriodName = "",
    pin: Annotated[
        Path | None,
        path_option("PIN", "Your file that notes the ledger's last entry. An older copy of the ledger is refused."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a study, open its data, make its releases and write the results."""
    warn_of_problems()
    if study.suffix == ".json":
        raise InputError(f"{study}: a plan cannot be run; give the study file (.toml) that it was made from")
    if engine is not None:
        EngineChoice(engine).make()  # report an error in the command before errors in the study
    said = {"study": study.stem, "by": by or _account(), "purpose": purpose}
    if ledger is None and data_set is None and pin is None:
        refuse_without_effect("a run without a ledger, since only a ledger keeps it", by=by, purpose=purpose or None)
    recorded = _open_run(ledger, data_set, pin, out, {**said, "period": period})
    file = load_study(study)
    file.unit_of(period).require_span()
    ready, facts = _prepare(file, engine_of(file, engine), as_json)
    if recorded is not None:
        recorded.data = file.data.paths()
    who = ledgers.RunSubject(by=said["by"], purpose=purpose).sentence
    authority = functools.partial(_authority, ledger, data_set, ready.plan, who)
    before = authority()  # called again after the run, since the run uses up one of the approved runs
    results, stop = _make_and_write(
        out, study.stem, authority, facts, recorded, lambda: _make_run(file, ready, (seed, samplers), recorded, period)
    )
    ran = reports.RunSummary.of(results)
    if stop is not None:
        made = count_text(len(ran.charges), "release")
        say(f"stopped after {made}, {ran.spent} spent; the results that were finished are in {out}")
    if as_json:
        print_json(results.to_dict())
    if stop is not None:
        raise stop
    if not as_json:
        _show(ran, ready.plan, recorded, f"data set '{data_set}' in {ledger}", before)
        write(f"wrote {', '.join(str(out / name) for name in FILES)}")


def _authority(ledger: Path | None, data_set: str | None, plan: StudyPlan, ran: str) -> Authority | None:
    """Return what a ledger says about a plan now, or None without a ledger. `ran` says who runs the plan."""
    if ledger is None or data_set is None:
        return None
    return attrs.evolve(Authority.of(ledgers.Ledger(ledger).records(), data_set, plan), ran=ran)


def _show(
    ran: reports.RunSummary,
    plan: StudyPlan,
    recorded: ledgers.LedgerRun | None,
    where: str,
    authority: Authority | None,
) -> None:
    """Print the results of a run, its cost, and where it was recorded."""
    for name, text in ran.texts.items():
        write(f"{name}\n{text}\n")
    write(f"{count_text(len(ran.charges), 'release')}, {ran.spent} spent ({ran.accounting} accounting)")
    write(ran.verdict(plan))
    if recorded is not None:
        before = f"; {count_text(recorded.before, 'release')} made before it was resumed" if recorded.before else ""
        write(f"run {recorded.id} of {where}{before}")
        if authority is not None:
            write(authority.ledger)


def _prepare(file: StudyFile, engine: Engine, as_json: bool) -> tuple[StudyRun, PlanFacts]:
    """Return the run of a study that passed all checks, with the plan's facts for its report.

    The data is not opened.
    """
    study = file.source
    with prefix_errors(f"{study}: "):
        ready = file.study.prepare(engine)
    plan = ready.plan
    refusals = plan.refusals()
    if refusals:
        if as_json:
            print_json({"plan": plan.hash, "refused": True, "findings": [finding.to_dict() for finding in refusals]})
        say(f"refused: {study}: " + "; ".join(str(finding) for finding in refusals))
        raise typer.Exit(REFUSED)
    if file.data.in_database and not engine.reads_tables:
        file.read()  # raises an error that names a fitting engine
    if engine.reads_itself:
        with prefix_errors(f"{study}: "):
            require_joined(engine, file.table_files())
    try:
        file.data.paths()
    except InputError as error:
        raise InputError(f"{study}: {error}") from None

    from dpframework.reports.html import require_reportable

    # If no report can be made of the plan, the run stops here, before anything is charged.
    return ready, require_reportable(plan)


def _make_run(
    file: StudyFile, ready: StudyRun, draws: tuple[int | None, str], recorded: ledgers.LedgerRun | None, period: str
) -> Outcome:
    """Make the run with a progress bar. `draws` holds the seed and the name of the samplers."""
    engine, (seed, samplers) = ready.engine, draws

    def read() -> Table | TableFiles | DatabaseTable:
        key = None if seed is None else hashlib.sha256(str(seed).encode()).digest()
        if recorded is not None:
            key = recorded.key
        if engine.reads_itself:
            return file.table_files(key, period=period)
        return file.read(key, mapped=engine.mapped, period=period)

    with progress() as observer, contextlib.closing(engine):
        try:
            results = ready.make(read, seed=seed, samplers=samplers, observers=[observer], ledger=recorded)
            return attrs.evolve(results, data=file.data.files), None
        except DPFrameworkError as error:
            if recorded is not None and recorded.unfinished:
                say(f"run {recorded.id} is unfinished; repeat the same command to resume it, at no further charge")
                raise
            if error.results is None:
                raise
            return attrs.evolve(error.results, data=file.data.files), error


def _make_and_write(
    out: Path,
    title: str,
    authority: Callable[[], Authority | None],
    facts: PlanFacts,
    recorded: ledgers.LedgerRun | None,
    make: Callable[[], Outcome],
) -> Outcome:
    """Make a run and write its results to a folder, either all files or none."""

    def write(folder: Path) -> None:
        with uninterrupted():
            write_outputs(folder, results, title=title, out=out, authority=authority(), facts=facts)

    if recorded is None:
        with stage_folder(out, FILES) as folder:
            results, stop = make()
            try:
                write(folder)
            except InputError as error:  # without a ledger the results would be lost
                print_json(results.to_dict())
                raise InputError(
                    f"{error}; the results of the run are on standard output, in JSON: keep them"
                ) from None
    else:
        # A journal, a file beside the folder, keeps the run's releases. So nothing is lost if the folder cannot be
        # made after the run, and the folder is made only once there are results. If an earlier run was killed after it
        # wrote its results to this folder, the journal of that run is still there and is removed here.
        from dpframework.study.run_folder_reader import read_record

        # A folder without results of a run is not read here. `require_writable` refuses it if it holds other files.
        with contextlib.suppress(DPFrameworkError):
            if (out / RESULTS).exists():
                recorded.discard_of(str(read_record(out).get("run")))
        require_writable(out, FILES)
        results, stop = make()
        try:
            with stage_folder(out, FILES) as folder:
                write(folder)
        except InputError as error:
            raise InputError(
                f"{error}; the ledger holds run {recorded.id}; when this is resolved, repeat the command to write the "
                "run's results at no further charge"
            ) from None
        recorded.discard()
    return results, stop


def _account() -> str:
    """Return the name of the account that runs this program; empty if it has no name."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # versions of Python raise different errors for an account without a name
        return ""


def _open_run(
    ledger: Path | None, data_set: str | None, pin: Path | None, out: Path, said: Mapping[str, str]
) -> ledgers.LedgerRun | None:
    """Return the run in a ledger, or None without a ledger.

    The run keeps its releases in a journal, which is a file beside the folder of the results.
    """
    if ledger is None and data_set is None and pin is None:
        return None
    file, name = ledger_and_data_set(ledger, data_set)
    pinned = None if pin is None else ledgers.Pin(pin)
    place = out.absolute()
    return ledgers.Ledger(file, pinned).run(name, journal=place.parent / f".{place.name}.unfinished", **said)


def write_outputs(
    folder: Path,
    results: Results,
    *,
    title: str,
    out: Path | None = None,
    authority: Authority | None = None,
    facts: PlanFacts | None = None,
) -> None:
    """Write the plan, the results and the report of a run. The report names the approvals in `authority`.

    `out` is the folder that the files will be moved to. Errors name this folder. When this function returns, the files
    are on the disk, and the run's journal may be removed.
    """
    from dpframework.reports.html import html_report

    about = reports.About.of(results)
    if authority is not None:
        about = attrs.evolve(about, approvals=authority.approvals, ledger_facts=(authority.ledger,), ran=authority.ran)
    texts = {
        PLAN: results.plan.to_json(),
        RESULTS: results.to_json(),
        REPORT: html_report(results.plan, results, title=title, about=about, facts=facts),
    }
    for name, text in texts.items():
        write_whole(folder / name, text, called=(out or folder) / name)
