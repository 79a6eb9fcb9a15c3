"""Describe a whole table in one call: a histogram of each attribute, and the mean and median of numeric ones."""

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
from dpframework.results.noisy_count_with_interval import CONFIDENCE
from dpframework.study.plugin_registry import share
from dpframework.study.study import Study

_PARTS = 10_000  # shares are multiples of 1 / _PARTS


@typechecked
def describe(schema: Schema, epsilon: Amount, *, delta: Amount = 0, **options: Any) -> Study:
    """Return a study with a histogram of every attribute, and the mean and median of every numeric attribute.

    **The split.** At an epsilon of 1 and with a probability of 95 %, the error of a count is at most ln 20 rows. The
    error of a mean is at most what ln 20 rows can change, and the error of a median among m points at most ln(20 m)
    rows. At another epsilon e these errors are divided by e.

    Let c_k be the error of step k at an epsilon of 1, and e_k the step's epsilon. Under a fixed sum of all e_k, the sum
    of the errors c_k / e_k is smallest if e_k is proportional to the square root of c_k (by Lagrange multipliers). With
    a delta, zCDP adds up e_k**2 instead. Under a fixed sum of all e_k**2, the sum of the errors is smallest if e_k is
    proportional to the cube root of c_k. So the shares follow from the schema alone. They add up to 1.

    Open attributes, whose values are not listed in the schema, are left out. The miner `keys` can release their
    frequent values in another study.

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
        A study with one step for each attribute, under its name, and further steps such as "age mean" and "age median".
        The shares add up to 1, so no other step fits into the study.

    Raises
    ------
    InputError
        If all attributes are open, if there are too many attributes, or if `Study` refuses an option.

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
        raise InputError("all attributes of the schema are open; use the miner 'keys', which finds frequent values")
    study = Study(schema, epsilon=epsilon, delta=delta, **options)
    weights = [error ** (1 / 3 if study.budget.delta else 1 / 2) for _, _, error in asked.values()]
    whole = sum(weights)
    parts = [max(int(_PARTS * weight / whole), 1) for weight in weights]
    if sum(parts) > _PARTS:
        raise InputError(f"the schema has {len(schema.attributes)} attributes, too many to describe in one study")
    parts[0] += _PARTS - sum(parts)
    for part, (name, (miner, parameters, _)) in zip(parts, asked.items(), strict=True):
        study.add(name, share(Fraction(part, _PARTS), miner, **parameters))
    return study


def _iterate_steps(schema: Schema) -> Iterator[tuple[str, tuple[str, Mapping[str, Any], float]]]:
    """Yield for each step its name, its miner's name and parameters, and its error in rows at an epsilon of 1."""
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
    """Return an unused name for an attribute's steps: its own name, with "-" for characters that a plan refuses.

    Leading characters that a name may not begin with are dropped. If the name is used already, a number is appended.
    """
    own = re.sub(f"(?!{NAME_CHARACTER}).", "-", name, flags=re.DOTALL).lstrip(" ._=+-") or "attribute"
    found, number = own, 2
    while any(found + ending in taken for ending in endings):
        found, number = f"{own} {number}", number + 1
    return found
