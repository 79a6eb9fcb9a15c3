"""Proofs of claims: goals by the rules, two solvers, the ground test, and a table where a claim is false."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import attrs

from dpframework.formulas.claims import Change, Claim, Neighbours
from dpframework.formulas.derivation import derive
from dpframework.formulas.formula import AGGREGATES, Formula
from dpframework.formulas.goals_of_cells import cell_goals, simpler
from dpframework.formulas.goals_of_parts import induction_goals, part_goals, provable_facts, replacement_goal
from dpframework.formulas.goals_of_sums import norm_goals, outer_goals
from dpframework.formulas.ground import ground_problem
from dpframework.formulas.shapes import Adds, Cells, Outer, Parts, Shape
from dpframework.formulas.small_tables import refuting
from dpframework.formulas.smt import UnprovableError, without_claim
from dpframework.formulas.solvers import CVC5, Z3, solve


class Verdict(enum.StrEnum):
    """What is known of a claim."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNPROVED = "not proved"


@final
@attrs.frozen
class Proof:
    """What became of a claim.

    Attributes
    ----------
    claim
        What was to be proved.
    verdict
        Whether it was.
    rules
        The rules that the goals follow, by their names in the modules of goals.
    goals
        The goals, with those of the facts that they use, as SMT-LIB text.
    answers
        How many of them each solver proved.
    refuted_by
        Neighbours that refute the claim.
    problem
        Why it was not proved.
    kept
        Of a verdict that was read from a file: the number of its goals, their size and their digest.
    """

    claim: Claim
    verdict: Verdict
    rules: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    answers: tuple[tuple[str, int], ...] = ()
    refuted_by: Neighbours | None = None
    problem: str = ""
    kept: tuple[int, int, str] | None = None

    @property
    def number(self) -> int:
        """How many goals there are."""
        return self.kept[0] if self.kept else len(self.goals)

    @property
    def size(self) -> int:
        """How long the goals are, in characters."""
        return self.kept[1] if self.kept else sum(map(len, self.goals))

    @property
    def digest(self) -> str:
        """The SHA-256 of the goals."""
        return self.kept[2] if self.kept else hashlib.sha256("".join(self.goals).encode()).hexdigest()


@attrs.frozen
class _Attempt:
    """Goals that are enough for a claim, if solvers prove all of them."""

    rules: tuple[str, ...]
    goals: tuple[str, ...]
    problem: str | None = None


def prove(shape: Shape, claims: Sequence[Claim], effort: int = 1) -> tuple[Proof, ...]:
    """Prove claims about a score, for tables of any size, by both solvers.

    Parameters
    ----------
    shape
        The score.
    claims
        What is claimed of it. Of `Parts`, what rows that are replaced change follows from the rise and fall that are
        derived.
    effort
        How many times the usual work each solver may do for a goal.
    """
    proofs: dict[Claim, Proof] = {}
    for claim in sorted(claims, key=lambda one: one.change is Change.REPLACED):
        found = refuting(shape, claim)
        if found is not None:
            proofs[claim] = Proof(claim, Verdict.REFUTED, refuted_by=found)
            continue
        try:
            proofs[claim] = _first(claim, _attempts(shape, claim, proofs, effort), effort)
        except UnprovableError as problem:
            proofs[claim] = Proof(claim, Verdict.UNPROVED, problem=str(problem))
    return tuple(proofs[claim] for claim in claims)


def _first(claim: Claim, attempts: Iterator[_Attempt], effort: int) -> Proof:
    """Return the first attempt that solvers prove, else the last one."""
    proof = Proof(claim, Verdict.UNPROVED, problem="no rule covers it")
    for attempt in attempts:
        answers = []
        proof = Proof(claim, Verdict.UNPROVED, attempt.rules, attempt.goals, problem=attempt.problem or "")
        if attempt.problem:
            continue
        for solver in (Z3, CVC5):
            proved = _proved(solver, attempt.goals, effort)
            answers.append((solver, proved))
            if proved < len(attempt.goals):
                break
        proof = attrs.evolve(proof, answers=tuple(answers))
        if all(proved == len(attempt.goals) for _, proved in answers) and len(answers) == 2:
            return attrs.evolve(proof, verdict=Verdict.PROVED)
        proof = attrs.evolve(proof, problem=f"{solver} proves {proved} of {len(attempt.goals)} goals, then stops")
    return proof


