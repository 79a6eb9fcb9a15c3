"""The number of rows, released first where it is secret and decides how a miner's budget is best used.

A fiftieth of the budget releases it: at epsilon 1 within 150 rows in 95 % of releases. The rest may depend on the
release, such as by the branch of a plan that it chooses (`plan.either`), and on no exact number.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframework.mechanisms.laplace import DiscreteLaplace
from dpframework.plan.nodes import Step, step
from dpframework.queries.counts import Count
from dpframework.run.private_table import PrivateTable

COUNT_SHARE = Fraction(1, 50)  # of the budget


def plan_row_count(epsilon: Fraction) -> Step:
    """Plan the release of the number of rows, as the step "rows", with its share of a budget.

    Examples
    --------
    >>> plan_row_count(Fraction(1)).mechanism.epsilon + left_by_row_count(Fraction(1))
    Fraction(1, 1)
    """
    return step("rows", Count(), DiscreteLaplace(COUNT_SHARE * epsilon))


def left_by_row_count(epsilon: Fraction) -> Fraction:
    """Return the rest of the budget."""
    return (1 - COUNT_SHARE) * epsilon


def release_row_count(table: PrivateTable) -> float:
    """Release the number of rows, and return the nearest one that the schema allows, at least 1."""
    return min(max(float(table.release("rows")), 1.0), table.schema.max_rows or math.inf)
