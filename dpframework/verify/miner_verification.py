"""All checks of the verification kit on one miner: of its examples, and of its plans' queries and mechanisms."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import attrs

from dpframework.accountant import BUILT_IN, Accountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.run.miner_base_and_examples import Example
from dpframework.verify.accountants.accountant_total_check import AccountantReport, check_accountant
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.distinguisher import distinguish
from dpframework.verify.miners.replay_audit import audit
from dpframework.verify.miners.step_sensitivity_and_mechanism_checks import StepChecks
from dpframework.verify.miners.transcript import record
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.contribution_bounding_checks import check_bounding
from dpframework.verify.tables.derived_cell_checks import check_derivation
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.verification_report import ExampleAudit, Verification

STEPS = 0.35  # the share of the time for checks of steps; the rest is for audits
# The checks of one example's steps may take this share of the time that is left for steps, since later examples have
# fewer new steps. For the last example, the checks may take all that is left.
STEPS_AT_ONCE = 0.3
AUDIT = 0.8  # the share of an example's time for its audit; the rest is for telling two tables apart
BOUNDED = 2  # how many attributes a made-up table of people has besides its ids
PEOPLE = 2  # how many tables of a few people each reader of tables is tested on


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
        The name of what is verified, for the report.
    examples
        Miners on small schemas, by name.
    relations
        The neighbouring relations to verify. The findings note each example that claims nothing under one of them.
    replays
        About how many replays each audit makes. A replay compares the probabilities of one run's outputs on two tables.
    runs
        How often the distinguishing test runs on each of the two tables with the largest loss. 0 leaves the test out.
    seed
        The seed of everything drawn except the mechanisms' private draws.
    seconds
        About how many processor seconds all checks may take together. Checks of single steps come first, and get about
        a third. Each audit of an example under a relation then gets an equal share of what is left. The report lists
        what was left out, which depends on the machine.
    tell
        A function that shows progress. It is called with a text that says what is about to be done.
    unit
        Whom the claims are to protect: the tables of a replay differ by one such unit. If it is a row, each example's
        own unit is taken (see `Example.unit_for`). If a column of ids names the units, a further check tests that
        reading bounds the rows of each unit (see `check_bounding`). It uses the first example's schema. Whatever the
        unit, the derived columns of the first schema that has some are tested, too (see `check_derivation`).

    Raises
    ------
    InputError
        If a miner refuses its schema, if its code ends the process, if an audit refuses the schema or `replays` (see
        `audit`), or if the distinguishing test refuses `runs`, which must be 0 or at least 100.
    """
    checks = _ExampleChecks(replays, runs, seed, seconds, tell, unit)
    subjects = [(name, example, relation) for name, example in examples.items() for relation in relations]
    checks.verify(subjects)
    found = checks.findings(name)
    derived = next((example.schema for example in examples.values() if example.schema.derivation), None)
    if derived is not None:
        tell("deriving columns")
        found = attrs.evolve(found, derivation=check_derivation(derived, seed=seed))
    if unit.id is None or not examples:
        return found
    tell("bounding the rows of people")
    schema = next(iter(examples.values())).schema
    few = schema.select([attribute for attribute in schema.names if attribute != unit.id][:BOUNDED])
    return attrs.evolve(found, bounding=check_bounding(few, unit, tables=PEOPLE, seed=seed))


@final
class _ExampleChecks:
    """One verification, with its findings so far."""

    def __init__(
        self, replays: int, runs: int, seed: int, seconds: float, tell: Callable[[str], None], unit: PrivacyUnit
    ) -> None:
        self._replays, self._runs, self._seed, self._patience, self._tell = replays, runs, seed, Patience(seconds), tell
        self._unit = unit
        self._audits: list[ExampleAudit] = []
        self._left_out: list[str] = []
        self._accountants: dict[type[Accountant[Any]], AccountantReport] = {}
        self._step_checks = StepChecks(replays, seed, self._left_out, tell)

    def verify(self, subjects: Sequence[tuple[str, Example, Relation]]) -> None:
        """Check the steps of all examples under each relation, and then audit each example."""
        steps, number, made = self._patience.part(STEPS), len(subjects), []
        try:
            for k, (name, example, relation) in enumerate(subjects):
                unit = example.unit_for(self._unit)
                subject = Subject(example.miner, example.schema, relation, delta=example.delta, unit=unit)
                made.append((name, example, subject))
                if subject.delta_needed is not None:
                    self._step_checks.check(subject, steps.part(STEPS_AT_ONCE if k < number - 1 else 1))
            for k, (name, example, subject) in enumerate(made):
                self._audit(name, example, subject, self._patience.part(1 / (number - k)))
        except SystemExit as ended:  # it would end the verification without a word
            names = ", ".join(dict.fromkeys(example.miner.name for _, example, _ in subjects))
            raise InputError(f"the code of {names} ends the process (SystemExit); raise an error instead") from ended

    def _audit(self, name: str, example: Example, subject: Subject, patience: Patience) -> None:
        """Audit one example, and try to tell the two tables with the largest loss apart by many runs."""
        where = f"{name}, {subject.relation}"
        if subject.delta_needed is None:
            self._audits.append(ExampleAudit(name, subject.relation))
            return
        kind = subject.accountant_at(subject.delta_needed)
        # The project's own tests check the built-in accountants.
        if kind not in BUILT_IN and kind not in self._accountants:
            self._tell(f"comparing the totals of accountant '{kind.name}'")
            self._accountants[kind] = check_accountant(kind)
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
            unit=subject.unit,
        )
        if report.cut_short:
            self._left_out.append(f"the replay audit of {where} ended after {report.replays:,} replays")
        told_apart = None
        if self._runs and report.worst_pair is not None:
            self._tell(f"telling tables apart, {where}")
            one, other = (functools.partial(_outputs, subject, rows) for rows in report.worst_pair.tables)
            if patience.part(1 / 2).allows(2 * self._runs, lambda: one(0)):
                told_apart = distinguish(one, other, runs=self._runs, delta=report.delta)
            else:
                self._left_out.append(f"telling tables apart by runs of {where}, which take too long")
        self._audits.append(ExampleAudit(name, subject.relation, report, told_apart, example.loose))

    def findings(self, name: str) -> Verification:
        """Return all findings."""
        checks = self._step_checks
        checks.evaluate_in_new_process()
        return Verification(
            name,
            tuple(self._audits),
            tuple(checks.sensitivities.values()),
            tuple(checks.samplers.values()),
            tuple(checks.losses.values()),
            tuple(dict.fromkeys(self._left_out)),
            accountants=tuple(self._accountants.values()),
            related_runs=tuple(checks.runs),
        )


def _outputs(subject: Subject, rows: Rows, seed: int) -> list[Any]:
    """Return the outputs of all releases of a run."""
    return [made.output for made in record(subject, rows, seed).releases]
