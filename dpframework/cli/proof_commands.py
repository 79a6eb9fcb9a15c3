"""The commands `prove` and `audit-proof`, for claims about the formulas by which queries compute scores."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from dpframework.cli.command_classes import Command
from dpframework.cli.common import (
    REFUSED,
    Json,
    Subject,
    console,
    number_option,
    open_plan,
    path_option,
    print_json,
    warn_of_problems,
    write,
)
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.files import read_text, write_whole
from dpframework.facts.output_overwrite_rule import require_output
from dpframework.facts.phrases import count_text
from dpframework.study.plugin_registry import registry

if TYPE_CHECKING:
    from dpframework.formulas import Proof, ScoreClaims
    from dpframework.study.study_plan_totals_and_findings import StudyPlan

Effort = Annotated[
    int, number_option("How much work a solver may do for one goal of a proof, as a multiple of the usual work.")
]


app = typer.Typer()


@app.command(
    cls=Command, epilog="Example: dpframework prove dp-id3; dpframework prove study.toml --certificate study.proof.json"
)
def prove(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A miner, the name of a query of a miner, a study file or plan, or module:NAME of a formula or query.",
        ),
    ],
    refute: Annotated[
        list[str] | None,
        typer.Option(metavar="CLAIM", help="Only look for tables that refute this claim, such as 'fall=1/2'."),
    ] = None,
    effort: Effort = 1,
    certificate: Annotated[
        Path | None,
        path_option("FILE", "Write the proofs of a study or plan here, for 'audit-proof'.", "--certificate"),
    ] = None,
    record: Annotated[
        Path | None,
        path_option("FILE", "Add the proved claims to this file of records, as 'verify --record' does.", "--record"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove the sensitivities of scores from their formulas, for tables of any size, by two solvers. No data is opened.

    Exit code 1 if a claim is refuted.
    """
    from dpframework.formulas import Certificate, Verdict, proved_claims
    from dpframework.formulas.proof_certificates_and_audit import CERTIFICATE_FILE
    from dpframework.plan.verification_records_file import VERIFIED_FILE

    warn_of_problems()
    for path, kind in ((certificate, CERTIFICATE_FILE), (record, VERIFIED_FILE)):
        if path is not None:
            require_output(path, kind)
    if (certificate is not None or record is not None) and refute:
        raise InputError("--refute makes no proofs to write; leave out --certificate and --record")
    plan = open_plan(Path(subject)) if subject.endswith((".toml", ".json")) else None
    if certificate is not None and plan is None:
        raise InputError(f"--certificate needs a study file or a plan, not '{subject}'; leave --certificate out")
    scored = list(dict.fromkeys(_find_scores(subject) if plan is None else _of_plan(plan)))
    if not scored:
        raise InputError(f"no query of '{subject}' computes scores by a formula, so there is nothing to prove")
    if refute:
        found = _refute(scored, refute)
    else:
        _require_provable(scored)
        found = [(one, proved_claims(one.shape, one.claims, effort)) for one in scored]
    if certificate is not None and plan is not None:
        write_whole(certificate, Certificate.of(plan.hash, scored, effort).to_json(), CERTIFICATE_FILE)
    if record is not None:
        _record(record, found)
    if as_json:
        forms = [(one, [_form(proof) for proof in those]) for one, those in found]
        print_json([{"name": one.name, "formula": one.shape.text, "claims": claims} for one, claims in forms])
    else:
        for one, those in found:
            _show(one, those)
    if any(proof.verdict is Verdict.REFUTED for _, those in found for proof in those):
        raise typer.Exit(REFUSED)


