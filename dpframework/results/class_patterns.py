"""Patterns X -> y, by which a mined model predicts the class."""

from __future__ import annotations

from typing import final

import attrs

from dpframework.facts.logical_descriptions import Description, Equals
from dpframework.facts.parameter_checks import finite_from_0
from dpframework.facts.value_checks import as_float


@final
@attrs.frozen
class Pattern:
    """A pattern X -> y, which predicts the class y for rows for which the description X holds.

    Attributes
    ----------
    description
        X, usually a conjunction of literals.
    label
        Y = y: the class attribute and its value.
    weight
        How much the pattern counts in comparison with others. Only ratios of weights matter.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions import And, Below
    >>> print(Pattern(And([Equals("smoker", "true"), Below("fev", 3)]), Equals("ill", "true")))
    smoker = true and fev < 3  ->  ill = true
    """

    description: Description
    label: Equals
    weight: float = attrs.field(default=1.0, converter=as_float, validator=finite_from_0("the weight of a pattern"))

    def __str__(self) -> str:
        return f"{self.description}  ->  {self.label}"
