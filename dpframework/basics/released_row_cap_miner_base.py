"""The base class of miners that can limit the rows of each unit to a number that an earlier step released.

The study keeps up to k rows of each unit, and noise must hide all of them. If fewer rows of each unit are read, less
noise is needed. But the plan must be fixed before the number of rows r is released. So in the plan,
`queries.AtReleasedRows` takes the place of each query of the miner. It reads at most r rows of each unit, and counts
each row several times. This number of times, called the weight of a row, is larger for a smaller r. So the declared
sensitivity does not depend on r, and the miner is planned, charged and audited as if it read all k rows. Afterwards the
release is divided by the weight, which divides its noise, too.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

import attrs

from dpframework.basics.basic_miner_base import BasicMiner
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, Parallel, Step, beside, walk
from dpframework.plan.spend_block_node import Spend
from dpframework.results.error_bounds import ErrorBound
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.private_table import PrivateTable

if TYPE_CHECKING:  # A run loads these modules only if a miner has `rows_per_unit`.
    from dpframework.queries.released_row_cap_queries import AtReleasedRows
    from dpframework.results.released_row_cap_result import RowsPerUnit

#: The note of an error bound if the number of rows per unit is released.
_AT_MOST = "for all rows per unit that the study keeps; smaller in proportion if a smaller number is released"
_LOST = "of each unit, at most the released number of rows is counted"

M = TypeVar("M", bound=Miner)


def _step_name(given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise InputError(
        f"rows_per_unit is {given!r}; name an earlier step of miner 'rows-per-unit', which finds the number, or give "
        "the number to the study"
    )


def fit_to_study(miner: M, **facts: Any) -> M:
    """Return a copy of a miner with facts about its study.

    These are attributes of the miner that are not parameters.
    """
    copied = attrs.evolve(miner)
    # Miners are frozen, and their constructors do not take these attributes.
    for name, fact in facts.items():
        object.__setattr__(copied, name, fact)
    return copied


def require_unit_ids(unit: PrivacyUnit) -> None:
    """Refuse a privacy unit of several rows without a column of ids, since nothing says which unit a row belongs to.

    Raises
    ------
    InputError
        If the unit has several rows, and no column of ids.
    """
    if unit.asserted:
        raise InputError(
            "the number of rows per unit is found in each unit's rows, and nothing says which unit a row belongs "
            "to; name the column of ids as the study's unit"
        )


@attrs.frozen
class RowsMiner(BasicMiner):
    """The base class of miners with the parameter `rows_per_unit`, which limits the rows of each unit.

    A subclass defines `plan_rows`, `mine_rows` and `bound_errors` in place of `plan`, `mine` and `error_bounds` of
    `Miner`. These methods need not know whether rows are limited.

    Attributes
    ----------
    rows_per_unit
        The name of an earlier step of miner `rows-per-unit`, which releases the limit; None to read all rows that the
        study keeps.
    """

    rows_per_unit: str | None = attrs.field(default=None, kw_only=True, converter=_step_name)
    _unit: PrivacyUnit = attrs.field(default=ROW, init=False, repr=False, eq=False)  # the study's unit

    @abc.abstractmethod
    def plan_rows(self, schema: Schema) -> Node:
        """Return every release that `mine_rows` may make, as `Miner.plan` does."""

    @abc.abstractmethod
    def mine_rows(self, table: PrivateTable) -> Any:
        """Make the releases and return the result, as `Miner.mine` does."""

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bounds of the result (see `Miner.error_bounds`)."""
        return part.bounds_of_steps()

    @property
    def own_sources(self) -> Sequence[str]:
        """The names of the earlier steps whose results the miner uses, without `rows_per_unit`."""
        return ()

    def own_misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return the reason why the miner cannot use the results of `own_sources`; None if it can."""
        return None

    @property
    def sources(self) -> Sequence[str]:
        """The names of the earlier steps whose results the miner uses, with `rows_per_unit` last."""
        return (*self.own_sources, *(() if self.rows_per_unit is None else (self.rows_per_unit,)))

    def misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return the reason why the miner cannot use the results of `sources`; None if it can."""
        if self.rows_per_unit is None:
            return self.own_misfit(sources)
        from dpframework.results.released_row_cap_result import RowsPerUnit

        source = sources[self.rows_per_unit]
        if source.result is not RowsPerUnit:
            return (
                f"rows_per_unit names step '{self.rows_per_unit}', of miner '{source.name}'; name a step of miner "
                "'rows-per-unit'"
            )
        return self.own_misfit({name: sources[name] for name in self.own_sources})

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> Miner:
        """Return the miner for the privacy unit of a study.

        Raises
        ------
        InputError
            If `rows_per_unit` is given, and units have several rows but no column of ids.
        """
        if self.rows_per_unit is None:
            return self
        require_unit_ids(unit)
        return fit_to_study(self, _unit=unit)

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the parameters.

        `rows_per_unit` is left out if it is None, so that old plans keep their hashes.
        """
        form = super().to_dict()
        if self.rows_per_unit is None:
            del form["parameters"]["rows_per_unit"]
        return form

    def plan(self, schema: Schema) -> Node:
        """Plan the miner's releases.

        With `rows_per_unit`, they will read at most the released number of rows of each unit.
        """
        if self.rows_per_unit is None:
            return self.plan_rows(schema)
        return _at_released_rows(self.plan_rows(_hide_row_count(schema)), self._unit.rows, beside(self.rows_per_unit))

    def mine(self, table: PrivateTable) -> Any:
        """Make the releases and return the result.

        With `rows_per_unit`, read at most the released number of rows of each unit.
        """
        if self.rows_per_unit is None:
            return self.mine_rows(table)
        found: RowsPerUnit = table.given[self.rows_per_unit]
        steps = [node for node in walk(self.plan(table.schema)) if isinstance(node, Step)]
        first: Any = _FirstRows(table, found.rows, {one.name: one for one in steps})
        return self.mine_rows(cast(PrivateTable, first))

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bounds of the result, as if the miner read all rows that the study keeps."""
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
        own = attrs.evolve(part, steps=steps, schema=_hide_row_count(part.schema), size=size)
        return [
            attrs.evolve(bound, note="; ".join(filter(None, (bound.note, _AT_MOST))), biases=[*bound.biases, _LOST])
            for bound in self.bound_errors(own)
        ]


