"""All checks of the kit on one miner, which replay its examples, search its queries and sample its mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

import attrs

from dpframework.accountant import BUILT_IN, Accountant
from dpframework.facts.privacy import Relation
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.mechanisms import Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import QueryFacts
from dpframework.run.miner import Example
from dpframework.verify.accountants import AccountantReport, check_accountant
from dpframework.verify.audits import audit
from dpframework.verify.contributions import check_bounding
from dpframework.verify.distinguisher import Distinguished, distinguish
from dpframework.verify.losses import LossReport, check_losses
from dpframework.verify.patience import Patience
from dpframework.verify.query_trace import QueryCall, call_answers, evaluate, fitting, takes_any_answers, trace_queries
from dpframework.verify.samplers import Probe, SamplerReport, check_sampler
from dpframework.verify.sensitivity import SensitivityReport, search_sensitivity
from dpframework.verify.subject import Subject
from dpframework.verify.tables import Rows
from dpframework.verify.transcript import record
from dpframework.verify.verification_report import Audited, Verification

ALIKE = 3  # queries of one name with the same sensitivities, that differ in what they are asked of
UNIT = 3  # rows of a unit, for which what a query declares is searched in any case
SAMPLED = 2  # mechanisms of one name, with different parameters
DRAWN = 6_000  # outputs that a mechanism's tests draw or weigh, about, where it takes answers of its own kind
AUDIT = 0.6  # of an example's time
BOUNDED = 2  # attributes of the tables of people that are read
PEOPLE = 2  # such tables, for each way to hold one
COMPARED = 2  # mechanisms of one name, with different queries or relations


def verify_examples(
    name: str,
    examples: Mapping[str, Example],
    *,
    relations: Iterable[Relation] = tuple(Relation),
    replays: int = 6_000,
    runs: int = 100,
    seed: int = 0,
    seconds: float = math.inf,
    tell: Callable[[str], None] = lambda what: None,
    unit: PrivacyUnit = ROW,
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
    seconds
        Of this processor, that each example may take under a relation, about. What they leave out is listed, and
        depends on the machine.
    tell
        Called with what is about to be done, for progress.
    unit
        Whom the claims are to protect: replays are on tables that differ by one such unit. Where a column of ids names
        them, reading is tested to bound their rows (see `check_bounding`).

    Raises
    ------
    InputError
        If a miner refuses its schema.
    """
    verifying = _Verifying(replays, runs, seed, seconds, tell, unit)
    for example_name, example in examples.items():
        for relation in relations:
            verifying.verify(example_name, example, relation)
    found = verifying.found(name)
    if unit.id is None or not examples:
        return found
    tell("bounding the rows of people")
    schema = next(iter(examples.values())).schema
    few = schema.select([attribute for attribute in schema.names if attribute != unit.id][:BOUNDED])
    return attrs.evolve(found, bounding=check_bounding(few, unit, tables=PEOPLE, seed=seed))


@final
class _Verifying:
    """The findings so far."""

    def __init__(
        self, replays: int, runs: int, seed: int, seconds: float, tell: Callable[[str], None], unit: PrivacyUnit
    ) -> None:
        self._replays, self._runs, self._seed, self._seconds, self._tell = replays, runs, seed, seconds, tell
        self._unit = unit
        self._audits: list[Audited] = []
        self._left_out: list[str] = []
        self._accountants: dict[type[Accountant[Any]], AccountantReport] = {}
        self._asking = _Asking(replays, seed, self._left_out, tell)

    def verify(self, name: str, example: Example, relation: Relation) -> None:
        """Replay one example under one relation, tell its worst pair of tables apart, and check its queries."""
        subject = Subject(example.miner, example.schema, relation, delta=example.delta, unit=self._unit)
        where, patience = f"{name}, {subject.relation}", Patience(self._seconds)
        if subject.delta_needed is None:
            self._audits.append(Audited(name, subject.relation))
            return
        self._check_accountant(subject.accountant_at(subject.delta_needed))
        report = audit(
            subject.miner,
            subject.schema,
            subject.relation,
            delta=subject.delta,
            replays=self._replays,
            seed=self._seed,
            witnesses=example.witnesses,
            tell=lambda what: self._tell(f"replaying {where}: {what}"),
            seconds=patience.left * AUDIT,
            unit=self._unit,
        )
        if report.cut_short:
            self._left_out.append(f"the replay audit of {where} ended after {report.replays:,} replays")
        told_apart = None
        if self._runs and report.worst_pair is not None:
            self._tell(f"telling tables apart, {where}")
            told_apart = _told_apart(subject, report.worst_pair.tables, report.delta, self._runs, patience.part(1 / 2))
            if told_apart is None:
                self._left_out.append(f"telling tables apart by runs of {where}, which take too long")
        self._audits.append(Audited(name, subject.relation, report, told_apart))
        self._asking.check(subject, patience)

    def _check_accountant(self, kind: type[Accountant[Any]]) -> None:
        """Check an accountant that gives a plan its total. The built-in ones have the project's own tests."""
        if kind not in BUILT_IN and kind not in self._accountants:
            self._tell(f"comparing the totals of accountant '{kind.name}'")
            self._accountants[kind] = check_accountant(kind)

    def found(self, name: str) -> Verification:
        """Return all of it."""
        asking = self._asking
        sensitivities, samplers = tuple(asking.sensitivities.values()), tuple(asking.samplers.values())
        losses, left_out = tuple(asking.losses.values()), tuple(self._left_out)
        accountants = tuple(self._accountants.values())
        return Verification(
            name, tuple(self._audits), sensitivities, samplers, losses, left_out, accountants=accountants
        )


