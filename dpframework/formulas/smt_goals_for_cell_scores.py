"""Goals for scores of cells. The cells are a fixed number of disjoint sets of rows.

A goal is an SMT-LIB text that denies a claim in one case. A solver that finds the text unsatisfiable has proved the
claim in that case.

1. *One cell.* An added row raises the count of one cell by 1, or of none. (Tests check this for the code that counts.)
The numbers of rows in the cells are unknowns of a goal. So one goal for each cell, and one for no cell, cover all
tables.
2. *Replaced.* Each of the two tables is a shared table with one row added. There is a goal for each pair of
different places of these two rows, where a place is a cell or no cell.
3. *Several rows.* Up to k rows are added to cells in any way. One goal covers all ways, with an unknown number of new
rows for each cell. Under replacement, a second unknown number for each cell counts the rows that leave.
4. *Zero cases.* As in `smt_goals_for_part_scores`, there is a goal for each choice of denominators that are 0, where
all others are positive. There is also one goal for each denominator, which shows that this denominator is never
negative. The same is shown for each number that a root is taken of.
5. *Extremes.* Let x and y change by at most b between two tables. Then max(x, y) changes by at most b, too. On the
table with the higher maximum, the maximum equals x or y, say x. On the other table x is lower by at most b, and the
maximum is at least x, so the maximum is lower by at most b, too. The same holds for a minimum, and by induction for any
number of formulas. The fall of -x is the rise of x.
6. *Range.* A score that lies between 0 and b on every table moves by at most b, whichever rows change. There are two
goals for each choice of denominators that are 0. One says that the score is above b, the other that it is below 0.
"""

from __future__ import annotations

from itertools import product as combinations

from dpframework.formulas.count_formula import Formula, Operation
from dpframework.formulas.score_structures import Cells
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim
from dpframework.formulas.smt_goal_writer import Goal, Ratio, divisions, product, roots, table_ratio, total

#: Where a row goes: the position of a cell, or None for no cell.
Spot = int | None
_OTHER_WAY = {Change.RISE: Change.FALL, Change.FALL: Change.RISE, Change.REPLACED: Change.REPLACED}


def simpler_claims(shape: Cells, claim: Claim) -> list[tuple[Cells, Claim]]:
    """Return the claims that together prove a claim about an extreme or about -x (rule 5).

    The list is empty for other formulas.
    """
    body = shape.body
    if body.operation in (Operation.LEAST, Operation.MOST):
        return [(Cells(shape.cells, part, shape.within), claim) for part in body.parts]
    if body.operation is Operation.MULTIPLY and body.parts[0].constant == -1:
        turned = Claim(_OTHER_WAY[claim.change], claim.bound, claim.group)
        return [(Cells(shape.cells, body.parts[1], shape.within), turned)]
    return []


def cell_goals(shape: Cells, claim: Claim, whole: bool) -> list[str]:
    """Return the goals of a claim, with whole or with real numbers of rows."""
    cases = list(combinations((False, True), repeat=2 * len(divisions(shape.body))))
    if claim.group > 1:
        goals = [_case(shape, claim, whole, zeros, None) for zeros in cases]
    else:
        spots: list[Spot] = [None, *range(len(shape.cells))]
        out_of = spots if claim.change is Change.REPLACED else [None]
        moves = [(out, into) for out in out_of for into in spots if out != into]
        goals = [_case(shape, claim, whole, zeros, move) for move in moves for zeros in cases]
    return goals + _signs(shape, whole)


def _signs(shape: Cells, whole: bool) -> list[str]:
    """Return goals for each denominator and each number that a root is taken of.

    Each goal says that the denominator or the number is negative, which solvers must disprove.
    """
    goals = []
    for quotient in divisions(shape.body):
        goal = Goal(whole)
        names = [goal.count(str(cell), gap=False) for cell in shape.cells]
        _assume_within(goal, shape)
        goal.claim = f"(< {goal.ratio(quotient.parts[1], _terms(goal, shape, names))[0]} 0.0)"
        goals.append(goal.text())
    for inside, quotients in roots(shape.body):
        for zeros in combinations((False, True), repeat=len(quotients)):
            goal = Goal(whole)
            names = [goal.count(str(cell), gap=False) for cell in shape.cells]
            _assume_within(goal, shape)
            goal.claim = f"(< {table_ratio(goal, inside, _terms(goal, shape, names), zeros)[0]} 0.0)"
            goals.append(goal.text())
    return goals


def range_goals(shape: Cells, claim: Claim, whole: bool) -> list[str]:
    """Return goals that say that a score is above the bound, or below 0, which solvers must disprove (rule 6)."""
    goals = []
    for zeros in combinations((False, True), repeat=len(divisions(shape.body))):
        for above in (True, False):
            goal = Goal(whole)
            terms = _terms(goal, shape, [goal.count(str(cell), gap=False) for cell in shape.cells])
            _assume_within(goal, shape)
            score, nothing = table_ratio(goal, shape.body, terms, zeros), ("0.0", "1.0")
            if above:
                goal.deny(score, nothing, goal.ratio(claim.bound, {}))
            else:
                goal.deny(nothing, score, nothing)
            goals.append(goal.text())
    return goals + _signs(shape, whole)


def _terms(goal: Goal, shape: Cells, counts: list[str]) -> dict[Formula, Ratio]:
    return {cell: (goal.as_real(count), "1.0") for cell, count in zip(shape.cells, counts, strict=True)}


def _case(shape: Cells, claim: Claim, whole: bool, zeros: tuple[bool, ...], move: tuple[Spot, Spot] | None) -> str:
    """Return the goal for one combination of denominators that are 0. If `move` is None, several rows join or leave."""
    goal = Goal(whole)
    names = [goal.count(str(cell), gap=False) for cell in shape.cells]
    if move is not None:
        tables = [[goal.plus(name, int(k == spot)) for k, name in enumerate(names)] for spot in move]
    else:
        before = _join(goal, names, "out", claim.group) if claim.change is Change.REPLACED else names
        tables = [before, _join(goal, names, "in", claim.group)]
    _assume_within(goal, shape)
    half = len(zeros) // 2  # the first half is about the first table
    sides = [
        table_ratio(goal, shape.body, _terms(goal, shape, table), own)
        for table, own in zip(tables, (zeros[:half], zeros[half:]), strict=True)
    ]
    low, high = sides if claim.change is not Change.FALL else reversed(sides)
    goal.deny(high, low, goal.ratio(claim.bound, {}))
    return goal.text()


def _join(goal: Goal, names: list[str], tag: str, group: int) -> list[str]:
    """Return the terms for the cells' numbers of rows after up to `group` rows have joined."""
    joining = [goal.count(f"{tag}_{name}", gap=False) for name in names]
    goal.assume(f"(<= {total(joining)} {goal.whole_number(group)})")
    return [f"(+ {name} {more})" for name, more in zip(names, joining, strict=True)]


def _assume_within(goal: Goal, shape: Cells) -> None:
    for low, high in shape.within:
        (top, bottom), (above, below) = goal.ratio(low, {}), goal.ratio(high, {})
        goal.assume(f"(<= {product(top, below)} {product(above, bottom)})")
