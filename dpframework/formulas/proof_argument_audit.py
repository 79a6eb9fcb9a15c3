"""The audit of an argument for a claim, without trust in the code that derived the argument.

An argument consists of goals: SMT-LIB texts. A solver proves a goal by finding the text unsatisfiable. For each claim
that an argument rests on, an auditor asks: do both solvers prove every goal? Does some table fit the assumptions of the
goals (if none does, they prove nothing)? Do the goals describe real neighbours, with the scores of the formula and the
bound of the claim (the ground test)? Is each fact about a sum or a maximum proved by an induction? Two things are
trusted: that proved goals are enough for a claim (for the reasons in `proof_arguments.REASONS`), and that at least one
of the two solvers is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation, n
from dpframework.formulas.evaluation import is_rational, value_of
from dpframework.formulas.proof_arguments import Argument, Fact, Rule
from dpframework.formulas.proofs import vacuous
from dpframework.formulas.score_structures import Adds, Cells, Outer, Parts
from dpframework.formulas.sensitivity_claims_and_neighbours import Change
from dpframework.formulas.smt_goal_evaluator import CLOSE, Expression, GroundGoal, names_in, value_in
from dpframework.formulas.smt_goal_ground_test import (
    GroundPair,
    aggregate_of,
    bound_of,
    ground_problem,
    neighbours,
    range_problem,
)
from dpframework.formulas.smt_goal_writer import UnprovableError, divisions, roots
from dpframework.formulas.smt_goals_for_cell_scores import simpler_claims
from dpframework.formulas.smt_goals_for_totals import require_multilinear
from dpframework.formulas.solvers import SOLVERS, solve

PAIRS = 150  # how many random pairs of neighbours are tried for each claim
_TABLE_ROWS = (1, 2, 3, 9, 40, 1000)  # the numbers of rows for which a replacement's goal is evaluated


def audit(argument: Argument, effort: int = 1) -> Iterator[str]:
    """Yield the problems of an argument, one sentence each; nothing if it has none.

    Parameters
    ----------
    argument
        The argument to audit.
    effort
        The work that each solver may do per goal, as a multiple of the usual work.
    """
    found = False
    for one in argument.walk():
        for problem in _find_problems(one):
            found = True
            yield f"{one.claim.text} of {one.shape.text}: {problem}"
    if found:
        return
    goals = dict.fromkeys(argument.all_goals)
    try:
        for goal in goals:
            # A goal comes from a file, and could hold commands that make a solver write files. `GroundGoal` refuses
            # such commands.
            GroundGoal(goal)
    except InputError as wrong:
        yield f"a goal {wrong}"
        return
    for solver in SOLVERS:
        answers = [solve(solver, goal, effort) for goal in goals]
        unproved = sum(answer != "unsat" for answer in answers)
        if unproved:
            yield f"{solver} does not prove {unproved} of {len(goals)} goals"
    if vacuous(argument):
        yield "no table fits the assumptions of the argument's goals, so they prove nothing"


def _find_problems(one: Argument) -> Iterator[str]:
    """Yield the problems of an argument itself, not of the arguments that it rests on."""
    try:
        match one.rule:
            case Rule.EXTREMES:
                wanted = simpler_claims(one.shape, one.claim) if isinstance(one.shape, Cells) else []
                if one.goals or not wanted or [(part.shape, part.claim) for part in one.parts] != wanted:
                    yield "the argument does not rest on one claim about each operand of the minimum, maximum or -x"
            case Rule.REPLACED:
                yield from _find_problems_of_replacement(one)
            case _:
                yield from _find_problems_of_goals(one)
    except InputError as wrong:
        yield f"a goal {wrong}"


_SHAPES = {Rule.ONE_PART: Parts, Rule.ONE_CELL: Cells, Rule.RANGE: Cells, Rule.OUTER: Outer, Rule.NORM: Adds}


def _find_problems_of_goals(one: Argument) -> Iterator[str]:
    """Yield what the goals of one argument state wrongly about the score, the claim or real neighbours."""
    norm = one.claim.change.is_norm
    if not isinstance(one.shape, _SHAPES[one.rule]) or norm is not (one.rule is Rule.NORM):
        yield f"the rule '{one.rule}' is for other scores or claims"
        return
    if (one.claim.group > 1 and one.rule not in (Rule.ONE_CELL, Rule.RANGE)) or (
        one.claim.change is Change.REPLACED and one.rule is Rule.ONE_PART
    ):
        yield f"the rule '{one.rule}' covers one row that is added, and no other change"
        return
    if isinstance(one.shape, Outer):
        try:
            require_multilinear(one.shape)
        except UnprovableError as problem:
            yield str(problem)
    if one.rule is Rule.RANGE:
        assert isinstance(one.shape, Cells)
        wrong = range_problem(one.shape, one.claim, one.goals, PAIRS)
    else:
        wrong = ground_problem(one.shape, one.claim, one.goals, PAIRS)
    if wrong:
        yield wrong
    if isinstance(one.shape, Parts | Cells):
        unnamed = [goal for goal in map(GroundGoal, one.goals) if not goal.definitions]
        pairs = list(neighbours(one.shape, one.claim, PAIRS))
        for quotient in divisions(one.shape.body):
            signs = [np.sign(float(_shared_value(one.shape, quotient.parts[1], pair))) for pair in pairs]
            if not any(_is_sign(goal, pairs, signs) for goal in unnamed):
                yield f"no goal says that the denominator of {quotient} is never negative"
        for inside, _ in roots(one.shape.body):
            signs = [np.sign(float(_shared_value(one.shape, inside, pair))) for pair in pairs]
            said = [(goal, _matching_signs(goal, pairs, signs)) for goal in unnamed]
            if not all(any(match[k] for _, match in said if False not in match) for k in range(len(pairs))):
                yield f"no goal says that {inside} is never negative, and a root is taken of it"
    if isinstance(one.shape, Parts):
        yield from _find_problems_of_facts(one, one.shape)


def _find_problems_of_replacement(one: Argument) -> Iterator[str]:
    """Yield the problems of a replacement, whose goal must compare the sum of rise and fall with the bound."""
    changes = [(part.shape, part.claim.change, part.claim.group) for part in one.parts]
    if not isinstance(one.shape, Parts) or changes != [(one.shape, Change.RISE, 1), (one.shape, Change.FALL, 1)]:
        yield "a claim about a replacement must rest on a rise and a fall of the same score"
        return
    if one.claim.group > 1 or one.claim.change is not Change.REPLACED or len(one.goals) != 1:
        yield "the rule covers one row that is replaced, and needs exactly one goal"
        return
    (goal,) = map(GroundGoal, one.goals)
    for number in _TABLE_ROWS:
        both = sum(bound_of(part.claim, {"rows": number}) for part in one.parts)
        said = goal.compare({"rows": number})
        if said is None or not np.allclose(
            [float(said[0]), float(said[1])], [both, bound_of(one.claim, {"rows": number})]
        ):
            yield f"for {number} rows, the goal does not compare the sum of a rise and a fall with the bound"
            return


def _is_sign(goal: GroundGoal, pairs: Sequence[GroundPair], signs: Sequence[Any]) -> bool:
    """Tell whether a goal, once solvers have proved it, shows that a denominator is never negative.

    The goal must state that a term is below 0, and the term must have the denominator's sign on each pair.
    """
    return all(_matching_signs(goal, pairs, signs))


def _matching_signs(goal: GroundGoal, pairs: Sequence[GroundPair], signs: Sequence[Any]) -> list[bool | None]:
    """Return, for each pair, whether the term that a goal says is below 0 has the pair's sign.

    The result is None for pairs that the goal does not describe, and for all pairs if the goal does not say this.
    """
    if not isinstance(goal.denied, list) or goal.denied[0] != "<" or goal.denied[2:] != ["0.0"]:
        return [None] * len(pairs)
    known = [goal.describes(pair.numbers) for pair in pairs]
    return [
        None if numbers is None else bool(np.sign(float(value_in(goal.denied[1], numbers))) == sign)
        for numbers, sign in zip(known, signs, strict=True)
    ]


def _shared_value(shape: Parts | Cells, formula: Formula, pair: GroundPair) -> Any:
    """Return a formula's value on the rows that both neighbours have. For `Parts`, only the changed part is counted."""
    numbers = pair.numbers
    if isinstance(shape, Cells):
        values: dict[Formula, Any] = {cell: numbers[str(cell)] for cell in shape.cells}
        values |= {leaf: numbers[str(leaf)] for leaf in formula.leaves(Operation.PUBLIC)}
        return value_of(formula, values, exact=is_rational(formula))
    if n in formula.walk() and not formula.leaves(*AGGREGATES):  # a number within a sum over classes
        return value_of(formula, {n: numbers["c"]}, exact=is_rational(formula))
    part = pair.low_counts[0] if pair.low_counts.sum() < pair.high_counts.sum() else pair.high_counts[0]
    return Parts(formula).of_parts(part)


