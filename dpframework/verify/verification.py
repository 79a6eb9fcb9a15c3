"""All checks of the kit on one miner: its examples replayed, its queries searched, its mechanisms sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

import attrs

from dpframework.facts.privacy import Relation
from dpframework.mechanisms import Mechanism
from dpframework.queries import QueryFacts
from dpframework.run.miner import Example
from dpframework.verify.asked import Asked, answers_asked, evaluate, fitting, queries_asked, takes_made_up_answers
from dpframework.verify.auditing import audit
from dpframework.verify.distinguishing import Distinguished, distinguish
from dpframework.verify.findings import AuditReport
from dpframework.verify.losses import LossReport, check_losses
from dpframework.verify.samplers import Probe, SamplerReport, check_sampler
from dpframework.verify.sensitivity import SensitivityReport, search_sensitivity
from dpframework.verify.subject import Subject
from dpframework.verify.tables import Rows
from dpframework.verify.tail import TailReport
from dpframework.verify.transcript import record

SAMPLED = 2  # mechanisms of one name, with different parameters
COMPARED = 4  # mechanisms of one name, with different parameters, queries or relations
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
    """

    example: str
    relation: Relation
    report: AuditReport | None = None
    told_apart: Distinguished | None = None

    @property
    def claimed(self) -> bool:
        """Whether the plan claims anything under the relation."""
        return self.report is not None

    @property
    def tail(self) -> TailReport | None:
        """The tail test, where the plan's claim with a delta was tested."""
        return None if self.report is None else self.report.tail

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
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
    losses
        One entry a mechanism, query and relation.
    """

    name: str
    audits: tuple[Audited, ...]
    sensitivities: tuple[SensitivityReport, ...]
    samplers: tuple[SamplerReport, ...]
    losses: tuple[LossReport, ...] = ()

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
        yield from (f"{one.relation}: {one}" for one in self.sensitivities if not one.passed)
        yield from (str(one) for one in self.samplers if not one.passed)
        yield from (str(one) for one in self.losses if not one.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "verified": self.name,
            "passed": self.passed,
            "audits": [one.to_dict() for one in self.audits],
            "sensitivities": [one.to_dict() for one in self.sensitivities],
            "samplers": [one.to_dict() for one in self.samplers],
            "losses": [one.to_dict() for one in self.losses],
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
    asking = _Asking(replays, seed, tell)
    for example_name, example in examples.items():
        for relation in relations:
            subject = Subject(example.miner, example.schema, relation, delta=example.delta)
            tell(f"replaying {example_name}, {relation}")
            audits.append(_audited(example_name, subject, replays, runs, seed))
            if audits[-1].claimed:
                asking.check(subject)
    sensitivities, samplers = tuple(asking.sensitivities.values()), tuple(asking.samplers.values())
    return Verification(name, tuple(audits), sensitivities, samplers, tuple(asking.losses.values()))


class _Asking:
    """Checks what runs ask: each query's sensitivity, and some mechanisms' draws and claims."""

    def __init__(self, replays: int, seed: int, tell: Told) -> None:
        self._pairs, self._seed, self._tell = max(replays // 8, 60), seed, tell
        self.sensitivities: dict[Any, SensitivityReport] = {}
        self.samplers: dict[Mechanism, SamplerReport] = {}
        self.losses: dict[tuple[Mechanism, QueryFacts, Relation], LossReport] = {}

    def check(self, subject: Subject) -> None:
        """Check what a subject's runs ask, but for what was checked before."""
        for key, asked in queries_asked(subject):
            if key in self.sensitivities:
                continue
            self._tell(f"searching the sensitivity of {asked.query.text}")
            self.sensitivities[key] = search_sensitivity(
                asked.query,
                subject.schema,
                subject.relation,
                inputs=asked.inputs,
                derived=asked.derived,
                pairs=self._pairs,
                seed=self._seed,
            )
            self._check_mechanism(subject, asked, self.sensitivities[key])

    def _check_mechanism(self, subject: Subject, asked: Asked, searched: SensitivityReport) -> None:
        mechanism, facts = asked.mechanism, asked.query.facts()
        alike = sum(1 for known in self.samplers if known.name == mechanism.name)
        if mechanism not in self.samplers and alike < SAMPLED:
            self._tell(f"sampling {mechanism.name}")
            self.samplers[mechanism] = check_sampler(mechanism, given=_probes(subject, asked))
        if sum(1 for known, _, _ in self.losses if known.name == mechanism.name) < COMPARED:
            self._tell(f"comparing the claims of {mechanism.name}")
            given = [answers_asked(subject, asked, searched)]
            relations = [subject.relation]
            found = check_losses(mechanism, given=given, relations=relations)
            self.losses[mechanism, facts, subject.relation] = found


def _audited(name: str, subject: Subject, replays: int, runs: int, seed: int) -> Audited:
    """Replay one example under one relation, and tell its worst pair of tables apart."""
    if subject.delta_needed is None:
        return Audited(name, subject.relation)
    report = audit(subject.miner, subject.schema, subject.relation, delta=subject.delta, replays=replays, seed=seed)
    worst = report.worst_pair
    told_apart = _told_apart(subject, worst.tables, report.delta, runs) if runs and worst is not None else None
    return Audited(name, subject.relation, report, told_apart)


def _told_apart(subject: Subject, tables: tuple[Rows, Rows], delta: float, runs: int) -> Distinguished:
    def run_on(rows: Rows) -> Callable[[int], Any]:
        return lambda seed: [made.output for made in record(subject, rows, seed).releases]

    one, other = tables
    return distinguish(run_on(one), run_on(other), runs=runs, delta=delta)


def _probes(subject: Subject, asked: Asked) -> list[Probe] | None:
    """Return the kit's probes (None), or, for a mechanism that takes answers of its own kind, one of the plan's own."""
    if takes_made_up_answers(asked.mechanism):
        return None
    rows = fitting(subject, bytes(k * k % subject.universe.kinds for k in range(30)))
    answer = evaluate(subject, asked, rows)
    return [Probe(asked.query.facts(), lambda scale: answer)]
