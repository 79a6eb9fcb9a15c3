"""Synthetic tables: rows of a model whose marginals are measured with noise.

Sources: McKenna, Sheldon and Miklau 2019 (models from noisy marginals), McKenna, Miklau and Sheldon 2021 (a tree of
pairs), Liu, Vietri and Wu 2021 and McKenna and others 2022 (rounds that select what the model describes worst). Claim:
pure epsilon, or the rho of zCDP; no assumptions. The number of rounds, the marginals that may be selected, and the
limit of the model's size are public. Rows that are drawn from the model are post-processing.

What differs from these papers, and why:

- all numbers of a plan are fixed beforehand, except with method "adaptive": rounds are neither added nor given more
  budget during a run (but rounds may end early, see below);
- permute-and-flip selects in pure epsilon, which is never worse than the exponential mechanism (McKenna and Sheldon
  2020), and K-norm noise measures one-way marginals;
- once a stage of rounds says no more than its noise, no more rounds are made, and one-way marginals get the rest of the
  budget;
- what measured tables say about the same attributes is pooled (see `residual_pooling`);
- noisy counts of values are corrected by how common rare values are over all attributes (see `share_prior`);
- rare values are merged as in MST, by a rule of our own (see `merging`);
- the fit follows each table only as far as it stands out from its noise (see `model`). It is written in numpy, on a
  junction tree of at most `max_cells` cells;
- method, rounds and shares are chosen by predicted noise (see `method_choice`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts import (
    MOST_ROWS,
    Boolean,
    Categorical,
    InputError,
    Numeric,
    Open,
    PrivacyUnit,
    Relation,
    Schema,
    is_whole_number,
    list_of_names,
    one_of,
    positive,
    positive_rho,
    share_of_budget,
    whole_number,
)
from dpframework.plan import Budget, Node, Plan, PlannedPart, PublicFacts, RunCost, post, sequential
from dpframework.results import ErrorBound
from dpframework.run import Example, Miner, PrivateTable, Witness
from dpframework_tables.costs import cost_of
from dpframework_tables.method_choice import METHODS, ChoiceFacts
from dpframework_tables.methods import TableMethod
from dpframework_tables.row_miners import Forms, mined_forms, study_on
from dpframework_tables.synthetic_rows import MeasuredMarginal, SyntheticRows
from dpframework_tables.table_budget import TableBudget

MAX_CELLS = 130_000
MOST_MAX_CELLS = 1 << 24
_INFERRED = "no bound is known for marginals that were not measured; measured ones have the errors of their counts"


def _relation(value: Relation | str) -> Relation:
    return Relation.parse(value)


def _rows(value: Any) -> int | None:
    if value is not None and not (is_whole_number(value) and value <= MOST_ROWS):
        raise InputError(f"rows is {value!r}; a positive whole number up to {MOST_ROWS:,} is needed, or nothing")
    return None if value is None else int(value)


@final
@attrs.frozen
class SyntheticTable(Miner):
    """A table of synthetic rows, from a model whose marginals are measured with noise.

    Parameters
    ----------
    epsilon
        The budget as a pure epsilon. Give either this or `rho`.
    rho
        The budget in zCDP, for a study with a delta.
    method
        "auto" takes one of the others, chosen by public facts (see `method_choice`). "independent" measures one-way
        marginals alone. "tree" also measures pairs that connect all attributes, selected by how far they are from
        independence. "rounds" makes rounds, each of which selects the marginal that the model so far describes worst,
        measures it, and fits the model again. "adaptive" does the same, but a round gets more expensive whenever a
        measurement says no more than its noise.
    rounds
        How many marginals are measured besides the one-way ones, with method "rounds". With method "adaptive", a round
        at first costs the budget of all rounds divided by this number. By default chosen from predicted noise.
    order
        The most attributes of a marginal in rounds, 2 or 3. By default 3 if there are few enough pairs and triples.
    max_cells
        The most cells of the model. Each takes about 50 bytes while the model is fitted. The plan shows the time and
        memory that follow. The plan is refused if the one-way marginals alone have more cells.
    attributes
        The columns of the synthetic table; by default all but open attributes. Numeric ones are cut as in the schema.
    rows
        How many rows are drawn. By default as many as the table has, by its public number of rows or by releases.
    singles_share
        The share of the budget for the one-way marginals before rounds. By default chosen from predicted noise.
    miners
        Miners to run on the synthetic rows, by the names of their findings. This is post-processing, and costs nothing.
        Each is a miner, or a mapping with its name as "miner" and its parameters. The result's `finding` returns what a
        miner finds.
    unit_rows, relation
        The rows per unit and the neighbouring relation for which noise is predicted. The study that runs the miner
        replaces them by its own.

    Examples
    --------
    >>> SyntheticTable(epsilon=1).method
    'auto'
    """

    name = "synthetic-table"
    result = SyntheticRows
    epsilon: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive))
    rho: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive_rho), kw_only=True)
    method: str = attrs.field(default="auto", validator=one_of(("auto", *METHODS)), kw_only=True)
    rounds: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()), kw_only=True)
    order: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()), kw_only=True)
    max_cells: int = attrs.field(default=MAX_CELLS, validator=whole_number(), kw_only=True)
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names, kw_only=True)
    rows: int | None = attrs.field(default=None, converter=_rows, kw_only=True)
    singles_share: Fraction | None = attrs.field(
        default=None, converter=attrs.converters.optional(share_of_budget), kw_only=True
    )
    miners: Forms = attrs.field(default=None, converter=mined_forms, kw_only=True)
    unit_rows: int = attrs.field(default=1, validator=whole_number(), kw_only=True)
    relation: Relation = attrs.field(default=Relation.ADD_OR_REMOVE_ONE, converter=_relation, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse two budgets or none, parameters out of range, and parameters that the method does not use."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("synthetic-table needs a budget: give epsilon, or rho in a study with a delta")
        if self.order is not None and self.order not in (2, 3):
            raise InputError(f"order is {self.order}; 2 or 3 is needed")
        if self.max_cells > MOST_MAX_CELLS:
            raise InputError(f"max_cells is {self.max_cells:,}; at most {MOST_MAX_CELLS:,} is accepted")
        if self.singles_share is not None and not 0 < self.singles_share < 1:
            raise InputError(f"singles_share is {self.singles_share}; a number between 0 and 1 is needed")
        given = [name for name in ("rounds", "order", "singles_share") if getattr(self, name) is not None]
        if given and self.method in ("independent", "tree"):
            raise InputError(f"{given[0]} needs method = 'rounds' or 'adaptive'; method '{self.method}' ignores it")

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> SyntheticTable:
        """Return the miner that predicts noise for a study's unit and relation."""
        return attrs.evolve(self, unit_rows=unit.rows, relation=relation)

    def columns(self, schema: Schema) -> Schema:
        """Return the schema of the synthetic table, without a number of rows.

        Raises
        ------
        InputError
            If an attribute is open or named twice, or if none is left.
        """
        closed = [a.name for a in schema if not isinstance(a, Open)]
        names = closed if self.attributes is None else list(self.attributes)
        if len(set(names)) < max(len(names), 1):
            raise InputError("attributes is empty or names an attribute twice; name each attribute once")
        for name in names:
            if isinstance(schema[name], Open):
                raise InputError(f"attribute '{name}' is open: nobody lists its values; leave it out of attributes")
        return Schema([schema[name] for name in names])

    def facts(self, schema: Schema) -> ChoiceFacts:
        """Return the public facts by which method, rounds and shares are chosen.

        Raises
        ------
        InputError
            If there is nothing to count.
        """
        among = tuple(a for a in self.columns(schema) if a.size > 1)
        if not among:
            raise InputError("no attribute has two values or more; there is nothing to count")
        budget = TableBudget(self.epsilon or self.rho or Fraction(0), self.rho is not None)
        about = next((n for n in (schema.rows, schema.about_rows, schema.max_rows) if n is not None), None)
        # A plan without releases, with the unit and the relation that noise is predicted for.
        unit, public = PrivacyUnit(rows=self.unit_rows), PublicFacts.of(schema)
        plan = Plan(post("rows", []), self.relation, public, Budget(1), schema, unit=unit)
        return ChoiceFacts(among, budget, about, plan, schema.rows)

    def method_on(self, schema: Schema) -> TableMethod:
        """Return the method, with its parameters, for a schema.

        Raises
        ------
        InputError
            If the model has more cells than `max_cells`, or no pair has room in it.
        """
        facts = self.facts(schema)
        name = facts.method() if self.method == "auto" else self.method
        share = facts.share_before(name) if self.singles_share is None else self.singles_share
        rounds, order = self.rounds or facts.rounds(), self.order or facts.order()
        cells = facts.most_cells(rounds, share)
        of, limits = (facts.among, facts.budget), (schema.rows, schema.max_rows, schema.about_rows)
        back = facts.given_back() if name == "rounds" and self.rounds is None else 0
        found = TableMethod(name, *of, share, rounds, order, self.max_cells, cells, *limits, back)
        alone, sizes = sum(found.sizes), sorted(found.sizes)
        if alone > self.max_cells:
            raise InputError(
                f"all attributes together have {alone:,} values, more than max_cells = {self.max_cells:,}; "
                "raise max_cells, leave out attributes, or cut them into fewer values"
            )
        if self.method not in ("auto", "independent") and len(sizes) > 1 and not found.sets:
            raise InputError(
                f"with method '{self.method}', no marginal of two attributes fits into max_cells = {self.max_cells:,}, "
                f"since the smallest has {sizes[0] * sizes[1]:,} cells; raise max_cells, or take fewer rounds or "
                "method 'independent'"
            )
        return found

    def run_cost(self, part: PlannedPart) -> RunCost | None:
        """Return upper estimates of time and memory, from what is counted, fitted and drawn."""
        if part.schema is None:
            return None
        return cost_of(self.method_on(part.schema), part.size.largest, self.rows)

    def plan(self, schema: Schema) -> Node:
        """Plan the one-way marginals, then selections and measurements in turn."""
        nodes, columns = self.method_on(schema).plan(), self.columns(schema)
        for name, form in self.miners.items():
            study_on(columns, self.rows or 1, name, form)  # a miner that refuses the columns does so before the run
        mining = [post(f"{name} from rows", ["rows"]) for name in self.miners]
        return sequential(*nodes.values(), post("rows", list(nodes)), *mining)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return no attribute, since only codes are counted."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bounds of one-way marginals. For marginals that are not measured, no bound is known."""
        rest = ErrorBound("marginals that are not measured", None, "", note=_INFERRED, size=part.size)
        alone = [] if part.schema is None else self.facts(part.schema).alone.error_bounds(part)
        return [*alone, *part.bounds_of_others(alone), rest]

    def mine(self, table: PrivateTable) -> SyntheticRows:
        """Make the releases, fit the model, and draw rows from it."""
        method = self.method_on(table.schema)
        mined = method.mine(table)
        model, names = mined.model, [a.name for a in method.among]
        measured = [
            MeasuredMarginal([name], one.counts, one.variance, own)
            for name, one, own in zip(names, mined.alone, mined.potentials, strict=True)
        ]
        measured += [
            MeasuredMarginal([names[a] for a in one.of], one.counts, one.variance, own)
            for one, own in zip(model.measured[len(names) :], model.potentials[len(names) :], strict=True)
        ]
        merged = {name: mined.merging.groups[a].tolist() for a, name in enumerate(names) if mined.merging.merges(a)}
        number = self.rows or min(round(model.rows), MOST_ROWS)
        seed = int(table.public_random().integers(2**63))
        facts = self.columns(table.schema), method.name, measured, model.rows, number, seed, self.miners
        found = SyntheticRows(*facts, merged)
        for name in self.miners:
            found.finding(name)
        return found

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return an example of each method, of a public number of rows, and of a budget in zCDP."""
        ill, town = Boolean("ill"), Categorical("town", ["A", "B", "C"])
        schema = Schema([ill, town, Boolean("old", missing=True)], max_rows=9)
        wide = Schema([ill, Numeric("age", 0, 90, cuts=[20, 40, 60]), Boolean("old")], max_rows=9)
        counted, delta = attrs.evolve(schema, rows=6, max_rows=None), Fraction(1, 10**6)
        one, other = {"ill": "true", "town": "B", "old": "true"}, {"ill": "false", "town": "A", "old": "false"}
        aged = ({"ill": "true", "age": 30, "old": "true"}, {"ill": "false", "age": 10, "old": "false"})
        mining = {"towns": {"miner": "histogram", "attribute": "town"}}
        few = [Witness([], None, one), Witness([], one, other)]
        same = [Witness([(one, 5)], None, one), Witness([(one, 5)], one, other)]
        return {
            "rounds": Example(
                wide, cls(2, method="rounds", rounds=2), witnesses=[Witness([], None, aged[0]), Witness([], *aged)]
            ),
            "independent": Example(schema, cls(2, method="independent"), witnesses=few),
            "tree": Example(counted, cls(2, method="tree"), witnesses=same),
            "adaptive": Example(schema, cls(2, method="adaptive", rounds=2, miners=mining), witnesses=few),
            "rounds-zcdp": Example(
                schema, cls(rho=Fraction(1, 2), method="rounds", rounds=1), delta=delta, witnesses=few
            ),
        }