def _find_problems_of_facts(one: Argument, shape: Parts) -> Iterator[str]:
    """Yield a problem if an induction fails to prove its fact, or if a goal assumes something that no fact states.

    Facts are about aggregates, which are sums and largest values over classes.
    """
    aggregates = shape.body.leaves(*AGGREGATES)
    proved: dict[int, list[Expression]] = {k: [] for k in range(len(aggregates))}
    for fact in one.facts:
        k = aggregates.index(fact.aggregate) if fact.aggregate in aggregates else -1
        found = _induce(fact, proved.get(k, []))
        if k < 0 or found is None:
            yield f"the induction of '{fact.text}' does not prove this fact about {fact.aggregate}"
            return
        proved[k].append(found)
    pairs = list(neighbours(shape, one.claim, PAIRS))
    for goal in map(GroundGoal, one.goals):
        for assumed in goal.assumptions:
            for k, aggregate in enumerate(aggregates):
                known = [*proved[k], [">=", "s", "0.0"]] if aggregate.operation is Operation.LARGEST else proved[k]
                names = {"s": f"s{k}", "rest": "rest"}
                if f"s{k}" not in names_in(assumed) or any(_rename(fact, names) == _bare(assumed) for fact in known):
                    continue
                if not (_is_root(assumed) or _is_case(assumed, shape, pairs)):
                    yield f"a goal assumes something about {aggregate} that no induction proves"
                    return


