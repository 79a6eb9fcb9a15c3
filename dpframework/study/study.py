"""Studies: several miners that share one table, one budget and one neighbouring relation."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.accountant import Accountant
from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, Relation, decimal_text
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.plan.code_digests import PlannedCode
from dpframework.plan.nodes import Node, Sequential, sequential
from dpframework.plan.plan import DATA_FITS_SCHEMA, Budget, PublicFacts
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.miner_chain import plan_step, require_sources
from dpframework.run.observers import Observer
from dpframework.run.run_recorder_interface import Recorder
from dpframework.study.miner_from_parameters import Share
from dpframework.study.noise_search_for_budget_shares import Shares
from dpframework.study.notebook_views import study_html
from dpframework.study.plan_runner_without_miner import plan_form, require_engine
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.study.table_or_table_source import Given
from dpframework.tables.engine_base import Engine
from dpframework.tables.in_process_engines import InMemory

if TYPE_CHECKING:
    from dpframework.study.epsilon_for_accuracy import Accuracy
    from dpframework.study.results import Results
    from dpframework.study.study_run import StudyRun


@final
class Study:
    """Several miners on one table, with one budget and one neighbouring relation.

    Parameters
    ----------
    schema
        The public facts about the table.
    epsilon, delta
        The budget. With a delta above 0, totals in zCDP, Renyi divergence or privacy loss distributions are valid, too.
    relation
        "add-or-remove-one" or "replace-one".
    allow
        The names of the assumptions and risks that are accepted.
    out_of_domain
        What reading does with values outside the schema (see `read_table`), which is part of the plan. By default
        "clamp", or "error" if 'data-fits-schema' is allowed. If you read the table yourself, use the same value.
    unit
        The column of ids of the persons to protect. By default single rows. Read tables with `unit=study.unit`.
    rows_per_unit
        The largest number of rows of one unit. Above 1 without `unit`, the plan assumes 'rows-per-unit-asserted'.
    period, date
        For a study that protects a person in one period: "day", "week" or "month", and the column of dates. The plan
        holds for every period. Read the table of one period with `unit=study.unit.during("2026-03")`.

    Attributes
    ----------
    data
        The addresses of the table's files, which are part of the plan and its hash. `load_study` sets them.

    Raises
    ------
    InputError
        If a number, the relation or a name cannot be used.
    """

    @typechecked
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
        period: str | None = None,
        date: str | None = None,
    ) -> None:
        if isinstance(allow, str):
            raise InputError(f"allow is one text, {allow!r}; give a list of assumptions")
        self.schema = schema
        self.relation = Relation.parse(relation)
        self.budget = Budget(epsilon, delta, allow)
        stops = out_of_domain is None and DATA_FITS_SCHEMA in self.budget.allow
        self.out_of_domain = OutOfDomain.ERROR if stops else OutOfDomain.parse(out_of_domain or OutOfDomain.CLAMP)
        self.unit = PrivacyUnit(unit, rows_per_unit, period=period, date=date)
        self.unit.require_fits(schema)
        schema.in_files.read.require_columns([*schema.in_files.names, *filter(None, (unit, date))])
        self.data: tuple[str, ...] = ()
        self._nodes: dict[str, Sequential] = {}
        self._miners: dict[str, Miner] = {}
        self._shares: dict[str, Share] = {}
        self._total_share = Fraction(0)
        self._settled = True

    def add(self, name: str, miner: Miner | Share) -> None:
        """Add a miner, or a miner with a share of the budget (see `share`). The miner is planned at once.

        The budget parameters of miners with shares depend on all steps, so they are computed when the study is planned.

        Raises
        ------
        InputError
            If the name is taken, the miner cannot be added (the message says why), or shares add up to more than 1.
        """
        if isinstance(miner, Share):
            try:
                first = miner.spending(0, miner.share * self.budget.epsilon, self.budget.delta)
                together = self._total_share + miner.share
                if together > 1:
                    raise InputError(
                        f"the study's shares add up to {decimal_text(together)}; at most 1 can be shared, so lower "
                        "this share or another"
                    )
            except InputError as error:
                raise InputError(f"step '{name}': {error}") from None
            self._add(name, first)
            self._shares[name], self._total_share = miner, together
            return
        self._add(name, miner)

    def _add(self, name: str, miner: Miner) -> None:
        if not isinstance(miner, Miner):
            raise InputError(f"step '{name}': {miner!r} is not a miner; use dpf.miner(name, ...)")
        fitted = miner.for_study(self.unit, self.relation)
        require_sources(name, fitted, self._miners)
        self.add_plan(name, plan_step(name, fitted, self.schema))
        self._miners[name] = fitted

    @typechecked
    def add_plan(self, name: str, node: Node) -> None:
        """Add planned releases without a miner. A run makes all of them, in order.

        The result of a single step is its release. Otherwise the result is a dictionary of releases by their names (see
        `plan_runner_without_miner.release_all`).

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
        """The miners so far, by their names in the study. Miners with shares have their computed parameters."""
        self._settle()
        return MappingProxyType(self._miners)

    @typechecked
    def epsilon_for(self, step: str, *, within: Amount, rows: int | None = None) -> Fraction:
        """Return the smallest epsilon at which a result has the wanted accuracy. No data is read.

        For a step with an epsilon of its own, the step's epsilon is returned. For a step with a share, the study's
        epsilon is returned, with all shares unchanged.

        Parameters
        ----------
        step
            The name of a step with one error bound, or the path of one release (see `StudyPlan.error_bounds`).
        within
            The error that is not exceeded with a probability of 95 %. A number is in the unit of the result: rows for
            counts and quantiles, the attribute's unit for sums and means. A text such as "2 %" is a share of the number
            of rows, of the range of a mean, or of the largest sum.
        rows
            The approximate number of rows, which becomes public; by default the schema's.

        Raises
        ------
        InputError
            If there is no such result, no epsilon makes it accurate enough, or `rows` is needed and not given.

        Examples
        --------
        >>> import dpframework as dpf
        >>> schema = dpf.Schema([dpf.Boolean("ill")])
        >>> study = dpf.Study(schema, epsilon=1)
        >>> study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
        >>> float(study.epsilon_for("ill", within="2 %", rows=1000))
        0.146004
        """
        return self.accuracy(step, within=within, rows=rows).epsilon

    @typechecked
    def accuracy(self, step: str, *, within: Amount, rows: int | None = None) -> Accuracy:
        """Return the epsilon that `epsilon_for` finds, with the error bound at that epsilon.

        Raises
        ------
        InputError
            As in `epsilon_for`.
        """
        from dpframework.study.epsilon_for_accuracy import accuracy_for

        return accuracy_for(self, self._miners, step, within, rows)

    @typechecked
    def with_epsilon(self, epsilon: Amount) -> Study:
        """Return a study with another epsilon and the same steps."""
        made = self._copy()
        made.budget = attrs.evolve(self.budget, epsilon=epsilon)
        return made

    @typechecked
    def with_rows(self, rows: int) -> Study:
        """Return a study of tables with this public number of rows. Its miners are planned for such a table."""
        made = self._copy()
        made.schema = attrs.evolve(self.schema, rows=rows)
        for name, miner in made._miners.items():
            made._nodes[name] = sequential(plan_step(name, miner, made.schema), name=name)
        return made

    def _copy(self) -> Study:
        """Return a copy whose steps can be changed, and whose miners with shares get their parameters anew."""
        made = copy.copy(self)
        made._nodes, made._miners, made._shares = dict(self._nodes), dict(self._miners), dict(self._shares)
        made._settled = False
        return made

    def _repr_html_(self) -> str:
        return study_html(self, self._nodes, self._miners, self._shares)

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the loss of each planned release (see `StudyPlan.plot`)."""
        return self.plan().plot(ax)

    def _settle(self) -> None:
        """Compute the parameters of the miners with shares, if steps or the budget have changed since the last time."""
        if self._shares and not self._settled:
            for name, (miner, node) in self.shares().found().items():
                self._miners[name], self._nodes[name] = miner.for_study(self.unit, self.relation), node
        self._settled = True

    def shares(self) -> Shares:
        """Return the steps with shares, as an object that computes the parameters of their miners."""
        others = [node for name, node in self._nodes.items() if name not in self._shares]
        return Shares(
            dict(self._shares),
            self.budget,
            others,
            lambda name, miner: sequential(
                plan_step(name, miner.for_study(self.unit, self.relation), self.schema), name=name
            ),
            lambda nodes: self._plan_of(sequential(*nodes)),
        )

    def _plan_of(self, root: Node, **more: Any) -> StudyPlan:
        more |= {"out_of_domain": self.out_of_domain, "unit": self.unit, "data": self.data}
        return StudyPlan(root, self.relation, PublicFacts.of(self.schema), self.budget, self.schema, **more)

    @typechecked
    def plan(self, engine: Engine | None = None) -> StudyPlan:
        """Return the plan of the whole study. No data is read.

        Parameters
        ----------
        engine
            The engine that will evaluate counts, whose code is part of the plan. By default this process, in memory.

        Raises
        ------
        InputError
            If the study has no step, if no parameters fit the shares, or if the engine cannot run the plan.
        """
        if not self._nodes:
            raise InputError("the study has no step; add a miner")
        self._settle()
        miners = {
            name: self._miners[name].to_dict() if name in self._miners else plan_form(node)
            for name, node in self._nodes.items()
        }
        counted_by = engine or InMemory()
        used: list[tuple[str, str, type]] = [("engine", counted_by.name, type(counted_by))]
        used += [("miner", miner.name, type(miner)) for miner in self._miners.values()]
        root = sequential(*self._nodes.values())
        code = PlannedCode(root, used)
        plan = self._plan_of(root, miners=miners, code=code, engine=counted_by.address, makers=dict(self._miners))
        require_engine(plan, counted_by)
        return plan

    @typechecked
    def checked_plan(self, engine: Engine | None = None) -> StudyPlan:
        """Return the plan of the whole study, if all checks accept it. No data is read.

        Raises
        ------
        PlanRefused
            If a check refuses the plan.
        """
        plan = self.plan(engine)
        plan.require_checks()
        return plan

    @typechecked
    def prepare(self, engine: Engine | None = None) -> StudyRun:
        """Return the study, planned and ready to run. You can inspect the plan, and then run exactly this plan.

        Parameters
        ----------
        engine
            The engine that will evaluate counts. By default this process does so, in memory.

        Raises
        ------
        InputError
            As in `plan`.

        Examples
        --------
        >>> import dpframework as dpf
        >>> schema = dpf.Schema([dpf.Boolean("ill")])
        >>> study = dpf.Study(schema, epsilon=1000)
        >>> study.add_plan("ill", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1000)))
        >>> ready = study.prepare()
        >>> print(ready.plan.total())
        PrivacyLoss(epsilon=1000.0)
        >>> int(ready.make(dpf.Table.from_codes(schema, [[0, 1, 1]]), seed=1)["ill"])
        3
        """
        counted_by = engine or InMemory()
        from dpframework.study.study_run import StudyRun  # imported here, since planning needs no such code

        return StudyRun(self.plan(counted_by), dict(self._nodes), dict(self._miners), counted_by)

    @typechecked
    def run(
        self,
        table: Given,
        *,
        seed: int | None = None,
        samplers: str = "arrays",
        engine: Engine | None = None,
        observers: Iterable[Observer] = (),
        accountant: Accountant[Any] | None = None,
        ledger: Recorder | None = None,
    ) -> Results:
        """Check the plan, charge it, and let every miner make its releases.

        Parameters
        ----------
        table
            The private data: a table, files (`TableFiles`), a table in a database (`DatabaseTable`), or a function that
            returns one of these. The function is called, and files are opened, after the checks have accepted the plan.
        seed
            The seed of a reproducible run, for experiments only: the results say that they are not private.
        samplers
            The samplers, which turn random bits into noise and choices. "arrays" are dpframework's own, which draw many
            numbers at once. "opendp" are those of the package opendp. Both draw exactly. Results name the samplers.
        engine
            The engine that evaluates counts. By default this process does so, in memory.
        observers
            Objects that are told of every charge and release, in addition to the observers of plugins.
        accountant
            An accountant whose budget several studies of the same people share. By default the study's own budget.
        ledger
            The output of `Ledger.run`, and nothing else. The whole plan is charged to it before the first release.

        Raises
        ------
        PlanRefused
            If a check refuses the plan, if it does not fit the accountant's budget, or if the ledger has no approval or
            too little budget for it. Nothing is spent. The table may have been read if the ledger changed meanwhile.
        InputError
            If the table cannot be read or has another schema, if a step without a miner leaves choices open, if there
            are no such samplers, or if a query or a mechanism fails.
        RunStopped
            If a miner fails unexpectedly, or the user interrupts the run. An error that stops a run after its start has
            an attribute `results`, with the results of the miners that had finished.
        """
        return self.prepare(engine).make(
            table, seed=seed, samplers=samplers, observers=observers, accountant=accountant, ledger=ledger
        )
