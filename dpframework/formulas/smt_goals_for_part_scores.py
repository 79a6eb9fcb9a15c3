"""Goals for scores of parts, for any number of parts and classes.

A goal is an SMT-LIB text that denies a claim in one case. A solver that finds the text unsatisfiable has proved the
claim in that case.

1. *One part.* A score is a sum over disjoint parts, and a row is in one part. So the score's change is the change of
that part's formula. Let the row's class have c rows in that part before the row is added, and let the part's other
classes have R' rows together. The goals have c and R' as unknowns. They assume that c, R' >= 0, and that c + R' + 1 is
at most the table's number of rows. So the goals cover all tables.
2. *The rest.* A sum over the other classes does not change, so it is one unknown s. The same holds for a largest value.
Facts about s are proved by induction over classes. A fact must hold if there are no classes (s = 0, R' = 0). If it
holds for s and R', it must still hold after a class of x rows joins. Let phi(x) be the term of this class. The sum is
then s + phi(x), or the largest value is max(s, phi(x)), and the classes have R' + x rows. So the proof holds for any
number of classes. The term phi may read only the class's count: a sum whose terms read the part's rows is refused.
3. *x log2 x* is an unknown function f with f(0) = f(1) = 0, whose increments f(x + 1) - f(x) grow and are at least 0.
The true function is such a function (it is convex, and 0 at 0 and 1).
4. *Zero cases.* Before and after the row is added, a denominator is 0, positive or negative. There is a goal for each
combination of 0 and positive. There is also one goal for each denominator, which shows that it is never negative. The
same is shown for each number that a root is taken of.
5. *Replaced.* Both tables have at most R rows, and each is a shared table with one row added. Compared with the score
of the shared table, the first table's score is lower by at most `fall`, and the second table's score is higher by at
most `rise`. So the change is at most `rise + fall`. One goal compares this sum, for R rows, with the claimed bound. The
sum is attained if the score of one part can rise by `rise` and the score of another part can fall by `fall`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product as combinations

from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation, n, rows, rows_of_part
from dpframework.formulas.score_structures import Parts
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, is_rows_or_more
from dpframework.formulas.smt_goal_writer import Goal, Ratio, UnprovableError, divisions, roots, table_ratio, total

#: The facts that may hold for an aggregate {s} over classes that have {rest} rows together. {phi} is the aggregate's
#: term for a single class of {rest} rows.
FACTS = ("(>= {s} 0.0)", "(>= {s} {rest})", "(<= {s} {phi})")


def induction_goals(aggregate: Formula, fact: str, known: Sequence[str]) -> list[str]:
    """Return the goals that prove a fact about an aggregate: without any class, and after another class joins.

    `known` are facts that were proved before.
    """
    (body,) = aggregate.parts
    base, step = Goal(False), Goal(False)
    base.claim = f"(not {_fact(base, fact, body, '0.0', '0.0')})"
    rest, joining, s = step.count("rest"), step.count("x"), step.real("s")
    for told in (*known, fact):
        step.assume(_fact(step, told, body, s, rest))
    after = _join(aggregate, s, _term(step, body, joining))
    step.claim = f"(not {_fact(step, fact, body, after, f'(+ {rest} {joining})')})"
    return [base.text(), step.text()]


def _fact(goal: Goal, fact: str, body: Formula, s: str, rest: str) -> str:
    """Return a fact about an aggregate s over classes with a given number of rows together."""
    return fact.format(s=s, rest=goal.as_real(rest), phi=_term(goal, body, rest))


def provable_facts(aggregate: Formula) -> tuple[str, ...]:
    """Return the facts to try on an aggregate: none if it contains x log2 x, since no goal needs facts about it."""
    return () if aggregate.leaves(Operation.X_LOG_X) else FACTS


def _join(aggregate: Formula, s: str, term: str) -> str:
    return f"(+ {s} {term})" if aggregate.operation is Operation.SUM else f"(ite (>= {s} {term}) {s} {term})"


def _term(goal: Goal, body: Formula, count: str) -> str:
    """Return an aggregate's term for a class with a given number of rows."""
    if rows_of_part in body.walk():
        raise UnprovableError(f"the terms of a sum read the part's rows: '{body}'")
    terms: dict[Formula, Ratio] = {n: (goal.as_real(count), "1.0")}
    for found in body.leaves(Operation.X_LOG_X):
        if found.parts[0] != n:
            raise UnprovableError(f"'{found}' takes x log2 x of something other than a count")
        terms[found] = (goal.log(count), "1.0")
    top, bottom = goal.ratio(body, terms)
    if bottom != "1.0":
        raise UnprovableError(f"the terms of a sum hold a quotient: '{body}'")
    return top


