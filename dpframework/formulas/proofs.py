"""Proofs of claims about sensitivities, by two solvers.

A claim is refuted if a search finds two neighbouring tables with a larger change than is claimed. Otherwise goals are
written, which are SMT-LIB texts that deny the claim. In the ground test, the goals are compared with real tables. Then
two solvers must prove every goal, which means that they find the text unsatisfiable. An argument holds these goals, and
the rule that says why they are enough (see `proof_arguments`).
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import attrs

from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation
from dpframework.formulas.largest_change_search import find_refutation, in_range
from dpframework.formulas.proof_arguments import Argument, Fact, Rule
from dpframework.formulas.score_structures import Adds, Cells, Outer, Parts, Shape
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, Neighbours
from dpframework.formulas.sensitivity_from_small_tables import derive
from dpframework.formulas.smt_goal_ground_test import ground_problem, range_problem
from dpframework.formulas.smt_goal_writer import RESERVED, UnprovableError, without_claim
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals, range_goals, simpler_claims
from dpframework.formulas.smt_goals_for_part_scores import induction_goals, part_goals, provable_facts, replacement_goal
from dpframework.formulas.smt_goals_for_totals import outer_goals
from dpframework.formulas.smt_goals_for_vectors import norm_goals
from dpframework.formulas.solvers import CVC5, Z3, solve


class Verdict(enum.StrEnum):
    """The verdict on a claim."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNPROVED = "not proved"


@final
@attrs.frozen
class ProofSummary:
    """The number and length of an argument's goals, and its rules.

    Attributes
    ----------
    rules
        The names of the argument's rules.
    number, size
        How many goals the argument has, and their length in characters.
    digest
        The SHA-256 of the joined goals.
    """

    rules: tuple[str, ...] = ()
    number: int = 0
    size: int = 0
    digest: str = hashlib.sha256().hexdigest()

    @classmethod
    def of(cls, argument: Argument) -> ProofSummary:
        """Return the summary of an argument."""
        goals = argument.all_goals
        digest = hashlib.sha256("".join(goals).encode()).hexdigest()
        return cls(argument.rules, len(goals), sum(map(len, goals)), digest)


@final
@attrs.frozen
class Proof:
    """The outcome of an attempt to prove a claim.

    Attributes
    ----------
    claim
        The claim.
    verdict
        Whether the claim is proved, refuted, or neither.
    argument
        The goals and their rules. None if no rule applies, or if the claim is refuted.
    answers
        For each solver that was asked, its name and how many goals it proved before the first that it did not prove.
    refuted_by
        Neighbours that refute the claim, if there are any.
    problem
        The reason why the claim was not proved. Empty if it was proved or refuted.
    summary
        The number and length of the argument's goals, and its rules.
    """

    claim: Claim
    verdict: Verdict
    argument: Argument | None = None
    answers: tuple[tuple[str, int], ...] = ()
    refuted_by: Neighbours | None = None
    problem: str = ""
    summary: ProofSummary = attrs.field(
        default=attrs.Factory(
            lambda proof: ProofSummary() if proof.argument is None else ProofSummary.of(proof.argument), takes_self=True
        )
    )

    @property
    def goals(self) -> tuple[str, ...]:
        """All goals of the argument as SMT-LIB text (see `Argument.all_goals`)."""
        return () if self.argument is None else self.argument.all_goals


@attrs.frozen
class _Attempt:
    """An argument to be tried, and the problem that the ground test found in its goals."""

    argument: Argument
    problem: str | None = None


