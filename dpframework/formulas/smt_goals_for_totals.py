"""Goals for formulas of totals. The rise and the fall of each total are proved elsewhere.

A goal is an SMT-LIB text that denies a claim in one case. A solver that finds the text unsatisfiable has proved the
claim in that case.

A total lies between 0 and h N, where N is the number of rows and h is `Total.per_row`. An added row moves the total by
a number in [-fall, rise]. Let a formula have degree 1 in each total, and divide only by the number of rows or by a
constant. The formula's change by a row then has degree 1 in each total and in each total's move. So the change is
largest at a vertex of the box in which all totals and moves lie. There is a goal for each vertex, with N as the only
unknown. If a total is only multiplied by a number and added, the change does not depend on the total itself. So only
one end of the total's range is tried. Formulas of another form are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product as combinations

from dpframework.formulas.count_formula import Formula, Operation
from dpframework.formulas.score_structures import Outer, table_rows
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim
from dpframework.formulas.smt_goal_writer import Goal, Ratio, UnprovableError, divisions, number_text, table_ratio

_END = tuple[bool, ...]  #: For each total, whether the total (or its move) is at the upper end of its range.


def outer_goals(shape: Outer, claim: Claim) -> Iterator[str]:
    """Yield the goals of a claim about a formula of totals."""
    if claim.group > 1:
        raise UnprovableError("no rule covers a change of several rows for a formula of totals")
    replaced = claim.change is Change.REPLACED
    require_multilinear(shape)
    ends = list(combinations((False, True), repeat=len(shape.totals)))
    varied = [one.cell not in _collect_added(shape.body) for one in shape.totals]
    for at in ends:
        if any(end and not free for end, free in zip(at, varied, strict=True)):
            continue
        for moves in combinations(ends, repeat=2 if replaced else 1):
            for empty in (False, True):
                yield _vertex(shape, claim, at, (moves[0] if replaced else None, moves[-1]), empty)


def _collect_added(body: Formula) -> set[Formula]:
    """Return the totals that are only multiplied by numbers and added.

    It does not matter where in its range such a total is.
    """

    def inner(one: Formula) -> tuple[set[Formula], set[Formula]]:
        """Return the cells that are added, and those that stand elsewhere."""
        if one.operation is Operation.CELL:
            return {one}, set()
        parts = [inner(part) for part in one.parts]
        if one.operation is not Operation.ADD and all(part.constant is None for part in one.parts):
            return set(), {cell for added, others in parts for cell in added | others}
        return {c for added, _ in parts for c in added}, {c for _, others in parts for c in others}

    added, others = inner(body)
    return added - others


def require_multilinear(shape: Outer) -> None:
    """Refuse a formula whose largest change need not be at a vertex of its totals' ranges.

    Raises
    ------
    UnprovableError
        If the formula is not of degree 1 in each total, if it divides by something else than the number of rows or a
        constant, or if the range of a total is not known.
    """

    def totals(formula: Formula) -> set[Formula]:
        return {leaf for leaf in formula.leaves(Operation.CELL) if leaf != table_rows}

    def is_allowed(one: Formula) -> bool:
        match one.operation:
            case Operation.MULTIPLY:
                return not totals(one.parts[0]) & totals(one.parts[1])
            case Operation.DIVIDE:
                return one.parts[1] == table_rows or one.parts[1].constant is not None
            case _:
                return one.operation in (Operation.ADD, Operation.CONSTANT, Operation.CELL)

    if any(one.per_row is None for one in shape.totals) or not all(map(is_allowed, shape.body.walk())):
        raise UnprovableError(
            f"'{shape.body}' is not of degree 1 in totals with known ranges, or divides by something other than the "
            "number of rows or a constant"
        )


def _vertex(shape: Outer, claim: Claim, at: _END, moves: tuple[_END | None, _END], empty: bool) -> str:
    """Return the goal of one vertex. `empty` tells whether the table has no rows, or some, before a row is added.

    At a vertex, each total (`at`) and each total's moves (`moves`) are at an end of their range.
    """
    goal = Goal(False)
    rows = goal.count("N")
    goal.assume(f"({'=' if empty else '>='} {rows} {'0.0' if empty else '1.0'})")
    sides = []
    for move in moves:
        now = goal.plus(rows, int(move is not None))
        terms: dict[Formula, Ratio] = {table_rows: (now, "1.0")}
        for k, one in enumerate(shape.totals):
            base = f"(* {number_text(one.per_row or Fraction())} {rows})" if at[k] else "0.0"
            if move is not None:
                moved = number_text(one.rise if move[k] else -one.fall)
                base = f"(+ {base} {moved})"
            terms[one.cell] = (base, "1.0")
        zeros = [empty and move is None for _ in divisions(shape.body)]
        sides.append(table_ratio(goal, shape.body, terms, zeros))
    low, high = sides if claim.change is not Change.FALL else reversed(sides)
    goal.deny(high, low, goal.ratio(claim.bound, {}))
    return goal.text()
