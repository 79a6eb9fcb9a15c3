"""Run a plan that was added without a miner, by making every release in order.

An approval must hold for these releases and no others. The parameters of a miner are written into the plan, so that its
hash binds them; of releases without a miner, those of each query are, since two queries may claim the same.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dpframework.accountant import Accountant, AccountedPlan
from dpframework.facts.attributes import Attribute
from dpframework.facts.cuts import Cut
from dpframework.facts.descriptions import Cases
from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.exact_form import exact_form
from dpframework.plan.nodes import Either, FromRelease, Node, Parallel, Repeat, Sample, Sequential, Step, walk
from dpframework.plan.plan import Plan
from dpframework.run.private_table import PrivateTable
from dpframework.tables.engines import Engine

#: Public numbers of rows up to which a query may gather something of each: a few bytes, or a bit for each test.
MOST_GATHERED = 10**8
#: What stands for the miner of releases that have none.
PLANNED = "add_plan"


def require_no_choice(name: str, node: Node) -> None:
    """Refuse planned releases between which a miner would have to choose, or whose inputs it would have to make.

    Raises
    ------
    InputError
        If there is a branch, a step that is given a release, or a partition that is made from one.
    """
    reason = next(_choices(node), None)
    if reason is not None:
        raise InputError(
            f"step '{name}' was added as a plan without a miner, and {reason}; write a miner that does, and add that"
        )


def _choices(node: Node) -> Iterator[str]:
    for part in walk(node):
        if isinstance(part, Either):
            yield "something must choose one of its branches"
        elif isinstance(part, Step) and part.uses:
            yield f"something must give '{part.name}' the releases that it uses"
        elif isinstance(part, Parallel) and isinstance(part.by, FromRelease):
            yield f"something must make parts from {part.by}"


def require_engine(plan: Plan, engine: Engine) -> None:
    """Refuse an engine that cannot run a plan, before anything is read.

    Raises
    ------
    InputError
        If the plan samples and the engine draws no samples, or none of units with several rows; if a query gathers
        rows, and the engine lets counts out only or the table may have very many; or if the rows of a unit may lie in
        files that the engine reads apart.
    """
    unit, row_bound = plan.unit, plan.facts.row_bound
    if engine.reads_files and unit.id is not None:
        raise InputError(
            f"engine '{engine.name}' reads files apart, and the rows of one '{unit.id}' may lie in several of them; "
            "use another engine"
        )
    for step in plan.steps():
        if not step.query.gathers:
            continue
        gathering = f"step '{step.name}' gathers something of each row ({step.query.text})"
        if not engine.gathers:
            raise InputError(
                f"engine '{engine.name}' lets counts out only, and {gathering}; run it on one machine, with engine "
                "'mapped' where memory is short, or use other parameters or another miner"
            )
        if row_bound is not None and row_bound > MOST_GATHERED:
            raise InputError(
                f"{gathering}, and the schema's table may have more than the {MOST_GATHERED:,} rows that this is done "
                "for; use other parameters or another miner, or lower max_rows if the table has fewer rows"
            )
    kind, what = type(engine), "samples"
    draws = kind.sample is not Engine.sample
    if unit.groups_rows:
        draws, what = kind.sample_units is not Engine.sample_units, "samples of units"
    if not draws and plan.index.samples:
        raise InputError(f"engine '{engine.name}' draws no {what}, and the plan has one; use another engine")


def require_samples_anew(plan: AccountedPlan, budget: Accountant[Any]) -> None:
    """Refuse to resume a run of a plan with samples, unless its totals hold where they are drawn anew.

    Raises
    ------
    PlanRefused
        If the budget, or the plan's smallest total, is in a notion that counts on one sample.
    """
    for accountant in (budget, plan.accountant()):
        if plan.index.samples and not accountant.samples_anew:
            raise PlanRefused(
                f"this run cannot be resumed; a sample would be drawn anew, and its total in {accountant.name} "
                "accounting holds for releases from one sample"
            )


def released(node: Node, table: PrivateTable) -> Any:
    """Make every release of a planned node.

    Returns
    -------
    Any
        Of a step its release. Of a composition a dictionary: each release by the step's name, a named sequential's
        releases by that name, a partition's by its name (without one, "parts") and then by the label of each part.
        What is repeated is a list of as many.
    """
    asked = _Asked()
    found = _of_part(node, table, asked)
    asked.make()
    return _made(found)


def planned_form(node: Node) -> dict[str, Any]:
    """Return the form of releases without a miner, like a miner's, with their queries."""
    return {"miner": PLANNED, "parameters": {"queries": [held(n.query) for n in walk(node) if isinstance(n, Step)]}}


