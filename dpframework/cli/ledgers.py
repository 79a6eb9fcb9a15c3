"""The commands `ledger open`, `approve`, `revoke`, `outside`, `signers`, `show` and `verify`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpframework import ledger as ledgers  # loads lazily, so other commands do not wait for it
from dpframework.cli.command_classes import Command, CommandGroup
from dpframework.cli.common import (
    EngineName,
    Json,
    RowsPerUnit,
    Subject,
    Unit,
    VerifiedFile,
    console,
    number_option,
    open_plan,
    path_argument,
    path_option,
    print_json,
    refuse_beside_json,
    refuse_without_effect,
    warn_of_problems,
    write,
)
from dpframework.cli.ledger_tables import (
    GROUPS,
    OUTSIDE,
    PERIODS,
    approval_table,
    cap_table,
    cap_text,
    cells_table,
    claim_sentence,
    group_rows,
    outside_rows,
    period_rows,
    records_form,
    run_table,
    text_of_loss,
)
from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import readable

app = typer.Typer(
    name="ledger",
    cls=CommandGroup,
    help="Record in a file what is approved and spent on a data set: its cap, approvals and charges, never its rows.",
    no_args_is_help=True,
)


File = Annotated[Path, path_argument("FILE", "A ledger.")]
Name = Annotated[str, typer.Option("--data-set", metavar="NAME", help="A data set of the ledger.")]
By = Annotated[str, typer.Option("--by", metavar="WHO", help="Who makes this decision; the ledger keeps the name.")]
Key = Annotated[
    Path | None,
    path_option(
        "KEY", "Sign with this SSH key (of ssh-keygen). A ledger with signers needs the key of a signer.", "--key"
    ),
]
PinFile = Annotated[
    Path | None,
    path_option(
        "PIN", "Your file that notes the ledger's last entry. An older copy of the ledger is refused.", "--pin"
    ),
]
DeltaCap = Annotated[
    str,
    typer.Option(
        "--delta", metavar="D", help="The most delta that all runs may cost. If it is above 0, zCDP may compose losses."
    ),
]
Reserve = Annotated[
    str,
    typer.Option("--reserve", metavar="D", help="The part of --delta held back for releases with their own delta."),
]
PeriodKind = Annotated[
    str | None,
    typer.Option("--period", metavar="LENGTH", help="Protect each person's rows of one period: a day, week or month."),
]
DateColumn = Annotated[
    str | None, typer.Option("--date", metavar="NAME", help="The column with dates, which assign rows to periods.")
]
HistoryCap = Annotated[
    str | None,
    typer.Option(
        "--history", metavar="E", help="The most that all periods may cost together; --epsilon caps each period."
    ),
]


def _command(example: str, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return app.command(name, cls=Command, epilog=f"Example: dpframework ledger {example}")


@_command("open hospital.ledger --data-set patients --epsilon 2", name="open")
def open_data_set(
    file: Annotated[Path, path_argument("FILE", "A ledger, which is created if it does not exist.")],
    name: Annotated[str, typer.Option("--data-set", metavar="NAME", help="The data set's name in the ledger.")],
    epsilon: Annotated[str, typer.Option(metavar="E", help="The most that all runs on the data may cost together.")],
    delta: DeltaCap = "0",
    reserve: Reserve = "0",
    relation: Annotated[
        str, typer.Option(metavar="RELATION", help="What the cap protects: add-or-remove-one or replace-one.")
    ] = "add-or-remove-one",
    schema: Annotated[Path | None, path_option("FILE", "Accept plans made from this schema only.")] = None,
    verified: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Accept only code that 'verify' recorded with at least this tightness (loss found / claim).",
        ),
    ] = None,
    unit: Unit = None,
    rows_per_unit: RowsPerUnit = 1,
    period: PeriodKind = None,
    date: DateColumn = None,
    history: HistoryCap = None,
    signers: Annotated[
        Path | None,
        path_option(
            "KEYS",
            "Create a ledger whose caps, approvals and revocations must be signed. This file has one line with a name "
            "and a public key for each signer.",
            "--signers",
        ),
    ] = None,
    key: Key = None,
    pin: PinFile = None,
    as_json: Json = False,
) -> None:
    """Open a data set with a cap, which is fixed from then on."""
    from dpframework.facts.privacy_unit import PrivacyUnit
    from dpframework.facts.schema import read_schema

    public = None if schema is None else read_schema(schema)
    # The cap is checked first, so that bad input leaves no empty ledger behind.
    cap: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "reserve": reserve,
        "relation": relation,
        "verified": verified,
        "unit": PrivacyUnit(unit, rows_per_unit, period=period, date=date),
        "rows_per_unit": rows_per_unit,
        "history": history,
    }
    ledgers.opening(name, **cap)
    keys = None if signers is None else _usable_signers(signers, key)
    ledger = ledgers.Ledger.create(file, signers=keys, pin=_open_pin(pin, create=True))
    ledger.open(name, schema=public, **cap, key=key)
    _report(ledger, name, as_json)


@_command("approve hospital.ledger study.toml --data-set patients --by 'Review board'")
def approve(
    file: File,
    study: Subject,
    name: Name,
    by: By,
    runs: Annotated[int, number_option("The number of runs that are approved.")] = 1,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A note to keep with the approval.")] = "",
    verified: VerifiedFile = None,
    data: Annotated[
        list[Path] | None,
        path_option("DATA", "Approve only runs on this file (kept as a salted digest). Repeat for two views."),
    ] = None,
    key: Key = None,
    pin: PinFile = None,
    engine: EngineName = None,
    as_json: Json = False,
) -> None:
    """Approve runs of one plan. If the plan's claims or code change, its hash changes, and it needs a new approval."""
    warn_of_problems()
    ledger = ledgers.Ledger(file, _open_pin(pin))
    plan = open_plan(study, engine, verified)
    ledger.approve(name, plan, by=by, runs=runs, note=note, data=data or (), key=key)
    if not as_json:
        from dpframework.reports.text_plan_drawings import place_lines

        whom = "" if plan.unit.is_row else f", which protects {plan.unit}"
        signed = "unsigned" if key is None else "signed"
        write(f"approved for {count_text(runs, 'run')}, {signed}: plan {plan.hash}{whom}")
        write("\n".join(place_lines(plan) or ["data: not named in the plan"]))
    _report(ledger, name, as_json)