@app.command("audit-proof", cls=Command, epilog="Example: dpframework audit-proof study.toml")
def audit_proof(
    study: Subject,
    certificate: Annotated[
        Path | None,
        path_option("FILE", "The certificate; by default STUDY with the ending .proof.json.", "--certificate"),
    ] = None,
    effort: Effort = 1,
    as_json: Json = False,
) -> None:
    """Check the proofs of a plan's claims again, without trusting the code that made them. No data is opened.

    For a study file, the queries that would run are also compared with their formulas. Exit code 1 if a proof does not
    stand.
    """
    warn_of_problems()
    from dpframework.formulas import Certificate, audit_certificate, require_solvers

    require_solvers()
    plan = open_plan(study)
    path = study.with_suffix(".proof.json") if certificate is None else certificate
    read = Certificate.from_json(read_text(path, "a certificate that 'prove --certificate' writes"), str(path))
    found = list(audit_certificate(read, plan.hash, _of_plan(plan), effort))
    problems = [problem for one in found for problem in one.problems]
    if as_json:
        claims = [
            {"name": one.name, "claim": one.text, "stands": one.proved, "problems": list(one.problems)} for one in found
        ]
        print_json({"plan": plan.hash, "claims": claims, "solvers": dict(read.solvers), "trusted": list(read.trusted)})
    else:
        for one in found:
            verdict = "stands" if one.proved else "DOES NOT STAND" if one.problems else "not proved"
            write(f"{one.name}: {one.text}: {verdict}")
        for problem in problems:
            write(f"problem: {problem}")
        write("no program checks these assumptions, so read them yourself:")
        for sentence in read.trusted:
            write(f"  {sentence}")
        proved = sum(one.proved for one in found)
        write(f"{count_text(proved, 'proof')} of {count_text(len(found), 'claim')} stand, for plan {plan.hash[:12]}")
    if problems:
        raise typer.Exit(REFUSED)


def _require_provable(scored: Sequence[ScoreClaims]) -> None:
    """Check that solvers are installed, and that queries score random tables as their formulas do.

    A proof about another score would say nothing.

    Raises
    ------
    InputError
        If a solver is missing, or if the code of a query computes something else than its formula.
    """
    from dpframework.formulas import query_problem, require_solvers

    require_solvers()
    for one in scored:
        if problem := query_problem(one):
            raise InputError(
                f"{one.name} does not compute its formula, '{one.shape.text}': {problem}; nothing is proved"
            )


def _record(path: Path, found: Sequence[tuple[ScoreClaims, tuple[Proof, ...]]]) -> None:
    """Add the claims that are proved to a file of verification records."""
    from dpframework.plan.verification_records_file import ProvedClaim, VerificationRecords

    known = VerificationRecords.load(path) if path.exists() else VerificationRecords()
    records = [ProvedClaim.of(one, proof) for one, those in found for proof in those]
    known.record(path, (), [one for one in records if one is not None])


def _of_plan(plan: StudyPlan) -> Iterator[ScoreClaims]:
    """Yield the score formulas of a plan's steps.

    If the plan comes from a study file, each formula also has the code that computes the scores. A plan in JSON lacks
    this code.
    """
    for step in plan.steps():
        yield from step.query.scored_formulas


def _find_scores(subject: str) -> Iterator[ScoreClaims]:
    """Yield the score formulas of a subject.

    A subject is the name of a miner, the name of a query, or module:NAME of a formula or query to import. A miner has
    the formulas of the queries in its examples.
    """
    if ":" in subject:
        from dpframework.formulas import Cells, Parts, ScoreClaims, derive

        module, _, name = subject.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as problem:
            raise InputError(f"'{subject}' cannot be imported: {problem}") from None
        if isinstance(found, ScoreClaims):
            yield found
            return
        if isinstance(found, Parts | Cells):
            yield ScoreClaims(name, found, tuple(one.claim for one in derive(found)))
            return
        query = found() if isinstance(found, type) else found
        if not hasattr(query, "scored_formulas"):
            raise InputError(f"'{subject}' is neither a formula nor a query")
        yield from query.scored_formulas
        return
    known = registry().miners
    if subject in known:
        yield from (one for query in _queries(known[subject].component) for one in query.scored_formulas)
        return
    queries = [query for brought in known.values() for query in _queries(brought.component)]
    named = [query for query in queries if query.name == subject]
    if not named:
        names = [*known, *(query.name for query in queries if query.scored_formulas)]
        raise InputError(f"no miner or query is named '{subject}'; {nearest(subject, names)}")
    yield from (one for query in named for one in query.scored_formulas)


