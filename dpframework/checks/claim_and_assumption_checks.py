"""Checks that each step has a valid claim, and that the study allows the assumptions that the claim needs."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.checks.base import Severity
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.facts.privacy_unit import ROWS_ASSERTED
from dpframework.plan.plan import DATA_FITS_SCHEMA, ROWS_FROM_QUERY, Plan

INFERRED = "schema-inferred-from-data"
HARMLESS = frozenset({"row-count-public"})  # replace-one itself makes the row count public
KNOWN_ASSUMPTIONS = frozenset(
    {INFERRED, DATA_FITS_SCHEMA, ROWS_ASSERTED, ROWS_FROM_QUERY, "mcmc-converged", "real-arithmetic", *HARMLESS}
)


def relation_not_supported(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find steps without a claim under the study's relation.

    Under replace-one, some steps also need a claim under add-or-remove-one: steps that are released from parts of the
    table, and all steps if a unit may be replaced by a unit with fewer rows.
    """
    unclaimed: dict[str, list[str]] = {}
    for path, step in plan.placed_steps():
        facts = step.facts
        declared = facts.sensitivity(step.mechanism.norm)
        if declared is None:
            continue
        if declared.change.under(plan.relation) is None:
            unclaimed.setdefault(_remedy(plan, declared.change), []).append(f"step '{path}': {facts.text}")
        elif plan.relation is not Relation.REPLACE_ONE or declared.change.add_or_remove_one is not None:
            continue
        elif plan.unit_change.resizes:
            yield (
                Severity.ERROR,
                f"step '{path}': {facts.text} has no claim under add-or-remove-one and needs one, since a unit that "
                "replaces another may have fewer rows; give the public row count in the schema (rows = ...)",
            )
        elif plan.in_parts(step):
            yield (
                Severity.ERROR,
                f"step '{path}': {facts.text} has no claim under add-or-remove-one, which parts of a table need: "
                "a replaced row may leave one part and enter another; release it from the whole table",
            )
    for remedy, (first, *others) in unclaimed.items():
        more = {0: "", 1: ", nor has another step"}.get(len(others), f", nor have {len(others)} other steps")
        yield Severity.ERROR, f"{first} has no claim under {plan.relation}{more}; {remedy}"


def _remedy(plan: Plan, change: ByRelation) -> str:
    """Return what to change in the study, as text, if a query has no claim under the plan's relation."""
    other = next(r for r in Relation if r is not plan.relation)
    if change.under(other) is None:
        return "use another query"
    if other is Relation.ADD_OR_REMOVE_ONE:
        return f'set relation = "{other}" in the study'
    remedy, facts = f'set relation = "{other}" in the study', plan.facts
    if facts.rows is None:
        remedy += " and the public row count in the schema (rows = ...)"
    if facts.rows is not None or facts.row_bound is None:
        remedy += "; some queries need no more than a public bound on the count (max_rows = ... in place of rows)"
    return remedy


