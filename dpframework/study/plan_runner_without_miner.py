"""Run a plan that was added to a study without a miner: make all of its releases, in order.

An approval is for a plan's hash, and must hold for exactly these releases. For a miner, the hash covers the miner's
parameters. For releases without a miner, the hash covers the fields of each query instead. Otherwise two queries that
make the same claim would have the same hash.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dpframework.accountant import Accountant, AccountedPlan
from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.hash_json_form import exact_form
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.plan.nodes import Either, FromRelease, Node, Parallel, Repeat, Sample, Sequential, Step, walk
from dpframework.plan.plan import Plan
from dpframework.plan.spend_block_node import Spend
from dpframework.tables.engine_base import Engine

if TYPE_CHECKING:
    from dpframework.run.private_table import PrivateTable

#: The largest public bound on the number of rows at which a query may gather data row by row. A query gathers a few
#: bytes for each row, or one bit for each test.
MOST_GATHERED = 10**8
#: What a plan holds in place of a miner's name, for releases without a miner.
PLANNED = "add_plan"


def require_no_choice(name: str, node: Node) -> None:
    """Refuse a plan that only a miner can run, since it leaves choices or inputs open.

    Raises
    ------
    InputError
        If the plan has branches, a step that uses a release, a partition made from a release, or a block.
    """
    for part in walk(node):
        if isinstance(part, Either):
            reason = "something must choose one of its branches"
        elif isinstance(part, Step) and part.uses:
            reason = f"something must give '{part.name}' the releases that it uses"
        elif isinstance(part, Parallel) and isinstance(part.by, FromRelease):
            reason = f"something must make parts from {part.by}"
        elif isinstance(part, Spend):
            reason = f"something must ask for the releases of block '{part.name}'"
        else:
            continue
        raise InputError(
            f"step '{name}' was added as a plan without a miner, and {reason}; write a miner that does this, and add it"
        )


def require_engine(plan: Plan, engine: Engine) -> None:
    """Refuse an engine that cannot run a plan, before anything is read.

    Raises
    ------
    InputError
        If the engine reads rows itself and does not bound the rows of a unit. If the engine does not support what a
        query needs: keys that are not listed, the first rows of each unit, data row by row, or an answer that no
        contingency table gives. If a query gathers data row by row, and the public bound on the number of rows is above
        `MOST_GATHERED`. If the plan samples rows or units, and the engine does not.
    """
    unit, row_bound = plan.unit, plan.facts.row_bound
    if engine.reads_itself and unit.id is not None and not engine.bounds_units:
        raise InputError(
            f"engine '{engine.name}' reads its rows itself, without a bound on the rows of one '{unit.id}'; use "
            "another engine"
        )
    for step in plan.steps():
        if step.facts.unlisted and not engine.gathers and type(engine).tally is Engine.tally:
            raise InputError(
                f"engine '{engine.name}' gives out counts of listed cells only, and step '{step.name}' asks for keys "
                "that are not listed; use another engine"
            )
        if step.facts.places and not engine.places_rows:
            raise InputError(
                f"engine '{engine.name}' does not know the position of each row in its unit, and step '{step.name}' "
                "reads the first rows of each unit; use engine 'memory', 'mapped', 'threads', 'duckdb' or 'postgres'"
            )
        if engine.groups and not (step.query.has_tables or step.query.gathers):
            raise InputError(
                f"engine '{engine.name}' counts cross tables only, and no cross table answers step '{step.name}' "
                f"({step.query.text}); run it on one machine, with engine 'memory' or 'mapped'"
            )
        if not step.query.gathers:
            continue
        gathering = f"step '{step.name}' gathers data of each row ({step.query.text})"
        if not engine.gathers:
            raise InputError(
                f"engine '{engine.name}' gives out counts only, and {gathering}; run it on one machine, with engine "
                "'mapped' where memory is short, or use other parameters or another miner"
            )
        if row_bound is not None and row_bound > MOST_GATHERED:
            raise InputError(
                f"{gathering}, and the schema's table may have more than the {MOST_GATHERED:,} rows up to which "
                "this is possible; use other parameters or another miner, or lower max_rows if the table has fewer rows"
            )
    kind, what = type(engine), "samples"
    draws = kind.sample is not Engine.sample
    if unit.groups_rows:
        draws, what = kind.sample_units is not Engine.sample_units, "samples of units"
    if not draws and plan.index.samples:
        raise InputError(f"engine '{engine.name}' draws no {what}, and the plan has one; use another engine")


def require_samples_anew(plan: AccountedPlan, budget: Accountant[Any]) -> None:
    """Refuse to resume a run with samples if its totals do not hold for a second sample.

    A resumed run draws its samples again.

    Raises
    ------
    PlanRefused
        If the plan has a sample, and the budget's accountant or the accountant with the plan's smallest total does not
        allow a second sample.
    """
    for accountant in (budget, plan.accountant()):
        if plan.index.samples and not accountant.samples_anew:
            raise PlanRefused(
                f"this run cannot be resumed; a sample would be drawn again, and the total in {accountant.name} "
                "accounting holds for releases from one sample"
            )


def release_all(node: Node, table: PrivateTable) -> Any:
    """Make every release of a planned node.

    Returns
    -------
    Any
        For a step its release, and for a composition a dictionary. The key of a release is the name of its step. A
        named sequential has its own dictionary under its name. A sample has one under its name or "sample". A partition
        has one under its name or "parts", with one entry for each part's label. In a repetition each name has a list of
        releases.
    """
    queue = _ReleaseQueue()
    found = _enqueue_part(node, table, queue)
    queue.release()
    return _collect(found)


def plan_form(node: Node) -> dict[str, Any]:
    """Return the JSON-safe form of releases without a miner: a miner's form, with queries in place of parameters."""
    return {
        "miner": PLANNED,
        "parameters": {"queries": [query_form(n.query) for n in walk(node) if isinstance(n, Step)]},
    }