@final
class _Asking:
    """Checks of each query's sensitivity and of some mechanisms' draws and claims, as runs ask for them."""

    def __init__(self, replays: int, seed: int, left_out: list[str], tell: Callable[[str], None]) -> None:
        self._pairs, self._seed, self._left_out, self._tell = max(replays // 8, 60), seed, left_out, tell
        self.sensitivities: dict[Any, SensitivityReport] = {}
        self._units: set[Any] = set()
        self._alike: dict[Any, list[tuple[str, SensitivityReport]]] = {}
        self.samplers: dict[Mechanism, SamplerReport] = {}
        self.losses: dict[tuple[Mechanism, QueryFacts, Relation], LossReport] = {}

    def check(self, subject: Subject, patience: Patience) -> None:
        """Check the queries of a subject's runs that were not checked before."""
        for asked in trace_queries(subject):
            if patience.over:
                self._left_out.append(f"the sensitivity of {asked.query.text}")
            else:
                self._check_mechanism(subject, asked, self._search(subject, asked, patience), patience)
                self._search_unit(subject, asked, patience)

    def _search(self, subject: Subject, asked: QueryCall, patience: Patience) -> SensitivityReport | None:
        """Search a query's sensitivity, or return the findings of an equal one on the same schema."""
        facts, schema = asked.query.facts(), subject.schema.fingerprint
        rows = subject.by.rows if asked.query.for_rows(subject.by.rows) else 1
        key = facts, subject.relation, schema
        alike = self._alike.setdefault((facts.name, facts.sensitivities, subject.relation), [])
        if key not in self.sensitivities and len(alike) >= ALIKE:
            return next((found for of_schema, found in alike if of_schema == schema), None)
        if key not in self.sensitivities:
            self._tell(f"searching the sensitivity of {asked.query.text}")
            self.sensitivities[key] = search_sensitivity(
                asked.query,
                subject.schema,
                subject.relation,
                inputs=asked.inputs,
                derived=asked.derived,
                pairs=self._pairs,
                seed=self._seed,
                seconds=patience.left / 2,
                rows=rows,
            )
            alike.append((schema, self.sensitivities[key]))
        return self.sensitivities[key]

    def _search_unit(self, subject: Subject, asked: QueryCall, patience: Patience) -> None:
        """Search a query's declaration for a unit of several rows, though no run asks for one here."""
        facts, declared = asked.query.facts(), asked.query.for_rows(UNIT)
        like, bound = (facts.name, tuple(declared), subject.relation), subject.schema.row_bound
        if subject.by.rows > 1 or not declared or like in self._units or patience.over:
            return
        if bound is not None and bound <= UNIT:
            return  # no room for a unit
        self._units.add(like)
        found = search_sensitivity(
            asked.query,
            subject.schema,
            subject.relation,
            inputs=asked.inputs,
            derived=asked.derived,
            pairs=self._pairs // 2,
            seed=self._seed,
            seconds=patience.left / 2,
            rows=UNIT,
        )
        self.sensitivities[like] = attrs.evolve(found, query=f"{found.query}, of a unit of {UNIT} rows")

    def _check_mechanism(
        self, subject: Subject, asked: QueryCall, searched: SensitivityReport | None, patience: Patience
    ) -> None:
        mechanism, facts = asked.mechanism, asked.query.facts()
        made_up = takes_any_answers(mechanism)
        if not made_up and not _can_be_drawn(subject, asked, patience):
            self._left_out.append(f"sampling {mechanism.name} on {facts.text}, of which a draw takes too long")
            return
        alike = sum(1 for known in self.samplers if known.name == mechanism.name)
        if mechanism not in self.samplers and alike < SAMPLED:
            self._tell(f"sampling {mechanism.name}")
            self.samplers[mechanism] = check_sampler(mechanism, given=_probes(subject, asked))
        compared = [known for by, known, at in self.losses if (by.name, at) == (mechanism.name, subject.relation)]
        tables = [] if searched is None else [measured.tables for measured in searched.measured]
        if (tables or made_up) and len(compared) < COMPARED and facts.name not in [known.name for known in compared]:
            self._tell(f"comparing the claims of {mechanism.name}")
            given = [call_answers(subject, asked, tables)]
            relations = [subject.relation]
            found = check_losses(mechanism, given=given, relations=relations)
            self.losses[mechanism, facts, subject.relation] = found


def _told_apart(
    subject: Subject, tables: tuple[Rows, Rows], delta: float, runs: int, patience: Patience
) -> Distinguished | None:
    """Run a miner on two tables and tell them apart, or return None if there is no time."""

    def run_on(rows: Rows) -> Callable[[int], Any]:
        return lambda seed: [made.output for made in record(subject, rows, seed).releases]

    one, other = tables
    if not patience.allows(2 * runs, lambda: run_on(one)(0)):
        return None
    return distinguish(run_on(one), run_on(other), runs=runs, delta=delta)


def _can_be_drawn(subject: Subject, asked: QueryCall, patience: Patience) -> bool:
    """Tell whether there is time for the draws from answers of the plan's own that a mechanism's tests make."""
    answer = evaluate(subject, asked, fitting(subject, bytes(1)))
    calibration = asked.mechanism.calibrate(asked.query.facts(), subject.relation)
    if calibration is None:
        return True
    randomness = SeededRandomness(0).handed(asked.mechanism.assumptions)
    return patience.allows(DRAWN, lambda: asked.mechanism.release(answer, calibration, randomness))


def _probes(subject: Subject, asked: QueryCall) -> list[Probe] | None:
    """Return the kit's probes (None), or, for a mechanism that takes answers of its own kind, one of the plan's own."""
    if takes_any_answers(asked.mechanism):
        return None
    rows = fitting(subject, bytes(k * k % subject.universe.kinds for k in range(30)))
    answer = evaluate(subject, asked, rows)
    return [Probe(asked.query.facts(), lambda scale: answer)]
