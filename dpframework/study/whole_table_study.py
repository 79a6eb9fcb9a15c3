"""A study of a whole table in one call: a histogram of each attribute, and the mean and median of numeric ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_losses import Amount
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import NAME_CHARACTER
from dpframework.queries.ranks import QuantileScores
from dpframework.results.noisy_counts import CONFIDENCE
from dpframework.study.plugin_registry import share
from dpframework.study.study import Study

_PARTS = 10_000  # the number of equal parts of the budget; each share is a whole number of them


@typechecked
def describe(schema: Schema, epsilon: Amount, *, delta: Amount = 0, **options: Any) -> Study:
    """Return a study of every attribute: its histogram, and for a numeric one its mean and median too.

    **The split.** In 95 % of releases, at an epsilon of 1, a count is off by up to ln 20 rows, a mean by as much as
    ln 20 rows can change it, and a median that is chosen among m points by up to ln(20 m) rows. With an epsilon of e
    each is off by 1/e times that. Let step k be off by c_k at an epsilon of 1, and get the epsilon e_k. The sum of all
    errors, c_1 / e_1 + c_2 / e_2 + ..., is smallest where e_k is in proportion to the root of c_k (Lagrange). With a
    delta, losses add up in zCDP, in e_k**2. The sum of all errors is then smallest where e_k is in proportion to the
    third root of c_k. The shares follow from the schema alone, and add up to 1.

    Open attributes, whose values nobody lists, are left out. In another study the miner `keys` can show which of their
    values are frequent.

    Parameters
    ----------
    schema
        The public facts about the table.
    epsilon, delta
        The budget.
    options
        Other parameters of `Study`, such as `relation` or `unit`.

    Returns
    -------
    Study
        One step for each attribute, under its name, and steps such as "age mean" and "age median". Their shares add up
        to 1, so no other step fits into the study.

    Raises
    ------
    InputError
        If all attributes are open, there are too many attributes, or `Study` refuses an option.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=10)])
    >>> study = dpf.describe(schema, epsilon=1)
    >>> list(study.miners), study.plan().total()
    (['ill', 'age', 'age mean', 'age median'], PrivacyLoss(epsilon=1.0))
    """
    asked = dict(_iterate_steps(schema))
    if not asked:
        raise InputError("all attributes of the schema are open; use the miner 'keys', which shows what is frequent")
    study = Study(schema, epsilon=epsilon, delta=delta, **options)
    weights = [error ** (1 / 3 if study.budget.delta else 1 / 2) for _, _, error in asked.values()]
    parts = [max(int(_PARTS * weight / sum(weights)), 1) for weight in weights]
    if sum(parts) > _PARTS:
        raise InputError(f"the schema has {len(schema.attributes)} attributes, too many to describe in one study")
    parts[0] += _PARTS - sum(parts)
    for part, (name, (miner, parameters, _)) in zip(parts, asked.items(), strict=True):
        study.add(name, share(Fraction(part, _PARTS), miner, **parameters))
    return study


def _iterate_steps(schema: Schema) -> Iterator[tuple[str, tuple[str, Mapping[str, Any], float]]]:
    """Yield the name of each step, with its miner, its parameters, and its error in rows at an epsilon of 1."""
    taken: set[str] = set()
    plain = -math.log(1 - CONFIDENCE)
    for attribute in schema.attributes:
        if isinstance(attribute, Open):
            continue
        errors = {"": ("histogram", plain)}
        if isinstance(attribute, Numeric):
            points = QuantileScores(attribute).answer_length
            errors |= {" mean": ("mean", plain), " median": ("median", plain + math.log(points))}
        own = _step_name(attribute.name, taken, errors)
        for ending, (miner, error) in errors.items():
            taken.add(own + ending)
            yield own + ending, (miner, {"attribute": attribute.name}, error)


def _step_name(name: str, taken: set[str], endings: Mapping[str, Any]) -> str:
    """Return a new name for an attribute's steps: its own, with "-" for each character that a plan refuses.

    Characters that a name may not begin with are dropped. If the name is taken, a number is appended.
    """
    own = re.sub(f"(?!{NAME_CHARACTER}).", "-", name, flags=re.DOTALL).lstrip(" ._=+-") or "attribute"
    found, number = own, 2
    while any(found + ending in taken for ending in endings):
        found, number = f"{own} {number}", number + 1
    return found