def held(value: Any) -> Any:
    """Return a value JSON-safe, by its class and all that it holds.

    Examples
    --------
    >>> from dpframework.facts.descriptions import Below, Not
    >>> held(Not(Below("age", 30)))
    {'class': 'Not', 'part': {'class': 'Below', 'attribute': 'age', 'threshold': '30.0'}}
    """
    return exact_form(value, _object)


def _object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return held(value.tolist())
    fields = (
        [a.name for a in attrs.fields(type(value))] if attrs.has(type(value)) else list(getattr(value, "__dict__", ()))
    )
    return {"class": type(value).__name__, **{name: held(getattr(value, name)) for name in fields}}


@attrs.define(eq=False)
class _Asked:
    """Releases that are made together, once something depends on their being made or all are known."""

    waiting: list[tuple[PrivateTable, str, Mapping[str, Any]]] = attrs.field(factory=list)
    found: list[Any] = attrs.field(factory=list)

    def ask(self, table: PrivateTable, step: str) -> int:
        """Ask for one more, and return its place in `found`."""
        self.waiting.append((table, step, {}))
        return len(self.found) + len(self.waiting) - 1

    def make(self) -> None:
        """Make those that wait."""
        waiting, self.waiting = self.waiting, []
        self.found += PrivateTable.release_many(waiting)


def _asked(node: Node, table: PrivateTable, asked: _Asked) -> dict[str, Any]:
    """Ask for the releases of a node, and return them by name, each as a function to call once it is made."""
    match node:
        case Step():
            return {node.name: functools.partial(asked.found.__getitem__, asked.ask(table, node.name))}
        case Sequential(name=None):
            return {key: value for part in node.parts for key, value in _asked(part, table, asked).items()}
        case Sequential(name=str(name)):
            scope = table.scope(name)
            return {name: {key: value for part in node.parts for key, value in _asked(part, scope, asked).items()}}
        case Repeat():
            times = [_asked(node.part, table, asked) for _ in range(node.times)]
            return {key: [found[key] for found in times] for key in times[0]}
        case Sample():
            asked.make()  # what is drawn first stays first
            return {node.name or "sample": _of_part(node.part, table.sampled(node.name), asked)}
        case Parallel(by=by) if by is not None and not isinstance(by, FromRelease):
            parts = table.partition(by, name=node.name)
            children = node.parts * len(parts) if len(node.parts) == 1 else node.parts
            found = [_of_part(child, part, asked) for child, part in zip(children, parts, strict=True)]
            return {node.name or "parts": dict(zip(_labels(by), found, strict=True))}
    return {}  # post-processing: nothing is released


def _of_part(node: Node, table: PrivateTable, asked: _Asked) -> Any:
    found = _asked(node, table, asked)
    return found[node.name] if isinstance(node, Step) else found


def _made(found: Any) -> Any:
    """Return releases that have been made, in the form in which they were asked for."""
    match found:
        case dict():
            return {key: _made(value) for key, value in found.items()}
        case list():
            return [_made(value) for value in found]
    return found()


def _labels(by: Cut) -> tuple[str, ...]:
    return by.labels if isinstance(by, Attribute | Cases) else tuple(map(str, by))