def _is_root(assumed: Expression) -> bool:
    """Tell whether an assumption only says that a constant is the root of a number, if the number is at least 0."""
    match assumed:
        case ["or", ["<", top, "0.0"], ["=", ["*", str(name), *others], power]]:
            return top == power and name.startswith("root") and set(map(str, others)) == {name}
    return False


def _is_about_root(assumed: Expression) -> bool:
    """Tell whether an assumption only says that a constant is a root, or that a root is not negative."""
    match assumed:
        case [">=", str(name), "0.0"]:
            return name.startswith("root")
    return _is_root(assumed)


def _is_case(assumed: Expression, shape: Parts, pairs: Sequence[GroundPair]) -> bool:
    """Tell whether an assumption only says that a denominator of one of the two tables is 0, or that it is positive."""
    if not isinstance(assumed, list) or assumed[0] not in ("=", ">", ">=") or assumed[2] not in ("0.0", "1.0"):
        return False
    for quotient in divisions(shape.body):
        for table in ("low_counts", "high_counts"):
            true = [float(Parts(quotient.parts[1]).of_parts(getattr(pair, table)[0])) for pair in pairs]
            said = [float(value_in(assumed[1], pair.numbers)) for pair in pairs]
            if np.allclose(true, said, rtol=CLOSE):
                return True
    return False


def _induce(fact: Fact, known: Sequence[Expression]) -> Expression | None:
    """Return the statement that a fact's goals prove; None if the goals are no induction about the fact's aggregate.

    In the statement, `s` is the aggregate's value over some classes, and `rest` the number of rows of these classes.
    """
    if len(fact.goals) != 2:
        return None
    base, step = map(GroundGoal, fact.goals)
    about = [_bare(one) for one in step.assumptions if "s" in names_in(one)]
    own = [one for one in about if one not in known] or about[-1:]
    if len(own) != 1 or base.definitions or step.definitions or not all(map(_is_about_root, base.assumptions)):
        return None
    if not all(isinstance(one, list) and len(one) == 2 and one[0] == "not" for one in (base.denied, step.denied)):
        return None
    at_zero, after = base.denied[1], _bare(step.denied[1])
    found: dict[str, Expression] = {}
    if _rename(own[0], {"s": "0.0", "rest": "0.0"}) != _bare(at_zero) or not _unify(own[0], after, found):
        return None
    if found.get("rest", ["+", "rest", "x"]) != ["+", "rest", "x"] or "s" not in found:
        return None
    random = np.random.default_rng(4)
    for size in (1, 3, 9, 40):
        for _ in range(25):
            counts = random.integers(0, size + 1, int(random.integers(1, 6)))
            s = aggregate_of(fact.aggregate, counts[1:])
            numbers = step.with_roots({"rest": int(counts[1:].sum()), "x": int(counts[0]), "s": s})
            if any("s" not in names_in(one) and not value_in(one, numbers) for one in step.assumptions):
                return None
            after_class = aggregate_of(fact.aggregate, counts)
            if abs(value_in(found["s"], numbers) - after_class) > (0 if is_rational(fact.aggregate) else CLOSE):
                return None
    return own[0]


def _bare(expression: Expression) -> Expression:
    """Return an expression without conversions of whole numbers to real ones."""
    if isinstance(expression, str):
        return expression
    if expression[0] == "to_real":
        return _bare(expression[1])
    return [_bare(part) for part in expression]


def _rename(expression: Expression, names: Mapping[str, str]) -> Expression:
    if isinstance(expression, str):
        return names.get(expression, expression)
    return [_rename(part, names) for part in expression]


def _unify(pattern: Expression, expression: Expression, found: dict[str, Expression]) -> bool:
    """Tell whether an expression has a pattern's form. Put its terms for the pattern's `s` and `rest` into `found`."""
    if pattern in ("s", "rest"):
        return found.setdefault(str(pattern), expression) == expression
    if isinstance(pattern, str) or isinstance(expression, str):
        return pattern == expression
    return len(pattern) == len(expression) and all(
        _unify(one, other, found) for one, other in zip(pattern, expression, strict=True)
    )