def _queries(miner: Any) -> Iterator[Any]:
    """Yield the queries of a miner's examples."""
    from dpframework.plan import Step, walk

    for example in miner.examples().values():
        for node in walk(example.miner.plan(example.schema)):
            if isinstance(node, Step):
                yield node.query


def _refute(scored: Sequence[ScoreClaims], texts: Sequence[str]) -> list[tuple[ScoreClaims, tuple[Proof, ...]]]:
    """Look for tables that refute claims, such as "fall=1/2", about each of some score formulas."""
    from dpframework.formulas import Change, Claim, Proof, Verdict, as_formula, find_refutation

    claims = []
    for text in texts:
        change, _, bound = text.partition("=")
        if change not in (Change.RISE, Change.FALL, Change.REPLACED):
            raise InputError(f"'{text}' is no claim; write rise=1, fall=1/2 or replaced=1")
        claims.append(Claim(Change(change), as_formula(bound)))
    found = []
    for one in scored:
        tables = [(claim, find_refutation(one.shape, claim)) for claim in claims]
        proofs = tuple(
            Proof(claim, Verdict.UNPROVED, problem="no table refutes it")
            if table is None
            else Proof(claim, Verdict.REFUTED, refuted_by=table)
            for claim, table in tables
        )
        found.append((attrs.evolve(one, claims=tuple(claims)), proofs))
    return found


def _form(proof: Proof) -> dict[str, Any]:
    return {
        "claim": proof.claim.text,
        "verdict": str(proof.verdict),
        "rules": list(proof.summary.rules),
        "goals": proof.summary.number,
        "characters": proof.summary.size,
        "sha256": proof.summary.digest,
        "proved": dict(proof.answers),
        "refuted_by": None if proof.refuted_by is None else str(proof.refuted_by),
        "problem": proof.problem,
    }


def _show(one: ScoreClaims, proofs: Sequence[Proof]) -> None:
    from rich.table import Table
    from rich.text import Text

    from dpframework.formulas import Verdict, describe_search, legend, nearest_neighbours

    body = getattr(one.shape, "body", None)
    bounds = [claim.bound for claim in one.claims]
    meanings = {
        letter: meaning
        for formula in (body, *bounds)
        if formula is not None
        for letter, meaning in legend(formula).items()
    }
    letters = "; ".join(f"{letter}: {meaning}" for letter, meaning in meanings.items())
    console().print(f"{one.name}: {one.shape.text}{f'  ({letters})' if letters else ''}", soft_wrap=True, markup=False)
    table = Table("claim", "verdict", "rules", "goals", "characters", "z3", "cvc5", "nearest tables")
    for proof in proofs:
        answers = dict(proof.answers)
        counts = [f"{answers[name]}/{proof.summary.number}" if name in answers else "" for name in ("z3", "cvc5")]
        size = (str(proof.summary.number), f"{proof.summary.size:,}") if proof.summary.number else ("", "")
        unproved = proof.verdict is Verdict.UNPROVED
        verdict = f"{describe_search(one.shape)}, not proved" if unproved else str(proof.verdict)
        nearest = proof.refuted_by or nearest_neighbours(one.shape, proof.claim)
        tables = Text("" if nearest is None else str(nearest))
        table.add_row(proof.claim.text, verdict, ", ".join(proof.summary.rules), *size, *counts, tables)
    console().print(table)
    for proof in proofs:
        if proof.problem:
            console().print(f"{proof.claim.text}: {proof.problem}", soft_wrap=True, markup=False)
