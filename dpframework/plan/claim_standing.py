"""Whether each step's claim is proved, tested or only declared, according to a file of verification records."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, final

import attrs

from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, ScoreClaims, bound_at
from dpframework.plan.nodes import Step
from dpframework.plan.plan import Plan
from dpframework.queries.base import Norm, QueryFacts, Sensitivity

if TYPE_CHECKING:
    from dpframework.plan.verification_records_file import VerificationRecords

SLACK = Fraction(1, 2**40)  # the share by which a sensitivity may be below a bound, since both round logarithms up


class Standing(enum.StrEnum):
    """How much is known about a claim.

    A claim is proved if solvers have proved it for all tables. It is tested if the miner's code passed a search for
    losses above the claim. Otherwise it is only declared.
    """

    PROVED = "proved"
    TESTED = "tested"
    DECLARED = "declared"


@final
@attrs.frozen
class ClaimStanding:
    """How much is known about the claim of a step.

    Attributes
    ----------
    path
        The step's path in the plan.
    standing
        Whether the claim is proved, tested or only declared.
    text
        The standing in a few words, with the solvers that proved the claim or the tightness of the test.
    """

    path: str
    standing: Standing
    text: str


def standings(plan: Plan, verified: VerificationRecords | None) -> Iterator[ClaimStanding]:
    """Yield the standing of each step's claim. Records about other code than the plan's are ignored."""
    from dpframework.plan.verification_records_file import code_verdicts

    passed = {} if verified is None else {one.what: one for one in code_verdicts(plan, verified) if one.passed}
    tested = {}
    for part, written in plan.miners.items():
        one = passed.get(f"miner '{written.get('miner', '')}'")
        if one is not None and one.record is not None and one.record.tightness is not None:
            tested[part] = f"tested: the search reached {100 * one.record.tightness:.0f} % of the claim"
    for path, step in plan.placed_steps():
        proved = None if verified is None else _find_provers(plan, step, verified)
        if proved:
            yield ClaimStanding(path, Standing.PROVED, f"proved by {proved}, for all tables")
        elif (part := path.partition("/")[0]) in tested:
            yield ClaimStanding(path, Standing.TESTED, tested[part])
        else:
            unproved = "; not proved here" if step.facts.formulas else ""
            yield ClaimStanding(path, Standing.DECLARED, f"declared{unproved}")


def _find_provers(plan: Plan, step: Step, verified: VerificationRecords) -> str:
    """Return the names of the solvers that proved all claims about a step's formulas; "" if a claim is not proved."""
    facts = step.facts
    declared = facts.sensitivity(step.mechanism.norm)
    if declared is None or not facts.formulas:
        return ""
    if plan.unit.rows > 1 and not plan.in_parts(step) and step.query.for_rows(plan.unit.rows):
        return ""  # the query makes its own claim for several rows, which proofs about one row do not cover
    records = []
    for one in facts.formulas:
        if not covers(facts, declared, one, plan.facts.row_bound, exact=plan.facts.rows is not None):
            return ""
        records += [verified.proves(one.shape, claim) for claim in one.claims]
    if any(record is None for record in records):
        return ""
    return " and ".join(dict.fromkeys(name for record in records if record is not None for name in record.solvers))


def covers(
    facts: QueryFacts, declared: Sensitivity, scored: ScoreClaims, row_bound: int | None, *, exact: bool
) -> bool:
    """Tell whether a declared sensitivity reaches the bounds that a formula's claims state.

    Parameters
    ----------
    facts
        The facts of the query. If the answer holds several supports or several histograms of all rows, their norms add
        up.
    declared
        One of the query's sensitivities.
    scored
        A formula of the query, with its claims.
    row_bound
        A public bound on the number of rows; None if there is none.
    exact
        Whether `row_bound` is the exact number of rows. A table with one more row then exceeds it.
    """
    bounds = {(claim.change, claim.replaced): claim for claim in scored.claims if claim.group == 1}
    larger = None if row_bound is None else row_bound + exact
    if declared.norm is Norm.LINF and (Change.RISE, False) in bounds:
        wanted = [
            (declared.rise, bounds.get((Change.RISE, False)), larger),
            (declared.fall, bounds.get((Change.FALL, False)), larger),
            (declared.change.replace_one, bounds.get((Change.REPLACED, False)), row_bound),
        ]
        if declared.add_or_remove_one is None:  # the query has a claim under replace-one only
            wanted = wanted[2:]
        return all(_covers(size, claim, number, 1) for size, claim, number in wanted)
    if declared.norm is Norm.BLOCKS:  # a claim about the counts of one block says nothing about the others
        return False
    change = Change.L1 if declared.norm is Norm.HISTOGRAMS else Change(declared.norm.value)
    several = (facts.answer_length or 0) if facts.name == "supports" else len(facts.histograms)
    times = max(several, 1) if declared.norm in (Norm.L1, Norm.SQUARED_L2) else 1
    added, replaced = bounds.get((change, False)), bounds.get((change, True))
    return _covers(declared.add_or_remove_one, added, larger, times) and _covers(
        declared.change.replace_one, replaced, row_bound, times
    )


def _covers(size: Fraction | None, claim: Claim | None, number: int | None, times: int) -> bool:
    if claim is None or size is None:
        return False
    return size >= times * bound_at(claim.bound, number) * (1 - SLACK)