def part_goals(shape: Parts, claim: Claim, facts: Mapping[Formula, Sequence[str]], whole: bool) -> list[str]:
    """Return the goals of a claim about one row that is added (see the rules 1 to 4 of the module).

    Parameters
    ----------
    shape
        The score.
    claim
        The claim about it.
    facts
        The facts that were proved about its aggregates.
    whole
        Whether counts are whole numbers.
    """
    quotients = divisions(shape.body)
    cases = combinations((False, True), repeat=2 * len(quotients))
    goals = [_case(shape, claim, facts, whole, zeros) for zeros in cases]
    for quotient in quotients:
        goal = _goal(shape, claim, whole)
        terms = _terms(goal, shape, facts, goal.count("c"), total([goal.count("c"), goal.count("rest")]))
        goal.claim = f"(< {goal.ratio(quotient.parts[1], terms)[0]} 0.0)"
        goals.append(goal.text())
    for inside, inner in roots(shape.body):
        for zeros in combinations((False, True), repeat=len(inner)):
            goal = _goal(shape, claim, whole)
            terms = _terms(goal, shape, facts, goal.count("c"), total([goal.count("c"), goal.count("rest")]))
            terms[n] = (goal.as_real("c"), "1.0")  # for a root within a sum, where c stands for the rows of any class
            goal.claim = f"(< {table_ratio(goal, inside, terms, zeros)[0]} 0.0)"
            goals.append(goal.text())
    return goals


def replacement_goal(rise: Formula, fall: Formula, replaced: Formula) -> str:
    """Return the goal which shows that a rise and a fall together are within the bound of a replacement (rule 5)."""
    goal = Goal(any(bound.leaves(Operation.X_LOG_X) for bound in (rise, fall, replaced)))
    table_rows = goal.count("rows")
    goal.assume(f"(>= {table_rows} {goal.whole_number(1)})")
    low: Ratio = ("0.0", "1.0")
    goal.deny(_bound(goal, rise + fall, table_rows), low, _bound(goal, replaced, table_rows))
    return goal.text()


def _goal(shape: Parts, claim: Claim, whole: bool) -> Goal:
    return Goal(whole or bool(shape.body.leaves(Operation.X_LOG_X) or claim.bound.leaves(Operation.X_LOG_X)))


def _case(
    shape: Parts, claim: Claim, facts: Mapping[Formula, Sequence[str]], whole: bool, zeros: tuple[bool, ...]
) -> str:
    """Return the goal for one combination of denominators that are 0."""
    goal = _goal(shape, claim, whole)
    before = total([goal.count("c"), goal.count("rest")])
    table_rows, after = goal.count("rows"), goal.plus(before, 1)
    goal.assume(f"(<= {after} {table_rows})")
    goal.increments = dict.fromkeys(("c", before, f"(- {table_rows} 1)"))
    half = len(zeros) // 2  # the first half is about the table without the row
    sides = []
    for count, part_rows, own in (("c", before, zeros[:half]), (goal.plus("c", 1), after, zeros[half:])):
        sides.append(table_ratio(goal, shape.body, _terms(goal, shape, facts, count, part_rows), own))
    low, high = sides if claim.change is Change.RISE else reversed(sides)
    goal.deny(high, low, _bound(goal, claim.bound, table_rows))
    return goal.text()


def _terms(
    goal: Goal, shape: Parts, facts: Mapping[Formula, Sequence[str]], count: str, part_rows: str
) -> dict[Formula, Ratio]:
    """Return the terms that stand for the leaves and sums of one table."""
    terms: dict[Formula, Ratio] = {rows_of_part: (goal.as_real(part_rows), "1.0")}
    for k, found in enumerate(shape.body.leaves(*AGGREGATES)):
        s, (body,) = goal.real(f"s{k}"), found.parts
        for fact in facts.get(found, ()):
            goal.assume(_fact(goal, fact, body, s, "rest"))
        if found.operation is Operation.LARGEST:
            goal.assume(f"(>= {s} 0.0)")
        terms[found] = (_join(found, s, _term(goal, body, count)), "1.0")
    for found in shape.body.leaves(Operation.X_LOG_X):
        if found.parts[0] == rows_of_part:
            terms[found] = (goal.log(part_rows), "1.0")
    return terms


def _bound(goal: Goal, bound: Formula, table_rows: str) -> Ratio:
    terms: dict[Formula, Ratio] = {rows: (goal.as_real(table_rows), "1.0")}
    for found in divisions(bound):
        if not is_rows_or_more(found.parts[1]):
            raise UnprovableError(
                f"the bound '{bound}' divides by something other than the rows plus a constant of 0 or more"
            )
    for found in bound.leaves(Operation.X_LOG_X):
        if found.parts[0] not in (rows, rows - 1):
            raise UnprovableError(f"no rule covers the bound '{bound}'")
        terms[found] = (goal.log(table_rows if found.parts[0] == rows else f"(- {table_rows} 1)"), "1.0")
    return goal.ratio(bound, terms)
