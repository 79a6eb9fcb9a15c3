"""A study: one table, one budget, one relation, several miners: plan, check, run."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, final

import attrs

from dpframework.accountant import Accountant
from dpframework.facts.errors import DPFrameworkError, InputError, PlanRefused
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.privacy import Amount, Relation, decimal_text
from dpframework.facts.schema import Schema
from dpframework.facts.unit import PrivacyUnit
from dpframework.mechanisms.randomness import Randomness, SeededRandomness, SystemRandomness
from dpframework.plan.code import PlannedCode
from dpframework.plan.nodes import Node, Sequential, sequential
from dpframework.plan.plan import DATA_FITS_SCHEMA, Budget, PublicFacts
from dpframework.run.gate import Gate
from dpframework.run.miner import Miner
from dpframework.run.observers import Observer
from dpframework.run.private_table import PrivateTable
from dpframework.run.recording import Recorder
from dpframework.study.accuracy import epsilon_for
from dpframework.study.data import values_read
from dpframework.study.making import Share
from dpframework.study.opening import Given, opened
from dpframework.study.registry import registry
from dpframework.study.releasing import planned_form, released, require_engine, require_no_choice, require_samples_anew
from dpframework.study.results import Results
from dpframework.study.shares import Shares
from dpframework.study.stopping import stopped
from dpframework.study.study_plan import StudyPlan
from dpframework.tables.engines import Engine, InMemory
from dpframework.tables.table import Table


@final
class Study:
    """One budget, one relation, several miners on one table.

    Parameters
    ----------
    schema
        The public facts about the table.
    epsilon, delta
        The budget; with delta above 0 totals may be composed in zCDP or in privacy loss distributions.
    relation
        "add-or-remove-one" or "replace-one".
    allow
        Assumptions accepted by name.
    out_of_domain
        How a run reads its table (see `read_table`). By default "clamp", or "error" if 'data-fits-schema' is allowed.
        It is part of the plan. A study file's table is read so; a table that you read yourself should be.
    unit
        The column that names whom the study protects, by default one row; read the table with `unit=study.unit`.
    rows_per_unit
        The most rows of one unit. Without `unit` that is the assumption 'rows-per-unit-asserted'.

    Raises
    ------
    InputError
        If a number, the relation or a name cannot be used.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        epsilon: Amount,
        relation: Relation | str = Relation.ADD_OR_REMOVE_ONE,
        delta: Amount = 0,
        allow: Iterable[str] = (),
        out_of_domain: OutOfDomain | str | None = None,
        unit: str | None = None,
        rows_per_unit: int = 1,
    ) -> None:
        if isinstance(allow, str):
            raise InputError(f"allow is one text, {allow!r}; give a list of assumptions")
        self.schema = schema
        self.relation = Relation.parse(relation)
        self.budget = Budget(epsilon, delta, allow)
        stops = out_of_domain is None and DATA_FITS_SCHEMA in self.budget.allow
        self.out_of_domain = OutOfDomain.ERROR if stops else OutOfDomain.parse(out_of_domain or OutOfDomain.CLAMP)
        self.unit = PrivacyUnit(unit, rows_per_unit)
        self.unit.require_no_attribute(schema)
        self._nodes: dict[str, Sequential] = {}
        self._miners: dict[str, Miner] = {}
        self._shares: dict[str, Share] = {}
        self._settled = True

    def add(self, name: str, miner: Miner | Share) -> None:
        """Add a miner, or one that has a share of the budget (see `share`); it is planned now, from the schema.

        The parameters of shares are found when the study is planned, since they depend on all its steps.

        Raises
        ------
        InputError
            If the name is taken, the miner refuses the schema, or the shares of the study add up to more than 1.
        """
        if isinstance(miner, Share):
            try:
                first = miner.spending(0, miner.share * self.budget.epsilon, self.budget.delta)
                together = sum((share.share for share in self._shares.values()), miner.share)
                if together > 1:
                    raise InputError(f"the study's shares add up to {decimal_text(together)}; at most 1 can be shared")
            except InputError as error:
                raise InputError(f"step '{name}': {error}") from None
            self._add(name, first)
            self._shares[name] = miner
            return
        self._add(name, miner)

    def _add(self, name: str, miner: Miner) -> None:
        if not isinstance(miner, Miner):
            raise InputError(f"step '{name}': {miner!r} is not a miner; use dpf.miner(name, ...)")
        node = self._planned(name, miner)
        self.add_plan(name, node)
        self._miners[name] = miner

    def _planned(self, name: str, miner: Miner) -> Node:
        try:
            node = miner.plan(self.schema)
        except InputError as error:
            raise InputError(f"step '{name}': {error}") from None
        if not isinstance(node, Node):
            raise InputError(
                f"step '{name}': miner '{miner.name}' planned {type(node).__name__}, not a plan; "
                "return dpf.step(...) or a composition"
            )
        return node

    def add_plan(self, name: str, node: Node) -> None:
        """Add planned releases without a miner: a run makes them all, in order.

        The result is the release of a single step, else a dictionary of releases by their names (see
        `releasing.released`).

        Raises
        ------
        InputError
            If the name is taken.

        Examples
        --------
        >>> import dpframework as dpf
        >>> schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("smokes")])
        >>> ill = dpf.step("ill", dpf.queries.Histogram(schema["ill"]), dpf.mechanisms.DiscreteLaplace(1000))
        >>> study = dpf.Study(schema, epsilon=1000)
        >>> study.add_plan("by smoking", dpf.parallel(ill, by=schema["smokes"], name="smokers"))
        >>> table = dpf.Table.from_codes(schema, [[0, 1, 1], [0, 0, 1]])
        >>> study.run(table, seed=1)["by smoking"]
        {'smokers': {'false': array([1, 1]), 'true': array([0, 1])}}
        """
        if name in self._nodes:
            raise InputError(f"step '{name}' is in the study twice; give each its own name")
        self._nodes[name] = sequential(node, name=name)
        self._settled = False

    @property
    def miners(self) -> Mapping[str, Miner]:
        """The miners added so far, by their names in the study; shares with the parameters that were found."""
        self._settle()
        return MappingProxyType(self._miners)

    def epsilon_for(self, step: str, *, within: Amount, rows: int | None = None) -> Fraction:
        """Return the smallest epsilon that makes a release as accurate as asked for; no data is read.

        Of a step that has an epsilon it is the step's. Of one that has a share it is the study's budget, with all its
        shares as they are.

        Parameters
        ----------
        step
            A step that makes one release, or such a release by its path (see `StudyPlan.previews`).
        within
            The error that the release exceeds with a probability of 5 %: a number in units of its answer, or a
            percentage of the rows, as a text: "2 %".
        rows
            About how many rows there are, for a percentage; by default the schema's public number. It is public.

        Raises
        ------
        InputError
            If there is no such release, or no epsilon makes it that accurate.

        Examples
        --------
        >>> import dpframework as dpf
        >>> schema = dpf.Schema([dpf.Boolean("ill")])
        >>> study = dpf.Study(schema, epsilon=1)
        >>> study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
        >>> float(study.epsilon_for("ill", within="2 %", rows=1000))
        0.146004
        """
        return epsilon_for(self, self._miners, step, within, rows)

    def with_epsilon(self, epsilon: Amount) -> Study:
        """Return a study with another budget and the same steps."""
        made = copy.copy(self)
        made.budget, made._settled = attrs.evolve(self.budget, epsilon=epsilon), False
        made._nodes, made._miners, made._shares = dict(self._nodes), dict(self._miners), dict(self._shares)
        return made

    def _settle(self) -> None:
        """Find the parameters of the miners that have shares, once for the steps that there are."""
        if self._shares and not self._settled:
            for name, (miner, node) in self.shares().found().items():
                self._miners[name], self._nodes[name] = miner, node
        self._settled = True

    def shares(self) -> Shares:
        """Return the steps that have shares, and how their parameters are found."""
        others = [node for name, node in self._nodes.items() if name not in self._shares]
        return Shares(
            dict(self._shares),
            self.budget,
            others,
            lambda name, miner: sequential(self._planned(name, miner), name=name),
            lambda nodes: self._plan_of(sequential(*nodes)),
        )

    def _plan_of(self, root: Node, **more: Any) -> StudyPlan:
        more |= {"out_of_domain": self.out_of_domain, "unit": self.unit}
        return StudyPlan(root, self.relation, PublicFacts.of(self.schema), self.budget, self.schema, **more)

    def plan(self, engine: Engine | None = None) -> StudyPlan:
        """Return the plan of the whole study: static, no data has been read.

        Parameters
        ----------
        engine
            Where counts will be evaluated, by default in this process's memory: its code is part of the plan.

        Raises
        ------
        InputError
            If the study has no step.
        """
        if not self._nodes:
            raise InputError("the study has no step; add a miner")
        self._settle()
        miners = {
            name: self._miners[name].to_dict() if name in self._miners else planned_form(node)
            for name, node in self._nodes.items()
        }
        counted_by = engine or InMemory()
        used: list[tuple[str, str, type]] = [("engine", counted_by.name, type(counted_by))]
        used += [("miner", miner.name, type(miner)) for miner in self._miners.values()]
        root = sequential(*self._nodes.values())
        require_engine(root, counted_by, self.unit, self.schema)
        return self._plan_of(root, miners=miners, code=PlannedCode(root, used))

    def checked_plan(self, engine: Engine | None = None) -> StudyPlan:
        """Return the plan, if its checks pass.

        Raises
        ------
        PlanRefused
            If a check refuses it; nothing has been read.
        """
        plan = self.plan(engine)
        refused = plan.refusals()
        if refused:
            raise PlanRefused("; ".join(str(finding) for finding in refused))
        return plan

    def accountant(self, plan: StudyPlan) -> Accountant[Any]:
        """Return an accountant with the study's budget, of the notion of loss with the plan's smallest total."""
        return plan.accountant()

    def run(
        self,
        table: Given,
        *,
        seed: int | None = None,
        engine: Engine | None = None,
        observers: Iterable[Observer] = (),
        accountant: Accountant[Any] | None = None,
        ledger: Recorder | None = None,
    ) -> Results:
        """Check the plan, charge it, and let every miner make its releases.

        Parameters
        ----------
        table
            The data owner's table, or its files (`TableFiles`), or a function that returns one of the two; it is
            called, and files are opened, after the checks have passed.
        seed
            For experiments only: draws are reproducible and the results say that they are not private.
        engine
            Where counts are evaluated; by default in this process's memory.
        observers
            Told of every charge and release, besides those of plugins.
        accountant
            A budget shared with other studies of the same people; by default the study's own.
        ledger
            Where the run is recorded, as `Ledger.run` returns it: its whole plan is charged before the first release.

        Raises
        ------
        PlanRefused
            If a check refuses the plan, or it does not fit the accountant's budget, or the ledger has no approval or
            no room for it; nothing is read or spent.
        InputError
            If the table is of another schema, or a step was added as a plan that leaves a choice to a miner.
        RunStopped
            If a miner fails unexpectedly, or the user interrupts. Whatever stops a run that has begun, the error's
            `results` holds what its finished miners found.
        """
        plan = self.checked_plan(engine)
        for name, node in self._nodes.items():
            if name not in self._miners:
                require_no_choice(name, node)
        randomness: Randomness = SystemRandomness() if seed is None else SeededRandomness(seed)
        engine = engine or InMemory()
        budget = accountant or plan.accountant()
        budget.require_fit(plan)
        if ledger is None:
            return self._made(plan, table, budget, engine, randomness, observers, None)
        with ledger.recording(plan, randomness):
            if ledger.continues:
                require_samples_anew(plan, budget)
            return self._made(plan, table, budget, engine, randomness, observers, ledger)

    def _made(
        self,
        plan: StudyPlan,
        table: Given,
        budget: Accountant[Any],
        engine: Engine,
        randomness: Randomness,
        observers: Iterable[Observer],
        ledger: Recorder | None,
    ) -> Results:
        """Read the table and let every miner make its releases."""
        values = values_read(self._miners, self._nodes, self.schema)
        loaded = opened(plan, table, engine, randomness, ledger, values)
        run = budget.open(plan)
        told = (*registry().observers, *observers)
        gate = Gate(engine, randomness, told) if ledger is None else ledger.gate(engine, randomness, told)
        if ledger is not None:
            ledger.open()  # first: an engine that fails may fail because of the rows
        rows = gate.load(loaded) if isinstance(loaded, Table) else loaded
        whole = PrivateTable(self.schema, rows, run.scope(), gate)
        found: dict[str, Any] = {}

        def results(stop: DPFrameworkError | None = None) -> Results:
            private = randomness.private and not plan.facts.inferred
            recorded, head = (None, None) if ledger is None else (ledger.id, ledger.head)
            why = None if stop is None else str(stop)
            return Results(dict(found), plan, private, budget.name, tuple(run.charges), run.spent, recorded, head, why)

        try:
            for name, node in self._nodes.items():
                miner = self._miners.get(name)
                try:
                    own = whole.scope(name)
                    found[name] = released(node.parts[0], own) if miner is None else miner.mine(own)
                except DPFrameworkError as error:
                    error.results = results(error)
                    raise
                except (Exception, KeyboardInterrupt) as error:
                    ended = stopped(name, miner, error)
                    ended.results = results(ended)
                    raise ended from (None if randomness.private else error)
        finally:
            engine.drop(rows)
        return results()
