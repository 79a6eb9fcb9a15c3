"""What is audited: one miner on one schema under one relation, with its plan and what that plan claims."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import final

import attrs

from dpframework.accountant import Accountant, PureAccountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Relation
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import sequential
from dpframework.plan.plan import Budget, Plan, PublicFacts
from dpframework.run.miner import Miner
from dpframework.run.scope import Run
from dpframework.verify.tables import SmallTables, Universe

SCOPE = "audited"


@final
@attrs.frozen(eq=False)
class Subject:
    """A miner bound to a schema and a relation.

    Attributes
    ----------
    miner
        The miner.
    schema
        The schema that its small tables are of.
    relation
        The neighbouring relation.
    accounting
        The accountant whose total is the claim: pure epsilon by default.
    """

    miner: Miner
    schema: Schema
    relation: Relation
    accounting: type[Accountant[object]] = PureAccountant  # type: ignore[assignment]

    @functools.cached_property
    def plan(self) -> Plan:
        """The miner's plan, in a scope of its own as in a study."""
        root = sequential(sequential(self.miner.plan(self.schema), name=SCOPE))
        return Plan(root, self.relation, PublicFacts.of(self.schema), Budget(1), self.schema)

    @functools.cached_property
    def universe(self) -> Universe:
        """The kinds of rows that small tables are made of."""
        return Universe(self.schema)

    @functools.cached_property
    def engine(self) -> SmallTables:
        """Where the small tables are evaluated."""
        return SmallTables(self.universe)

    @functools.cached_property
    def accountant(self) -> Accountant[object]:
        """The accountant that the claim and the charges are composed by, without a limit."""
        return self.accounting(self.relation)

    @functools.cached_property
    def claim(self) -> Fraction | None:
        """What the plan claims to cost, in epsilon; None where it has no claim under the relation."""
        total = self.accountant.total(self.plan)
        return None if total is None or total.delta else total.epsilon

    def require_claim(self) -> Fraction:
        """Return the claim.

        Raises
        ------
        InputError
            If there is none.
        """
        if self.claim is None:
            raise InputError(
                f"miner '{self.miner.name}' claims no pure epsilon under {self.relation}; "
                "use assert_distinguishable_at_most for a claim with a delta"
            )
        return self.claim

    def begin(self) -> Run:
        """Return a new run of the plan: it makes planned releases only, each once."""
        return Run(self.plan, self.accountant)
