"""All checks of the kit on one miner: its examples replayed, its queries searched, its mechanisms sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

import attrs

from dpframework.accountant import ZCDPAccountant
from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases
from dpframework.facts.privacy import Relation
from dpframework.mechanisms import Mechanism
from dpframework.queries import Query
from dpframework.run.miner import Example
from dpframework.verify.auditing import AuditReport, audit
from dpframework.verify.distinguishing import Distinguished, distinguish
from dpframework.verify.samplers import Probe, SamplerReport, check_sampler, probes, serves
from dpframework.verify.sensitivity import SensitivityReport, search_sensitivity
from dpframework.verify.subject import Subject
from dpframework.verify.tables import Held, Rows
from dpframework.verify.tail import TailReport, check_tail
from dpframework.verify.transcript import Extended, Made, Parted, record

SAMPLED = 2  # mechanisms of one name, with different parameters
Told = Callable[[str], None]


@final
@attrs.frozen
class Audited:
    """One example under one relation.

    Attributes
    ----------
    example
        Its name.
    report
        The replay audit; None where the plan claims nothing under the relation.
    told_apart
        What many runs on the worst pair of tables prove; None where there is none, or no runs were asked for.
    tail
        The tail test, where the plan claims an epsilon with a delta only.
    """

    example: str
    relation: Relation
    report: AuditReport | None = None
    told_apart: Distinguished | None = None
    tail: TailReport | None = None

    @property
    def claimed(self) -> bool:
        """Whether the plan claims anything under the relation."""
        return self.report is not None or self.tail is not None

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        if self.tail is not None:
            return self.tail.passed
        if self.report is None:
            return True
        return self.report.passed and (self.told_apart is None or self.told_apart.epsilon <= self.report.claim)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "example": self.example,
            "relation": self.relation.value,
            "claimed": self.claimed,
            "audit": None if self.report is None else self.report.to_dict(),
            "distinguished": None if self.told_apart is None else attrs.asdict(self.told_apart),
            "tail": None if self.tail is None else self.tail.to_dict(),
            "passed": self.passed,
        }


@final
@attrs.frozen
class Verification:
    """What the kit found on one miner.

    Attributes
    ----------
    name
        What was verified.
    audits
        One entry an example and relation.
    sensitivities
        One entry a query and relation.
    samplers
        One entry a mechanism.
    """

    name: str
    audits: tuple[Audited, ...]
    sensitivities: tuple[SensitivityReport, ...]
    samplers: tuple[SamplerReport, ...]

    @property
    def passed(self) -> bool:
        """Whether something is claimed, and nothing was found wrong."""
        return next(self.problems(), None) is None

    def problems(self) -> Iterator[str]:
        """Yield what was found wrong, each with the tables that show it."""
        if self.audits and not any(audited.claimed for audited in self.audits):
            yield "no example claims a finite epsilon, so there is nothing to replay"
        for audited in self.audits:
            where = f"{audited.example}, {audited.relation}: "
            if audited.report is not None:
                yield from (where + str(violation) for violation in audited.report.violations)
                if audited.told_apart is not None and audited.told_apart.epsilon > audited.report.claim:
                    yield where + str(audited.told_apart)
            if audited.tail is not None and not audited.tail.passed:
                yield where + str(audited.tail)
        yield from (f"{one.relation}: {one}" for one in self.sensitivities if not one.passed)
        yield from (str(one) for one in self.samplers if not one.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "verified": self.name,
            "passed": self.passed,
            "audits": [one.to_dict() for one in self.audits],
            "sensitivities": [one.to_dict() for one in self.sensitivities],
            "samplers": [one.to_dict() for one in self.samplers],
        }


def verify_examples(
    name: str,
    examples: Mapping[str, Example],
    *,
    relations: Iterable[Relation] = tuple(Relation),
    replays: int = 12_000,
    runs: int = 400,
    seed: int = 0,
    tell: Told = lambda what: None,
) -> Verification:
    """Run every check of the kit on some examples of a miner.

    Parameters
    ----------
    name
        What is verified, for the report.
    examples
        Miners on small schemas, by name.
    relations
        The neighbouring relations to verify; examples without a claim under one are noted.
    replays
        Of each audit.
    runs
        Of the distinguishing test on the worst pair of each audit, on each table; 0 for none.
    seed
        Of everything drawn but the mechanisms' private draws.
    tell
        Called with what is about to be done, for progress.

    Raises
    ------
    InputError
        If a miner refuses its schema.
    """
    audits: list[Audited] = []
    sensitivities: dict[Any, SensitivityReport] = {}
    samplers: dict[Mechanism, SamplerReport] = {}
    for example_name, example in examples.items():
        for relation in relations:
            subject = Subject(example.miner, example.schema, relation)
            tell(f"replaying {example_name}, {relation}")
            audits.append(_audited(example_name, subject, replays, runs, seed))
            if not audits[-1].claimed:
                continue
            for key, asked in _asked(subject):
                if key not in sensitivities:
                    tell(f"searching the sensitivity of {asked.query.text}")
                    sensitivities[key] = search_sensitivity(
                        asked.query,
                        example.schema,
                        relation,
                        inputs=asked.inputs,
                        derived=asked.derived,
                        pairs=max(replays // 8, 60),
                        seed=seed,
                    )
                alike = sum(1 for mechanism in samplers if mechanism.name == asked.mechanism.name)
                if asked.mechanism not in samplers and alike < SAMPLED:
                    tell(f"sampling {asked.mechanism.name}")
                    samplers[asked.mechanism] = check_sampler(asked.mechanism, given=_probes(subject, asked))
    return Verification(name, tuple(audits), tuple(sensitivities.values()), tuple(samplers.values()))


def _audited(name: str, subject: Subject, replays: int, runs: int, seed: int) -> Audited:
    """Replay one example under one relation, and tell its worst pair of tables apart."""
    given = subject.miner, subject.schema, subject.relation
    if subject.claim is not None:
        report = audit(*given, replays=replays, seed=seed)
        worst = report.worst_pair
        told_apart = _told_apart(subject, worst.tables, runs) if runs and worst is not None else None
        return Audited(name, subject.relation, report, told_apart)
    zcdp = ZCDPAccountant(subject.relation, delta="0.1").total(subject.plan)
    if zcdp is None or zcdp.epsilon is None:
        return Audited(name, subject.relation)
    return Audited(name, subject.relation, tail=check_tail(*given, runs=max(replays // 6, 200), seed=seed))


def _told_apart(subject: Subject, tables: tuple[Rows, Rows], runs: int) -> Distinguished:
    def run_on(rows: Rows) -> Callable[[int], Any]:
        return lambda seed: [made.output for made in record(subject, rows, seed).releases]

    one, other = tables
    return distinguish(run_on(one), run_on(other), runs=runs)


def _probes(subject: Subject, asked: _Asked) -> list[Probe] | None:
    """Return the kit's probes (None), or, for a mechanism that takes answers of its own kind, one of the plan's own."""
    if any(serves(asked.mechanism, probe) for probe in probes()):
        return None
    rows = _fitting(subject, bytes(k * k % subject.universe.kinds for k in range(30)))
    answer = asked.query.evaluate(subject.engine, Held(rows, asked.derived, 0), **asked.inputs)
    return [Probe(asked.query.facts(), lambda scale: answer)]


@final
@attrs.frozen(eq=False)
class _Asked:
    """A query with what a run gave it: its mechanism, inputs, and attributes that were derived before."""

    query: Query
    mechanism: Mechanism
    inputs: Mapping[str, Any]
    derived: tuple[tuple[Attribute, Cases], ...]


def _asked(subject: Subject) -> Iterator[tuple[Any, _Asked]]:
    """Yield the queries that some runs ask, each with a key that tells alike ones."""
    seen = set()
    kinds = subject.universe.kinds
    for seed, size in enumerate((0, 3, 12, 60, 60, 60)):
        rows = bytes(k % kinds for k in range(size))
        transcript = record(subject, _fitting(subject, rows), seed, flattening=3)
        derived: dict[int, tuple[tuple[Attribute, Cases], ...]] = {0: ()}
        for event in transcript.events:
            before = derived[event.rows]
            match event:
                case Parted():
                    derived.update(dict.fromkeys(event.parts, before))
                case Extended():
                    derived[event.result] = (*before, (event.attribute, event.cases))
                case Made():
                    query = event.charge.step.query
                    key = (
                        query.facts(),
                        event.charge.step.mechanism.name,
                        subject.relation,
                        subject.schema.fingerprint,
                    )
                    if key not in seen:
                        seen.add(key)
                        yield key, _Asked(query, event.charge.step.mechanism, event.inputs, before)


def _fitting(subject: Subject, rows: Rows) -> Rows:
    """Return rows cut or repeated to what the schema's public facts on their number allow."""
    least, most = subject.schema.rows or 0, subject.schema.row_bound
    return (rows + bytes(max(least - len(rows), 0)))[:most]
