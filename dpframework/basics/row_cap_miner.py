"""A number of rows per unit that is enough for most units, released for a share of the budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.basics.basic_miner import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.capped_rows_miner_base import fit_to_study, require_told_apart
from dpframework.facts.attributes import Boolean
from dpframework.facts.parameter_checks import between_0_and_1, share_of_budget
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.plan.nodes import Node, step
from dpframework.plan.planned_part import PlannedPart
from dpframework.queries.row_cap_queries import RowsPerUnitScores
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.row_cap_result import RowsPerUnit
from dpframework.run.miner import Example, Miner
from dpframework.run.miner_chain import MinerChain
from dpframework.run.private_table import PrivateTable

_STEP = "rows"
_LOOSE = "the better of two numbers always has the score 0, so that only the odds of the other one change"
_PERSON = PrivacyUnit("person", 3)  # the unit of examples


@final
@attrs.frozen
class RowsPerUnitMiner(BasicMiner):
    """How many rows per unit are enough for all but a share of the units, at most as many as the study keeps.

    It makes one selection by the scores of `queries.RowsPerUnitScores`, in which a unit counts once, however many rows
    it has. So it costs no more than the same choice among people with one row each. A later step that names this step
    as its `rows_per_unit` reads at most the chosen number of rows of each unit, and its noise is as small as if the
    study kept no more.

    The numbers that may be chosen follow from the study's `rows_per_unit` alone. Let there be m of them, let o be the
    share `outside`, and let the noise have the scale s (2 max(o, 1 - o) / epsilon under add-or-remove-one). With 95 %
    probability, the chosen number is too small for at most the share o of the units, plus s ln(20 m) units.

    Parameters
    ----------
    outside
        The share of the units that may have more rows, by default 5 %. These units lose some of their rows in later
        steps.
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
        """Return the miner for the units of a study.

        Raises
        ------
        InputError
            If units have several rows, and no column of ids tells them apart.
        """
        require_told_apart(unit)
        return fit_to_study(self, _unit=unit)

    def plan(self, schema: Schema) -> Node:
        """Plan the selection."""
        return step(_STEP, RowsPerUnitScores(self._unit.rows, self.outside), self.selector)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return nothing, since rows are only counted."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return by how many units the share of units with more rows may exceed `outside`."""
        calibration = part.calibration(_STEP)
        if calibration is None:
            return part.bounds_of_steps()
        most = calibration.facts.answer_length
        note = "the study keeps one row of each unit, so that there is nothing to choose" if most == 1 else ""
        within = calibration.preview.within
        return [ErrorBound("rows of a unit", within, "units", BoundKind.NUMBER, part.size, note=note, steps=(_STEP,))]

    def mine(self, table: PrivateTable) -> RowsPerUnit:
        """Release the number of rows."""
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
    """Return an example of a miner whose `rows_per_unit` names the step "most", which comes before it in one plan."""
    chosen = RowsPerUnitMiner(outside=Fraction(1, 3), epsilon=Fraction(1, 20))
    return Example(schema, MinerChain({"most": chosen, "then": then}), unit=_PERSON, **facts)
