"""Proofs: true claims are proved by both solvers, wrong ones refuted with a table, and spoilt goals seen."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from proving import needs_solvers
from scored_formulas import (
    ASSOCIATION,
    DERIVED,
    FLOORED,
    GAIN,
    GINI,
    JACCARD,
    JACCARD_FLOOR,
    MAX,
    WRONG,
    a,
    b,
)

import dpframework as dpf
from dpframework.formulas import (
    LAST_INCREMENT,
    Adds,
    Cells,
    Claim,
    Outer,
    Parts,
    Shape,
    Total,
    Verdict,
    as_formula,
    audit,
    cells,
    derive,
    find_refutation,
    largest_over_classes,
    least,
    most,
    n,
    prove,
    proved_claims,
    public,
    root,
    rows,
    rows_of_part,
    sum_over_classes,
    table_rows,
    vacuous,
)
from dpframework.formulas.proofs import _require_rule
from dpframework.formulas.smt_goal_ground_test import ground_problem
from dpframework.formulas.smt_goal_writer import UnprovableError
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals
from dpframework.formulas.smt_goals_for_part_scores import part_goals
from dpframework.formulas.smt_goals_for_vectors import norm_goals
from dpframework.formulas.solvers import SOLVERS, solve

HALF = Fraction(1, 2)
QUICK = [name for name in DERIVED if name not in ("association", "f-measure with a floor")]


@pytest.mark.parametrize(("shape", "claim"), WRONG, ids=[f"{shape.text}: {claim.text}" for shape, claim in WRONG])
def test_a_wrong_constant_is_refuted_with_a_table(shape: Shape, claim: Claim) -> None:
    found = find_refutation(shape, claim)
    assert found is not None
    assert claim.bound.constant is None or found.change > claim.bound.constant
    if isinstance(shape, Outer | Adds):
        return
    if isinstance(shape, Parts) or not shape.body.leaves("public"):  # type: ignore[arg-type]
        assert float(shape.scores(found.high)) - float(shape.scores(found.low)) == pytest.approx(float(found.change))
    few = 80 if shape in (FLOORED, JACCARD_FLOOR) else 60 if shape is ASSOCIATION else 9
    assert max(_rows(found.low), _rows(found.high)) <= few


def _rows(counts: Any) -> int:
    return sum(_rows(one) for one in counts) if isinstance(counts, tuple) else int(counts)


@needs_solvers
@pytest.mark.parametrize("name", QUICK)
def test_what_is_derived_is_proved_by_both_solvers(name: str) -> None:
    shape, bounds = DERIVED[name]
    claims = [Claim(change, bound) for change, bound in zip(("rise", "fall", "replaced"), bounds, strict=True)]
    for proof in prove(shape, claims):
        assert proof.verdict is Verdict.PROVED, proof.problem
        assert dict(proof.answers) == dict.fromkeys(SOLVERS, proof.summary.number)
        assert not vacuous(proof.argument)


@needs_solvers
def test_several_rows_totals_and_vectors_are_proved_and_less_is_not() -> None:
    (found,) = prove(JACCARD, [Claim("fall", Fraction(2, 3), group=2)])
    assert found.verdict is Verdict.PROVED
    gain, none = cells("gain", "none")
    half = Outer((Total(gain, 1, 1, 1), Total(none, 1, 0, 1)), (gain - none) / 2)
    ratio = Outer((Total(gain, 1, 0, 1),), gain * gain / table_rows)
    proved, less = prove(half, [Claim("rise", HALF), Claim("fall", HALF)])
    assert (proved.verdict, less.verdict) == (Verdict.PROVED, Verdict.REFUTED)
    assert "degree 1" in prove(ratio, [Claim("rise", 1)])[0].problem
    x = public("x", -1, 3)
    vector = Adds((x, 2 * x))
    wanted = [Claim("l1", 9), Claim("squared-l2", 45), Claim("linf", 6), Claim("l1", 12, replaced=True)]
    assert {proof.verdict for proof in prove(vector, wanted)} == {Verdict.PROVED}
    assert {proof.verdict for proof in prove(vector, [Claim("l1", 8), Claim("l1", 11, replaced=True)])} == {
        Verdict.REFUTED
    }


@needs_solvers
def test_what_no_rule_covers_is_not_proved() -> None:
    """A sum whose terms read the part's rows changes with them: no unknown stands for it before and after."""
    for body in (sum_over_classes(n * rows_of_part), sum_over_classes(n / rows_of_part), 1 / (1 / rows_of_part)):
        (found,) = prove(Parts(body), [Claim("rise", 10**6)])
        assert found.verdict is Verdict.UNPROVED
        assert any(says in found.problem for says in ("read the part's rows", "a denominator has a quotient"))


