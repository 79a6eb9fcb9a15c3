"""The private table, through which a miner gets releases. It is all that a miner sees of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, final

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.description_overlaps import first_overlap
from dpframework.facts.errors import InputError, ReleaseRefused
from dpframework.facts.logical_descriptions_of_rows import Cases, Description
from dpframework.facts.open_attribute import Open
from dpframework.facts.row_partitions import NOTHING_DERIVED, AttributeSources, Cut, with_sources
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Step
from dpframework.run.run_scopes_and_charges import ChargedRelease, Scope
from dpframework.tables.coded_table import Table
from dpframework.tables.encoded_row_blocks import cells_of
from dpframework.tables.engine_base import Rows
from dpframework.tables.in_process_engines import InMemory

if TYPE_CHECKING:
    from dpframework.run.gate import Gate
    from dpframework.run.spend_block_filter import SpendBlock

NOTHING_GIVEN: Mapping[str, Any] = MappingProxyType({})


@final
class PrivateTable:
    """A table that makes planned releases. It does not show rows, exact counts or its length.

    A miner gets a private table that is bound to the miner's part of the plan. Parts, samples and derived tables are
    private tables too.

    Attributes
    ----------
    schema
        The public facts about the table.
    given
        The results of the earlier steps that the miner names in `Miner.sources`, by the steps' names. They are
        released, so the inputs of queries may be computed from them.
    """

    __slots__ = ("_attribute_sources", "_gate", "_rows", "_scope", "given", "schema")

    def __init__(
        self,
        schema: Schema,
        rows: Rows,
        scope: Scope,
        gate: Gate,
        attribute_sources: AttributeSources = NOTHING_DERIVED,
        given: Mapping[str, Any] = NOTHING_GIVEN,
    ) -> None:
        self.schema, self.given = schema, given
        self._rows, self._scope, self._gate = rows, scope, gate
        self._attribute_sources = attribute_sources  # for each derived attribute, the attributes on which it depends

    def release(self, step: str | Step, **public_inputs: Any) -> Any:
        """Make a planned release, and return its numbers or the selected candidate.

        Parameters
        ----------
        step
            The name of a planned step, or the step itself.
        public_inputs
            The inputs of the query at run time. Compute them from the schema and from releases only.

        Raises
        ------
        ReleaseRefused
            If the step is not planned in this part of the plan, was released before, or differs from the planned step,
            for example in its epsilon. Nothing is spent then. The error is also raised if the run's ledger refuses the
            release. In that case the release counts as made.
        """
        (released,) = PrivateTable.release_many([(self, step, public_inputs)])
        return released

    @staticmethod
    def release_many(asked: Iterable[tuple[PrivateTable, str | Step, Mapping[str, Any]]]) -> list[Any]:
        """Make several planned releases in one call, such as those for all nodes on one level of a tree.

        The outputs, in order, have the same distribution as from several calls of `release`. In a seeded run they are
        the same outputs. One call is faster: on a cluster all queries are sent in one message. A private run draws all
        noise of one kind together, except if it keeps a journal (a file with each release, to resume the run from).

        Parameters
        ----------
        asked
            For each release, a table, the name of a step (or the step itself), and the inputs of the query. One table
            may be a part of another. No request may depend on a release of the same call.

        Raises
        ------
        ReleaseRefused
            If one release is refused. If the plan refuses it, the releases before it were made. If the ledger refuses
            it, the releases before it are charged. Only a run with a journal has also made them.
        InputError
            If the tables belong to different runs.

        Examples
        --------
        All leaves of a tree: ``PrivateTable.release_many((part, "classes", {}) for part in parts)``.
        """
        wanted = list(asked)
        if not wanted:
            return []
        gate, *others = (table._gate for table, _, _ in wanted)
        if any(other is not gate for other in others):
            raise InputError("the tables belong to different runs; release only tables of one run together")
        charged: list[ChargedRelease] = []
        try:
            for table, step, inputs in wanted:
                charged.append(ChargedRelease(table._scope.charge_of(step), table._rows, dict(inputs)))
        except ReleaseRefused:
            if charged:
                gate.release_many(charged)
            raise
        return gate.release_many(charged)

    def public_random(self) -> np.random.Generator:
        """Return a generator for draws that need not be secret, such as rows of synthetic data or starting points.

        Its seed is public: it is written into the results, and is unrelated to the noise. Each call returns a new
        generator, which depends on the run's public seed, the path in the plan and the number of earlier calls. So the
        draws are the same when a run is resumed, replayed by a verification, or repeated with the same seed. They cost
        no budget. Never use them as noise, since readers of the results can subtract them.

        Examples
        --------
        Forty values of a released histogram, in `Miner.mine`:

        ``table.public_random().choice(labels, size=40, p=shares)``
        """
        return self._gate.public_random(self._scope.path)

    def calibration(self, step: str) -> Calibration:
        """Return the noise and losses of a planned step, which are public and known before the run.

        Raises
        ------
        ReleaseRefused
            If this part of the plan has no such step.
        """
        return self._scope.calibration(step)

    def partition(
        self, by: str | Attribute | Cases | Description | Iterable[Description], *, name: str | None = None
    ) -> list[PrivateTable]:
        """Cut the rows into disjoint parts by their values, as planned by `parallel`.

        The schema of a part is `Schema.of_part`. It has no public number of rows, since the number of rows in a part is
        secret.

        Parameters
        ----------
        by
            An attribute (one part for each value, in the order of its codes), cases (one part for each case, and one
            for the rest), one description (the rows for which it holds, and the rest), or several disjoint descriptions
            (one part for each).
        name
            The name of the planned parallel, needed if there are several here.

        Raises
        ------
        ReleaseRefused
            If this part of the plan has no such partition, if it was made before, or if its parts overlap.
        InputError
            If `by` has another type, or names an unknown attribute.
        """
        cut = self._cut(by)
        with self._gate.ending(unless=lambda: _fails_on_no_rows(cut, self.schema)):
            # Split first and mark the partition as made afterwards, so that a failed split does not use it up.
            parts = self._gate.split(self._rows, cut)
        scopes = self._scope.partition(cut, name, self._attribute_sources)
        schema = self.schema.of_part()
        return [self._like(schema, *part) for part in zip(parts, scopes, strict=True)]

    def sampled(self, name: str | None = None) -> PrivateTable:
        """Draw a random sample of units, as planned by `sample`. Which units are drawn, and how many, stays secret.

        Parameters
        ----------
        name
            The name of the planned sample, needed if there are several here.

        Raises
        ------
        ReleaseRefused
            If this part of the plan has no such sample, or it was drawn before.
        """
        scope, rate, of_units = self._scope.sample(name)
        rows = self._gate.sample(self._rows, rate, of_units=of_units)
        return self._like(self.schema.of_part(), rows, scope)

    def spend(self, name: str) -> SpendBlock:
        """Open a block of the plan, whose releases the miner chooses during the run. A block can be opened once.

        Parameters
        ----------
        name
            The name of the planned block.

        Raises
        ------
        ReleaseRefused
            If this part of the plan has no such block, or it was opened before.
        """
        from dpframework.run.spend_block_filter import BlockScope, SpendBlock

        return SpendBlock(self._rows, BlockScope(self._scope, self._scope.spend(name)), self._gate)

    def _cut(self, by: str | Attribute | Cases | Description | Iterable[Description]) -> Cut:
        if isinstance(by, str):
            return self.schema[by]
        if isinstance(by, Attribute):
            if self.schema[by.name] != by:
                raise ReleaseRefused(f"attribute '{by.name}' differs from the one in this table's schema")
            return by
        if isinstance(by, Cases):
            return by
        if isinstance(by, Description):
            return Cases([by])
        descriptions = tuple(by) if isinstance(by, Iterable) else (by,)
        if not descriptions or not all(isinstance(d, Description) for d in descriptions):
            raise InputError(
                "a partition needs an attribute, cases or descriptions, since rows are cut by value, never by position"
            )
        overlap = first_overlap(descriptions, self.schema)
        if overlap is not None:
            first, second = (str(descriptions[k]) for k in overlap)
            raise ReleaseRefused(f"the parts '{first}' and '{second}' overlap; parts must be disjoint, use Cases")
        return descriptions

    def derive(self, attribute: Attribute, cases: Cases) -> PrivateTable:
        """Return this table with one more attribute: for each row, the case that it falls in.

        Parameters
        ----------
        attribute
            The new attribute. It has one code for each case, in order, and one more, the last, for all other rows.
        cases
            The cases, as descriptions that are computed from the schema and from releases only.

        Raises
        ------
        InputError
            If the schema has an attribute of that name, or the number of codes is not the number of
            cases plus one.
        """
        if attribute.name in self.schema:
            raise InputError(f"attribute '{attribute.name}' exists; a derived attribute needs a name of its own")
        if attribute.size != len(cases.labels):
            raise InputError(f"attribute '{attribute.name}' has {attribute.size} codes for {len(cases.labels)} cases")
        schema = attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute))
        with self._gate.ending(unless=lambda: _fails_on_no_rows(cases, self.schema)):
            rows = self._gate.derive(self._rows, attribute, cases)
        attribute_sources = with_sources(self._attribute_sources, attribute, cases)
        return PrivateTable(schema, rows, self._scope, self._gate, attribute_sources, self.given)

    def scope(self, name: str, given: Mapping[str, Any] | None = None) -> PrivateTable:
        """Return this table bound to a named part of the plan. Each part can be entered once.

        Parameters
        ----------
        name
            The name of the part.
        given
            The earlier results that the part may use, by name. They must be released. By default the results in this
            table's `given`.

        Raises
        ------
        ReleaseRefused
            If the plan has no such part here, or it was entered before.
        """
        found = self._like(self.schema, self._rows, self._scope.enter(name))
        if given is not None:
            found.given = MappingProxyType(dict(given))
        return found

    def _like(self, schema: Schema, rows: Rows, scope: Scope) -> PrivateTable:
        """Return a copy of this table with the given schema, rows and scope."""
        return PrivateTable(schema, rows, scope, self._gate, self._attribute_sources, self.given)

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"PrivateTable({', '.join(self.schema.names[:8])}{', ...' if len(self.schema) > 8 else ''})"

    def __reduce__(self) -> NoReturn:
        """Refuse pickling and copying, since rows would leave the private side.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError("a private table cannot be pickled or copied; keep the releases, not the table")


def _fails_on_no_rows(cut: Cut, schema: Schema) -> bool:
    """Tell whether a cut fails even on a table without rows, so that its failure reveals nothing about rows."""
    keys = {attribute.name: list[str]() for attribute in schema if isinstance(attribute, Open)}
    none = Table.from_codes(schema.of_part(), np.zeros((len(schema), 0), dtype=np.uint8), keys=keys)
    try:
        for block in InMemory().load(none):
            cells_of(cut, block)
    except Exception:
        return True
    return False
