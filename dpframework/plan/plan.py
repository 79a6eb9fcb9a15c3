"""The class of plans.

A plan joins nodes, a neighbouring relation and a schema, which fix each step's noise and loss.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import attrs

from dpframework.facts.derived_columns import OF_UNITS
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.input_limits import MOST_PLAN_DEPTH
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.facts.parameter_checks import names_of
from dpframework.facts.privacy_losses import NOTHING, Relation, exact, positive
from dpframework.facts.privacy_unit import ROW, ROWS_ASSERTED, PrivacyUnit, UnitChange
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import as_texts, positive_count
from dpframework.mechanisms.base import Calibration
from dpframework.mechanisms.one_calibration_for_several_releases import cap
from dpframework.plan.node_kind_table import write_node
from dpframework.plan.nodes import Node, Step, distinct
from dpframework.plan.plan_node_index import PlanIndex
from dpframework.plan.spend_block_node import Spend
from dpframework.results.error_bounds import TableSize

#: The assumption of a run that stops at the first value outside the schema, instead of changing the value.
DATA_FITS_SCHEMA = "data-fits-schema"
#: The assumption about the result of the query in `[read]`: each row is made from one unit's own rows, and no unit has
#: more rows than the study says.
ROWS_FROM_QUERY = "rows-from-query"

#: The version of the JSON form of plans.
SCHEMA_VERSION = 3

#: The kind of file that holds the output of `Plan.to_json`.
PLAN_FILE = FileKind.of_pattern("a plan", r'^\{\s*"schema_version": \d')


@attrs.frozen
class PublicFacts:
    """The facts that a plan keeps from its schema.

    `fingerprint` is the SHA-256 of the schema's facts. `rows` is the exact number of rows if it is public. `row_bound`
    is that number or else a public upper bound. `inferred` has one text for each fact that was taken from private data,
    `read` for each option of reading files, and `derive` for each derived column.
    """

    fingerprint: str
    rows: int | None
    row_bound: int | None
    inferred: tuple[str, ...] = attrs.field(converter=as_texts)
    read: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    derive: tuple[str, ...] = attrs.field(default=(), converter=as_texts)

    @classmethod
    def of(cls, schema: Schema) -> PublicFacts:
        """Return the facts of a schema."""
        derived = tuple(column.definition for column in schema.derivation)
        read = tuple(schema.in_files.read.option_lines())
        return cls(schema.fingerprint, schema.rows, schema.row_bound, schema.inferred, read, derived)

    @property
    def per_unit(self) -> bool:
        """Whether some columns are computed per unit. The table then has one row for each unit."""
        return any(OF_UNITS in text for text in self.derive)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts in a JSON-safe form. Empty `read` and `derive` are left out, as in older plans."""
        form = {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in attrs.asdict(self).items()}
        return {name: fact for name, fact in form.items() if fact or name not in ("read", "derive")}


def _delta(value: Any) -> Fraction:
    delta = exact(value, "delta")
    if delta >= 1:
        raise InputError(f"delta is {value}; it must be below 1, such as 1e-6")
    return delta


def _about(rows: int | None) -> int | None:
    return None if rows is None else positive_count(rows, "rows")


@attrs.frozen
class Budget:
    """The budget of a study, and the assumptions and risks that it accepts by name.

    Attributes
    ----------
    epsilon
        The largest epsilon that all releases may cost together.
    delta
        The delta at which totals hold. If it is above 0, totals may be computed in zCDP, Renyi divergence and privacy
        loss distributions too, and not only in pure epsilon.
    allow
        The names of accepted assumptions and risks.
    """

    epsilon: Fraction = attrs.field(converter=positive)
    delta: Fraction = attrs.field(default=Fraction(0), converter=_delta)
    allow: tuple[str, ...] = attrs.field(default=(), converter=names_of)


def hash_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of JSON-safe content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _root(node: Node) -> Node:
    """Return the root of a plan, with shared nodes copied. Refuse compositions that are nested too deeply."""
    if _is_shallow(node, MOST_PLAN_DEPTH):
        return distinct(node)
    deep = [getattr(child, "name", "") for child in node.children if not _is_shallow(child, MOST_PLAN_DEPTH - 1)]
    who = f"step '{deep[0]}': its plan" if deep and deep[0] else "the plan"
    raise InputError(
        f"{who} has more than {MOST_PLAN_DEPTH} compositions within each other, up to four for each level of a tree; "
        f"give it fewer levels, such as a max_depth of at most {MOST_PLAN_DEPTH // 5}"
    )


def _is_shallow(node: Node, most: int) -> bool:
    """Tell whether compositions are nested at most `most` levels deep."""
    level = [node]
    for _ in range(most + 1):
        level = list({id(child): child for one in level for child in one.children}.values())
        if not level:
            return True
    return False


