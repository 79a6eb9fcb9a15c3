"""The files of `report --dossier` and `report --registry`, and the command `statements`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpframework import ledger as ledgers, reports  # both load lazily, so other commands do not wait for them
from dpframework.cli.command_classes import Command
from dpframework.cli.common import path_argument, print_json, print_page, write
from dpframework.cli.ledger_tables import certainty_sentences, text_of_loss
from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.output_overwrite_rule import require_output
from dpframework.facts.privacy_losses import decimal_text
from dpframework.reports.formats import ReportFormat, format_of
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:
    from dpframework.reports.dossier.dossier_content import LedgerState


app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework statements owner.toml")
def statements(
    file: Annotated[Path, path_argument("FILE", "The new file of statements (.toml).")],
) -> None:
    """Write an empty file of the owner's statements, to be filled in once for all studies.

    A dossier and an entry for the registry quote these statements.
    """
    from dpframework.reports.dossier.owner_statements import STATEMENTS_FILE, statements_template

    if file.exists():
        raise InputError(f"{file}: exists and is not replaced; give a new name")
    write_whole(file, statements_template(), STATEMENTS_FILE)
    write(f"wrote {file}; fill it in, and give it to 'dpframework report --dossier' with --owner")


def write_dossier(
    plan: StudyPlan,
    results: Results | None,
    *,
    title: str,
    owner: Path | None,
    ledger: LedgerState | None,
    form: ReportFormat | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write the dossier of a study to a file or to standard output."""
    from dpframework.reports.dossier import dossier, dossier_file
    from dpframework.reports.dossier.dossier_formats import DOSSIER_FILES

    chosen = form or (ReportFormat.TERMINAL if out is None else format_of(out))
    if out is not None:
        if chosen not in DOSSIER_FILES:
            raise InputError(f"{out}: a dossier is written as a page (.html), Markdown (.md) or JSON (.json)")
        require_output(out, DOSSIER_FILES[chosen])
    found = dossier(plan, _statements(owner, title), ledger=ledger, results=results)
    if as_json:
        print_json(found.to_dict())
    elif out is not None:
        write_whole(out, dossier_file(chosen, found, title=title), DOSSIER_FILES[chosen])
        write(f"{found.headline}\nwrote {out}")
    elif chosen is ReportFormat.HTML:
        print_page(dossier_file(chosen, found, title=title))
    else:
        write(dossier_file(chosen, found, title=title), end="")


def write_entry(
    plan: StudyPlan, *, title: str, owner: Path | None, ledger: LedgerState | None, out: Path | None, as_json: bool
) -> None:
    """Write the entry of a study for the public registry of deployments."""
    from dpframework.reports.dossier import registry_entry, registry_text
    from dpframework.reports.dossier.deployment_registry_entry import ENTRY_FILE

    if out is not None:
        require_output(out, ENTRY_FILE)
    if owner is None:
        raise InputError(
            "the registry asks for facts that only the owner knows; give the owner's statements with --owner"
        )
    entry = registry_entry(plan, _statements(owner, title), name=title, ledger=ledger)
    if as_json:
        print_json(entry)
    elif out is not None:
        write_whole(out, registry_text(entry), ENTRY_FILE)
        write(f"wrote {out}, an entry of tier {entry['tier']}")
    else:
        write(registry_text(entry), end="")


def _statements(owner: Path | None, study: str) -> reports.dossier.Statements:
    from dpframework.reports.dossier.owner_statements import Statements

    return Statements() if owner is None else Statements.load(owner, study)


def ledger_state(known: ledgers.DataSet, uncharged: str) -> LedgerState:
    """Return what a ledger holds about a data set, in sentences for a dossier.

    If the ledger was not charged for the results, `uncharged` says so and comes first. Otherwise it is empty.
    """
    from dpframework.reports.dossier.dossier_content import LedgerState

    spent, whole = certainty_sentences(known)
    sentences = [
        *([f"{uncharged}."] if uncharged else []),
        f"The ledger caps all studies of '{known.name}' at epsilon {decimal_text(known.cap)}, of which "
        f"{text_of_loss(known)} is spent.",
        f"After all releases charged so far: {spent}.",
        f"If the whole cap is spent: {whole}.",
    ]
    told = [f"{one.what} ({one.kind}): {one.effect}." for one in known.outside]
    looks = [text for text, one in zip(told, known.outside, strict=True) if one.kind is ledgers.OutsideKind.LOOK]
    return LedgerState(sentences, told, looks)