@needs_solvers
def test_a_denominator_that_may_be_negative_is_not_taken_for_positive() -> None:
    """1 / (a - b) rises by 1 at most, but no rule covers tables with more rows in b."""
    shape = Cells((a, b), 1 / (a - b))
    assert find_refutation(shape, Claim("rise", 1)) is None
    assert prove(shape, [Claim("rise", 1)])[0].verdict is Verdict.UNPROVED
    # The ground test sees it, too: so the goals alone are looked at, of which one has such a table.
    of_parts = part_goals(Parts(1 / (rows_of_part - 2)), Claim("rise", 1), {}, False)
    for goals in (cell_goals(shape, Claim("rise", 1), False), of_parts):
        assert [solve("z3", goal) for goal in goals].count("sat") == 1


@needs_solvers
@needs_solvers
@pytest.mark.parametrize(
    ("shape", "claim"),
    [
        # Kernels return NaN for more than 10**12 rows, though these scores are never above 1 where there is a root.
        (Cells((a,), least(root(10**12 - a) / 10**6, 1)), Claim("replaced", 1)),
        (Cells((a,), least(root(10**12 - a), 0)), Claim("rise", 0)),
        (Cells((a, b), least(root(10**12 - a / (b + 1)), 0)), Claim("fall", 0)),
        (Parts(least(root(10**12 - rows_of_part), 0)), Claim("rise", 0)),
        (Parts(least(sum_over_classes(root(10**12 - n)), 0)), Claim("rise", 0)),
    ],
    ids=lambda given: given.text,
)
def test_a_root_of_what_may_be_negative_is_not_proved(shape: Shape, claim: Claim) -> None:
    (proof,) = prove(shape, [claim])
    assert proof.verdict is Verdict.UNPROVED
    assert "goals, then stops" in proof.problem


@needs_solvers
def test_roots_of_what_is_never_negative_are_proved_and_audited() -> None:
    for shape, claim in (
        (Cells((a,), root(most(10**12 - a, 0)) / 10**6), Claim("replaced", 1)),
        (Cells((a, b), least(root(a / (a + b)), 1)), Claim("replaced", 1)),
        (Parts(root(sum_over_classes(n**2))), Claim("fall", 0)),
        (Parts(sum_over_classes(root(n))), Claim("fall", 0)),
    ):
        (proof,) = prove(shape, [claim])
        assert proof.verdict is Verdict.PROVED, (claim.text, proof.problem)
        assert proof.argument is not None
        assert list(audit(proof.argument)) == []


def test_a_score_that_is_no_number_is_refused() -> None:
    """Near the count from which a root is of a negative number, tables are tried."""
    for shape in (Cells((a,), least(root(10**5 - a) / 400, 1)), Parts(least(root(300 - rows_of_part), 1))):
        with pytest.raises(dpf.InputError, match=r"is a root of a negative number.*write root\(most\(x, 0\)\)"):
            derive(shape)


@pytest.mark.parametrize(
    ("shape", "claim", "says"),
    [
        (GINI, Claim("rise", 1, group=3), "no rule covers several rows"),  # 3 rows raise it by 3
        (MAX, Claim("fall", 0, group=2), "no rule covers several rows"),
        (GINI, Claim("linf", 2), "cannot be claimed of a score"),
        (JACCARD, Claim("l1", 1), "cannot be claimed of a score"),
        (JACCARD, Claim("rise", 1, replaced=True), "'rise when replaced <= 1' cannot be claimed of a score"),
        (Adds((n,)), Claim("rise", 1), "cannot be claimed of a vector"),
    ],
    ids=lambda given: getattr(given, "text", ""),
)
def test_a_claim_that_the_goals_would_not_be_about_is_not_proved(shape: Shape, claim: Claim, says: str) -> None:
    with pytest.raises(UnprovableError, match=says):
        _require_rule(shape, claim)