def prove(shape: Shape, claims: Sequence[Claim], effort: int = 1) -> tuple[Proof, ...]:
    """Try to prove claims about a score, for tables of any size, by both solvers.

    Parameters
    ----------
    shape
        The score.
    claims
        The claims. For `Parts`, a claim about replacement is proved from the rise and the fall that `derive` finds.
    effort
        The work that each solver may do per goal, as a multiple of the usual work.
    """
    proofs: dict[Claim, Proof] = {}
    for claim in sorted(claims, key=lambda one: one.change is Change.REPLACED):
        found = find_refutation(shape, claim)
        if found is not None:
            proofs[claim] = Proof(claim, Verdict.REFUTED, refuted_by=found)
            continue
        try:
            _require_rule(shape, claim)
            proofs[claim] = _first(claim, _attempts(shape, claim, proofs, effort), effort)
        except UnprovableError as problem:
            proofs[claim] = Proof(claim, Verdict.UNPROVED, problem=str(problem))
    return tuple(proofs[claim] for claim in claims)


def _require_rule(shape: Shape, claim: Claim) -> None:
    """Refuse a claim about a kind of change that no rule covers for this shape.

    Raises
    ------
    UnprovableError
        If a claim about a score is about a norm, or a claim about a vector is not. If a rise or fall of a score of
        parts is claimed for several rows. If a name of a cell or a public parameter has another meaning in goals.
    """
    vector, norm = isinstance(shape, Adds), claim.change.is_norm
    if vector is not norm or (claim.replaced and not norm):
        raise UnprovableError(
            f"'{claim.text}' cannot be claimed of {'a vector' if vector else 'a score'}; claim a bound on "
            + ("a norm" if vector else "a rise, a fall or a replacement")
        )
    if isinstance(shape, Parts) and claim.group > 1 and claim.change is not Change.REPLACED:
        raise UnprovableError("no rule covers several rows of a formula of parts; claim the change by one row")
    bodies = shape.entries if isinstance(shape, Adds) else (shape.body,)
    names = {str(leaf) for body in bodies for leaf in body.leaves(Operation.CELL, Operation.PUBLIC)}
    if isinstance(shape, Cells):
        names.update(map(str, shape.cells))
    meant = RESERVED | {f"{tag}_{name}" for name in names for tag in ("in", "out") if claim.group > 1}
    if taken := sorted(names & meant):
        raise UnprovableError(f"goals need the name '{taken[0]}' for something else; rename that cell or parameter")


def _first(claim: Claim, attempts: Iterator[_Attempt], effort: int) -> Proof:
    """Return the first attempt that both solvers prove, else the last attempt."""
    proof = Proof(claim, Verdict.UNPROVED, problem="no rule covers it")
    for attempt in attempts:
        goals = attempt.argument.all_goals
        proof = Proof(claim, Verdict.UNPROVED, attempt.argument, problem=attempt.problem or "")
        if attempt.problem:
            continue
        answers = []
        for solver in (Z3, CVC5):
            proved = _count_proved(solver, goals, effort)
            answers.append((solver, proved))
            if proved < len(goals):
                break
        proof = attrs.evolve(proof, answers=tuple(answers))
        if all(proved == len(goals) for _, proved in answers) and len(answers) == 2:
            return attrs.evolve(proof, verdict=Verdict.PROVED)
        proof = attrs.evolve(proof, problem=f"{solver} proves {proved} of {len(goals)} goals, then stops")
    return proof


def _count_proved(solver: str, goals: Sequence[str], effort: int) -> int:
    """Return how many goals a solver proves before the first one that it does not prove."""
    for k, goal in enumerate(goals):
        if solve(solver, goal, effort) != "unsat":
            return k
    return len(goals)


