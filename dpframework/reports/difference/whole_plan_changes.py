"""Changes of the whole plan, such as changes of totals, findings, budget, relation, schema and assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpframework.accountant import AccountedPlan
from dpframework.checks import Finding, Severity
from dpframework.facts.privacy_losses import Relation
from dpframework.plan.plan import Plan
from dpframework.reports.difference.value_text import describe_changes, from_to, loss_words, quote_names


def total_headline(before: AccountedPlan, after: AccountedPlan) -> str:
    """Say whether the total rises, falls or stays, or why that cannot be said."""
    old = before.smallest_total()
    new = after.smallest_total()
    if old is None and new is None:
        return "neither plan has a valid total"
    if old is None or new is None:
        gains = "had no valid total and now has" if old is None else "had a valid total and now has none: it was"
        return f"the plan {gains} {loss_words(new or old)}"
    if before.unit != after.unit:
        return (
            f"the total was {loss_words(old)} for {before.unit} and is {loss_words(new)} for {after.unit}: claims "
            "about different neighbours, which cannot be compared"
        )
    if before.relation is not after.relation:
        return (
            f"the total was {loss_words(old)} under {before.relation} and is {loss_words(new)} under "
            f"{after.relation}: claims about different neighbours, which cannot be compared"
        )
    assert old.epsilon is not None  # `AccountedPlan.totals` holds finite totals only
    assert new.epsilon is not None
    if old == new:
        return f"the total stays at {loss_words(new)}, under {after.relation}"
    if old.delta != new.delta:
        return (
            f"the total was {loss_words(old)} and is {loss_words(new)}, under {after.relation}: claims with "
            "different deltas, whose epsilons alone cannot be compared"
        )
    verb = "rises" if new.epsilon > old.epsilon else "falls"
    return f"the total {verb} from {loss_words(old)} to {loss_words(new)}, under {after.relation}"


def checks_headline(before: list[Finding], after: list[Finding]) -> str:
    """Say whether the checks refuse the plan after, and whether they refuse the plan before."""
    old = [finding for finding in before if finding.severity is Severity.ERROR]
    new = [finding for finding in after if finding.severity is Severity.ERROR]
    if not old and not new:
        return "the checks accept both plans"
    if not old:
        return f"newly refused: {'; '.join(map(str, new))}"
    if not new:
        return f"no longer refused: {_codes(old)} refused the plan before, and no check refuses the plan after"
    arrived = [finding for finding in new if finding not in old]
    return f"the checks refuse both plans, the plan after because of {_codes(new)}" + (
        f"; new: {'; '.join(map(str, arrived))}" if arrived else ""
    )


def _codes(found: Iterable[Finding]) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in found))


def total_changes(before: AccountedPlan, after: AccountedPlan) -> Iterator[str]:
    """Compare the totals under each accounting."""
    old, new = before.totals(), after.totals()
    for name in dict.fromkeys((*old, *new)):
        had, has = old.get(name), new.get(name)
        if had is None or has is None:
            gone = "none" if has is None else loss_words(has)
            yield f"from {'none' if had is None else loss_words(had)} to {gone} in {name} accounting"
        elif had.epsilon != has.epsilon:
            yield f"epsilon {from_to(had.epsilon, has.epsilon)} in {name} accounting"


def finding_changes(before: list[Finding], after: list[Finding]) -> Iterator[str]:
    """Compare the checks' findings, in the order of their codes."""
    gone = [(f"gone: {finding}", finding) for finding in before if finding not in after]
    arrived = [(f"new: {finding}", finding) for finding in after if finding not in before]
    for text, _ in sorted([*gone, *arrived], key=lambda one: one[1].code):
        yield text


def budget_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare the budgets."""
    old, new = before.budget, after.budget
    for name in ("epsilon", "delta"):
        if getattr(old, name) != getattr(new, name):
            yield f"{name} {from_to(getattr(old, name), getattr(new, name))}"
    arrived = [name for name in new.allow if name not in old.allow]
    gone = [name for name in old.allow if name not in new.allow]
    if arrived:
        yield f"now allows {quote_names(arrived)}"
    if gone:
        yield f"no longer allows {quote_names(gone)}"
    if old.allow != new.allow and not arrived and not gone:
        yield f"allows the same in another order: {from_to(old.allow, new.allow)}"


def relation_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare the neighbouring relations."""
    if before.relation is not after.relation:
        held = {
            Relation.ADD_OR_REMOVE_ONE: "the presence of each row, and so the row count, was protected",
            Relation.REPLACE_ONE: "what a row holds was protected, but the row count was public",
        }
        text = from_to(before.relation.value, after.relation.value)
        yield f"{text}: {held[before.relation]}, and {held[after.relation].replace(' was ', ' is ')}"


def unit_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare the units that the plans protect."""
    if before.unit != after.unit:
        yield f"protects {from_to(before.unit, after.unit)}"


def place_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare the places of the tables, and the places where counts are evaluated."""
    if before.data != after.data:
        yield f"data {from_to(before.data, after.data)}"
    if before.engine != after.engine:
        yield f"engine {from_to(before.engine, after.engine)}"


def schema_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare what plan files hold about the schemas and, if both schemas are known, the attributes one by one."""
    old, new = before.facts, after.facts
    if old.fingerprint != new.fingerprint:
        yield f"fingerprint from {old.fingerprint[:12]} to {new.fingerprint[:12]}"
    facts = (
        ("public row count", old.rows, new.rows),
        ("public bound of the row count", old.row_bound, new.row_bound),
        ("inferred from private data:", old.inferred, new.inferred),
        ("files are read with:", old.read, new.read),
        ("derived columns:", old.derive, new.derive),
    )
    yield from (f"{what} {from_to(was, now)}" for what, was, now in facts if was != now)
    # A plan that was read from a file has no schema, only facts about it such as its fingerprint.
    if before.schema is not None and after.schema is not None:
        had = {attribute.name: attribute for attribute in before.schema.attributes}
        has = {attribute.name: attribute for attribute in after.schema.attributes}
        yield from (f"attribute '{name}' removed" for name in had if name not in has)
        yield from (f"attribute '{name}' added" for name in has if name not in had)
        shared = [name for name in had if name in has]
        for name in shared:
            changes = [text for _, text in describe_changes(had[name].to_dict(), has[name].to_dict())]
            if changes:
                yield f"attribute '{name}': {'; '.join(changes)}"
        if shared != [name for name in has if name in had]:
            yield "the attributes are in another order"


def miner_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare the miner of each part, and the miner's parameters."""
    for name in dict.fromkeys((*before.miners, *after.miners)):
        old, new = before.miners.get(name), after.miners.get(name)
        if old is None or new is None:
            yield f"'{name}' {'added' if old is None else 'removed'}"
        elif old["miner"] != new["miner"]:
            yield f"'{name}': miner {from_to(old['miner'], new['miner'])}"
        else:
            changes = [text for _, text in describe_changes(old["parameters"], new["parameters"])]
            if changes:
                yield f"'{name}': {'; '.join(changes)}"


def assumption_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Compare the claims' assumptions and the steps that need them."""
    old, new = before.assumptions, after.assumptions
    for name in dict.fromkeys((*old, *new)):
        if name not in old:
            yield f"'{name}' is new, needed by {quote_names(new[name]) or 'the whole plan'}"
        elif name not in new:
            yield f"'{name}' is no longer needed"
        elif old[name] != new[name]:
            yield f"'{name}' is needed by other steps: {from_to(old[name], new[name])}"