@attrs.frozen(eq=False)
class Plan:
    """Every release that a study or miner may make, fixed and public before the run.

    Attributes
    ----------
    root
        The node at the top, into which all steps are composed.
    relation
        The neighbouring relation for which the losses hold.
    facts
        The facts of the schema that the plan keeps.
    budget
        The budget that the plan may spend.
    schema
        The schema itself; None for a plan read from a file, which holds the facts only.
    miners
        For each part of a study, its miner's name and parameters in a JSON-safe form. They are part of the plan's hash:
        a miner of other attributes may have the same steps with the same claims, but needs another approval.
    out_of_domain
        What a run does with values outside the schema. With `ERROR` the run stops, so the plan assumes that the data
        fits the schema.
    code
        The code that the plan would run (see `code_of`).
    unit
        The privacy unit that the plan's losses protect. Neighbours differ by one such unit.
    data
        The address of the private table, from the study file and the owner's configuration. It is approved with the
        plan.
    engine
        The address of a remote engine that evaluates the queries; None for an engine on this machine.
    about_rows
        The approximate number of rows, which replaces the schema's. Only error bounds depend on this number, so it is
        not part of the plan's claims.
    """

    root: Node = attrs.field(converter=_root)
    relation: Relation
    facts: PublicFacts
    budget: Budget
    schema: Schema | None = None
    miners: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    out_of_domain: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, kw_only=True)
    code: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    unit: PrivacyUnit = attrs.field(default=ROW, kw_only=True)
    data: tuple[str, ...] = attrs.field(default=(), converter=as_texts, kw_only=True)
    engine: str | None = attrs.field(default=None, kw_only=True)
    about_rows: int | None = attrs.field(default=None, kw_only=True, converter=_about)

    @functools.cached_property
    def index(self) -> PlanIndex:
        """All nodes with their places. The index is built once and then shared."""
        return PlanIndex(self.root, self)

    @property
    def size(self) -> TableSize:
        """The public facts about the number of rows."""
        schema, facts = self.schema, self.facts
        about = self.about_rows
        if about is None and schema is not None:
            about = schema.about_rows
        if about is not None:
            return TableSize(about, most=facts.row_bound)
        return TableSize(facts.rows, exact=facts.rows is not None, most=facts.row_bound)

    def steps(self) -> Iterator[Step]:
        """Yield every step once, from the top, left to right."""
        return (placed.node for placed in self.index.nodes if isinstance(placed.node, Step))

    def placed_steps(self) -> Iterator[tuple[str, Step]]:
        """Yield each step with its path, scope by scope. In saved results, steps are numbered in this order."""
        return iter(self._placed_steps)

    @functools.cached_property
    def _placed_steps(self) -> list[tuple[str, Step]]:
        nodes = itertools.chain.from_iterable(scope.nodes for scope in self.index.scopes)
        return [(placed.path, placed.node) for placed in nodes if isinstance(placed.node, Step)]

    def calibrated_steps(self) -> Iterator[tuple[str, Step, Calibration]]:
        """Yield each step that has a valid claim, with its path, its noise and its losses."""
        for path, step in self.placed_steps():
            calibration = self.calibration(step)
            if calibration is not None:
                yield path, step, calibration

    def calibration(self, step: Step | Spend) -> Calibration | None:
        """Return a step's noise and losses, or a block's losses; None without a valid claim under this relation.

        A step that is not in the plan is calibrated as if it were released from the whole table.
        """
        placed = self.index.find(step)
        return self.calibrate(step, in_parts=False) if placed is None else placed.calibration

    def calibrate(self, step: Step | Spend, *, in_parts: bool) -> Calibration | None:
        """Fix a step's noise for the plan's privacy unit, or return the losses of a block as if it were one release.

        A block caps its epsilon, its rho or its delta. It has a claim only if each of its kinds of release has a claim
        in every amount that the block caps.

        For units of k rows, a query may declare a sensitivity that is smaller than k times its sensitivity to one row.
        The declared sensitivity holds only where the query sees all rows of the unit. If the table is released in
        parts, the unit's rows may lie in several parts, so each row counts with its own sensitivity (see
        `docs/composition.md`).
        """
        if isinstance(step, Spend):
            for one in step.parts:
                found = self.calibrate(one, in_parts=in_parts)
                if found is None or step.amount_without_claim(found.losses, self.relation):
                    return None
            return cap(step.losses(self.relation, in_parts=in_parts), self.unit_change)
        facts, mechanism, by = step.facts, step.mechanism, self.unit_change
        of_units = facts.unlisted or facts.places
        in_rows = in_parts or (of_units and not self.unit.groups_rows)  # no ids tell which rows form a unit
        declared = () if by.rows == 1 or in_rows else tuple(step.query.for_rows(by.rows))
        if declared:
            of_unit = attrs.evolve(facts, sensitivities=declared)
            if mechanism.misfit(of_unit) is None:
                return mechanism.calibrate(of_unit, self.relation, by=UnitChange(1, by.resizes))
        return mechanism.calibrate(facts, self.relation, in_parts=in_parts, by=by)

    @property
    def reads_units(self) -> bool:
        """Whether a run must know each row's unit: to sample units, count keys by unit, or number a unit's rows."""
        return self.index.samples or self.reads_places or any(step.facts.unlisted for step in self.steps())

    @functools.cached_property
    def reads_places(self) -> bool:
        """Whether a query reads the position of a row among the rows of its unit."""
        return any(one.node.facts.places for one in self.index.steps if isinstance(one.node, Step))

    @functools.cached_property
    def has_exact_delta(self) -> bool:
        """Whether some release has a delta of its own, which adds to a conversion's delta (see `release_losses`)."""
        made = (one.calibration for one in self.index.nodes)
        return any(noise is not None and noise.losses.delta != NOTHING for noise in made)

    def in_parts(self, step: Step | Spend) -> bool:
        """Tell whether a step or block reads a part of the table, which may hold some rows of a unit and not others.

        A sample in which each row is drawn by itself counts as a part.
        """
        placed = self.index.place(step)
        return placed.in_parts or (placed.on_sample and self.unit.asserted)

    @property
    def unit_change(self) -> UnitChange:
        """How far two neighbouring tables may differ in their rows.

        Under replace-one the number of units is public. If each unit is a row, the number of rows is public too.
        Otherwise the number of rows may change when a unit is replaced, except if the schema states it.
        """
        return UnitChange(self.unit.rows, resizes=not self.unit.is_row and self.facts.rows is None)

    @property
    def assumptions(self) -> dict[str, tuple[str, ...]]:
        """Each assumption with the names of the steps that need it. An assumption of the whole plan has no names."""
        needed: dict[str, tuple[str, ...]] = {}
        for step in self.steps():
            for assumption in dict.fromkeys((*step.mechanism.assumptions, *step.assumptions)):
                needed[assumption] = (*needed.get(assumption, ()), step.name)
        if self.facts.inferred:
            needed["schema-inferred-from-data"] = ()
        if any(text.startswith("query = ") for text in self.facts.read):  # see `ReadOptions.option_lines`
            needed[ROWS_FROM_QUERY] = ()
        if self.out_of_domain is OutOfDomain.ERROR:
            needed[DATA_FITS_SCHEMA] = ()
        if self.unit.asserted:
            needed[ROWS_ASSERTED] = ()
        if self.relation is Relation.REPLACE_ONE and not self.unit_change.resizes:
            needed["row-count-public"] = ()
        return {name: tuple(dict.fromkeys(steps)) for name, steps in needed.items()}

    def content(self) -> dict[str, Any]:
        """Return the content of the plan, which its hash covers, in a JSON-safe form."""
        # The default policy is left out, so that older plans keep their hashes.
        usual = self.out_of_domain is OutOfDomain.CLAMP
        return {
            "schema_version": SCHEMA_VERSION,
            **({} if usual else {"out_of_domain": self.out_of_domain.value}),
            "relation": self.relation.value,
            **({} if self.unit.is_row else {"unit": self.unit.to_dict()}),
            "schema": self.facts.to_dict(),
            "budget": {
                "epsilon": str(self.budget.epsilon),
                "delta": str(self.budget.delta),
                "allow": list(self.budget.allow),
            },
            **({"data": list(self.data)} if self.data else {}),
            **({} if self.engine is None else {"engine": self.engine}),
            "miners": dict(self.miners),
            "code": dict(self.code),
            "root": write_node(self.root, self.calibration, self.unit.rows),
        }

    @functools.cached_property
    def hash(self) -> str:
        """The SHA-256 of the plan's content, which approvals and ledgers refer to."""
        return hash_of(self.content())

    def to_json(self) -> str:
        """Write the plan, with its hash, as JSON."""
        return json.dumps({**self.content(), "hash": self.hash}, indent=2) + "\n"

    def require_schema(self, schema: Schema) -> None:
        """Refuse a schema that differs from the plan's.

        Raises
        ------
        InputError
            If the schema's fingerprint differs from the one in the plan.
        """
        if schema.fingerprint != self.facts.fingerprint:
            raise InputError("this plan was made from another schema; plan again with the schema of the table")

    def __eq__(self, other: object) -> bool:
        """Plans are equal if their hashes are equal."""
        return isinstance(other, Plan) and self.hash == other.hash

    def __hash__(self) -> int:
        """Return a hash of the content."""
        return hash(self.hash)
