"""The miner of cross tables of two or three attributes. Margins are sums of cells, so they agree and cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.cell_count_miner_base import TableMiner
from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import list_of_names, named_once
from dpframework.facts.schema import Schema
from dpframework.results.frequencies import Frequencies
from dpframework.run.miner_base_and_examples import Example

_MOST_ATTRIBUTES = 3  # the largest number of attributes of a cross table


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return list_of_names(names) or ()


@final
@attrs.frozen
class CrosstabMiner(TableMiner):
    """The number of rows in each cell of a cross table of two or three attributes. Margins are sums of cells.

    Parameters
    ----------
    attributes
        Two or three names. Numeric attributes have the bins of the schema. For more attributes, or for some of the rows
        only, use `CountMiner` with `by` and `where`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> CrosstabMiner(["sex", "income"], epsilon=0.1).attributes
    ('sex', 'income')
    """

    name = "crosstab"
    result = Frequencies
    attributes: tuple[str, ...] = attrs.field(converter=_names)

    def __attrs_post_init__(self) -> None:
        """Refuse duplicate names, and fewer than two or more than three names."""
        BasicMiner.__attrs_post_init__(self)
        named_once("attributes", self.attributes)
        if not 2 <= len(self.attributes) <= _MOST_ATTRIBUTES:
            more = (
                "; the miner 'count' with by, and the miner 'marginals', take more" if len(self.attributes) > 1 else ""
            )
            raise InputError(f"attributes has {len(self.attributes)} names; a cross table has two or three{more}")

    def cells(self, schema: Schema) -> tuple[Attribute, ...]:
        """Return the attributes of the cross table."""
        return tuple(schema[name] for name in self.attributes)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with two and three attributes, with a public number of rows, and in zCDP."""
        schema = Schema(
            [Boolean("ill", missing=True), Categorical("town", ["A", "B"]), Numeric("age", 0, 90, cuts=[40])]
        )
        counted = attrs.evolve(schema, rows=6)
        return {
            "two": Example(schema, cls(["ill", "town"], epsilon=1)),
            "three": Example(schema, cls(["town", "ill", "age"], epsilon=1)),
            "rows-public": Example(counted, cls(["town", "age"], epsilon=1)),
            "zcdp": Example(schema, cls(["ill", "town"], rho=Fraction(1, 8)), EXAMPLE_DELTA),
        }
