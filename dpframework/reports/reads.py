"""Which attributes the releases of a plan may read, and what those that read an attribute cost together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.cuts import attributes_of
from dpframework.facts.privacy import PrivacyLoss
from dpframework.facts.schema import Schema
from dpframework.plan.graph import label_of
from dpframework.plan.nodes import (
    Either,
    FromRelease,
    Node,
    Parallel,
    Post,
    Repeat,
    Sample,
    Sequential,
    Step,
    walk,
)
from dpframework.plan.plan import Plan
from dpframework.queries.counts import Count
from dpframework.reports.losses import bound_of, share_of

#: The names of attributes; None if it may be any.
Reads: TypeAlias = "tuple[str, ...] | None"


def joined(*some: Reads) -> Reads:
    """Return the names of all of some attributes."""
    if None in some:
        return None
    return tuple(dict.fromkeys(name for names in some for name in names or ()))


def read_by(step: Step, schema: Schema | None) -> Reads:
    """Return what a step's own query may read, as the query declares it; None where it declares nothing."""
    facts = step.query.facts()
    return () if facts == Count().facts() else _known(facts.attributes, schema)


def cut_by(node: Parallel, schema: Schema | None) -> Reads:
    """Return what tells the rows of a parallel's parts from each other; None if it may be any."""
    if node.by is None:
        return None
    names = node.by.attributes if isinstance(node.by, FromRelease) else attributes_of(node.by)
    return _known(names, schema)


def _known(names: tuple[str, ...], schema: Schema | None) -> Reads:
    """Return names of attributes; None if there are none, or one that a schema does not have.

    An attribute that the miner derives may depend on any.
    """
    return names if names and (schema is None or all(name in schema for name in names)) else None


def reads_of_steps(plan: Plan) -> dict[int, Reads]:
    """Return what each step may read, by its identity.

    That is what its query may read, and what tells its rows from the others: the attributes that cut the table into
    the parts that it is released from. A cut that is made from a release may be by any, unless the plan names them.
    """
    found: dict[int, Reads] = {}

    def visit(node: Node, above: Reads) -> None:
        if isinstance(node, Step):
            found[id(node)] = joined(above, read_by(node, plan.schema))
        if isinstance(node, Parallel):
            above = joined(above, cut_by(node, plan.schema))
        for child in node.children:
            visit(child, above)

    visit(plan.root, ())
    return found


@final
@attrs.frozen
class AttributeLoss:
    """What the releases that may read some attributes cost together.

    Attributes
    ----------
    attributes
        The attributes, which the same releases read; empty if they are any others, of a schema that is not known.
    parts
        The parts of the study that have such releases.
    steps
        How many steps there are.
    loss
        What these steps cost at most, composed as the plan composes them; None without a valid claim.
    share
        The part of the whole plan's loss; None if one of the two is not known.
    """

    attributes: tuple[str, ...]
    parts: tuple[str, ...]
    steps: int
    loss: PrivacyLoss | None
    share: float | None


def losses_by_attribute(plan: AccountedPlan) -> list[AttributeLoss]:
    """Return what is spent on each attribute, those of the schema that nothing reads too; the dearest first."""
    reads = reads_of_steps(plan)
    named = tuple(dict.fromkeys(name for names in reads.values() for name in names or ()))
    names = named if plan.schema is None else plan.schema.names
    groups: dict[frozenset[int], list[str]] = {}
    for name in names:
        readers = frozenset(step for step, read in reads.items() if read is None or name in read)
        groups.setdefault(readers, []).append(name)
    others = frozenset(step for step, read in reads.items() if read is None)
    if plan.schema is None and others and others not in groups:
        groups[others] = []
    whole = bound_of(plan.root, plan)
    rows = [_row(tuple(group), readers, plan, whole) for readers, group in groups.items()]
    return sorted(rows, key=lambda row: -(row.share or 0.0))


def _row(
    names: tuple[str, ...], readers: frozenset[int], plan: AccountedPlan, whole: PrivacyLoss | None
) -> AttributeLoss:
    kept = _only(plan.root, readers)
    loss = PrivacyLoss(0) if kept is None else bound_of(kept, plan)
    return AttributeLoss(names, tuple(_parts_with(plan, readers)), len(readers), loss, share_of(loss, whole))


def _parts_with(plan: Plan, readers: frozenset[int]) -> Iterator[str]:
    for name, part in parts_of(plan):
        if any(id(node) in readers for node in walk(part)):
            yield name


def parts_of(plan: Plan) -> list[tuple[str, Node]]:
    """Return the parts of a study with their names: one a result."""
    root = plan.root
    parts = list(root.children) if isinstance(root, Sequential) and root.name is None else [root]
    return [(getattr(part, "name", None) or label_of(part), part) for part in parts]


def _only(node: Node, steps: frozenset[int]) -> Node | None:
    """Return a plan's node with some of its steps only, composed as they were; None if none is left.

    The steps stay the same objects: a plan knows their noise by identity.
    """
    if isinstance(node, Step):
        return node if id(node) in steps else None
    if isinstance(node, Post):
        return None
    kept = tuple(child for child in (_only(child, steps) for child in node.children) if child is not None)
    if not kept:
        return None
    if isinstance(node, Repeat | Sample):
        return attrs.evolve(node, part=kept[0])
    assert isinstance(node, Sequential | Parallel | Either)
    return attrs.evolve(node, parts=kept)
