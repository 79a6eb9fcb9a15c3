"""The subject of an audit: one miner on one schema under one relation, with its plan and its claim."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import BUILT_IN, Accountant, AccountedPlan, ZCDPAccountant
from dpframework.accountant.exact_delta_composition import exact_delta_of
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation, decimal_text, exact, exceeds_by_rounding
from dpframework.facts.privacy_unit import ROW, PrivacyUnit, UnitChange
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import sequential
from dpframework.plan.plan import Budget, Plan, PublicFacts
from dpframework.run.miner_base_and_examples import Miner
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.verify.queries.large_tables import largest_number
from dpframework.verify.queries.texts_to_try import telling_texts
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import SAMPLED_ROWS, Universe
from dpframework.verify.tables.small_table_engine import SmallTables

AMOUNTS = (int, float, str, Decimal, Fraction)  # the types that a parameter `epsilon` or `rho` may have
SCOPE = "audited"  # the name of the scope that holds the miner's plan
USUAL_DELTA = Fraction(1, 10**6)  # the delta for testing a plan without a pure claim if its example gives no delta


@final
@attrs.frozen(eq=False)
class _TotalledBy(AccountedPlan):
    """A plan that is totalled by one accountant."""

    accounting: type[Accountant[Any]] = attrs.field(kw_only=True)

    @property
    def accountants(self) -> tuple[type[Accountant[Any]], ...]:
        """The given accountant alone."""
        return (self.accounting,)


@final
@attrs.frozen(eq=False)
class Subject:
    """A miner bound to a schema and a relation.

    Attributes
    ----------
    miner
        The miner whose claim is tested on small tables.
    schema
        The schema of the small tables.
    relation
        The neighbouring relation.
    delta
        The delta of the miner's example; 0 for a pure claim.
    accounting
        The accountant whose total is the claim. If None, it is the accountant that a study would use: of all installed
        accountants, the one with the smallest total.
    kinds
        The kinds of rows that the small tables are made of. If empty, all kinds that the schema allows, or a sample of
        them.
    patience
        The time that searches may take.
    unit
        The privacy unit that the claim is to protect. Neighbours differ by one such unit.
    given_universe
        The kinds of rows that the small tables are made of, if a search has chosen them. If None, `kinds` gives them.
    """

    miner: Miner
    schema: Schema
    relation: Relation
    delta: Fraction = Fraction(0)
    accounting: type[Accountant[Any]] | None = None
    kinds: tuple[Mapping[str, Any], ...] = ()
    patience: Patience = attrs.field(factory=Patience)
    unit: PrivacyUnit = ROW
    given_universe: Universe | None = None
    _charged: dict[Fraction, AccountedPlan] = attrs.field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Take the miner as a study with this unit and relation would run it."""
        object.__setattr__(self, "miner", self.miner.for_study(self.unit, self.relation))

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
        """The largest number of equal rows that two neighbours may share."""
        return largest_number(self.schema, self.relation, self.by.rows)

    def most_rows(self, usual: int) -> int:
        """Return the most rows of a table: `usual`, or fewer if the plan samples, since each sample is listed."""
        return min(usual, SAMPLED_ROWS) if self.plan.index.samples else usual

    @functools.cached_property
    def universe(self) -> Universe:
        """The kinds of rows that small tables are made of."""
        if self.given_universe is not None:
            return self.given_universe
        texts = telling_texts((step.query for step in self.plan.steps()), self.schema)
        return Universe(self.schema, rows=self.kinds, texts=texts)

    @functools.cached_property
    def engine(self) -> SmallTables:
        """The engine that evaluates small tables."""
        return SmallTables(self.universe, self.together)

    @functools.cached_property
    def together(self) -> int:
        """The number of rows of a unit, if a run of the plan must know which rows belong to the same unit; else 1.

        A run must know that in three cases: the plan samples units, reads a row's position in its unit, or counts a
        unit once per key. A key is a value of an attribute whose values the schema does not list.
        """
        return self.unit.rows if self.unit.groups_rows and self.plan.reads_units else 1

    @functools.cached_property
    def claim(self) -> Fraction | None:
        """The epsilon that the plan claims at its `exact_delta`, or None if it has no such claim under the relation."""
        return self.claim_at(self.exact_delta)

    @functools.cached_property
    def exact_delta(self) -> Fraction:
        """The delta that the plan's releases themselves have, 0 for most plans."""
        return exact_delta_of(self.plan.root, self.plan).under(self.relation) or Fraction(0)

    def claim_at(self, delta: Fraction) -> Fraction | None:
        """Return the epsilon that a study with a delta would charge the plan, or None without a claim."""
        total = self._plan_at(delta).smallest_total()
        return None if total is None else total.epsilon

    def accountant_at(self, delta: Fraction) -> type[Accountant[Any]]:
        """Return the accountant that gives the plan its total at a delta."""
        return type(self._plan_at(delta).accountant())

    def name_accountant(self, delta: Fraction) -> str:
        """Name the plugin's accountant that gives the plan its total, and say what the built-in ones charge.

        The text is empty if a built-in accountant gives the total.
        """
        kind, plan = self.accountant_at(delta), self._plan_at(delta)
        if kind in BUILT_IN:
            return ""
        known = AccountedPlan(plan.root, plan.relation, plan.facts, plan.budget, plan.schema, unit=plan.unit)
        total = known.smallest_total()
        charge = "have no total" if total is None or total.epsilon is None else f"charge {decimal_text(total.epsilon)}"
        return f", as accountant '{kind.name}' totals it; the built-in accountants {charge}"

    def _plan_at(self, delta: Fraction) -> AccountedPlan:
        """Return the plan as it is in a study with this delta, with the accountants that may total it."""
        if delta not in self._charged:
            given = self.plan.root, self.relation, self.plan.facts, Budget(1, delta), self.schema
            if self.accounting is None:
                self._charged[delta] = StudyPlan(*given, unit=self.unit)
            else:
                self._charged[delta] = _TotalledBy(*given, unit=self.unit, accounting=self.accounting)
        return self._charged[delta]

    @functools.cached_property
    def delta_needed(self) -> Fraction | None:
        """The delta of the claim, or None without a claim.

        If `delta` is 0 and the plan has a claim at `exact_delta`, that is the delta. Else it is `delta`, or a usual one
        if `delta` is 0.
        """
        if self.claim is not None and not self.delta:
            return self.exact_delta
        delta = self.delta or USUAL_DELTA
        return None if self.claim_at(delta) is None else delta

    @property
    def overspent(self) -> str | None:
        """A text if the plan costs more than the miner's parameter `epsilon` or `rho`. None if it costs no more."""
        total = ZCDPAccountant(self.relation, delta=self.delta or USUAL_DELTA).total(self.plan)
        for name, spent in (("epsilon", self.claim), ("rho", None if total is None else total.rho)):
            given = getattr(self.miner, name, None)
            if spent is not None and isinstance(given, AMOUNTS) and spent > exact(given, name):
                if exceeds_by_rounding(spent, exact(given, name)):
                    more = f"{float(spent - exact(given, name)):.1g} more than the parameter {name} = {given}"
                    advice = "a share of it was rounded, as floats are; compute shares with fractions.Fraction"
                    return f"the plan costs {more} under {self.relation}: {advice}"
                what = f"the plan costs {name} = {float(spent):g} under {self.relation}, and the parameter is {given}"
                return f"{what}: is the parameter spent more than once?"
        return None

    def require_claim(self) -> None:
        """Refuse a plan without any claim.

        Raises
        ------
        InputError
            If the plan has no finite claim, not even with a delta.
        """
        if self.delta_needed is None:
            raise InputError(
                f"miner '{self.miner.name}' claims no finite epsilon under {self.relation}, not even with a delta"
            )