def undeclared_sensitivity(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find queries that declare no sensitivity, a sensitivity of 0, or a sensitivity without its source."""
    for path, step in plan.placed_steps():
        facts = step.facts
        if not facts.sensitivities:
            yield Severity.ERROR, f"step '{path}': {facts.text} declares no sensitivity; define Query.sensitivities"
            continue
        zero = [s for s in facts.sensitivities if s.add_or_remove_one == 0 or s.replace_one == 0]
        for declared in zero:
            yield (
                Severity.ERROR,
                f"step '{path}': {facts.text} declares a {declared.norm} sensitivity of 0, as if it read no rows",
            )
        for declared in facts.sensitivities:
            if not declared.source.strip():
                yield (
                    Severity.ERROR,
                    f"step '{path}': {facts.text} gives no source for its sensitivity; name the theorem or derivation",
                )


def mechanism_does_not_fit(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find mechanisms that cannot answer their query, or have no claim for the privacy unit or for a block's caps.

    A miner chooses the releases of a block during the run, within caps on their total cost (see
    `plan.spend_block_node`).
    """
    for path, step in plan.placed_steps():
        facts = step.facts
        problem = step.mechanism.misfit(facts) if facts.sensitivities else None
        of_rows = plan.unit.rows == 1 or step.mechanism.for_rows(plan.unit.rows) is not None
        if problem is None and not of_rows and plan.calibration(step) is None:
            remedy = "; define Mechanism.for_rows"
            if plan.in_parts(step) and plan.calibrate(step, in_parts=False) is not None:
                remedy = ", if these lie in different parts; use another mechanism, or release it outside of the parts"
            problem = f"has no claim for {plan.unit}{remedy}"
        if problem is None:
            block, found = plan.index.place(step).block, plan.calibration(step)
            if block is not None and found is not None:
                amount = block.amount_without_claim(found.losses, plan.relation)
                caps = f"which block '{block.name}' caps; leave that cap out, or use another mechanism"
                problem = None if amount is None else f"has no claim in {amount}, {caps}"
        if problem is not None:
            yield Severity.ERROR, f"step '{path}': {step.mechanism.name} on {facts.text} {problem}"


def assumption_not_allowed(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find assumptions that the study does not allow, except harmless ones and those that DP006 or DP021 reports."""
    for assumption, steps in plan.assumptions.items():
        if assumption in HARMLESS or assumption in plan.budget.allow or assumption in (INFERRED, DATA_FITS_SCHEMA):
            continue
        names = ", ".join(f"'{step}'" for step in steps)
        who = {0: "the study assumes", 1: f"step {names} assumes"}.get(len(steps), f"steps {names} assume")
        instead = "name the unit's column (unit), or " if assumption == ROWS_ASSERTED else ""
        yield Severity.ERROR, f"{who} '{assumption}'; {instead}list it in the study's allow if you accept that"


def schema_inferred(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find a schema that was inferred from private data."""
    if not plan.facts.inferred:
        return
    what = f"the schema was inferred from private data ({'; '.join(plan.facts.inferred)})"
    yield _if_allowed(
        plan,
        INFERRED,
        f"{what}: no claim of this plan covers that",
        f"{what}, which no epsilon covers; write a public schema, or allow '{INFERRED}'",
    )


def _if_allowed(plan: Plan, name: str, accepted: str, refused: str) -> tuple[Severity, str]:
    """Return a warning if the study allows an assumption, else an error."""
    return (Severity.WARNING, accepted) if name in plan.budget.allow else (Severity.ERROR, refused)


def row_count_public(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find a row count that is published although the relation keeps it secret.

    The finding is a warning if each unit has one row, and an error if units may have several. The reason: a query that
    knows the row count may assume that a neighbour has at most one more row.
    """
    if plan.facts.rows is not None and plan.relation is Relation.ADD_OR_REMOVE_ONE:
        yield (
            Severity.WARNING if plan.unit.rows == 1 else Severity.ERROR,
            f"the schema publishes the exact row count (rows = {plan.facts.rows}), which {plan.relation} keeps secret; "
            "give max_rows instead, or study under replace-one",
        )


def asserted_rows(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Report the owner's statements about the rows, since a run ends if one of them is wrong."""
    if DATA_FITS_SCHEMA in plan.assumptions:
        yield _if_allowed(
            plan,
            DATA_FITS_SCHEMA,
            f"the owner asserts '{DATA_FITS_SCHEMA}': {_ENDS}",
            f"reading with out_of_domain = '{plan.out_of_domain}' assumes '{DATA_FITS_SCHEMA}': a row that does "
            "not fit the schema ends the run; list it in the study's allow, or choose 'clamp' or 'missing'",
        )
    if plan.facts.rows is not None:
        if plan.relation is not Relation.ADD_OR_REMOVE_ONE:  # otherwise DP018 reports it
            yield Severity.INFO, f"the owner asserts rows = {plan.facts.rows}: {_ENDS}"
    elif plan.facts.row_bound is not None:
        yield Severity.INFO, f"the owner asserts max_rows = {plan.facts.row_bound}: {_ENDS}"


_ENDS = "if the table breaks this, the run ends, says so, and uses up its approval"


def sample_without_claim(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find samples under replace-one, where no theorem gives their cost."""
    if plan.relation is Relation.REPLACE_ONE and plan.index.samples:
        yield (
            Severity.ERROR,
            "the plan samples rows, and under replace-one nothing is known about the cost of a sample; use "
            "add-or-remove-one, or release from all rows",
        )
