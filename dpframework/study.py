"""A study: one table, one budget, one relation, several miners: plan, check, run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework import drawing
from dpframework.accountant import Accountant, Charge, accountants, totals
from dpframework.checks import Finding, Severity, findings
from dpframework.engines import Engine, InMemory
from dpframework.errors import DPFrameworkError, InputError, PlanRefused, RunStopped
from dpframework.mechanisms.base import Preview
from dpframework.miner import Miner
from dpframework.observers import Observer
from dpframework.plan.graph import plan_graph
from dpframework.plan.nodes import Node, sequential
from dpframework.plan.plan import Budget, Plan, PublicFacts
from dpframework.plan.reading import plan_from_json
from dpframework.preview import previews
from dpframework.privacy import Amount, PrivacyLoss, Relation
from dpframework.private_table import Gate, PrivateTable
from dpframework.randomness import Randomness, SeededRandomness, SystemRandomness
from dpframework.registry import registry
from dpframework.schema import Schema
from dpframework.table import Table, require_public_counts
from dpframework.version import __version__

if TYPE_CHECKING:
    from dpframework.ledger import LedgerRun


@final
@attrs.frozen(eq=False)
class StudyPlan(Plan):
    """A plan with what an auditor asks of it: totals, findings, previews, drawings.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Boolean("ill")])
    >>> study = dpf.Study(schema, epsilon=1)
    >>> half = dpf.mechanisms.DiscreteLaplace("0.5")
    >>> study.add_plan("ill", dpf.step("count", dpf.queries.Histogram(schema["ill"]), half))
    >>> print(study.plan().total())
    PrivacyLoss(epsilon=0.5)
    """

    def total(self) -> PrivacyLoss:
        """Return the smallest valid total.

        Raises
        ------
        PlanRefused
            If some step has no valid claim under the plan's relation; `check` says which.
        """
        known = self.totals()
        if not known:
            raise PlanRefused(f"the plan has no valid total under {self.relation}; check() says why")
        return next(iter(known.values()))

    def totals(self) -> dict[str, PrivacyLoss]:
        """Return the total in each notion of loss that has one, the smallest first."""
        return totals(self, self.budget.delta)

    def check(self) -> list[Finding]:
        """Return what the installed checks find, errors first."""
        return findings(self, registry().checks)

    def refusals(self) -> list[Finding]:
        """Return the findings that refuse the plan."""
        return [finding for finding in self.check() if finding.severity is Severity.ERROR]

    def previews(self) -> dict[str, Preview]:
        """Return the predicted error of each step, by its path."""
        return previews(self)

    def graph(self) -> Any:
        """Return the plan as a `networkx.DiGraph` (see `plan.graph.plan_graph`)."""
        return plan_graph(self)

    def tree(self) -> str:
        """Return the plan drawn as text."""
        return drawing.tree(self)

    def mermaid(self) -> str:
        """Return the plan drawn in Mermaid."""
        return drawing.mermaid(self)

    def dot(self) -> str:
        """Return the plan drawn in Graphviz's DOT."""
        return drawing.dot(self)

    @classmethod
    def from_json(cls, text: str, *, source: str = "plan") -> StudyPlan:
        """Read a plan that `to_json` wrote (see `plan_from_json`)."""
        mechanisms = [brought.thing for brought in registry().mechanisms.values()]
        return plan_from_json(text, mechanisms, source=source, kind=cls)


