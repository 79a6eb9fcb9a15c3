"""Commands that run a study and show what came out: `run` and `report`."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Annotated

import typer

from dpframework.cli.progress import progress
from dpframework.cli.shared import (
    REFUSED,
    Command,
    Json,
    NewFolder,
    Seed,
    console,
    counted,
    given_path,
    json_text,
    one_of,
    open_plan,
    print_json,
    read_text,
    say,
    warn_of_problems,
)
from dpframework.engines import Engine
from dpframework.errors import DPFrameworkError, InputError, nearest
from dpframework.outputs import staged, uninterrupted, write_whole
from dpframework.registry import registry
from dpframework.reports.facts import Ran
from dpframework.study import Results, StudyPlan
from dpframework.studyfile import load_study

PLAN, RESULTS, REPORT = "plan.json", "results.json", "report.md"
FILES = (PLAN, RESULTS, REPORT)


class ReportFormat(enum.StrEnum):
    """How a report is laid out."""

    TERMINAL = "terminal"
    MARKDOWN = "md"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(cls=Command, epilog="Example: dpframework run study.toml --out results")(run)
    app.command(cls=Command, epilog="Example: dpframework report results --format md --out report.md")(report)


def run(
    study: Annotated[Path, typer.Argument(parser=given_path, metavar="STUDY", help="A study file (.toml).")],
    out: Annotated[Path, NewFolder],
    seed: Seed = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Where counts are evaluated: memory, threads, or a plugin's engine.")
    ] = "memory",
    as_json: Json = False,
) -> None:
    """Check a study, then open its data, make its releases and write what came out."""
    warn_of_problems()
    if study.suffix == ".json":
        raise InputError(f"{study}: a plan cannot be run; give the study file (.toml) that it was made from")
    chosen = _engine(engine)
    file = load_study(study)
    plan = file.study.plan()
    refusals = plan.refusals()
    if refusals:
        if as_json:
            print_json({"plan": plan.hash, "refused": True, "findings": [finding.to_dict() for finding in refusals]})
        say(f"refused: {study}: " + "; ".join(str(finding) for finding in refusals))
        raise typer.Exit(REFUSED)
    try:
        file.data.paths()
    except InputError as error:
        raise InputError(f"{study}: {error}") from None
    stop: DPFrameworkError | None = None
    with staged(out, FILES) as folder:
        with progress() as observer:
            try:
                results = file.study.run(file.read, seed=seed, engine=chosen, observers=[observer])
            except DPFrameworkError as error:
                if error.results is None:
                    raise
                results, stop = error.results, error
        stopped = None if stop is None else str(stop)
        with uninterrupted():
            write_outputs(folder, results, title=study.stem, stopped=stopped)
    ran = Ran.of(results, stopped=stopped)
    releases = counted(len(ran.charges), "release")
    if stop is not None:
        say(f"stopped after {releases}, {ran.spent} spent; what had finished before is in {out}")
    if as_json:
        print_json(record(results, stopped=stopped))
    if stop is not None:
        raise stop
    if as_json:
        return
    for name, text in ran.texts.items():
        print(f"{name}\n{text}\n")
    print(f"{releases}, {ran.spent} spent ({ran.accounting} accounting)")
    print(ran.verdict(plan))
    print(f"wrote {', '.join(str(out / name) for name in FILES)}")


def _engine(name: str) -> Engine:
    engines = registry().engines
    if name not in engines:
        raise InputError(f"no engine is named '{name}'; {nearest(name, engines)}")
    made: Engine = engines[name].thing()
    return made


def record(results: Results, *, stopped: str | None = None) -> dict[str, object]:
    """Return what a results file holds: results, and what `report` needs to show them again."""
    return {**results.to_dict(), **Ran.of(results, stopped=stopped).to_dict()}


def write_outputs(folder: Path, results: Results, *, title: str, stopped: str | None = None) -> None:
    """Write the plan, the results and the report of a run, and why it stopped if that was before its end."""
    from dpframework.reports.markdown import markdown_report

    (folder / PLAN).write_text(results.plan.to_json(), encoding="utf-8")
    (folder / RESULTS).write_text(json_text(record(results, stopped=stopped)) + "\n", encoding="utf-8")
    text = markdown_report(results.plan, Ran.of(results, stopped=stopped), title=title)
    (folder / REPORT).write_text(text, encoding="utf-8")


def report(
    subject: Annotated[
        Path,
        typer.Argument(
            parser=given_path, metavar="STUDY", help="A study file (.toml), a plan (.json), or a folder that run wrote."
        ),
    ],
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format", parser=one_of(ReportFormat), metavar="FORMAT", help="How to lay it out: terminal or md."
        ),
    ] = ReportFormat.TERMINAL,
    out: Annotated[
        Path | None, typer.Option(parser=given_path, metavar="FILE", help="Write it here, as Markdown.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Report on a plan, or on a run: totals, steps with sensitivities and expected errors, findings, results."""
    warn_of_problems()
    plan, ran, title = _reported(subject)
    if as_json:
        from dpframework.reports.facts import public_facts, step_rows

        print_json(
            {
                "facts": dict(public_facts(plan)),
                "steps": [row.to_dict() for row in step_rows(plan)],
                "findings": [finding.to_dict() for finding in plan.check()],
                "run": None if ran is None else ran.to_dict(),
            }
        )
    elif form is ReportFormat.TERMINAL and out is None:
        from dpframework.reports.terminal import terminal_report

        console().print(terminal_report(plan, ran, title=title), soft_wrap=True)
    else:
        from dpframework.reports.markdown import markdown_report

        text = markdown_report(plan, ran, title=title)
        if out is None:
            print(text, end="")
        else:
            write_whole(out, text)
            print(f"wrote {out}")


def _reported(subject: Path) -> tuple[StudyPlan, Ran | None, str]:
    if not subject.exists():
        raise InputError(
            f"{subject}: there is no such file or folder; "
            "a study file (.toml), a plan (.json) or a folder that run wrote is expected"
        )
    if not subject.is_dir():
        return open_plan(subject), None, subject.stem
    source = subject / RESULTS
    if not source.exists():
        raise InputError(f"{subject}: is not the folder of a run; there is no {RESULTS} in it")
    try:
        form = json.loads(read_text(source))
        if not isinstance(form, dict):
            raise InputError("these are not results that dpframework wrote")
        ran = Ran.from_dict(form)
    except json.JSONDecodeError:
        raise InputError(f"{source}: is not JSON") from None
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(source)) else f"{source}: {text}") from None
    plan = open_plan(subject / PLAN)
    if form.get("plan") != plan.hash:
        raise InputError(f"{subject}: {RESULTS} is of another plan than {PLAN}; run the study again")
    return plan, ran, subject.resolve().name
