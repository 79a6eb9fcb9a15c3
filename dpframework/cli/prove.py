"""The command `prove`, which proves what is claimed of the formulas that queries score by."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from dpframework.cli.common import REFUSED, Json, console, number_option, print_json, warn_of_problems
from dpframework.cli.parameters import Command
from dpframework.facts.errors import InputError, nearest
from dpframework.study.registry import registry

if TYPE_CHECKING:
    from dpframework.formulas import Claim, Proof, ScoreClaims


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog="Example: dpframework prove dp-id3")(prove)


def prove(
    subject: Annotated[
        str, typer.Argument(metavar="WHAT", help="A miner, a query of one, or module:NAME of a formula or a query.")
    ],
    refute: Annotated[
        list[str] | None,
        typer.Option(metavar="CLAIM", help="Look for a table against a claim, as in 'fall=1/2', instead of proving."),
    ] = None,
    effort: Annotated[int, number_option("How many times the usual work a solver may do for one goal.")] = 1,
    as_json: Json = False,
) -> None:
    """Prove the sensitivities of scores from their formulas, for tables of any size, by two solvers. No data is opened.

    Exit code 1 if a claim does not hold.
    """
    warn_of_problems()
    from dpframework.formulas import Verdict, proved_claims, require_solvers

    scored = list(dict.fromkeys(_scored(subject)))
    if not scored:
        raise InputError(f"'{subject}' scores by no formula, so that there is nothing to prove")
    if refute:
        scored = [attrs.evolve(one, claims=_claims(refute)) for one in scored]
        found = [(one, _refuted(one)) for one in scored]
    else:
        require_solvers()
        found = [(one, proved_claims(one.shape, one.claims, effort)) for one in scored]
    if as_json:
        print_json(
            [{"name": one.name, "formula": one.shape.text, "claims": [_form(p) for p in those]} for one, those in found]
        )
    else:
        for one, those in found:
            _show(one, those)
    if any(proof.verdict is Verdict.REFUTED for _, those in found for proof in those):
        raise typer.Exit(REFUSED)


def _scored(subject: str) -> Iterator[ScoreClaims]:
    """Yield the formulas of a miner's examples, of the queries of a name in any miner's, or of something imported."""
    if ":" in subject:
        yield from _imported(subject)
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


def _imported(subject: str) -> Iterator[ScoreClaims]:
    """Yield the formulas of a query, or of a formula, that a module holds."""
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


def _claims(texts: Sequence[str]) -> tuple[Claim, ...]:
    from dpframework.formulas import Change, Claim, as_formula

    claims = []
    for text in texts:
        change, _, bound = text.partition("=")
        if change not in (Change.RISE, Change.FALL, Change.REPLACED):
            raise InputError(f"'{text}' is no claim; write rise=1, fall=1/2 or replaced=1")
        claims.append(Claim(Change(change), as_formula(bound)))
    return tuple(claims)


def _refuted(one: ScoreClaims) -> tuple[Proof, ...]:
    from dpframework.formulas import Proof, Verdict, refuting

    found = [(claim, refuting(one.shape, claim)) for claim in one.claims]
    return tuple(
        Proof(claim, Verdict.UNPROVED, problem="no table refutes it")
        if table is None
        else Proof(claim, Verdict.REFUTED, refuted_by=table)
        for claim, table in found
    )


def _form(proof: Proof) -> dict[str, Any]:
    return {
        "claim": proof.claim.text,
        "verdict": str(proof.verdict),
        "rules": list(proof.rules),
        "goals": proof.number,
        "characters": proof.size,
        "sha256": proof.digest,
        "proved": dict(proof.answers),
        "refuted_by": None if proof.refuted_by is None else str(proof.refuted_by),
        "problem": proof.problem,
    }


def _show(one: ScoreClaims, proofs: Sequence[Proof]) -> None:
    from rich.table import Table

    from dpframework.formulas import legend

    letters = "; ".join(f"{letter}: {meaning}" for letter, meaning in _letters(one, legend).items())
    console().print(f"{one.name}: {one.shape.text}{f'  ({letters})' if letters else ''}", soft_wrap=True, markup=False)
    table = Table("claim", "verdict", "rules", "goals", "characters", "z3", "cvc5", "nearest tables")
    for proof in proofs:
        answers = dict(proof.answers)
        counts = [f"{answers[name]}/{proof.number}" if name in answers else "" for name in ("z3", "cvc5")]
        size = (str(proof.number), f"{proof.size:,}") if proof.number else ("", "")
        table.add_row(
            proof.claim.text, _verdict(one, proof), ", ".join(proof.rules), *size, *counts, _tables(one, proof)
        )
    console().print(table)
    for proof in proofs:
        if proof.problem:
            console().print(f"{proof.claim.text}: {proof.problem}", soft_wrap=True, markup=False)


def _verdict(one: ScoreClaims, proof: Proof) -> str:
    from dpframework.formulas import Verdict, searched

    return f"{searched(one.shape)}, not proved" if proof.verdict is Verdict.UNPROVED else str(proof.verdict)


def _letters(one: ScoreClaims, legend: Any) -> dict[str, str]:
    body = getattr(one.shape, "body", None)
    bounds = [claim.bound for claim in one.claims]
    return {
        letter: meaning
        for formula in (body, *bounds)
        if formula is not None
        for letter, meaning in legend(formula).items()
    }


def _tables(one: ScoreClaims, proof: Proof) -> Any:
    """Return the tables that refute a claim, or come nearest to it."""
    from rich.text import Text

    from dpframework.formulas import nearest_neighbours

    found = proof.refuted_by or nearest_neighbours(one.shape, proof.claim)
    return Text("" if found is None else str(found))
