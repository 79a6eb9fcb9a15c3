"""The run of a study: check and charge the plan, and then let every miner make its releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, final

import attrs

from dpframework.accountant import Accountant
from dpframework.facts.errors import DPFrameworkError, InputError, RunStopped, clear_locals, is_failure
from dpframework.mechanisms.randomness import Randomness, Samplers, SeededRandomness, SystemRandomness
from dpframework.plan.nodes import Sequential
from dpframework.run.gate import Gate
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.miner_chain import mine_part
from dpframework.run.observers import Observer, require_observers
from dpframework.run.private_table import PrivateTable
from dpframework.run.run_recorder_interface import Recorder
from dpframework.study.plan_runner_without_miner import release_all, require_no_choice, require_samples_anew
from dpframework.study.plugin_registry import registry
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.study.table_opener import open_table
from dpframework.study.table_or_table_source import Given
from dpframework.study.table_place import values_read
from dpframework.tables.coded_table import Table
from dpframework.tables.engine_base import Engine


@final
@attrs.frozen(eq=False)
class StudyRun:
    """A planned study that is ready to run, as `Study.prepare` returns it.

    You can inspect the plan, and then run it without planning the study again.

    Attributes
    ----------
    plan
        The plan that will be charged. `make` checks it.
    nodes
        The planned releases of each step of the study.
    miners
        The miners of the steps that have one.
    engine
        The engine that evaluates counts.
    """

    plan: StudyPlan
    nodes: Mapping[str, Sequential]
    miners: Mapping[str, Miner]
    engine: Engine

    def make(
        self,
        table: Given,
        *,
        seed: int | None = None,
        samplers: str = Samplers.ARRAYS,
        observers: Iterable[Observer] = (),
        accountant: Accountant[Any] | None = None,
        ledger: Recorder | None = None,
    ) -> Results:
        """Charge the plan, and let every miner make its releases (see `Study.run`).

        Raises
        ------
        PlanRefused, InputError, RunStopped
            As in `Study.run`.
        """
        try:
            return self._charge_and_make(table, seed, samplers, tuple(observers), accountant, ledger)
        except BaseException as error:
            if seed is None:
                clear_locals(error)
            raise

    def _charge_and_make(
        self,
        table: Given,
        seed: int | None,
        samplers: str,
        observers: tuple[Observer, ...],
        accountant: Accountant[Any] | None,
        ledger: Recorder | None,
    ) -> Results:
        """Check that the run may be made, and make it."""
        require_observers(observers)
        self.plan.require_checks()
        for name, node in self.nodes.items():
            if name not in self.miners:
                require_no_choice(name, node)
        chosen = Samplers.named(samplers)
        randomness: Randomness = SystemRandomness(chosen) if seed is None else SeededRandomness(seed)
        budget = accountant or self.plan.accountant()
        budget.require_fit(self.plan)
        if not isinstance(ledger, Recorder | None):
            raise InputError(f"the ledger is a {type(ledger).__name__}; give the output of Ledger.run")
        if ledger is None:
            return self._make(table, budget, randomness, observers, None)
        with ledger.recording(self.plan, randomness):
            if ledger.continues:
                require_samples_anew(self.plan, budget)
            return self._make(table, budget, randomness, observers, ledger)

    def _make(
        self,
        table: Given,
        budget: Accountant[Any],
        randomness: Randomness,
        observers: Iterable[Observer],
        ledger: Recorder | None,
    ) -> Results:
        """Read the table, charge the plan and run the miners."""
        plan, engine = self.plan, self.engine
        assert plan.schema is not None  # the plan of a study has a schema
        values = values_read(self.miners, self.nodes, plan.schema)
        loaded, period = open_table(plan, table, engine, randomness, ledger, values)
        run = budget.open(plan)
        told = (*registry().observers, *observers)
        gate = Gate(engine, randomness, told) if ledger is None else ledger.gate(engine, randomness, told)
        if ledger is not None and gate.recorder is None:
            raise InputError(f"the gate of {type(ledger).__name__} records no charge; give it a recorder")
        # The plan is charged before the engine gets the rows, since the rows may make the engine fail.
        if ledger is not None:
            ledger.open()
        rows = gate.load(loaded) if isinstance(loaded, Table) else loaded
        whole = PrivateTable(plan.schema, rows, run.scope(), gate)
        found: dict[str, Any] = {}

        def results(stop: DPFrameworkError | None) -> Results:
            """Return the results so far. `stop` is the error that ended the run early, or None."""
            return Results(
                dict(found),
                plan,
                gate.randomness.private and not plan.facts.inferred,
                budget.name,
                tuple(run.charges),
                run.spent,
                None if ledger is None else ledger.id,
                None if ledger is None else ledger.head,
                None if stop is None else str(stop),
                public_seed=f"{gate.public_seed:032x}" if gate.drew_publicly else None,
                period=None if period is None else period.name,
                samplers=gate.randomness.samplers,
                counting_summary=gate.counting_summary(),
            )

        try:
            try:
                self._run_miners(whole, gate, found)
            finally:
                # Results list the charges, so no release may be made after the results are collected.
                gate.end()
                gate.drop(rows)
        except DPFrameworkError as error:
            error.results = results(error)
            raise
        return results(None)

    def _run_miners(self, whole: PrivateTable, gate: Gate, found: dict[str, Any]) -> None:
        """Run the miners one after another, and add each result to `found`."""
        for name in self.nodes:
            miner, stopped = self.miners.get(name), None
            try:
                if miner is None:
                    result = release_all(self.nodes[name].parts[0], whole.scope(name))
                else:
                    result = mine_part(name, miner, whole, found)
            except DPFrameworkError:
                raise
            except BaseException as error:
                if not is_failure(error) and not isinstance(error, KeyboardInterrupt):
                    raise
                stopped, cause = _stop_error(name, miner, error), None if gate.randomness.private else error
            # Raised outside of the `except` block. Otherwise Python would attach the original error, which may quote
            # rows.
            if stopped is not None:
                raise stopped from cause
            # A miner may have caught the failure of a release. Its result could then reveal the failure.
            gate.require_well()
            found[name] = result


def _stop_error(name: str, miner: Miner | None, error: BaseException) -> RunStopped:
    """Return the error for a miner that failed unexpectedly. The failure's text is left out, as it may quote rows."""
    if isinstance(error, KeyboardInterrupt):
        return RunStopped(f"step '{name}': interrupted", interrupted=True)
    who = "its plan" if miner is None else f"miner '{miner.name}'"
    return RunStopped(
        f"step '{name}': {who} failed with {type(error).__name__}; to see where, run with a seed on data "
        "that is not private"
    )
