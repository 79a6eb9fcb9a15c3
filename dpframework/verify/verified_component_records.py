"""Records of verified miners and mechanisms, with the digests of their code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpframework.facts.privacy_losses import Relation
from dpframework.plan.code_digests import code_form, code_of
from dpframework.plan.nodes import sequential
from dpframework.plan.verification_records_file import VerifiedCode
from dpframework.run.miner_base_and_examples import Example, Miner
from dpframework.run.miner_chain import shown_miner
from dpframework.verify.verification_report import Verification


def code_records(found: Verification, examples: Mapping[str, Example]) -> Iterator[VerifiedCode]:
    """Yield a record for each miner of verified examples, and for each mechanism of their plans, under each relation.

    Tightness is the share of a claim that a search reached. A miner's record holds the smallest tightness of its
    audits. A mechanism's record holds the smallest tightness of the comparisons of its losses with its claims. A record
    counts as passed only if the whole verification passed.

    After a verification that passed, two kinds of records are left out, since they would show nothing: those whose
    tightness is 0, and those of mechanisms that were neither sampled nor compared with their claims. After a
    verification that failed, nothing is left out.
    """
    for relation in dict.fromkeys(audited.relation for audited in found.audits):
        audits = [one for one in found.audits if one.relation is relation and one.report is not None]
        by_miner: dict[type[Miner], list[str]] = {}
        for audited in audits:
            by_miner.setdefault(type(shown_miner(examples[audited.example].miner)), []).append(audited.example)
        for kind, names in by_miner.items():
            plans = sequential(*(examples[name].miner.plan(examples[name].schema) for name in names))
            code = code_of(plans, [("miner", kind.name, kind)])
            reports = [one.report for one in audits if one.report is not None and one.example in names]
            yield from _records(found, code, relation, names, _least(one.tightness for one in reports))


def mechanism_records(
    found: Verification, name: str, mechanism: type, relations: Iterable[Relation] = tuple(Relation)
) -> Iterator[VerifiedCode]:
    """Yield the records of a mechanism that was verified by itself, one for each of the relations."""
    code = code_form([("mechanism", name, mechanism)])
    for relation in relations:
        yield from _records(found, code, relation, [], None)


def _records(
    found: Verification, code: Mapping[str, Any], relation: Relation, examples: Iterable[str], reached: float | None
) -> Iterator[VerifiedCode]:
    for component in code["components"]:
        kind, name = component["kind"], component["name"]
        if kind == "miner":
            tightness, packages, tried = reached, code["packages"], True
        elif kind == "mechanism":
            compared = [one.tightness for one in found.losses if one.mechanism == name]
            tightness, tried = _least(compared), bool(compared) or name in [one.mechanism for one in found.samplers]
            own = ("dpframework", component["class"].partition(".")[0])
            packages = [package for package in code["packages"] if package["package"] in own]
        else:
            continue
        made = VerifiedCode(component, tuple(packages), relation, found.name, tuple(examples), found.passed, tightness)
        if (tried and not made.showed_nothing) or not found.passed:
            yield made


def _least(tightness: Iterable[float]) -> float | None:
    """Return the smallest finite tightness, rounded to six digits. None if none is finite, as under a claim of 0."""
    return min((round(one, 6) for one in tightness if math.isfinite(one)), default=None)