@_command("revoke hospital.ledger 4e05191cd65f --data-set patients --by 'Review board'")
def revoke(
    file: File,
    plan: Annotated[str, typer.Argument(metavar="HASH", help="The plan's hash, or its beginning.")],
    name: Name,
    by: By,
    key: Key = None,
    pin: PinFile = None,
    as_json: Json = False,
) -> None:
    """Revoke the approvals of a plan. A run in progress makes no further release."""
    ledger = ledgers.Ledger(file, _open_pin(pin))
    revoked = ledger.revoke(name, plan, by=by, key=key)
    if not as_json:
        write(f"revoked: plan {revoked}; no run of it can begin, resume or make a further release")
    _report(ledger, name, as_json)


@_command("outside hospital.ledger 'Annual report 2025, table 3' --data-set patients --kind exact --by 'Review board'")
def outside(
    file: File,
    what: Annotated[str, typer.Argument(metavar="TEXT", help="What was released, on one line.")],
    name: Name,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="exact: numbers without noise; private: a private release of another program; look: somebody looked "
            "at the rows before they chose questions or bounds.",
        ),
    ],
    by: By,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME", help="An attribute that the release is about; may be repeated."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="The epsilon of a private release.")] = None,
    delta: Annotated[str, typer.Option(metavar="D", help="The delta of a private release.")] = "0",
    key: Key = None,
    pin: PinFile = None,
    as_json: Json = False,
) -> None:
    """Record a release made outside this ledger, and say how that release changes the privacy claim."""
    ledger = ledgers.Ledger(file, _open_pin(pin))
    ledger.record_outside(
        name, what, kind=kind, by=by, attributes=attribute or (), epsilon=epsilon, delta=delta, key=key
    )
    if not as_json:
        write(f"recorded: {ledger.data_set(name).outside[-1].effect}")
    _report(ledger, name, as_json)