def _proved(solver: str, goals: Sequence[str], effort: int) -> int:
    """Return how many goals a solver proves, before the first that it does not."""
    for k, goal in enumerate(goals):
        if solve(solver, goal, effort) != "unsat":
            return k
    return len(goals)


def _attempts(shape: Shape, claim: Claim, before: Mapping[Claim, Proof], effort: int) -> Iterator[_Attempt]:
    """Yield ways to prove a claim, with real numbers of rows first, which are easier, then with whole ones."""
    if isinstance(shape, Outer):
        yield _Attempt(("outer",), tuple(outer_goals(shape, claim)))
    elif isinstance(shape, Adds):
        yield _Attempt(("norm",), tuple(norm_goals(shape, claim)))
    elif isinstance(shape, Cells):
        yield from _of_cells(shape, claim)
    elif claim.change is Change.REPLACED:
        yield _of_replaced(shape, claim, before, effort)
    else:
        facts, inductions = proved_facts(shape)
        for whole in (False, True):
            goals = part_goals(shape, claim, facts, whole)
            problem = ground_problem(shape, claim, goals)
            yield _Attempt(("one part", "the rest", "zero cases"), (*inductions, *goals), problem)


def _of_replaced(shape: Parts, claim: Claim, before: Mapping[Claim, Proof], effort: int) -> _Attempt:
    """Return the goals of a replacement, from the rise and the fall that are derived: smaller ones may be declared."""
    rise, fall = (found.claim for found in derive(shape)[:2])
    proved = {**before, **{one: prove(shape, [one], effort)[0] for one in (rise, fall) if one not in before}}
    if claim.group > 1 or any(proved[one].verdict is not Verdict.PROVED for one in (rise, fall)):
        raise UnprovableError("a replacement follows from a rise and a fall, which are not proved")
    goal = replacement_goal(rise.bound, fall.bound, claim.bound)
    return _Attempt(("replaced",), (*proved[rise].goals, *proved[fall].goals, goal))


def _of_cells(shape: Cells, claim: Claim) -> Iterator[_Attempt]:
    """Yield ways to prove a claim about cells: of an extreme, all its parts with real rows, or all with whole ones."""
    for whole in (False, True):
        if simpler(shape, claim):
            yield _of_extreme(shape, claim, whole)
        yield _one_cell(shape, claim, whole)


def _of_extreme(shape: Cells, claim: Claim, whole: bool) -> _Attempt:
    parts = simpler(shape, claim)
    if not parts:
        return _one_cell(shape, claim, whole)
    inner = [_of_extreme(part, claimed, whole) for part, claimed in parts]
    goals = tuple(goal for attempt in inner for goal in attempt.goals)
    rules = tuple(dict.fromkeys(("extremes", *inner[0].rules)))
    return _Attempt(rules, goals, next((one.problem for one in inner if one.problem), None))


def _one_cell(shape: Cells, claim: Claim, whole: bool) -> _Attempt:
    goals = tuple(cell_goals(shape, claim, whole))
    return _Attempt(("one cell", "zero cases"), goals, ground_problem(shape, claim, goals))


def proved_facts(shape: Parts) -> tuple[dict[Formula, tuple[str, ...]], tuple[str, ...]]:
    """Return what both solvers prove of each sum and each largest of a score, and the goals of these inductions.

    A fact is proved for one aggregate and for no other: what holds of a sum of counts need not hold of the largest.
    """
    facts: dict[Formula, tuple[str, ...]] = {}
    goals: list[str] = []
    for aggregate in shape.body.leaves(*AGGREGATES):
        known: tuple[str, ...] = ()
        for fact in provable_facts(aggregate):
            steps = induction_goals(aggregate, fact, known)
            if all(_proved(solver, steps, 1) == len(steps) for solver in (Z3, CVC5)):
                known = (*known, fact)
                goals += steps
        facts[aggregate] = known
    return facts, tuple(goals)


def vacuous(proof: Proof, solver: Callable[[str, str], str] = solve) -> bool:
    """Tell whether no table fits the goals without their claims, so that anything would be proved."""
    named = [goal for goal in proof.goals if "high.num" in goal]
    return not any(solver(Z3, without_claim(goal)) == "sat" for goal in named)