def query_form(value: Any) -> Any:
    """Return the JSON-safe form of a query, or of a value in a query: the class and all fields.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions_of_rows import Below, Not
    >>> query_form(Not(Below("age", 30)))
    {'class': 'Not', 'part': {'class': 'Below', 'attribute': 'age', 'threshold': '30.0'}}
    """
    return exact_form(value, _object)


def _object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return query_form(value.tolist())
    fields = (
        [a.name for a in attrs.fields(type(value))] if attrs.has(type(value)) else list(getattr(value, "__dict__", ()))
    )
    return {"class": type(value).__name__, **{name: query_form(getattr(value, name)) for name in fields}}


@attrs.define(eq=False)
class _ReleaseQueue:
    """Releases that are collected in order to make them in one call."""

    waiting: list[tuple[PrivateTable, str, Mapping[str, Any]]] = attrs.field(factory=list)
    found: list[Any] = attrs.field(factory=list)

    def add(self, table: PrivateTable, step: str) -> int:
        """Add a release, and return the position of its output in `found`."""
        self.waiting.append((table, step, {}))
        return len(self.found) + len(self.waiting) - 1

    def release(self) -> None:
        """Make the collected releases."""
        waiting, self.waiting = self.waiting, []
        from dpframework.run.private_table import PrivateTable

        self.found += PrivateTable.release_many(waiting)


def _enqueue(node: Node, table: PrivateTable, queue: _ReleaseQueue) -> dict[str, Any]:
    """Add a node's releases to the queue. Return functions, by name, that return the outputs once they are made."""
    match node:
        case Step():
            return {node.name: functools.partial(queue.found.__getitem__, queue.add(table, node.name))}
        case Sequential(name=None):
            return {key: value for part in node.parts for key, value in _enqueue(part, table, queue).items()}
        case Sequential(name=str(name)):
            scope = table.scope(name)
            return {name: {key: value for part in node.parts for key, value in _enqueue(part, scope, queue).items()}}
        case Repeat():
            times = [_enqueue(node.part, table, queue) for _ in range(node.times)]
            return {key: [found[key] for found in times] for key in times[0]}
        case Sample():
            queue.release()  # so that earlier releases are drawn before the sample
            return {node.name or "sample": _enqueue_part(node.part, table.sampled(node.name), queue)}
        case Parallel(by=by) if by is not None and not isinstance(by, FromRelease):
            parts = table.partition(by, name=node.name)
            children = node.parts * len(parts) if len(node.parts) == 1 else node.parts
            found = [_enqueue_part(child, part, queue) for child, part in zip(children, parts, strict=True)]
            labels = by.labels if isinstance(by, Attribute | Cases) else tuple(map(str, by))
            return {node.name or "parts": dict(zip(labels, found, strict=True))}
    return {}  # post-processing: nothing is released


def _enqueue_part(node: Node, table: PrivateTable, queue: _ReleaseQueue) -> Any:
    found = _enqueue(node, table, queue)
    return found[node.name] if isinstance(node, Step) else found


def _collect(found: Any) -> Any:
    """Return what `_enqueue` returned, with each function replaced by the output that it returns."""
    match found:
        case dict():
            return {key: _collect(value) for key, value in found.items()}
        case list():
            return [_collect(value) for value in found]
    return found()
