"""The choice of the noise that is added to counts in disjoint cells.

The sensitivities are those of a histogram. An added row raises one cell by 1. Independent Laplace noise fits such a
change, since its density depends on the l1 norm of the noise. A replaced row lowers one cell and raises another. If the
number of rows is public, noise that adds up to 0 over all cells fits this change better (K-norm noise,
`dpframework.mechanisms.KNorm`). For two cells its variance is a quarter of the variance of Laplace noise, and for four
cells about half.
"""

from __future__ import annotations

from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.laplace import DiscreteLaplace
from dpframework.queries.base import Query

_MOST_BALANCED = 100  # the most cells with K-norm noise; for more cells it saves less than 3 % and takes longer


def counting_mechanism(counter: Mechanism, query: Query, schema: Schema) -> Mechanism:
    """Return the mechanism for the counts of a query: `counter`, or K-norm noise where that is better.

    K-norm noise replaces Laplace noise if the number of rows is public and there are at most `_MOST_BALANCED` cells.
    """
    if schema.rows is None or (query.answer_length or 0) > _MOST_BALANCED or not isinstance(counter, DiscreteLaplace):
        return counter
    from dpframework.mechanisms.knorm import KNorm  # not needed by most counts

    balanced = KNorm(counter.epsilon)
    return balanced if balanced.misfit(query.facts()) is None else counter
