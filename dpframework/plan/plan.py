"""A plan: nodes bound to a neighbouring relation and a schema, with every step's noise and loss fixed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.privacy import Relation, exact, positive
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, ROWS_ASSERTED, PrivacyUnit, UnitChange
from dpframework.facts.values import as_texts
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Node, Parallel, Sample, Step, distinct, scopes, walk
from dpframework.plan.writing import node_to_dict

#: The assumption of an owner who would rather be stopped than have rows read that the schema does not hold.
DATA_FITS_SCHEMA = "data-fits-schema"

#: The version of the JSON form of plans.
SCHEMA_VERSION = 3


@attrs.frozen
class PublicFacts:
    """What a plan remembers of the schema it was made from."""

    fingerprint: str
    rows: int | None
    row_bound: int | None
    inferred: tuple[str, ...] = attrs.field(converter=as_texts)

    @classmethod
    def of(cls, schema: Schema) -> PublicFacts:
        """Return the facts of a schema."""
        return cls(schema.fingerprint, schema.rows, schema.row_bound, schema.inferred)


def _delta(value: Any) -> Fraction:
    delta = exact(value, "delta")
    if delta >= 1:
        raise InputError(f"delta is {value}; it must be below 1")
    return delta


@attrs.frozen
class Budget:
    """What a study may spend, and which assumptions it accepts by name.

    Attributes
    ----------
    epsilon
        The most that all releases may cost together.
    delta
        Above 0, totals may be composed in zCDP or in privacy loss distributions.
    allow
        Names of accepted assumptions.
    """

    epsilon: Fraction = attrs.field(converter=positive)
    delta: Fraction = attrs.field(default=Fraction(0), converter=_delta)
    allow: tuple[str, ...] = attrs.field(default=(), converter=as_texts)


def hash_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of JSON-safe content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@attrs.frozen(eq=False)
class Plan:
    """Every release of a study or miner, bound to a relation: static, and public.

    Attributes
    ----------
    root
        All steps, composed into one node.
    relation
        The neighbouring relation that the losses hold for.
    facts
        What the plan remembers of its schema.
    budget
        What it may spend.
    schema
        The schema itself; None for a plan read from a file, which holds the facts only.
    miners
        For each part of a study its miner's name and parameters, JSON-safe: what is claimed of a step may be the same
        for other attributes, and an approval must not be.
    out_of_domain
        How its table is read (see `OutOfDomain`); with `ERROR` the plan assumes that the data fits the schema.
    code
        Which code it would run (see `code_of`): names do not say what a mechanism does.
    unit
        Whom its losses protect: neighbours differ by one such unit.
    """

    root: Node = attrs.field(converter=distinct)
    relation: Relation
    facts: PublicFacts
    budget: Budget
    schema: Schema | None = None
    miners: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    out_of_domain: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, kw_only=True)
    code: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    unit: PrivacyUnit = attrs.field(default=ROW, kw_only=True)

    def steps(self) -> Iterator[Step]:
        """Yield every step once, from the top, left to right."""
        return (node for node in walk(self.root) if isinstance(node, Step))

    def placed_steps(self) -> Iterator[tuple[str, Step]]:
        """Yield each step with its path."""
        for path, nodes in scopes(self.root):
            for node in nodes:
                if isinstance(node, Step):
                    yield f"{path}/{node.name}".lstrip("/"), node

    def calibrated_steps(self) -> Iterator[tuple[str, Step, Calibration]]:
        """Yield each step that has a valid claim, with its path, its noise and its losses."""
        for path, step in self.placed_steps():
            calibration = self.calibration(step)
            if calibration is not None:
                yield path, step, calibration

    def calibration(self, step: Step) -> Calibration | None:
        """Return a step's noise and losses; None where it has no valid claim under this relation."""
        key = id(step)
        if key not in self._calibrations:
            self._calibrations[key] = step, self._calibrated(step)
        return self._calibrations[key][1]

    def _calibrated(self, step: Step) -> Calibration | None:
        """Fix a step's noise, for one unit.

        What a query declares for several rows of one unit holds where all of them are asked, not in parts: there the
        rows may spread, and each part must cost no more than their share (see `docs/composition.md`).
        """
        facts, mechanism, in_parts = step.query.facts(), step.mechanism, self.in_parts(step)
        by = self.unit_change
        declared = () if by.rows == 1 or in_parts else tuple(step.query.for_rows(by.rows))
        if declared:
            of_unit = attrs.evolve(facts, sensitivities=declared)
            if mechanism.misfit(of_unit) is None:
                return mechanism.calibrate(of_unit, self.relation, by=UnitChange(1, by.resizes))
        return mechanism.calibrate(facts, self.relation, in_parts=in_parts, by=by)

    @property
    def unit_change(self) -> UnitChange:
        """What one unit does to the rows.

        Under replace-one the number of units is public. Where each is a row, so is the number of rows; else only where
        the schema has it.
        """
        return UnitChange(self.unit.rows, resizes=not self.unit.is_row and self.facts.rows is None)

    @functools.cached_property
    def _in_parts(self) -> frozenset[int]:
        """The steps, by identity, that are released from parts of the table, over which a unit's rows may spread.

        A sample of rows that are drawn one by one is such a part.
        """
        parting = (Parallel, Sample) if self.unit.asserted else (Parallel,)
        parts = (node for node in walk(self.root) if isinstance(node, parting))
        return frozenset(id(step) for part in parts for step in walk(part) if isinstance(step, Step))

    def in_parts(self, step: Step) -> bool:
        """Tell whether a step of the plan is released from parts of the table, where a unit may have some rows only."""
        return id(step) in self._in_parts

    @functools.cached_property
    def _calibrations(self) -> dict[int, tuple[Step, Calibration | None]]:
        return {}  # by identity; the steps are kept, so that no other one takes over an identity

    @property
    def assumptions(self) -> dict[str, tuple[str, ...]]:
        """Each assumption with the steps that need it (none for those of the whole plan)."""
        needed: dict[str, tuple[str, ...]] = {}
        for step in self.steps():
            for assumption in dict.fromkeys((*step.mechanism.assumptions, *step.assumptions)):
                needed[assumption] = (*needed.get(assumption, ()), step.name)
        if self.facts.inferred:
            needed["schema-inferred-from-data"] = ()
        if self.out_of_domain is OutOfDomain.ERROR:
            needed[DATA_FITS_SCHEMA] = ()
        if self.unit.asserted:
            needed[ROWS_ASSERTED] = ()
        if self.relation is Relation.REPLACE_ONE and not self.unit_change.resizes:
            needed["row-count-public"] = ()
        return {name: tuple(dict.fromkeys(steps)) for name, steps in needed.items()}

    def content(self) -> dict[str, Any]:
        """Return all that the plan claims, JSON-safe: what its hash covers."""
        total = self.out_of_domain is OutOfDomain.CLAMP  # what is not said: so that older plans keep their hashes
        return {
            "schema_version": SCHEMA_VERSION,
            **({} if total else {"out_of_domain": self.out_of_domain.value}),
            "relation": self.relation.value,
            **({} if self.unit.is_row else {"unit": self.unit.to_dict()}),
            "schema": {**attrs.asdict(self.facts), "inferred": list(self.facts.inferred)},
            "budget": {
                "epsilon": str(self.budget.epsilon),
                "delta": str(self.budget.delta),
                "allow": list(self.budget.allow),
            },
            "miners": dict(self.miners),
            "code": dict(self.code),
            "root": node_to_dict(self.root, self.calibration, self.unit.rows),
        }

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the plan's content: approvals and ledgers refer to it."""
        return hash_of(self.content())

    def to_json(self) -> str:
        """Write the plan, with its hash, as JSON."""
        return json.dumps({**self.content(), "hash": self.hash}, indent=2) + "\n"

    def require_schema(self, schema: Schema) -> None:
        """Refuse another schema than the plan's.

        Raises
        ------
        InputError
            If the schema's fingerprint is not the plan's.
        """
        if schema.fingerprint != self.facts.fingerprint:
            raise InputError("this plan was made from another schema; plan again with the schema of the table")

    def __eq__(self, other: object) -> bool:
        """Plans are equal if they claim the same."""
        return isinstance(other, Plan) and self.hash == other.hash

    def __hash__(self) -> int:
        """Hash of the content."""
        return hash(self.hash)
