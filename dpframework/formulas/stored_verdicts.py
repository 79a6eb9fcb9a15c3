"""Verdicts on claims, kept on disk so that nobody waits twice for the same proof.

Verdicts are stored under a digest of the formula, its claims, the work that a solver may do per goal, the code of
`dpframework.formulas` and the solvers' versions. A goal is a text that solvers must prove.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from pathlib import Path

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.formulas.proof_arguments import Argument
from dpframework.formulas.proofs import Proof, ProofSummary, Verdict, prove
from dpframework.formulas.score_structures import Shape
from dpframework.formulas.sensitivity_claims_and_neighbours import Claim
from dpframework.formulas.solvers import versions
from dpframework.formulas.user_cache_folder import cache_folder, write_cached


@functools.cache
def rules_digest() -> str:
    """Return the SHA-256 of the code of `dpframework.formulas`. If this code changes, claims are proved anew."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def proved_claims(shape: Shape, claims: tuple[Claim, ...], effort: int = 1) -> tuple[Proof, ...]:
    """Return verdicts on claims (see `prove`), from the cache if it has them.

    New verdicts are kept if the user's cache folder can be written. If a claim is refuted, no verdict is kept, since
    the tables that refute a claim are found again without solvers.
    """
    content = [shape.digest, [claim.form for claim in claims], effort, rules_digest(), sorted(versions().items())]
    path = cache_folder("proofs") / f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()}.json"
    # If the file is missing or holds something else, the claims are proved below.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, InputError):
        found = parsed_json(path.read_text(encoding="utf-8"))
        return tuple(
            Proof(
                claim,
                Verdict(one["verdict"]),
                None if one["argument"] is None else Argument.from_dict(one["argument"]),
                tuple((str(solver), int(proved)) for solver, proved in one["answers"]),
                problem=str(one["problem"]),
                summary=ProofSummary(tuple(one["rules"]), int(one["number"]), int(one["size"]), str(one["digest"])),
            )
            for one, claim in zip(found, claims, strict=True)
        )
    proofs = prove(shape, claims, effort)
    if all(proof.verdict is not Verdict.REFUTED for proof in proofs):
        forms = [
            {
                "verdict": str(proof.verdict),
                **attrs.asdict(proof.summary),
                "answers": proof.answers,
                "problem": proof.problem,
                "argument": None if proof.argument is None else proof.argument.to_dict(),
            }
            for proof in proofs
        ]
        write_cached(path, json.dumps(forms))
    return proofs
