"""The subject of an audit, one miner on one schema under one relation, with its plan and the plan's claim."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import Accountant, AccountedPlan, PureAccountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Relation
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, PrivacyUnit, UnitChange
from dpframework.plan.nodes import sequential
from dpframework.plan.plan import Budget, Plan, PublicFacts
from dpframework.run.miner import Miner
from dpframework.run.scope import Run
from dpframework.verify.many import largest_number
from dpframework.verify.patience import Patience
from dpframework.verify.tables import SAMPLED_ROWS, SmallTables, Universe

SCOPE = "audited"
USUAL_DELTA = Fraction(1, 10**6)  # of a plan without a pure claim, whose example carries no delta


@final
@attrs.frozen(eq=False)
class Subject:
    """A miner bound to a schema and a relation.

    Attributes
    ----------
    miner
        The miner whose claim is tested on small tables.
    schema
        The schema that its small tables are of.
    relation
        The neighbouring relation.
    delta
        The delta that its example carries; 0 for a pure claim.
    accounting
        The accountant whose total is the pure claim.
    kinds
        The kinds of rows that its tables are made of; empty for those of the schema, or a sample of them.
    patience
        When its searches end early.
    unit
        Whom its claim is to protect: neighbours differ by one such unit.
    """

    miner: Miner
    schema: Schema
    relation: Relation
    delta: Fraction = Fraction(0)
    accounting: type[Accountant[object]] = PureAccountant  # type: ignore[assignment]
    kinds: tuple[Mapping[str, Any], ...] = ()
    patience: Patience = attrs.field(factory=Patience)
    unit: PrivacyUnit = ROW

    @functools.cached_property
    def plan(self) -> Plan:
        """The miner's plan, in a scope of its own as in a study."""
        root = sequential(sequential(self.miner.plan(self.schema), name=SCOPE))
        return Plan(root, self.relation, PublicFacts.of(self.schema), Budget(1), self.schema, unit=self.unit)

    @property
    def by(self) -> UnitChange:
        """The largest change that one unit makes to the rows."""
        return self.plan.unit_change

    @property
    def most(self) -> int:
        """How many equal rows two neighbours may share."""
        return largest_number(self.schema, self.relation, self.by.rows)

    def most_rows(self, usual: int) -> int:
        """Return the largest table, small where the plan samples, so that all samples can be added up."""
        return min(usual, SAMPLED_ROWS) if self.plan.index.samples else usual

    @functools.cached_property
    def universe(self) -> Universe:
        """The kinds of rows that small tables are made of."""
        return Universe(self.schema, rows=self.kinds)

    @functools.cached_property
    def engine(self) -> SmallTables:
        """Where the small tables are evaluated."""
        return SmallTables(self.universe, self.together)

    @functools.cached_property
    def together(self) -> int:
        """The number of rows that the plan samples together, more than 1 for units of several rows."""
        return self.unit.rows if self.unit.groups_rows and self.plan.index.samples else 1

    @functools.cached_property
    def accountant(self) -> Accountant[object]:
        """The accountant that the claim and the charges are composed by, without a limit."""
        return self.accounting(self.relation)

    @functools.cached_property
    def claim(self) -> Fraction | None:
        """The plan's claim in epsilon, or None where it has no claim under the relation."""
        total = self.accountant.total(self.plan)
        return None if total is None or total.delta else total.epsilon

    def claim_at(self, delta: Fraction) -> Fraction | None:
        """Return the smallest epsilon that the plan claims at a delta in any notion of loss, or None."""
        plan = self.plan
        at_delta = AccountedPlan(plan.root, plan.relation, plan.facts, Budget(1, delta), plan.schema, unit=plan.unit)
        return next((total.epsilon for total in at_delta.totals().values()), None)

    @functools.cached_property
    def delta_needed(self) -> Fraction | None:
        """The delta at which the plan has a claim, 0 for a pure one, or None if there is no claim."""
        if self.claim is not None and not self.delta:
            return Fraction(0)
        delta = self.delta or USUAL_DELTA
        return None if self.claim_at(delta) is None else delta

    def require_claim(self) -> None:
        """Refuse a plan without any claim.

        Raises
        ------
        InputError
            If there is none.
        """
        if self.delta_needed is None:
            raise InputError(
                f"miner '{self.miner.name}' claims no finite epsilon under {self.relation}, not even with a delta"
            )

    def begin(self) -> Run:
        """Return a new run of the plan, which makes planned releases only, each once."""
        return Run(self.plan, self.accountant)
