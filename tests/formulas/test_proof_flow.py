"""How a proof is looked for: which goals go to which solver, in which order, and what is said where one stops."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from proving import needs_solvers
from scored_formulas import COUNTS, GAIN, GINI, HALF, JACCARD, MAX, TWOING, a, b

from dpframework.formulas import (
    Cells,
    Claim,
    Parts,
    Proof,
    Shape,
    Verdict,
    as_formula,
    least,
    most,
    n,
    proofs as proofs_module,
    prove,
    public,
    rows,
    rows_of_part,
    solvers,
    sum_over_classes,
)
from dpframework.formulas.proof_arguments import Argument, Rule
from dpframework.formulas.proofs import ProofSummary, prove_facts, vacuous
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals, range_goals
from dpframework.formulas.smt_goals_for_part_scores import part_goals

RISE = Claim("rise", 1)
Answer = Callable[[str, str], bool]


class Asked:
    """Solvers that answer as a test says, and what they were asked."""

    def __init__(self, proves: Answer) -> None:
        self.proves, self.asked, self.efforts = proves, [], set()  # type: tuple[Answer, list[tuple[str, str]], set[int]]

    def __call__(self, solver: str, goal: str, effort: int = 1) -> str:
        self.asked.append((solver, goal))
        self.efforts.add(effort)
        return "unsat" if self.proves(solver, goal) else "unknown"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], Asked]:
    def install(proves: Answer) -> Asked:
        answers = Asked(proves)
        monkeypatch.setattr(proofs_module, "solve", answers)
        return answers

    return install


def everything(solver: str, goal: str) -> bool:
    return True


def whole_numbers(solver: str, goal: str) -> bool:
    return goal.startswith("(set-logic ALL)")


def test_an_argument_names_each_rule_that_its_goals_are_written_by() -> None:
    def names(shape: Shape, *parts: Argument, rule: Rule = Rule.ONE_PART, goals: tuple[str, ...] = ("a goal",)) -> Any:
        return Argument(shape, RISE, rule, goals, parts=parts).rules

    assert names(GINI) == ("one part", "the rest", "zero cases")
    assert names(Parts(sum_over_classes(n))) == ("one part", "the rest")
    assert names(Parts(rows_of_part)) == ("one part",)
    assert names(JACCARD, rule=Rule.ONE_CELL) == ("one cell", "zero cases")
    assert names(GINI, goals=()) == ("one part",)
    inner = [Argument(shape, RISE, Rule.ONE_PART, ("a goal",)) for shape in (Parts(rows_of_part), GINI, GINI)]
    assert names(GINI, *inner, rule=Rule.REPLACED, goals=()) == ("replaced", "one part", "the rest", "zero cases")


def test_each_goal_goes_to_both_solvers_in_order(asked: Any) -> None:
    told = asked(everything)
    (proof,) = prove(JACCARD, [RISE])
    goals = cell_goals(JACCARD, RISE, False)
    assert told.asked == [(solver, goal) for solver in ("z3", "cvc5") for goal in goals]
    assert told.efforts == {1}
    assert proof.verdict is Verdict.PROVED
    assert proof.answers == (("z3", len(goals)), ("cvc5", len(goals)))
    assert (proof.goals, proof.problem, proof.refuted_by) == (tuple(goals), "", None)
    assert proof.argument is not None
    assert proof.argument.rule is Rule.ONE_CELL
    assert proof.summary == ProofSummary(
        ("one cell", "zero cases"),
        len(goals),
        sum(map(len, goals)),
        hashlib.sha256("".join(goals).encode()).hexdigest(),
    )
    assert ProofSummary() == ProofSummary((), 0, 0, hashlib.sha256(b"").hexdigest())
    told = asked(everything)
    prove(JACCARD, [RISE], 7)
    assert told.efforts == {7}


@pytest.mark.parametrize("stops", range(4))
@pytest.mark.parametrize("doubts", [*solvers.SOLVERS])
def test_a_solver_stops_at_the_first_goal_that_it_does_not_prove(asked: Any, doubts: str, stops: int) -> None:
    """It is told how far it came with the way that is tried last, of whole numbers."""
    real, whole = (cell_goals(JACCARD, RISE, one) for one in (False, True))
    told = asked(lambda solver, goal: solver != doubts or goal not in (real[stops], whole[stops]))
    (proof,) = prove(JACCARD, [RISE])
    assert (proof.verdict, proof.goals) == (Verdict.UNPROVED, tuple(whole))
    before = (("z3", len(whole)),) if doubts == "cvc5" else ()
    assert proof.answers == (*before, (doubts, stops))
    assert proof.problem == f"{doubts} proves {stops} of {len(whole)} goals, then stops"
    mine = [goal for solver, goal in told.asked if solver == doubts]
    assert mine == [*real[: stops + 1], *whole[: stops + 1]]
    assert doubts == "cvc5" or {solver for solver, _ in told.asked} == {"z3"}


def test_whole_numbers_are_tried_where_real_ones_are_not_proved(asked: Any) -> None:
    asked(whole_numbers)
    for shape, claim in ((JACCARD, RISE), (GINI, Claim("fall", 1 - 2 / rows)), (Cells((a, b), least(a, b)), RISE)):
        (proof,) = prove(shape, [claim])
        assert proof.verdict is Verdict.PROVED
        assert all(whole_numbers("", goal) for one in proof.argument.walk() for goal in one.goals)  # type: ignore[union-attr]
    asked(lambda solver, goal: not whole_numbers(solver, goal))
    for shape, claim in ((JACCARD, RISE), (GINI, Claim("fall", 1 - 2 / rows))):
        (proof,) = prove(shape, [claim])
        assert proof.verdict is Verdict.PROVED
        assert not any(whole_numbers("", goal) for goal in proof.goals)


def test_a_replacement_is_proved_after_the_rise_and_the_fall_which_are_proved_once(asked: Any) -> None:
    told = asked(everything)
    replaced, rise, fall = (
        Claim(change, bound) for change, bound in (("replaced", 2 - 2 / rows), ("rise", 1), ("fall", 1 - 2 / rows))
    )
    proofs = prove(GINI, [replaced, rise, fall])
    assert [proof.claim for proof in proofs] == [replaced, rise, fall]
    assert {proof.verdict for proof in proofs} == {Verdict.PROVED}
    goals = part_goals(GINI, rise, {one: [f.text for f in facts] for one, facts in prove_facts(GINI).items()}, False)
    assert [goal for solver, goal in told.asked if solver == "z3" and goal == goals[0]] == [goals[0]] * 2
    argument = proofs[0].argument
    assert argument is not None
    assert [part.claim for part in argument.parts] == [rise, fall]
    assert argument.rule is Rule.REPLACED
    assert len(argument.goals) == 1
    (alone,) = prove(GINI, [replaced])
    assert alone.verdict is Verdict.PROVED
    assert alone.goals == proofs[0].goals
    (wide,) = prove(GINI, [Claim("replaced", 2 - 2 / rows, group=2)])
    assert wide.problem == (
        "a claim about a replacement needs a rise and a fall that are proved, and can be about one row only"
    )
    asked(lambda solver, goal: "rows" in goal and "s0" not in goal)
    assert prove(GINI, [replaced])[0].verdict is Verdict.UNPROVED


def test_scores_between_0_and_a_bound_are_proved_by_their_range_first(asked: Any) -> None:
    asked(everything)
    claim = Claim("replaced", 1)
    (proof,) = prove(JACCARD, [claim])
    assert proof.argument is not None
    assert (proof.argument.rule, proof.goals) == (Rule.RANGE, tuple(range_goals(JACCARD, claim, False)))
    assert prove(JACCARD, [RISE])[0].argument.rule is Rule.ONE_CELL  # type: ignore[union-attr]
    signed = Cells((a, b), least(a - b, 5))
    assert prove(signed, [Claim("replaced", 2)])[0].argument.rule is Rule.EXTREMES  # type: ignore[union-attr]


def test_extremes_are_proved_of_their_parts_then_as_they_are(asked: Any) -> None:
    told = asked(everything)
    shape = Cells((a, b), most(a, least(b, 9)))
    (proof,) = prove(shape, [RISE])
    argument = proof.argument
    assert argument is not None
    assert (argument.rule, argument.goals) == (Rule.EXTREMES, ())
    assert [part.shape.body for part in argument.parts] == [a, least(b, 9)]  # type: ignore[union-attr]
    assert [part.shape.body for part in argument.parts[1].parts] == [b, as_formula(9)]  # type: ignore[union-attr]
    assert set(proof.goals) == {goal for _, goal in told.asked}
    asked(lambda solver, goal: "ite" in goal)  # only the score as it is has a choice in it
    assert prove(shape, [RISE])[0].argument.rule is Rule.ONE_CELL  # type: ignore[union-attr]


def test_totals_and_vectors_have_one_rule_each(asked: Any) -> None:
    asked(everything)
    assert prove(TWOING, [RISE])[0].argument.rule is Rule.OUTER  # type: ignore[union-attr]
    assert prove(COUNTS, [Claim("l1", 1)])[0].argument.rule is Rule.NORM  # type: ignore[union-attr]
    (several,) = prove(COUNTS, [Claim("l1", 1, group=2)])
    assert (several.verdict, several.problem) == (Verdict.UNPROVED, "no rule covers several rows of a vector")
    assert (several.argument, several.goals, several.summary) == (None, (), ProofSummary())


def test_what_a_table_refutes_is_not_asked(asked: Any) -> None:
    told = asked(everything)
    (proof,) = prove(JACCARD, [Claim("rise", HALF)])
    assert proof.verdict is Verdict.REFUTED
    assert proof.refuted_by is not None
    assert told.asked == []


def test_a_problem_of_the_ground_test_is_told_and_the_next_way_is_tried(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asked(everything)
    monkeypatch.setattr(proofs_module, "ground_problem", lambda shape, claim, goals: "differs")
    (proof,) = prove(JACCARD, [RISE])
    assert (proof.verdict, proof.problem, told.asked) == (Verdict.UNPROVED, "differs", [])
    (extreme,) = prove(Cells((a, b), least(a, b)), [RISE])
    assert (extreme.verdict, extreme.problem) == (Verdict.UNPROVED, "differs")
    monkeypatch.setattr(
        proofs_module, "ground_problem", lambda shape, claim, goals: None if whole_numbers("", goals[0]) else "differs"
    )
    assert prove(JACCARD, [RISE])[0].verdict is Verdict.PROVED
    assert all(whole_numbers(solver, goal) for solver, goal in told.asked)


def test_facts_are_kept_that_both_solvers_prove_each_with_those_before(asked: Any) -> None:
    (aggregate,) = GINI.body.leaves("sum")  # type: ignore[arg-type]
    asked(everything)
    (facts,) = prove_facts(GINI).values()
    assert [fact.text for fact in facts] == ["(>= {s} 0.0)", "(>= {s} {rest})", "(<= {s} {phi})"]
    assert {fact.aggregate for fact in facts} == {aggregate}
    assert [len(fact.goals) for fact in facts] == [2, 2, 2]
    for doubts in solvers.SOLVERS:
        asked(lambda solver, goal: solver != doubts or "(not (>= (+ s" not in goal)  # noqa: B023
        (left,) = prove_facts(GINI).values()
        assert [fact.text for fact in left] == ["(<= {s} {phi})"]
    assert prove_facts(GAIN) == dict.fromkeys(GAIN.body.leaves("sum"), ())  # type: ignore[arg-type]


def test_goals_that_no_table_fits_are_vacuous() -> None:
    argument = Argument(JACCARD, RISE, Rule.ONE_CELL, tuple(cell_goals(JACCARD, RISE, False)))

    def answering(*fit: str) -> Callable[[str, str], str]:
        from dpframework.formulas.smt_goal_writer import without_claim

        fitting = {without_claim(goal) for goal in fit}
        return lambda solver, text: "sat" if text in fitting and solver == "z3" else "unsat"

    assert vacuous(argument, answering())
    assert not vacuous(argument, answering(argument.goals[2]))
    other = Argument(JACCARD, RISE, Rule.ONE_CELL, tuple(cell_goals(JACCARD, RISE, True)))
    both = Argument(JACCARD, RISE, Rule.EXTREMES, (), parts=(argument, other))
    assert vacuous(both, answering(argument.goals[0]))
    assert not vacuous(both, answering(argument.goals[0], other.goals[0]))


def test_a_proof_without_an_argument_has_no_goals() -> None:
    proof = Proof(RISE, Verdict.PROVED)
    assert (proof.goals, proof.summary.number, proof.answers, proof.problem) == ((), 0, (), "")


@needs_solvers
def test_models_are_the_numbers_of_a_table_that_refutes_a_goal() -> None:
    text = "(declare-const x Real)(declare-const y Int)(assert (= (* 3.0 x) 2.0))(assert (= y 7))"
    assert solvers.model(f"{text}(check-sat)", ("x", "y", "z")) == {"x": pytest.approx(2 / 3), "y": 7.0}
    root = "(declare-const x Real)(assert (= (* x x) 2.0))(assert (> x 0.0))"
    assert solvers.model(root, ("x",)) == {"x": pytest.approx(2**0.5, abs=1e-9)}
    assert solvers.model(f"{text}(assert (> x 1.0))", ("x",)) is None
    for solver in solvers.SOLVERS:
        assert solvers.solve(solver, f"{text}(check-sat)") == "sat"
        assert solvers.solve(solver, f"{text}(assert (> x 1.0))(check-sat)") == "unsat"
        assert solvers.solve(solver, "(assert (nothing))(check-sat)") == "unknown"
    assert sorted(solvers.versions()) == ["cvc5", "z3"]
    assert solvers.has_solvers()


def test_both_solvers_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in solvers.SOLVERS:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else name)  # noqa: B023
        assert not solvers.has_solvers()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert solvers.has_solvers()
    solvers.require_solvers()


def test_a_parts_score_and_public_numbers_are_attempted(asked: Any) -> None:
    asked(everything)
    weighted = Cells((a, b), public("w", 0, 1) * a - b)
    assert prove(weighted, [RISE])[0].verdict is Verdict.PROVED
    assert isinstance(prove(MAX, [RISE])[0].argument.shape, Parts)  # type: ignore[union-attr]
    assert len(prove(MAX, [RISE])[0].argument.facts) == 3  # type: ignore[union-attr]
