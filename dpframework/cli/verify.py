"""The command `verify`, which tests privacy claims automatically."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

from dpframework.cli import argument_completion
from dpframework.cli.command_classes import Command
from dpframework.cli.common import (
    REFUSED,
    Json,
    choice_option,
    console,
    name_option,
    number_option,
    path_option,
    print_json,
    read_path,
    refuse_without_effect,
    say,
    warn_of_problems,
)
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.output_overwrite_rule import require_output
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.miner_chain import MinerChain
from dpframework.study.plugin_registry import registry
from dpframework.study.study import Study
from dpframework.study.study_file import load_study

if TYPE_CHECKING:
    from dpframework.plan.verification_records_file import VerifiedCode
    from dpframework.verify import Verification


Subject = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        autocompletion=argument_completion.subjects,
        help="A miner, mechanism or accountant, or a study file (.toml).",
    ),
]
ExampleName = Annotated[
    str | None,
    name_option(
        argument_completion.steps, "Verify only this example of the miner, or this step of the study.", "--example"
    ),
]
Replays = Annotated[
    int, number_option("About how many replays each audit makes. A replay compares two neighbouring tables.")
]
Runs = Annotated[
    int,
    number_option("How often to run on each of the two neighbouring tables with the largest loss; 0 for not at all."),
]


app = typer.Typer()

FEW_ROWS = 30  # the rows that neighbours share where a study's number of rows is public, and too large to be tested

# The options without an effect, by the kind of the subject. They are refused, since a user would rely on their effect.
WITHOUT_EFFECT = {
    "a mechanism": ("example", "rows_per_unit"),
    "an accountant": ("example", "relation", "rows_per_unit", "record"),
    "a study file": ("rows_per_unit",),
}


@app.command(cls=Command, epilog="Example: dpframework verify dp-id3 --example default --replays 20000")
def verify(
    context: typer.Context,
    subject: Subject,
    example: ExampleName = None,
    relation: Annotated[
        Relation | None, choice_option("RELATION", Relation, "Verify only under this neighbouring relation.")
    ] = None,
    replays: Replays = 6_000,
    runs: Runs = 100,
    seconds: Annotated[
        int,
        number_option("About how many processor seconds all tests may take. The report names those left out."),
    ] = 45,
    seed: Annotated[int, number_option("The seed of the made-up tables. The same seed gives the same report.")] = 0,
    rows_per_unit: Annotated[int, number_option("The most rows of a privacy unit. A study file states its own.")] = 1,
    record: Annotated[
        Path | None,
        path_option(
            "FILE", "Record the findings in this file, with digests of the code. Records of an existing file are kept."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test privacy claims on small made-up tables by replays, searches and sampling. No data is opened.

    Exit code 1 if a claim does not hold.
    """
    warn_of_problems()
    if replays < 100:
        raise InputError(f"--replays is {replays}; an audit needs 100 or more")
    if seconds < 1:
        raise InputError(f"--seconds is {seconds}; it needs 1 or more")
    if runs and runs < 100:
        raise InputError(f"--runs is {runs}; the distinguishing test needs 100 or more, or 0 for none")
    from dpframework.plan.verification_records_file import VERIFIED_FILE, VerificationRecords

    if record is not None:
        require_output(record, VERIFIED_FILE)
    known = VerificationRecords() if record is None or not record.exists() else VerificationRecords.load(record)
    kind = _kind(subject)
    for name in WITHOUT_EFFECT.get(kind, ()):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            refuse_without_effect(kind, **{name: source})
    if kind == "a mechanism":
        relations = tuple(Relation) if relation is None else (relation,)
        found, records = _verify_mechanism(subject, relations, seconds)
    elif kind == "an accountant":
        found, records = _verify_accountant(subject), iter(())
    else:
        amounts = {"replays": replays, "runs": runs, "seconds": seconds, "seed": seed}
        found, records = _verify_examples(subject, example, relation, amounts, PrivacyUnit(rows=rows_per_unit))
    if record is not None:
        known.record(record, records)
    if as_json:
        print_json(found.to_dict())
    else:
        _show(found)
    if not found.passed:
        raise typer.Exit(REFUSED)


def _kind(subject: str) -> str:
    """Return what a subject is. If a miner and another component have one name, the name means the miner."""
    if subject.endswith(".toml"):
        return "a study file"
    if subject.endswith(".json"):
        raise InputError(
            f"{subject}: a plan has no schema, which the made-up tables need; give the study file (.toml) that the "
            "plan was made from, or the name of one of its miners"
        )
    named = {
        "a miner": registry().miners,
        "a mechanism": registry().mechanisms,
        "an accountant": registry().accountants,
    }
    for kind, components in named.items():
        if subject in components:
            return kind
    known = [name for components in named.values() for name in components]
    raise InputError(f"no miner, mechanism or accountant is named '{subject}'; {nearest(subject, known)}")


def _verify_mechanism(
    name: str, relations: Sequence[Relation], seconds: int
) -> tuple[Verification, Iterator[VerifiedCode]]:
    from dpframework.verify import Verification, check_losses, check_sampler
    from dpframework.verify.verified_component_records import mechanism_records

    with _progress() as tell:
        tell(f"sampling {name}")
        try:
            mechanism = registry().mechanisms[name].component(1)  # 1 is its privacy parameter, such as epsilon
        except TypeError:
            raise InputError(
                f"mechanism '{name}' is not made from one privacy parameter; "
                "verify it with dpframework.verify.check_sampler, which takes an instance"
            ) from None
        sampled = check_sampler(mechanism)
        tell(f"comparing the claims of {name}")
        compared = check_losses(mechanism, relations=relations, seconds=seconds)
        left_out = (f"{name}: the other pairs of answers",) if compared.cut_short else ()
        found = Verification(name, (), (), (sampled,), (compared,), left_out=left_out)
    return found, mechanism_records(found, name, type(mechanism), relations)


