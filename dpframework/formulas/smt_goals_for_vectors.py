"""Goals for vectors that are summed over rows.

A goal is an SMT-LIB text that denies a claim. A solver that finds the text unsatisfiable has proved the claim.

A row adds its entries to a vector. When a row is added, the norm of the vector's change is the norm of the row's
entries. When a row is replaced, it is the norm of the difference of two rows' entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.formulas.count_formula import Formula, Operation, PublicRange
from dpframework.formulas.score_structures import Adds
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim
from dpframework.formulas.smt_goal_writer import Goal, Ratio, UnprovableError, total


def norm_goals(shape: Adds, claim: Claim) -> Iterator[str]:
    """Yield the goals of a claim about a norm. The linf norm has one goal for each entry, and other norms have one."""
    if claim.group > 1:
        raise UnprovableError("no rule covers several rows of a vector")
    for which in range(len(shape.entries)) if claim.change is Change.LINF else (None,):
        goal = Goal(False)
        new = _entries(goal, shape, "")
        old = _entries(goal, shape, "_before") if claim.replaced else ["0.0"] * len(new)
        moved = [f"(- {one} {other})" for one, other in zip(new, old, strict=True)]
        squared = claim.change is Change.SQUARED_L2
        sizes = [f"(* {one} {one})" if squared else f"(ite (>= {one} 0.0) {one} (- {one}))" for one in moved]
        size = total(sizes) if which is None else sizes[which]
        goal.deny((size, "1.0"), ("0.0", "1.0"), goal.ratio(claim.bound, {}))
        yield goal.text()


def _entries(goal: Goal, shape: Adds, tag: str) -> list[str]:
    """Return the terms for a row's entries.

    The names of the row's public parameters end in `tag`, so that two rows have different parameters.
    """
    terms: dict[Formula, Ratio] = {}
    for entry in shape.entries:
        for free in entry.leaves(Operation.PUBLIC):
            assert isinstance(free.value, PublicRange)
            own = PublicRange(f"{free.value.name}{tag}", free.value.lower, free.value.upper)
            terms[free] = goal.ratio(Formula(Operation.PUBLIC, value=own), {})
    entries = []
    for entry in shape.entries:
        top, bottom = goal.ratio(entry, terms)
        if bottom != "1.0":
            raise UnprovableError(f"the entry '{entry}' holds a quotient")
        entries.append(top)
    if shape.shares:
        for top in entries:
            goal.assume(f"(<= 0.0 {top} 1.0)")
        goal.assume(f"(<= {total(entries)} 1.0)")
    return entries