@needs_solvers
def test_divisions_by_numbers_of_0_or_less_are_proved() -> None:
    for body, claim in ((a / -2, Claim("fall", HALF)), (a / as_formula(0) + a, Claim("rise", 1))):
        (proof,) = prove(Cells((a,), body), [claim])
        assert proof.verdict is Verdict.PROVED, (claim.text, proof.problem)
        assert proof.argument is not None
        assert list(audit(proof.argument)) == []


@needs_solvers
def test_conditions_may_leave_out_the_ends_and_the_middle_of_a_range() -> None:
    q = public("q", 0, 1)
    between = Cells((a,), q * a, ((as_formula(Fraction(3, 5)), q), (q, as_formula(Fraction(9, 10)))))
    proved, refuted = prove(between, [Claim("rise", Fraction(9, 10)), Claim("rise", Fraction(7, 10))])
    assert proved.verdict is Verdict.PROVED
    assert str(refuted.refuted_by) == "[0] -> [1]: 3/4"


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        (Cells((a,), public("q", 0, 1) * a, ((as_formula(2), as_formula(1)),)), "fits the conditions in `within`"),
        (Cells((a,), public("q", 0, 1) * public("q", 0, 9) * a), "named 'q'; rename one"),
        (Cells((a,), public("a", 0, 1) * a), "named 'a'; rename one"),
    ],
    ids=lambda given: getattr(given, "text", ""),
)
def test_parameters_that_fit_nothing_or_have_one_name_are_refused(shape: Cells, says: str) -> None:
    with pytest.raises(dpf.InputError, match=says):
        find_refutation(shape, Claim("rise", 100))


def test_entries_that_are_never_shares_are_seen() -> None:
    never = Adds((public("q", 0, 1) + 2,), shares=True)
    assert "is never in [0, 1]" in str(
        ground_problem(never, Claim("linf", 1), list(norm_goals(never, Claim("linf", 1))))
    )


@pytest.mark.parametrize(
    ("names", "group"), [(("a", "and"), 1), (("exp", "b"), 1), (("a", "in_a"), 2), (("a", "out_a"), 3)]
)
def test_a_name_that_means_something_else_in_goals_is_refused(names: tuple[str, ...], group: int) -> None:
    one, other = cells(*names)
    with pytest.raises(UnprovableError, match=r"goals need the name '.*' for something else; rename that cell"):
        _require_rule(Cells((one, other), one / most(one + other, 4)), Claim("rise", 1, group=group))
    _require_rule(Cells(cells("a", "in_a"), cells("a")[0]), Claim("rise", 1))


@needs_solvers
def test_one_row_of_parts_does_not_prove_several() -> None:
    proof, one = prove(GINI, [Claim("rise", 1, group=3), Claim("rise", 1)])
    assert (proof.verdict, one.verdict) == (Verdict.UNPROVED, Verdict.PROVED)
    assert proof.problem.startswith("no rule covers several rows")


def test_no_bound_is_0_for_tables_of_one_row() -> None:
    """A bound over R - 1 would be 0 at R = 1, where a goal would assume that R - 1 is positive."""
    with pytest.raises(dpf.InputError, match="divides only by numbers and by the rows"):
        prove(Parts(rows_of_part * 1), [Claim("rise", 1 + 1 / (rows - 1))])


@needs_solvers
def test_a_replacement_is_not_proved_from_what_is_not() -> None:
    unproved = Parts(sum_over_classes(n * rows_of_part) / (rows_of_part * rows_of_part))
    assert [one.verdict for one in prove(unproved, [Claim("replaced", 9)])] == [Verdict.UNPROVED]