@_command("signers hospital.ledger --add keys --remove board@example.org --by 'The chair' --key board")
def signers(
    file: File,
    add: Annotated[Path | None, path_option("KEYS", "Add the names and public keys in this file.", "--add")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="Remove this signer; may be repeated.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="WHO", help="Who decides the change.")] = None,
    key: Key = None,
    pin: PinFile = None,
    as_json: Json = False,
) -> None:
    """List the signers of a ledger, or change them. A signer must sign the change."""
    ledger = ledgers.Ledger(file, _open_pin(pin))
    if add is None and not remove:
        refuse_without_effect("a list of signers", by=by, key=key)
    elif key is None or by is None:
        raise InputError("a change of the signers needs --by, who decides it, and --key, the key of a signer")
    else:
        added = {} if add is None else ledgers.read_signers(add)
        ledger.change_signers(by=by, key=key, add=added, remove=remove or ())
    records = ledger.records()
    if as_json:
        print_json(records_form(records))
        return
    for name, public in sorted((records_form(records)["signers"] or {}).items()):
        write(f"{name} {public}")
    if records.signers is None:
        write(records.authority)
    write(f"head: {records.head}")


@_command("show hospital.ledger --data-set patients")
def show(
    file: File,
    name: Annotated[
        str | None, typer.Option("--data-set", metavar="NAME", help="Show the approvals and runs of this data set.")
    ] = None,
    file_out: Annotated[
        Path | None,
        path_option("FILE", "Write to this file: a page (.html), the runs (.csv), or everything (.json).", "--out"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group-by", metavar="KEY", help="Add up the runs by person, month or attribute."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the cap of each data set, what is spent and what is left. For one data set, also show approvals and runs."""
    from dpframework.cli.ledger_formats import kind_of, ledger_form, ledger_text

    refuse_beside_json(as_json, out=file_out, group_by=group)
    if group is not None and (file_out is not None or name is None):
        raise InputError("--group-by prints the runs of one data set; name it with --data-set, and give no --out")
    records = ledgers.Ledger(file).records()
    shown = list(records.data_sets.values()) if name is None else [records.data_set(name)]
    if file_out is not None:
        write_whole(file_out, ledger_text(records, shown, file_out), kind_of(file_out))
        write(f"wrote {file_out}")
        return
    if as_json:
        print_json(ledger_form(records, shown))
        return
    out = console()
    out.print(cap_table(shown))
    if name is not None:
        data_set, by = shown[0], None if group is None else ledgers.GroupBy.parse(group)
        tables = [("approvals", approval_table(data_set)), ("runs", run_table(data_set))]
        if by is not None:
            tables = [(f"runs by {group}", cells_table((by.value, *GROUPS), group_rows(data_set, by)))]
        tables.append(("periods", cells_table(PERIODS, period_rows(data_set))))
        tables.append(("released outside this ledger", cells_table(OUTSIDE, outside_rows(data_set))))
        for title, table in tables:
            if table.row_count:
                out.print(f"\n{title}", style="bold")
                out.print(table)
        told = filter(None, (*ledgers.remainder(data_set), claim_sentence(data_set)))
        write(f"\nleft: epsilon {readable(data_set.left)}; {'; '.join(told)}")
    write(f"\n{records.authority}\nhead: {records.head}")


@_command("verify hospital.ledger")
def verify(
    file: File,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head (hash) that you noted; it must still be in the ledger.")
    ] = None,
    results: Annotated[
        list[Path] | None,
        path_option("RESULTS", "A results.json, or its folder, whose run must be in the ledger; may be repeated."),
    ] = None,
    signers: Annotated[
        Path | None,
        path_option("FILE", "Accept only signatures by the names and public keys in this file (see ssh-keygen)."),
    ] = None,
    pin: PinFile = None,
    as_json: Json = False,
) -> None:
    """Check every hash, and that each run was approved and within the cap. Exit code 1 if anything was changed.

    With --pin, the pin file then notes the last entry. The file is created if it does not exist.
    """
    from dpframework.ledger.ledger_audit import noted_heads, require_recorded
    from dpframework.study.run_folder_reader import read_record

    warn_of_problems()
    ledger = ledgers.Ledger(file, _open_pin(pin, create=True))
    signatures = ledger.signatures(signers)
    forms = {path: read_record(path) for path in results or ()}
    found = ledger.verify(head, runs=noted_heads(forms))
    records = ledger.records()
    require_recorded(records, forms)
    if as_json:
        keys = records_form(records)["signers"]
        print_json({"entries": found.number, "head": found.hash, "approvals": signatures, "signers": keys})
    else:
        for line in signatures:
            write(line)
        write(records.authority)
        write(f"every entry is as it was written; head: {found}")


def _open_pin(path: Path | None, *, create: bool = False) -> ledgers.Pin | None:
    return None if path is None else ledgers.Pin(path, create=create)


def _usable_signers(signers: Path, key: Path | None) -> dict[str, str]:
    """Return the signers of a file. The key must be a signer's. Otherwise it could sign no decision in the ledger."""
    from dpframework.ledger.ssh_signatures import SignatureError, sign

    keys = ledgers.read_signers(signers)
    if key is None:
        raise InputError(f"a ledger with signers needs a signature by {ledgers.Signers(keys)}; give the key with --key")
    try:
        ledgers.Signers(keys).signer_of(sign(key, "a new ledger"), "a new ledger")
    except SignatureError:
        raise InputError(f"{key}: is not the key of a signer in {signers}") from None
    return keys


def _report(ledger: ledgers.Ledger, name: str, as_json: bool) -> None:
    records = ledger.records()
    data_set = records.data_set(name)
    if as_json:
        print_json({**data_set.to_dict(), **records_form(records)})
    else:
        write(f"{name}: {cap_text(data_set)}, {text_of_loss(data_set)} spent, {readable(data_set.left)} left")
        write(f"{records.authority}\nhead: {records.head}")
