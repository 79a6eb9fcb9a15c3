"""A file of verification records. They say which code was tested, when and how tightly, and which claims were proved.

A record of a test holds digests of the code that was tested (see `code_digests`), so it counts for exactly that code.
The file does not prove who wrote it: anyone with write access can put anything into it. Keep it where only people you
trust can write.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text, write_whole
from dpframework.facts.json_reader_and_schema_check import parsed_json, require_form
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.facts.privacy_losses import Relation
from dpframework.formulas.score_structures import Shape
from dpframework.formulas.sensitivity_claims_and_neighbours import Claim, ScoreClaims
from dpframework.plan.code_digests import changes
from dpframework.plan.plan import Plan

if TYPE_CHECKING:
    from dpframework.formulas.proofs import Proof

#: The version of the file.
VERIFIED_VERSION = 1

#: The kind of the files that `VerificationRecords.record` writes.
VERIFIED_FILE = FileKind.of_pattern("a record", r'^\{\s*"verified_version": ')
#: The kinds of code that are verified.
KINDS = ("miner", "mechanism")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@final
@attrs.frozen
class VerifiedCode:
    """The record of one verification of a miner's or mechanism's code, under one relation.

    Attributes
    ----------
    component
        The kind, name, class and digest of the code, as in a plan.
    packages
        The packages of the verified code, as in a plan.
    relation
        The neighbouring relation under which the code was verified.
    subject
        The name of the miner or mechanism, or the study file, that was verified.
    examples
        The names of the miner's or mechanism's examples, or of the study's steps.
    passed
        Whether the verification found no error.
    tightness
        The largest loss that the search found, divided by the claimed loss. If there were several searches, such as one
        for each example, this is the smallest of their ratios. None if there was no search, or if every claim is 0.
    time
        The time of the verification, in UTC.
    """

    component: Mapping[str, str]
    packages: tuple[Mapping[str, str], ...]
    relation: Relation
    subject: str
    examples: tuple[str, ...]
    passed: bool
    tightness: float | None
    time: str = attrs.field(factory=_now)

    @property
    def key(self) -> tuple[str, ...]:
        """The key of this record. A later record with the same key replaces it."""
        return (self.component["kind"], self.component["name"], self.relation.value, self.subject)

    @property
    def showed_nothing(self) -> bool:
        """Whether the search found no loss at all, and so says nothing about the claim."""
        return self.passed and self.tightness == 0

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        form = attrs.asdict(self, recurse=False)
        return {**form, "relation": self.relation.value, "packages": [*self.packages], "examples": [*self.examples]}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> VerifiedCode:
        """Read the output of `to_dict`."""
        lists = {"packages": tuple(form["packages"]), "examples": tuple(form["examples"])}
        return cls(**{**form, **lists, "relation": Relation(form["relation"])})

    def __str__(self) -> str:
        """Write the date, the relation, the subject and the tightness."""
        reached = "" if self.tightness is None else f", the search reached {100 * self.tightness:.0f} % of the claim"
        return f"verified on {self.time} under {self.relation} ({self.subject}){reached}"


@final
@attrs.frozen
class ProvedClaim:
    """The record that solvers have proved one claim about a formula, for tables of any size.

    Attributes
    ----------
    claimed
        The SHA-256, in hex, of the formula and the claim together.
    formula, claim
        The formula and the claim as texts.
    goals
        The SHA-256, in hex, of the goals: the statements that the solvers proved.
    solvers
        The solvers that proved the goals, with their versions.
    rules
        The SHA-256, in hex, of the code of the proof rules.
    time
        The time of the proof, in UTC.
    """

    claimed: str
    formula: str
    claim: str
    goals: str
    solvers: Mapping[str, str]
    rules: str
    time: str = attrs.field(factory=_now)

    @classmethod
    def of(cls, scored: ScoreClaims, proof: Proof) -> ProvedClaim | None:
        """Return the record of a proof; None if the claim is not proved."""
        from dpframework.formulas.proofs import Verdict
        from dpframework.formulas.solvers import versions
        from dpframework.formulas.stored_verdicts import rules_digest

        if proof.verdict is not Verdict.PROVED:
            return None
        claimed, (formula, claim) = claim_digest(scored.shape, proof.claim), (scored.shape.text, proof.claim.text)
        return cls(claimed, formula, claim, proof.summary.digest, versions(), rules_digest())

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> ProvedClaim:
        """Read the output of `attrs.asdict`."""
        return cls(**form)


def claim_digest(shape: Shape, claim: Claim) -> str:
    """Return the SHA-256, in hex, of a formula and a claim about it."""
    return hashlib.sha256(json.dumps([shape.form, claim.form], separators=(",", ":")).encode()).hexdigest()


@final
@attrs.frozen
class VerificationRecords:
    """A file of verification records.

    Attributes
    ----------
    records
        One record for each piece of code, relation and subject.
    digest
        The SHA-256, in hex, of the text of the file.
    proofs
        One record for each proved claim about a formula.
    """

    records: tuple[VerifiedCode, ...] = ()
    digest: str = ""
    proofs: tuple[ProvedClaim, ...] = ()

    def proves(self, shape: Shape, claim: Claim) -> ProvedClaim | None:
        """Return the record of a claim that was proved by the present version of the proof rules, or None."""
        from dpframework.formulas.stored_verdicts import rules_digest

        claimed = claim_digest(shape, claim)
        return next((one for one in self.proofs if one.claimed == claimed and one.rules == rules_digest()), None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VerificationRecords:
        """Read a file of verification records.

        Raises
        ------
        InputError
            If the file cannot be read, or is not a file of verification records.
        """
        text = read_text(Path(path), "a file that 'dpframework verify --record' writes")
        try:
            form = parsed_json(text)
            version = form.get("verified_version") if isinstance(form, Mapping) else None
            if version != VERIFIED_VERSION:
                raise InputError(
                    "is not a file that 'dpframework verify --record' writes"
                    if version is None
                    else f"has version {version!r:.40}; this dpframework reads version {VERIFIED_VERSION}"
                )
            require_form(form, "dpframework.plan", "verified.schema.json")
            records = tuple(VerifiedCode.from_dict(one) for one in form["records"])
            proofs = tuple(ProvedClaim.from_dict(one) for one in form.get("proofs", ()))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return cls(records, hashlib.sha256(text.encode()).hexdigest(), proofs)

    def record(
        self, path: str | os.PathLike[str], found: Iterable[VerifiedCode], proofs: Iterable[ProvedClaim] = ()
    ) -> None:
        """Write these records and `found` to a file. A found record replaces an earlier one with the same key.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        kept = {one.key: one for one in (*self.records, *found)}
        records = [kept[key].to_dict() for key in sorted(kept)]
        proved = {one.claimed: one for one in (*self.proofs, *proofs)}
        form: dict[str, Any] = {"verified_version": VERIFIED_VERSION, "records": records}
        if proved:
            form["proofs"] = [attrs.asdict(proved[claimed]) for claimed in sorted(proved)]
        write_whole(Path(path), json.dumps(form, indent=2) + "\n", VERIFIED_FILE)