@pytest.mark.parametrize("doubts", SOLVERS)
def test_one_solver_is_not_enough(doubts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def solve_all_but_one(solver: str, goal: str, effort: int = 1) -> str:
        return "unknown" if solver == doubts else "unsat"

    monkeypatch.setattr("dpframework.formulas.proofs.solve", solve_all_but_one)
    (found,) = prove(JACCARD, [Claim("rise", 1)])
    assert found.verdict is Verdict.UNPROVED
    assert found.problem.startswith(doubts)


def test_goals_that_fit_no_tables_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers that agree are not enough: the ground test stands before them."""
    monkeypatch.setattr("dpframework.formulas.proofs.solve", lambda *given: "unsat")
    monkeypatch.setattr("dpframework.formulas.proofs.ground_problem", lambda *given: "no goal fits")
    assert {one.verdict for one in prove(JACCARD, [Claim("rise", 1)])} == {Verdict.UNPROVED}
    assert {one.verdict for one in prove(GINI, [Claim("fall", 1)])} == {Verdict.UNPROVED}


@needs_solvers
def test_verdicts_are_kept_and_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    claims = (Claim("rise", 1), Claim("fall", 0))
    first = proved_claims(MAX, claims)
    monkeypatch.setattr("dpframework.formulas.stored_verdicts.prove", None)
    again = proved_claims(MAX, claims)
    assert again == first
    (kept,) = (tmp_path / "dpframework" / "proofs").iterdir()
    kept.write_text("[]")
    with pytest.raises(TypeError):  # what is kept no more is proved again
        proved_claims(MAX, claims)


def facts_of(shape: Parts, *facts: str) -> dict[Any, tuple[str, ...]]:
    return {shape.body.leaves("sum", "largest")[0]: facts}  # type: ignore[arg-type]


TRUE_OF_A_SUM = ("(>= {s} 0.0)", "(>= {s} {rest})", "(<= {s} {phi})")
LARGEST_SQUARE = Parts(largest_over_classes(n**2) / rows_of_part)
#: A score, what its goals are told of its sum or largest, and what a line of theirs is replaced by.
SPOILS: dict[str, tuple[Parts, tuple[str, ...], tuple[str, str]]] = {
    "rest forgotten": (GINI, TRUE_OF_A_SUM, ("(+ s0 ", "(+ 0.0 ")),
    "a false fact": (GINI, ("(= {s} {rest})",), ("", "")),
    "facts of a sum used for the largest": (LARGEST_SQUARE, ("(>= {s} {rest})", "(>= {s} {phi})"), ("", "")),
    "another formula": (GINI, TRUE_OF_A_SUM, ("(* c c)", "(* c c c)")),
    "a lost case": (GINI, TRUE_OF_A_SUM, ("(= (+ c rest) 0.0)", "(= (+ c rest) 7.0)")),
    "too few rows": (GINI, TRUE_OF_A_SUM, ("(<= (+ (+ c rest) 1.0) rows)", "(= (+ (+ c rest) 1.0) rows)")),
    "no row added": (GINI, TRUE_OF_A_SUM, ("(+ c 1.0)", "c")),
    "a wrong logarithm": (GAIN, (), ("(+ c 1)", "(+ c 2)")),
}


@pytest.mark.parametrize("name", SPOILS)
def test_the_ground_test_sees_goals_that_say_something_else(name: str) -> None:
    """Solvers would prove some of these: what they prove is not about the score."""
    shape, facts, (line, other) = SPOILS[name]
    claim = Claim("fall", LAST_INCREMENT) if shape is GAIN else Claim("fall", 1 - 2 / rows)
    true = {GINI: TRUE_OF_A_SUM, LARGEST_SQUARE: TRUE_OF_A_SUM[:1], GAIN: ()}[shape]
    assert ground_problem(shape, claim, part_goals(shape, claim, facts_of(shape, *true), False)) is None
    goals = part_goals(shape, claim, facts_of(shape, *facts), False)
    assert line in "".join(goals)
    assert ground_problem(shape, claim, [goal.replace(line, other) if line else goal for goal in goals]) is not None


@needs_solvers
def test_facts_of_a_sum_are_not_proved_of_the_largest() -> None:
    """The largest of n over classes is less than their rows together: goals that say otherwise fit few tables."""
    from dpframework.formulas.proofs import prove_facts

    (of_largest,) = ([one.text for one in found] for found in prove_facts(MAX).values())
    (of_sum,) = ([one.text for one in found] for found in prove_facts(GINI).values())
    assert "(>= {s} {rest})" in of_sum
    assert "(>= {s} {rest})" not in of_largest


@needs_solvers
def test_solvers_stop_after_so_much_work() -> None:
    hard = "(set-logic QF_NRA)(declare-const x Real)(declare-const y Real)(declare-const z Real)" + "".join(
        f"(assert (> (+ (* x x x y {k}.0) (* y z z x) (- (* z x y y)) (* {k}.5 x)) (* y y z {k}.0)))"
        for k in range(1, 4)
    )
    for solver in SOLVERS:
        assert solve(solver, hard + "(check-sat)", effort=1) in ("sat", "unsat", "unknown")


def test_without_the_extra_a_proof_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpframework.facts.errors import InputError
    from dpframework.formulas import solvers

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'dpframework\[prove\]'"):
        solvers.require_solvers()