def _verify_accountant(name: str) -> Verification:
    from dpframework.verify import Verification, check_accountant

    with _progress() as tell:
        tell(f"comparing the totals of {name}")
        found = check_accountant(registry().accountants[name].component)
    return Verification(name, (), (), (), accountants=(found,))


def _verify_examples(
    subject: str, example: str | None, relation: Relation | None, amounts: Mapping[str, int], unit: PrivacyUnit
) -> tuple[Verification, Iterator[VerifiedCode]]:
    from dpframework.verify import verify_examples
    from dpframework.verify.verified_component_records import code_records

    # A study has its own relation and unit. A miner is verified under both relations and for the unit that is given.
    relations, own = tuple(Relation), None
    if subject.endswith(".toml"):
        study = load_study(read_path(subject)).study
        relations, own, schema = (study.relation,), study.unit, _with_few_rows(study)
        examples: Mapping[str, Example] = {
            name: Example(schema, MinerChain.of(name, study.miners), study.budget.delta) for name in study.miners
        }
    else:
        examples = registry().miners[subject].component.examples()
        if not examples:
            raise InputError(
                f"miner '{subject}' has no examples to verify it on; "
                "define its examples() or give a study file that uses it"
            )
    if example is not None:
        if example not in examples:
            raise InputError(f"'{subject}' has no example '{example}'; {nearest(example, examples)}")
        examples = {example: examples[example]}
    with _progress() as tell:
        relations = relations if relation is None else (relation,)
        if own is None:
            examples = {name: shown.for_units(unit.rows) for name, shown in examples.items()}
        found = verify_examples(subject, examples, relations=relations, tell=tell, unit=own or unit, **amounts)
    return found, code_records(found, examples)


def _with_few_rows(study: Study) -> Schema:
    """Return the study's schema. If it gives a public number of rows, this is made small enough for tests, and said."""
    schema = study.schema
    moved = study.unit.rows if study.relation is Relation.REPLACE_ONE else 0
    few = FEW_ROWS + moved
    if schema.rows is None or schema.rows <= few:
        return schema
    say(f"tested with rows = {few} instead of the schema's {schema.rows:,}: claims are tested on small tables")
    return attrs.evolve(schema, rows=few)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current work on standard error. Without a terminal it does nothing."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda what: None
        return
    from rich.text import Text

    with screen.status("verifying") as status:
        yield lambda what: status.update(Text(printable(what)))


def _show(found: Verification) -> None:
    from rich.table import Table

    if found.audits:
        audits = Table("example", "relation", "claim", "largest loss", "tightness", "replays", "per second", "verdict")
        for audited in found.audits:
            cells = ["", "no claim", "", "", ""]
            if audited.report is not None:
                report = audited.report
                speed = f"{report.replays / report.seconds:,.0f}"
                at = f" at delta {report.delta:g}" if report.delta else ""
                cells = [
                    f"{report.claim:.6g}{at}",
                    f"{report.worst:.6g}",
                    f"{report.tightness:.4f}",
                    f"{report.replays:,}",
                    speed,
                ]
            verdict = "holds" if audited.passed else "DOES NOT HOLD"
            if audited.report is not None and audited.report.showed_nothing:
                verdict = "nothing shown"
            audits.add_row(audited.example, audited.relation.value, *cells, verdict if audited.claimed else "")
        console().print(audits)
    if found.sensitivities:
        queries = Table("query", "relation", "largest change found / declared", "verdict")
        for searched in found.sensitivities:
            changes = ", ".join(f"{one.norm} {one.largest:.5g} / {one.declared:.5g}" for one in searched.measured)
            verdict = "holds" if searched.passed else "DOES NOT HOLD"
            queries.add_row(searched.query, searched.relation.value, changes, verdict)
        console().print(queries)
    for what in found.left_out:
        console().print(f"left out for lack of time: {what}", soft_wrap=True)
    for line in _lines(found):
        console().print(line, soft_wrap=True)
    console().print(found.verdict, soft_wrap=True)


def _lines(found: Verification) -> Iterator[str]:
    """Yield a line for each passed test that no printed table shows, each claim far from tight, and each problem."""
    from dpframework.verify.miners.audit_report import NEAR

    yield from (str(sampler) for sampler in found.samplers if sampler.passed)
    if found.bounding is not None and found.bounding.passed:
        yield str(found.bounding)
    if found.derivation is not None and found.derivation.passed:
        yield str(found.derivation)
    yield from (str(compared) for compared in found.losses if compared.passed)
    yield from (str(checked) for checked in found.accountants if checked.passed)
    for audited in found.audits:
        where = f"{audited.example}, {audited.relation}"
        if audited.tail is not None and audited.passed:
            yield f"{where}: {audited.tail}"
        if audited.report is not None and audited.passed and audited.report.tightness < NEAR:
            yield f"{where}: {audited.report.verdict}" + (
                f"; this claim is loose: {audited.loose}" * bool(audited.loose)
            )
        if audited.told_apart is not None and audited.told_apart.epsilon and audited.passed:
            yield f"{where}: {audited.told_apart}"
    yield from found.problems()
