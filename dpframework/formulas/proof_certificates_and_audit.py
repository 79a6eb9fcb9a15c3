"""Certificates of plans, and the audit of certificates.

A certificate holds a plan's hash, and proofs of the sensitivities that the plan claims. Each proof is an argument,
which is made of goals: SMT-LIB texts. A solver proves a goal by finding the text unsatisfiable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.formulas.proof_argument_audit import audit
from dpframework.formulas.proof_arguments import REASONS, Argument
from dpframework.formulas.proofs import Verdict
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.formulas.smt_goal_ground_test import query_problem
from dpframework.formulas.solvers import SOLVERS, versions
from dpframework.formulas.stored_verdicts import proved_claims

CERTIFICATE_VERSION = 1
CERTIFICATE_FILE = FileKind.of_pattern("a certificate", r'^\{\s*"certificate_version": ')
_SOLVERS_AGREE = f"at least one of {' and '.join(SOLVERS)} is right about each goal that both find unsatisfiable"


@final
@attrs.frozen
class Certificate:
    """The proofs of a plan's claims.

    Attributes
    ----------
    plan
        The plan's hash.
    proofs
        For each claim that is proved, the name of its score and the argument that proves the claim.
    unproved
        For each claim without a proof, one text with the claim and the reason.
    solvers
        The versions of the solvers that made the proofs, by the solvers' names.
    """

    plan: str
    proofs: tuple[tuple[str, Argument], ...]
    unproved: tuple[str, ...]
    solvers: Mapping[str, str]

    @classmethod
    def of(cls, plan: str, scored: Iterable[ScoreClaims], effort: int = 1) -> Certificate:
        """Prove the claims about a plan's formulas, and return the certificate with these proofs.

        Proofs that are in the user's cache already are taken from there.

        Parameters
        ----------
        plan
            The plan's hash.
        scored
            The formulas of the plan's steps, with their claims.
        effort
            The work that each solver may do per goal, as a multiple of the usual work.
        """
        proofs, unproved = [], []
        for one in dict.fromkeys(scored):
            for proof in proved_claims(one.shape, one.claims, effort):
                if proof.verdict is Verdict.PROVED and proof.argument is not None:
                    proofs.append((one.name, proof.argument))
                else:
                    unproved.append(f"{one.name}: {proof.claim.text}: {proof.problem or proof.verdict}")
        return cls(plan, tuple(proofs), tuple(unproved), versions())

    @property
    def trusted(self) -> tuple[str, ...]:
        """The assumptions that readers must judge, since neither solvers nor tests check them, one sentence each."""
        rules = dict.fromkeys(part.rule for _, argument in self.proofs for part in argument.walk())
        return (*(f"{rule}: {REASONS[rule]}" for rule in rules), f"solvers: {_SOLVERS_AGREE}")

    def to_json(self) -> str:
        """Return the certificate as JSON, with the SHA-256 of its content."""
        content = {
            "certificate_version": CERTIFICATE_VERSION,
            "plan": self.plan,
            "solvers": dict(self.solvers),
            "trusted": list(self.trusted),
            "unproved": list(self.unproved),
            "proofs": [{"name": name, **argument.to_dict()} for name, argument in self.proofs],
        }
        return json.dumps({**content, "sha256": _digest(content)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str = "certificate") -> Certificate:
        """Read the output of `to_json`.

        Raises
        ------
        InputError
            If the text is something else, has another version, or was changed after it was written.
        """
        try:
            form = parsed_json(text)
            claimed = form.pop("sha256")
            if form["certificate_version"] != CERTIFICATE_VERSION:
                raise InputError(f"has version {form['certificate_version']!r:.40}, not {CERTIFICATE_VERSION}")
            if claimed != _digest(form):
                raise InputError("does not fit its SHA-256; it was changed after it was written")
            proofs = tuple((str(one["name"]), Argument.from_dict(one)) for one in form["proofs"])
            return cls(form["plan"], proofs, tuple(map(str, form["unproved"])), dict(form["solvers"]))
        except InputError as wrong:
            raise InputError(f"{source}: {wrong}") from None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise InputError(f"{source}: is no certificate that dpframework wrote") from None


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@final
@attrs.frozen
class AuditedClaim:
    """The finding of an audit about one claim.

    Attributes
    ----------
    name
        The name of the score.
    text
        The claim.
    proved
        Whether the certificate has an argument for the claim, and the audit found no problem in the argument.
    problems
        The problems of the argument, one sentence each.
    """

    name: str
    text: str
    proved: bool
    problems: tuple[str, ...] = ()


def audit_certificate(
    certificate: Certificate,
    plan: str,
    scored: Iterable[ScoreClaims],
    effort: int = 1,
    tell: Callable[[str], None] = lambda what: None,
) -> Iterator[AuditedClaim]:
    """Yield a finding on each claim of a plan, then on each claim that the certificate has and the plan does not make.

    Parameters
    ----------
    certificate
        The certificate to audit.
    plan
        The hash of the plan that the certificate should be for.
    scored
        The formulas of the plan's steps, with their claims. An item may also have a scorer, which is the query's own
        code. Then the scorer's results are compared with the formula's.
    effort
        The work that each solver may do per goal, as a multiple of the usual work.
    tell
        A function that is called with a text before each part of the audit, to show progress.

    Raises
    ------
    InputError
        If the certificate is for another plan.
    """
    if certificate.plan != plan:
        raise InputError(f"the certificate is of plan {certificate.plan[:12]}, not of {plan[:12]}")
    arguments = {(name, argument.shape, argument.claim): argument for name, argument in certificate.proofs}
    for one in dict.fromkeys(scored):
        tell(f"comparing the query with the formula of {one.name}")
        apart = query_problem(one)
        for claim in one.claims:
            argument = arguments.pop((one.name, one.shape, claim), None)
            tell(f"auditing {claim.text} of {one.name}")
            problems = [] if argument is None else [*([apart] if apart else []), *audit(argument, effort)]
            yield AuditedClaim(one.name, claim.text, argument is not None and not problems, tuple(problems))
    for name, _, claim in arguments:
        yield AuditedClaim(name, claim.text, False, ("no step of the plan makes this claim about this formula",))