@final
@attrs.frozen(eq=False)
class Results(Mapping[str, Any]):
    """What a study found: one result a miner, by its name in the study, with what was charged.

    Attributes
    ----------
    plan
        The plan that was run.
    private
        Whether the plan's claim covers the results: False if the run was seeded, which is for experiments only, or
        if the schema was inferred from the data.
    accounting
        The notion of loss that the run was charged in.
    charges
        The releases made, in order.
    spent
        What they cost together.
    run
        The run's id in a ledger; None if it was not recorded in one.
    """

    found: Mapping[str, Any]
    plan: StudyPlan
    private: bool
    accounting: str
    charges: tuple[Charge, ...]
    spent: PrivacyLoss | None
    run: str | None = None

    def __getitem__(self, name: str) -> Any:
        """Return one miner's result."""
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.found)

    def __len__(self) -> int:
        """Return the number of miners."""
        return len(self.found)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        total = self.plan.total()
        return {
            "dpframework": __version__,
            "private": self.private,
            "plan": self.plan.hash,
            **({} if self.run is None else {"run": self.run}),
            "relation": self.plan.relation.value,
            "accounting": self.accounting,
            "budget": str(self.plan.budget.epsilon),
            "planned": None if total.epsilon is None else str(total.epsilon),
            "delta": str(total.delta),
            "spent": None if self.spent is None or self.spent.epsilon is None else str(self.spent.epsilon),
            "releases": len(self.charges),
            "results": {name: to_json_safe(result) for name, result in self.found.items()},
        }

    def to_json(self) -> str:
        """Write the results as JSON."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def to_json_safe(result: Any) -> Any:
    """Return a result as JSON-safe values: by its `to_dict`, its `tolist` (numpy), its items, or its text."""
    if hasattr(result, "to_dict"):
        return result.to_dict()
    if hasattr(result, "tolist"):
        return result.tolist()
    if isinstance(result, Mapping):
        return {str(key): to_json_safe(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return [to_json_safe(value) for value in result]
    return result if isinstance(result, str | int | float | bool | None) else str(result)


@final
class Study:
    """One budget, one relation, several miners on one table.

    Parameters
    ----------
    schema
        The public facts about the table.
    epsilon, delta
        The budget; with delta above 0 totals may be composed in concentrated loss or privacy loss distributions.
    relation
        "add-or-remove-one" or "replace-one".
    allow
        Assumptions accepted by name.

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
    ) -> None:
        if isinstance(allow, str):
            raise InputError(f"allow is one text, {allow!r}; give a list of assumptions")
        self.schema = schema
        self.relation = Relation.parse(relation)
        self.budget = Budget(epsilon, delta, allow)
        self._nodes: dict[str, Node] = {}
        self._miners: dict[str, Miner] = {}

    def add(self, name: str, miner: Miner) -> None:
        """Add a miner; its plan is made now, from the schema.

        Raises
        ------
        InputError
            If the name is taken, or the miner refuses the schema.
        """
        if not isinstance(miner, Miner):
            raise InputError(f"step '{name}': {miner!r} is not a miner; use dpf.miner(name, ...)")
        try:
            node = miner.plan(self.schema)
        except InputError as error:
            raise InputError(f"step '{name}': {error}") from None
        if not isinstance(node, Node):
            raise InputError(
                f"step '{name}': miner '{miner.name}' planned {type(node).__name__}, not a plan; "
                "return dpf.step(...) or a composition"
            )
        self.add_plan(name, node)
        self._miners[name] = miner

    def add_plan(self, name: str, node: Node) -> None:
        """Add planned releases without a miner: to total and check them, not to run.

        Raises
        ------
        InputError
            If the name is taken.
        """
        if name in self._nodes:
            raise InputError(f"step '{name}' is in the study twice; give each its own name")
        self._nodes[name] = sequential(node, name=name)

    @property
    def miners(self) -> Mapping[str, Miner]:
        """The miners added so far, by their names in the study."""
        return MappingProxyType(self._miners)

    def plan(self) -> StudyPlan:
        """Return the plan of the whole study: static, no data has been read.

        Raises
        ------
        InputError
            If the study has no step.
        """
        if not self._nodes:
            raise InputError("the study has no step; add a miner")
        root = sequential(*self._nodes.values())
        miners = {name: miner.to_dict() for name, miner in self._miners.items()}
        return StudyPlan(root, self.relation, PublicFacts.of(self.schema), self.budget, self.schema, miners=miners)

    def checked_plan(self) -> StudyPlan:
        """Return the plan, if its checks pass.

        Raises
        ------
        PlanRefused
            If a check refuses it; nothing has been read.
        """
        plan = self.plan()
        refused = plan.refusals()
        if refused:
            raise PlanRefused("; ".join(str(finding) for finding in refused))
        return plan

    def accountant(self, plan: StudyPlan) -> Accountant[Any]:
        """Return an accountant with the study's budget, of the notion of loss with the plan's smallest total."""
        smallest = next(iter(plan.totals()), None)
        for unlimited in accountants(plan, self.budget.delta):
            if unlimited.name == smallest:
                return type(unlimited)(self.relation, epsilon=self.budget.epsilon, delta=unlimited.delta)
        raise PlanRefused(f"the plan has no valid total under {self.relation}; check() says why")

    def run(
        self,
        table: Table | Callable[[], Table],
        *,
        seed: int | None = None,
        engine: Engine | None = None,
        observers: Iterable[Observer] = (),
        accountant: Accountant[Any] | None = None,
        ledger: LedgerRun | None = None,
    ) -> Results:
        """Check the plan, charge it, and let every miner make its releases.

        Parameters
        ----------
        table
            The data owner's table, or a function that reads it, called after the checks have passed.
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
            If the table is of another schema, or a step of the study has no miner.
        RunStopped
            If a miner fails unexpectedly, or the user interrupts. Whatever stops a run that has begun, the error's
            `results` holds what its finished miners found.
        """
        plan = self.checked_plan()
        planned_only = [name for name in self._nodes if name not in self._miners]
        if planned_only:
            raise InputError(f"step '{planned_only[0]}' was added as a plan without a miner; it cannot be run")
        randomness: Randomness = SystemRandomness() if seed is None else SeededRandomness(seed)
        engine = engine or InMemory()
        budget = accountant or self.accountant(plan)
        budget.require_fit(plan)
        if ledger is None:
            return self._made(plan, table, budget, engine, randomness, observers, None)
        with ledger.recording(plan, randomness):
            return self._made(plan, table, budget, engine, randomness, observers, ledger)

    def _made(
        self,
        plan: StudyPlan,
        table: Table | Callable[[], Table],
        budget: Accountant[Any],
        engine: Engine,
        randomness: Randomness,
        observers: Iterable[Observer],
        ledger: LedgerRun | None,
    ) -> Results:
        """Read the table and let every miner make its releases."""
        loaded = table() if callable(table) else table
        if not isinstance(loaded, Table):
            raise InputError(f"a study runs on a table (see dpf.read_table), not on {type(loaded).__name__}")
        plan.require_schema(loaded.schema)
        require_public_counts(self.schema, loaded.codes.shape[1], "the table")
        run = budget.open(plan)
        told = (*registry().observers, *observers)
        gate = Gate(engine, randomness, told) if ledger is None else ledger.gate(engine, randomness, told)
        whole = PrivateTable(self.schema, engine.load(loaded), run.scope(), gate)
        if ledger is not None:
            ledger.open()
        found: dict[str, Any] = {}

        def results() -> Results:
            private = randomness.private and not plan.facts.inferred
            recorded = None if ledger is None else ledger.id
            return Results(dict(found), plan, private, budget.name, tuple(run.charges), run.spent, recorded)

        for name, miner in self._miners.items():
            try:
                found[name] = miner.mine(whole.scope(name))
            except DPFrameworkError as error:
                error.results = results()
                raise
            except (Exception, KeyboardInterrupt) as error:
                stopped = _stopped(name, miner, error)
                stopped.results = results()
                raise stopped from (None if randomness.private else error)
        return results()


def _stopped(name: str, miner: Miner, error: BaseException) -> RunStopped:
    """Return the error of a miner that failed unexpectedly; its own text may quote anything, so it is not shown."""
    if isinstance(error, KeyboardInterrupt):
        return RunStopped(f"step '{name}': interrupted", interrupted=True)
    return RunStopped(
        f"step '{name}': miner '{miner.name}' failed with {type(error).__name__}; run with a seed on data that is not "
        "private to see where"
    )
