"""The miner that finds a number of rows per unit that is enough for most units."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.released_row_cap_miner_base import fit_to_study, require_unit_ids
from dpframework.facts.attributes import Boolean
from dpframework.facts.parameter_checks import between_0_and_1, share_of_budget
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, step
from dpframework.queries.released_row_cap_queries import RowsPerUnitScores
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.released_row_cap_result import RowsPerUnit
from dpframework.run.miner_base_and_examples import Example, Miner
from dpframework.run.miner_chain import MinerChain
from dpframework.run.private_table import PrivateTable

_STEP = "rows"
_LOOSE = (
    "the better one of the example's two candidates always has the score 0, so only the odds of the other one change"
)
_PERSON = PrivacyUnit("person", 3)  # the privacy unit of the examples


@final
@attrs.frozen
class RowsPerUnitMiner(BasicMiner):
    """The number of rows per unit that is enough for all but a share of the units.

    The number is selected by the scores of `queries.RowsPerUnitScores`. In these scores each unit counts once, whatever
    its number of rows. So the selection costs no more than if each unit had one row. A later step can name this step as
    its `rows_per_unit`. The later step then reads at most the selected number of rows of each unit. Its noise is that
    of a study that keeps this number of rows of each unit.

    The m candidates follow from the study's `rows_per_unit`, and none is above this number. Let o be the share
    `outside`, and let the selection have the scale s (2 max(o, 1 - o) / epsilon under add-or-remove-one). With a
    probability of 95 %, the selected number is too small for at most the share o of the units plus s ln(20 m) units.

    Parameters
    ----------
    outside
        The share of the units that may have more rows than the selected number. By default 5 %. Later steps do not read
        the further rows of these units.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> RowsPerUnitMiner(outside="0.1", epsilon="0.2").outside
    Fraction(1, 10)
    """

    name = "rows-per-unit"
    result = RowsPerUnit
    outside: Fraction = attrs.field(
        default=Fraction(1, 20), converter=share_of_budget, validator=between_0_and_1, kw_only=True
    )
    _unit: PrivacyUnit = attrs.field(default=ROW, init=False, repr=False, eq=False)  # the study's unit

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> RowsPerUnitMiner:
        """Return the miner for the privacy unit of a study.

        Raises
        ------
        InputError
            If units have several rows but no column of ids.
        """
        require_unit_ids(unit)
        return fit_to_study(self, _unit=unit)

    def plan(self, schema: Schema) -> Node:
        """Plan the one selection."""
        return step(_STEP, RowsPerUnitScores(self._unit.rows, self.outside), self.selector)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return no names, since rows are counted and no values are read."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound: how many units, beyond the share `outside`, may have more rows."""
        calibration = part.calibration(_STEP)
        if calibration is None:
            return part.bounds_of_steps()
        most = calibration.facts.answer_length
        note = "the study keeps one row of each unit, so that there is nothing to choose" if most == 1 else ""
        within = calibration.preview.within
        return [ErrorBound("rows of a unit", within, "units", BoundKind.NUMBER, part.size, note=note, steps=(_STEP,))]

    def mine(self, table: PrivateTable) -> RowsPerUnit:
        """Release the number of rows per unit."""
        rows, within = int(table.release(_STEP)), table.calibration(_STEP).preview.within
        return RowsPerUnit(self._unit.id or "row", rows, self._unit.rows, self.outside, within)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples for people with up to three rows each."""
        schema = Schema([Boolean("ill")])
        third = Fraction(1, 3)
        return {
            "people": Example(schema, cls(outside=third, epsilon=1), unit=_PERSON, loose=_LOOSE),
            "zcdp": Example(schema, cls(outside=third, rho=Fraction(1, 8)), EXAMPLE_DELTA, unit=_PERSON, loose=_LOOSE),
        }


def released_rows_example(schema: Schema, then: Miner, **facts: Any) -> Example:
    """Return an example of a miner that takes its `rows_per_unit` from an earlier step, which is named "most"."""
    chosen = RowsPerUnitMiner(outside=Fraction(1, 3), epsilon=Fraction(1, 20))
    return Example(schema, MinerChain({"most": chosen, "then": then}), unit=_PERSON, **facts)
