"""Patterns X -> y, with which a mined model predicts the class of rows."""

from __future__ import annotations

from typing import final

import attrs

from dpframework.facts.logical_descriptions_of_rows import Description, Equals
from dpframework.facts.parameter_checks import finite_from_0
from dpframework.facts.value_checks import as_float


@final
@attrs.frozen
class Pattern:
    """A pattern X -> y: if the description X holds for a row, the pattern predicts the class y.

    Attributes
    ----------
    description
        X, usually a conjunction of literals.
    label
        The predicted class y, as a test of the class attribute.
    weight
        The weight of the pattern, relative to the weights of other patterns.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions_of_rows import And, Below
    >>> print(Pattern(And([Equals("smoker", "true"), Below("fev", 3)]), Equals("ill", "true")))
    smoker = true and fev < 3  ->  ill = true
    """

    description: Description
    label: Equals
    weight: float = attrs.field(default=1.0, converter=as_float, validator=finite_from_0("the weight of a pattern"))

    def __str__(self) -> str:
        return f"{self.description}  ->  {self.label}"
