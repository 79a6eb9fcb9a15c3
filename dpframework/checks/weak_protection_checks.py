"""Checks of how strong a claim is. A plan whose claim is valid may still protect people too little.

Each finding, except the one of `one_period`, quotes a name, such as 'large-epsilon'. A study that lists this name in
`allow` accepts the finding, which then stays in the report as information.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Severity, unless_allowed
from dpframework.facts.phrases import first_names
from dpframework.facts.privacy_losses import readable
from dpframework.plan.plan import Plan
from dpframework.results.error_bounds import BoundKind, rows_text

#: The names of risks that a study may allow.
LARGE_EPSILON, LARGE_DELTA, SMALL_GROUPS = "large-epsilon", "large-delta", "small-groups"
#: The names of statements that an owner may make: that nobody has a second row, or that the unit is the intended one.
ONE_ROW_PER_PERSON, WEAK_UNIT = "one-row-per-person", "unit-weaker-than-ids"

STRONG, WEAK = Fraction(1), Fraction(10)  # the upper ends of tiers 1 and 2 in Ponomareva et al. 2023
MOST_DELTA = Fraction(1, 10**5)
SMALL_GROUP = 11  # rows: the smallest count that CMS publishes without noise (its cell size suppression policy)

#: Patterns for the names of columns: words for a person, words for an event, and ids of persons and of events.
_PERSON = "person|people|patient|user|customer|client|subject|member|household|student|pupil|employee|citizen|resident"
_PERSON += "|participant|respondent|account|device|donor|voter|visitor|passenger|driver|tenant|insured"
_EVENT = "row|record|visit|event|session|order|transaction|purchase|trip|encounter|admission|stay|case|claim|entry"
_EVENT += "|measurement|sample|call|message|click|request|invoice|payment|line"
_KEY = r"(?:[ _-]?(?:id|ids|nr|no|num|number|key|code|uuid|guid|hash))"
_IDS = rf"(?:^|.*[ _-])(?:{_PERSON})s?{_KEY}|(?:id|uuid|guid|ssn|social[ _-]security[ _-]number)"
_IDS_OF_EVENTS = rf"(?:^|.*[ _-])(?:{_EVENT})s?{_KEY}?"


def large_epsilon(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find a total epsilon above 1, where a claim is no longer strong, or above 10, where it says little."""
    total = plan.smallest_epsilon()
    if total is None or total <= STRONG:
        return
    odds = math.exp(min(float(total), 20))
    times = f"{odds:.3g}" if odds < 999.5 else rows_text(odds) if odds < 10**6 else "more than a million"
    who = "one row" if plan.unit.is_row else f"one {plan.unit.id}" if plan.unit.id is not None else "one unit"
    found = f"the plan's total epsilon is {readable(total)}: odds of a claim about {who} may grow {times}-fold"
    if total > WEAK or LARGE_EPSILON in plan.budget.allow:
        yield unless_allowed(plan, LARGE_EPSILON, found, f"above {WEAK} a claim says little: lower the epsilons")
    else:
        yield (
            Severity.INFO,
            f"{found}; up to {STRONG} a claim is strong, so spend no more than the results need, or allow "
            f"'{LARGE_EPSILON}'",
        )


def large_delta(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find a delta of at least one over the number of rows, or a delta above 1e-5."""
    delta, rows = plan.budget.delta, plan.size.largest
    if rows is not None and delta * rows >= 1:
        why = f"is not below 1/{rows}: a mechanism that publishes a random row would pass"
        remedy = "choose a delta far below one over the number of rows"
    elif delta > MOST_DELTA:
        why = f"is above {float(MOST_DELTA):g}: with that probability the claim may fail altogether"
        remedy = "choose a smaller one; 1e-9 is common"
    else:
        return
    yield unless_allowed(plan, LARGE_DELTA, f"delta {float(delta):g} {why}", remedy)


def one_row_each(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """If the plan protects single rows, ask whether a person may have more than one."""
    if not plan.unit.is_row:
        return
    if ONE_ROW_PER_PERSON in plan.budget.allow:
        yield Severity.INFO, f"the owner states '{ONE_ROW_PER_PERSON}': nobody has a second row"
    else:
        yield (
            Severity.INFO,
            "the plan protects one row: if a person may have several, give unit and rows_per_unit; if not, state "
            f"'{ONE_ROW_PER_PERSON}' in the study's allow",
        )


def small_groups(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find two or more results that count groups of a few rows, which together may reveal much about few people."""
    found = {
        name: bound.likely
        for name, bounds in plan.error_bounds().items()
        for bound in bounds
        if bound.kind is BoundKind.COUNTS and bound.likely is not None and bound.likely < SMALL_GROUP
    }
    if len(found) < 2:
        return
    names = first_names([f"'{name}'" for name in found], 3)
    what = (
        f"results {names} count groups of about {max(found.values()):.2g} rows or fewer: together they may reveal much "
        "about a few similar people"
    )
    yield unless_allowed(plan, SMALL_GROUPS, what, "merge values, or publish fewer results")


def weak_unit(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find a privacy unit that seems weaker than a person, judged by the names of id columns."""
    if plan.unit.id is not None and re.fullmatch(_IDS_OF_EVENTS, plan.unit.id, re.I):
        what = f"the unit '{plan.unit.id}' seems to name an event, and a person may have many"
        remedy = "give the column that names people"
    elif plan.unit.is_row and plan.schema is not None:
        ids = [name for name in plan.schema.names if re.fullmatch(_IDS, name, re.I)]
        if not ids:
            return
        what = f"attribute '{ids[0]}' seems to name the person of each row, and the plan protects one row"
        remedy = f'take it out of the schema and give unit = "{ids[0]}" with rows_per_unit'
    else:
        return
    yield unless_allowed(plan, WEAK_UNIT, what, remedy)


def one_period(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Report that a unit of one period does not hide what a person's rows in several periods show together."""
    if plan.unit.period is not None:
        yield Severity.INFO, f"the plan protects {plan.unit}: {plan.unit.gap}"