@final
@attrs.frozen
class CodeVerdict:
    """Whether the code of one miner or mechanism of a plan was verified.

    Attributes
    ----------
    what
        The kind and name of the component.
    record
        A record of exactly this code. If there are several, one that did not pass is chosen, or else the tightest. None
        if there is no record, or if every search found no loss at all.
    reason
        Why `record` is None; empty if there is a record.
    """

    what: str
    record: VerifiedCode | None
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether exactly this code was verified without an error."""
        return self.record is not None and self.record.passed

    def reaches(self, tightness: float) -> bool:
        """Tell whether the code passed, and the search reached at least this share of the claim."""
        return self.passed and self.record is not None and (self.record.tightness or 0.0) >= tightness

    def __str__(self) -> str:
        """Write whether the code was verified, with the record or the reason why there is none."""
        if self.record is None:
            return f"{self.what}: not verified: {self.reason}"
        return f"{self.what}: {self.record}" + ("" if self.passed else ": A CLAIM DOES NOT HOLD")


def code_verdicts(plan: Plan, verified: VerificationRecords) -> Iterator[CodeVerdict]:
    """Yield, for each miner and mechanism of a plan, whether its code was verified under the plan's relation."""
    for component in plan.code.get("components", ()):
        if component["kind"] not in KINDS:
            continue
        what = f"{component['kind']} '{component['name']}'"
        about = [
            one
            for one in verified.records
            if (one.component["kind"], one.component["name"]) == (component["kind"], component["name"])
        ]
        under = sorted((one for one in about if one.relation is plan.relation), key=lambda one: one.time)
        same = [one for one in under if not _changes(one, plan)]
        if telling := [one for one in same if not one.showed_nothing]:
            # One failure outweighs all examples on which the claim held.
            best = max(telling, key=lambda one: (one.tightness or 0.0, one.time))
            yield CodeVerdict(what, next((one for one in telling if not one.passed), best))
        elif same:
            yield CodeVerdict(what, None, f"the search on {same[-1].time} found no loss at all, so it showed nothing")
        elif under:
            yield CodeVerdict(what, None, f"{'; '.join(_changes(under[-1], plan))} since {under[-1].time}")
        else:
            yield CodeVerdict(what, None, f"no record under {plan.relation}" if about else "no record of it")


def _changes(record: VerifiedCode, plan: Plan) -> list[str]:
    """Describe how the plan's code differs from the code of a record."""
    before = {"components": [record.component], "packages": record.packages}
    same = [one for one in plan.code["components"] if one["kind"] == record.component["kind"]]
    return changes(
        before, {**plan.code, "components": [one for one in same if one["name"] == record.component["name"]]}
    )