def _hide_row_count(schema: Schema) -> Schema:
    """Return the schema of a table with some rows of each unit.

    How many rows this table has is secret, even if the number of all rows is public.
    """
    return schema if schema.rows is None else attrs.evolve(schema, rows=None, max_rows=schema.rows)


def _at_released_rows(node: Node, most: int, source: str) -> Node:
    """Return a plan's node in which each query reads at most a released number of rows of each unit.

    Raises
    ------
    InputError
        If the node has a partition or a spend block.
    """
    if isinstance(node, Parallel):
        raise InputError(
            "rows_per_unit names a step, and each group is released by itself: the rows of a unit may lie in several "
            "groups, and would count in each of them; leave out 'by' or 'rows_per_unit'"
        )
    if isinstance(node, Spend):
        raise InputError("rows_per_unit names a step, and a block of releases reads all rows; leave out rows_per_unit")
    if isinstance(node, Step):
        from dpframework.queries.released_row_cap_queries import AtReleasedRows

        return attrs.evolve(node, query=AtReleasedRows(node.query, most), uses=(*node.uses, source))
    return node.with_children(_at_released_rows(child, most, source) for child in node.children)


def _query_at_rows(step: Step) -> AtReleasedRows:
    """Return the query of a step that `_at_released_rows` returned."""
    return cast("AtReleasedRows", step.query)


@final
class _FirstRows:
    """A private table with the first rows of each unit. It has the methods of `PrivateTable` that these miners use.

    Releases are divided by the weight of a row, and so is the noise in `calibration`.
    """

    def __init__(self, table: PrivateTable, rows: int, steps: Mapping[str, Step]) -> None:
        self.schema, self.given = _hide_row_count(table.schema), table.given
        self._table, self._rows, self._steps = table, rows, steps

    def release(self, name: str, **inputs: Any) -> Any:
        """Make a planned release, and divide it by the weight of a row (see `PrivateTable.release`)."""
        (released,) = self.release_many([(self, name, inputs)])
        return released

    def release_many(self, asked: Iterable[tuple[Any, str, Mapping[str, Any]]]) -> list[Any]:
        """Make planned releases, and divide each by the weight of a row (see `PrivateTable.release_many`)."""
        wanted = [(name, {**inputs, "rows_per_unit": self._rows}) for _, name, inputs in asked]
        found = PrivateTable.release_many((self._table, name, inputs) for name, inputs in wanted)
        divided = []
        for (name, _), released in zip(wanted, found, strict=True):
            step = self._steps[name]
            weight = _query_at_rows(step).weight(self._rows)
            # A choice is no number, so it is not divided.
            divided.append(released if step.mechanism.selects or weight == 1 else released / weight)
        return divided

    def calibration(self, name: str) -> Calibration:
        """Return the noise of a planned step, divided by the weight of a row (see `PrivateTable.calibration`)."""
        query = _query_at_rows(self._steps[name])
        return self._table.calibration(name).divided(query.weight(self._rows), query.query.facts())
