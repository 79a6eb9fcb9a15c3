"""Miners that read at most as many rows of each unit as an earlier step released, and not all that the study keeps.

In a plan, `queries.AtReleasedRows` takes the place of each of the miner's queries. It counts each row that it reads
several times, the more often the fewer rows of a unit are read. This number of times is the weight of a row. So the
declared sensitivity does not depend on the released number, and the miner is planned, charged and audited as one that
reads all rows of a unit. A release is divided by the weight, and so is its noise.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

import attrs

from dpframework.basics.basic_miner import BasicMiner
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Node, Parallel, Step, beside, walk
from dpframework.plan.planned_part import PlannedPart
from dpframework.plan.spend_block_node import Spend
from dpframework.results.error_bounds import ErrorBound
from dpframework.run.miner import Miner
from dpframework.run.private_table import PrivateTable

if TYPE_CHECKING:  # A study without a released number of rows loads neither of these modules.
    from dpframework.queries.row_cap_queries import AtReleasedRows
    from dpframework.results.row_cap_result import RowsPerUnit

#: The note of an error bound where the number of rows per unit is released.
_AT_MOST = "for all rows per unit that the study keeps; smaller in proportion if a smaller number is released"
_LOST = "at most the released number of rows of each unit count"

M = TypeVar("M", bound=Miner)


def _step_name(given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise InputError(
        f"rows_per_unit is {given!r}; name an earlier step of miner 'rows-per-unit', which finds the number, or give "
        "the number to the study"
    )


def fit_to_study(miner: M, **facts: Any) -> M:
    """Return a copy of a miner with facts of its study, which are not parameters."""
    copied = attrs.evolve(miner)
    for name, fact in facts.items():
        object.__setattr__(copied, name, fact)
    return copied


def require_told_apart(unit: PrivacyUnit) -> None:
    """Refuse a unit of several rows that no column of ids tells from other units.

    Raises
    ------
    InputError
        If the unit is of that kind.
    """
    if unit.asserted:
        raise InputError(
            "the number of rows per unit is found in each unit's rows, and nothing says which unit a row is of; name "
            "the column of ids as the study's unit"
        )


@attrs.frozen
class RowsMiner(BasicMiner):
    """The base class of miners that can be told to read at most as many rows of each unit as an earlier step releases.

    A subclass defines `plan_rows`, `mine_rows` and `bound_errors` for the rows that it is given, as `Miner` has `plan`,
    `mine` and `error_bounds`.

    Attributes
    ----------
    rows_per_unit
        The name of an earlier step of miner `rows-per-unit`; None for all rows that the study keeps.
    """

    rows_per_unit: str | None = attrs.field(default=None, kw_only=True, converter=_step_name)
    _unit: PrivacyUnit = attrs.field(default=ROW, init=False, repr=False, eq=False)  # the study's unit

    @abc.abstractmethod
    def plan_rows(self, schema: Schema) -> Node:
        """Return every release that `mine_rows` may make."""

    @abc.abstractmethod
    def mine_rows(self, table: PrivateTable) -> Any:
        """Make the releases and return the result."""

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bounds of the result (see `Miner.error_bounds`)."""
        return part.bounds_of_steps()

    @property
    def own_sources(self) -> Sequence[str]:
        """The names of the steps, besides `rows_per_unit`, whose results the miner is given."""
        return ()

    def own_misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return why the miner cannot use the results of the steps of `own_sources`, or None if it can."""
        return None

    @property
    def sources(self) -> Sequence[str]:
        """The names of all steps whose results the miner is given, with `rows_per_unit` last."""
        return (*self.own_sources, *(() if self.rows_per_unit is None else (self.rows_per_unit,)))

    def misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return why the miner cannot use the results of the steps of `sources`, or None if it can."""
        if self.rows_per_unit is None:
            return self.own_misfit(sources)
        from dpframework.results.row_cap_result import RowsPerUnit

        source = sources[self.rows_per_unit]
        if source.result is not RowsPerUnit:
            return (
                f"rows_per_unit names step '{self.rows_per_unit}', of miner '{source.name}'; name a step of miner "
                "'rows-per-unit'"
            )
        return self.own_misfit({name: sources[name] for name in self.own_sources})

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> Miner:
        """Return the miner for the units of a study.

        Raises
        ------
        InputError
            If `rows_per_unit` is given, units have several rows, and no column of ids tells them apart.
        """
        if self.rows_per_unit is None:
            return self
        require_told_apart(unit)
        return fit_to_study(self, _unit=unit)

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters. `rows_per_unit` is left out if it is None, as in files from before it existed."""
        form = super().to_dict()
        if self.rows_per_unit is None:
            del form["parameters"]["rows_per_unit"]
        return form

    def plan(self, schema: Schema) -> Node:
        """Plan the miner's releases: with `rows_per_unit`, from at most the released number of rows of each unit."""
        if self.rows_per_unit is None:
            return self.plan_rows(schema)
        return _at_released_rows(self.plan_rows(_of_some_rows(schema)), self._unit.rows, beside(self.rows_per_unit))

    def mine(self, table: PrivateTable) -> Any:
        """Make the releases and return the result: with `rows_per_unit`, from at most the released number of rows."""
        if self.rows_per_unit is None:
            return self.mine_rows(table)
        found: RowsPerUnit = table.given[self.rows_per_unit]
        steps = [node for node in walk(self.plan(table.schema)) if isinstance(node, Step)]
        first: Any = _FirstRows(table, found.rows, {one.name: one for one in steps})
        return self.mine_rows(cast(PrivateTable, first))

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bounds of the result, as if all rows of a unit that the study keeps were read."""
        if self.rows_per_unit is None:
            return self.bound_errors(part)
        if part.schema is None:
            return part.bounds_of_steps()
        steps = []
        for one in part.steps:
            query = _query_at_rows(one.step)
            noise = None if one.calibration is None else one.calibration.divided(1, query.query.facts())
            steps.append(attrs.evolve(one, step=attrs.evolve(one.step, query=query.query), calibration=noise))
        size = attrs.evolve(part.size, exact=False)
        own = attrs.evolve(part, steps=steps, schema=_of_some_rows(part.schema), size=size)
        return [
            attrs.evolve(bound, note="; ".join(filter(None, (bound.note, _AT_MOST))), biases=[*bound.biases, _LOST])
            for bound in self.bound_errors(own)
        ]


def _of_some_rows(schema: Schema) -> Schema:
    """Return the schema of some rows of each unit. Their number is private, even if that of all rows is public."""
    return schema if schema.rows is None else attrs.evolve(schema, rows=None, max_rows=schema.rows)


def _at_released_rows(node: Node, most: int, source: str) -> Node:
    """Return a plan's node with each query replaced by one that reads at most a released number of rows of each unit.

    Raises
    ------
    InputError
        If the node holds a partition or a spend block.
    """
    if isinstance(node, Parallel):
        raise InputError(
            "rows_per_unit names a step, and each group is released by itself: the rows of a unit may lie in several "
            "groups, and would count in each of them; leave out by, or rows_per_unit"
        )
    if isinstance(node, Spend):
        raise InputError("rows_per_unit names a step, and a block of releases reads all rows; leave it out")
    if isinstance(node, Step):
        from dpframework.queries.row_cap_queries import AtReleasedRows

        return attrs.evolve(node, query=AtReleasedRows(node.query, most), uses=(*node.uses, source))
    return node.with_children(_at_released_rows(child, most, source) for child in node.children)


def _query_at_rows(step: Step) -> AtReleasedRows:
    """Return the query of a step that `_at_released_rows` made."""
    return cast("AtReleasedRows", step.query)


@final
class _FirstRows:
    """A private table of the first rows of each unit, with those methods of `PrivateTable` that everyday miners call.

    Releases are divided by the weight of a row, and so is the noise that `calibration` returns.
    """

    def __init__(self, table: PrivateTable, rows: int, steps: Mapping[str, Step]) -> None:
        self.schema, self.given = _of_some_rows(table.schema), table.given
        self._table, self._rows, self._steps = table, rows, steps

    def release(self, name: str, **inputs: Any) -> Any:
        """Make a planned release (see `PrivateTable.release`)."""
        (released,) = self.release_many([(self, name, inputs)])
        return released

    def release_many(self, asked: Iterable[tuple[Any, str, Mapping[str, Any]]]) -> list[Any]:
        """Make several planned releases of this table (see `PrivateTable.release_many`)."""
        wanted = [(name, {**inputs, "rows_per_unit": self._rows}) for _, name, inputs in asked]
        found = PrivateTable.release_many((self._table, name, inputs) for name, inputs in wanted)
        in_rows = []
        for (name, _), released in zip(wanted, found, strict=True):
            step = self._steps[name]
            weight = _query_at_rows(step).weight(self._rows)
            in_rows.append(released if step.mechanism.selects or weight == 1 else released / weight)
        return in_rows

    def calibration(self, name: str) -> Calibration:
        """Return the noise of a planned step, in rows (see `PrivateTable.calibration`)."""
        query = _query_at_rows(self._steps[name])
        return self._table.calibration(name).divided(query.weight(self._rows), query.query.facts())
