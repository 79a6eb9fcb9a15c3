"""The release of the number of rows, for miners whose best parameters depend on it.

The number of rows is secret under add-or-remove-one. It is released first, for a fiftieth of the miner's budget. At a
budget of epsilon 1 the released number is within 150 rows of the exact number with a probability of 95 %. The released
number may choose a branch of the plan (`plan.nodes.either`), since it is public.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframework.mechanisms.laplace import DiscreteLaplace
from dpframework.plan.nodes import Step, step
from dpframework.queries.counts import Count
from dpframework.run.private_table import PrivateTable

COUNT_SHARE = Fraction(1, 50)  # the share of the budget that the release of the number of rows costs


def plan_row_count(epsilon: Fraction) -> Step:
    """Plan the release of the number of rows, as the step "rows", with its share of a budget.

    Examples
    --------
    >>> plan_row_count(Fraction(1)).mechanism.epsilon + left_by_row_count(Fraction(1))
    Fraction(1, 1)
    """
    return step("rows", Count(), DiscreteLaplace(COUNT_SHARE * epsilon))


def left_by_row_count(epsilon: Fraction) -> Fraction:
    """Return the budget that is left after the release of the number of rows."""
    return (1 - COUNT_SHARE) * epsilon


def release_row_count(table: PrivateTable) -> float:
    """Release the number of rows, and return it clamped to the range from 1 to the schema's `max_rows`, if known."""
    return min(max(float(table.release("rows")), 1.0), table.schema.max_rows or math.inf)