def _attempts(shape: Shape, claim: Claim, before: Mapping[Claim, Proof], effort: int) -> Iterator[_Attempt]:
    """Yield arguments to try: first with real numbers of rows, which is easier for solvers, then with whole numbers."""
    if isinstance(shape, Outer):
        yield _attempt(Argument(shape, claim, Rule.OUTER, tuple(outer_goals(shape, claim))))
    elif isinstance(shape, Adds):
        yield _attempt(Argument(shape, claim, Rule.NORM, tuple(norm_goals(shape, claim))))
    elif isinstance(shape, Cells):
        if claim.change is Change.REPLACED and in_range(shape, claim):
            goals = tuple(range_goals(shape, claim, False))
            yield _Attempt(Argument(shape, claim, Rule.RANGE, goals), range_problem(shape, claim, goals))
        for whole in (False, True):
            if simpler_claims(shape, claim):
                yield _attempt_extreme(shape, claim, whole)
            yield _attempt_one_cell(shape, claim, whole)
    elif claim.change is Change.REPLACED:
        # The argument rests on the rise and fall that `derive` finds, since the declared ones may be larger.
        rise, fall = (found.claim for found in derive(shape)[:2])
        proved = {**before, **{one: prove(shape, [one], effort)[0] for one in (rise, fall) if one not in before}}
        if claim.group > 1 or any(proved[one].verdict is not Verdict.PROVED for one in (rise, fall)):
            raise UnprovableError(
                "a claim about a replacement needs a rise and a fall that are proved, and can be about one row only"
            )
        goal = replacement_goal(rise.bound, fall.bound, claim.bound)
        parts = tuple(found for one in (rise, fall) if (found := proved[one].argument) is not None)
        yield _Attempt(Argument(shape, claim, Rule.REPLACED, (goal,), parts=parts))
    else:
        facts = prove_facts(shape)
        known = {aggregate: tuple(one.text for one in of_it) for aggregate, of_it in facts.items()}
        inductions = tuple(one for of_it in facts.values() for one in of_it)
        for whole in (False, True):
            goals = tuple(part_goals(shape, claim, known, whole))
            yield _attempt(Argument(shape, claim, Rule.ONE_PART, goals, inductions))


def _attempt(argument: Argument) -> _Attempt:
    """Return an attempt with the result of the ground test on its own goals."""
    return _Attempt(argument, ground_problem(argument.shape, argument.claim, argument.goals))


def _attempt_extreme(shape: Cells, claim: Claim, whole: bool) -> _Attempt:
    """Return an attempt at a minimum, a maximum or -x, which rests on claims about all operands."""
    simple = simpler_claims(shape, claim)
    if not simple:
        return _attempt_one_cell(shape, claim, whole)
    inner = [_attempt_extreme(part, claimed, whole) for part, claimed in simple]
    problem = next((one.problem for one in inner if one.problem), None)
    return _Attempt(Argument(shape, claim, Rule.EXTREMES, (), parts=tuple(one.argument for one in inner)), problem)


def _attempt_one_cell(shape: Cells, claim: Claim, whole: bool) -> _Attempt:
    return _attempt(Argument(shape, claim, Rule.ONE_CELL, tuple(cell_goals(shape, claim, whole))))


def prove_facts(shape: Parts) -> dict[Formula, tuple[Fact, ...]]:
    """Return the facts that both solvers prove, by induction, about each sum and each largest value over classes.

    Each fact is proved anew for each sum and each largest value. For example, a fact about a sum of counts may be false
    for the largest count.
    """
    facts: dict[Formula, tuple[Fact, ...]] = {}
    for aggregate in shape.body.leaves(*AGGREGATES):
        found: tuple[Fact, ...] = ()
        for text in provable_facts(aggregate):
            steps = induction_goals(aggregate, text, [one.text for one in found])
            if all(_count_proved(solver, steps, 1) == len(steps) for solver in (Z3, CVC5)):
                found = (*found, Fact(aggregate, text, tuple(steps)))
        facts[aggregate] = found
    return facts


def vacuous(argument: Argument, solver: Callable[[str, str], str] = solve) -> bool:
    """Tell whether no table fits the assumptions of the goals, in this argument or in one that it rests on.

    Goals with such assumptions would prove anything.
    """
    named = [[goal for goal in one.goals if "high.num" in goal] for one in argument.walk() if one.goals]
    return not all(any(solver(Z3, without_claim(goal)) == "sat" for goal in goals) for goals in named)
