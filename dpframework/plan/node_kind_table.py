"""The table of the kinds of nodes, with what totals, checks, drawings, reports and plan files must know of each kind.

To add a kind, write its class in `plan.nodes` and add its row to this table. Register its run-time state in
`run.node_states`, and write in `study.plan_runner_without_miner` how it is released without a miner. All other code
reads this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.privacy_losses import PrivacyLoss, Relation, decimal_text
from dpframework.mechanisms.base import Calibration, Mechanism
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
    either,
    parallel,
    repeat,
    sample,
    sequential,
)
from dpframework.plan.spend_block_node import Spend, amount_of, most_of
from dpframework.plan.step_block_and_cut_json import read_cut, read_spend, read_step, write_cut, write_spend, write_step

if TYPE_CHECKING:
    from dpframework.plan.plan import Plan


class Composition(Protocol):
    """The rules by which the privacy costs of a plan's nodes compose."""

    def release(self, calibration: Calibration | None) -> Any:
        """Return the cost of one release."""

    def sequential(self, parts: Sequence[Any]) -> Any:
        """Compose releases from the same rows."""

    def either(self, parts: Sequence[Any]) -> Any:
        """Bound the cost of a choice between branches, whichever of them runs."""

    def repeat(self, part: Any, times: int) -> Any:
        """Compose the same part several times."""

    def over_parts(self, parts: Sequence[Any], plan: Plan) -> Any:
        """Compose releases from disjoint rows, for the plan's privacy unit."""

    def over_sample(self, part: Any, rate: Fraction, plan: Plan) -> Any:
        """Compose releases from a sample."""


class Accounting(Protocol):
    """The part of an accountant that a run needs to report its spent budget."""

    def loss_of_releases(self, compose: Callable[[Composition], Any], plan: Plan) -> PrivacyLoss | None:
        """Return the loss of some of a plan's releases. `compose` is given the rules by which to combine them."""

    def total(self, plan: Plan) -> PrivacyLoss | None:
        """Return an upper bound on a plan's cost, or None without a valid claim."""


def _under_each(rule: str | Mapping[Relation, str]) -> Mapping[Relation, str]:
    return MappingProxyType(dict.fromkeys(Relation, rule) if isinstance(rule, str) else dict(rule))


@final
@attrs.frozen(kw_only=True)
class NodeKind:
    """One kind of node.

    Attributes
    ----------
    name
        The name of the kind in plan files, drawings and reports, such as "step" or "sequential".
    label
        The function that describes a node in a few words.
    rule
        For each relation, a phrase that says how losses compose.
    icon
        The symbol of the kind on an HTML page, as SVG shapes in a box of 16 by 16.
    compose
        The function that returns the cost of a node, from the costs of its parts.
    write
        The function that returns a node's JSON form without its kind. It is given the node, the JSON forms of its
        parts, its calibration, and the largest number of rows of a unit.
    read
        The function that returns the node for a form that `write` wrote. It is given the form, the node's parts, and
        the known mechanisms by name.
    facts
        The function that returns what a node declares in addition to its name and parts. Two plans are compared by
        these facts.
    uses
        The function that returns the names of the releases that a node uses, or from which its parts are made.
    times
        The function that says how often the part at a position may be released each time the node is released. An empty
        text means once.
    several
        The function that tells whether one part of a node stands for several equal parts.
    scope
        Whether every node of this kind opens a scope.
    rows
        The name of the scopes of the node's parts, if these parts read other rows than the node itself, such as a
        sample. Empty for any other kind.
    leaf
        Whether a node has no parts.
    free
        Whether a node costs nothing.
    form
        The JSON Schema of a node's form; None if plan.schema.json defines it under the kind's name.
    """

    name: str
    label: Callable[[Any], str]
    rule: Mapping[Relation, str] = attrs.field(converter=_under_each)
    icon: str
    compose: Callable[[Any, list[Any], Composition, Plan], Any]
    write: Callable[[Any, list[dict[str, Any]], Calibration | None, int], dict[str, Any]]
    read: Callable[[Mapping[str, Any], list[Node], Mapping[str, type[Mechanism]]], Node]
    facts: Callable[[Any], Mapping[str, Any]] = lambda node: {}
    uses: Callable[[Any], tuple[str, ...]] = lambda node: ()
    times: Callable[[Any, int], str] = lambda node, position: ""
    several: Callable[[Any], bool] = lambda node: False
    scope: bool = False
    rows: str = ""
    leaf: bool = False
    free: bool = False
    form: Mapping[str, Any] | None = None


def kind_of(node: Node) -> NodeKind:
    """Return the kind of a node.

    Raises
    ------
    InputError
        If the table has no row for its class.
    """
    found = KINDS.get(type(node))
    if found is None:
        raise InputError(f"a plan holds no {type(node).__name__}")
    return found


def label_of(node: Node) -> str:
    """Describe a node in a few words."""
    return kind_of(node).label(node)


def name_of(node: Node) -> str:
    """Return a node's name, empty if it has none."""
    return getattr(node, "name", None) or ""


def write_node(node: Node, calibration: Callable[[Step | Spend], Calibration | None], rows: int) -> dict[str, Any]:
    """Return the JSON form of a node and of all nodes below it.

    Parameters
    ----------
    node
        The node to write.
    calibration
        The function that returns the noise of a step, or the losses of a block.
    rows
        The largest number of rows of a privacy unit.
    """
    kind, noise = kind_of(node), calibration(node) if isinstance(node, Step | Spend) else None
    parts = [write_node(part, calibration, rows) for part in node.children]
    return {"kind": kind.name, **kind.write(node, parts, noise, rows)}


def read_node(form: Mapping[str, Any], mechanisms: Mapping[str, type[Mechanism]]) -> Node:
    """Return the node for a JSON form that `write_node` wrote.

    Raises
    ------
    InputError
        If the form names an unknown kind of node or an unknown mechanism.
    """
    named = {kind.name: kind for kind in KINDS.values()}
    if form["kind"] not in named:
        raise InputError(f"a plan has no part of kind {form['kind']!r}")
    parts = [form["part"]] if "part" in form else form.get("parts", ())
    return named[form["kind"]].read(form, [read_node(part, mechanisms) for part in parts], mechanisms)


# --- the kinds ------------------------------------------------------------------------------------------------------


def _step_facts(node: Step) -> dict[str, Any]:
    query = node.facts
    facts: dict[str, Any] = {
        "query": query.text,
        "kind of query": query.name,
        "attributes": query.attributes,
        "integer answer": query.integer,
        "largest length of the answer": query.answer_length,
        "uses": node.uses,
        "assumptions": node.assumptions,
        "threshold": node.threshold,
        "mechanism": node.mechanism.name,
    }
    for parameter in attrs.fields(type(node.mechanism)):
        name = f"{parameter.name} of the mechanism" if parameter.name in facts else parameter.name
        facts[name] = getattr(node.mechanism, parameter.name)
    return facts


def _parallel_label(node: Parallel) -> str:
    match node.by:
        case None:
            return "parallel over undeclared parts"
        case FromRelease():
            return f"parallel over {node.by}"
        case tuple():
            return f"parallel over {len(node.by)} descriptions"
    name = getattr(node.by, "name", None)
    return f"parallel over the values of {name}" if name else f"parallel over {node.number} cases"


def _cut_text(node: Parallel) -> str:
    match node.by:
        case None:
            return "not declared"
        case FromRelease():
            about = f", of {', '.join(node.by.attributes)}" if node.by.attributes else ""
            return f"by {node.by}{about}"
        case Cases():
            return f"by the cases {', '.join(map(str, node.by.descriptions))}, and all else"
        case tuple():
            return f"by the descriptions {', '.join(map(str, node.by))}"
    return f"by the values of {getattr(node.by, 'name', node.by)}"


def _parallel_times(node: Parallel, position: int) -> str:
    if len(node.parts) > 1:
        return f"in part {position + 1} of {len(node.parts)}"
    return "once per part" if node.number is None else f"once in each of {node.number} parts"


def _spend_times(node: Spend, position: int) -> str:
    """Say how many releases of a kind a miner may ask for, and with which parameters."""
    step, bounds = node.parts[position], node.bounds[position]
    often = "any number of times" if bounds.times is None else f"at most {bounds.times} times"
    least = "" if bounds.least is None else f"at least {decimal_text(bounds.least)} and "
    amount = amount_of(type(step.mechanism))
    return f"{often}, each of {amount} {least}at most {decimal_text(most_of(step))}"


#: All kinds of node, by class.
KINDS: dict[type[Node], NodeKind] = {
    Step: NodeKind(
        name="step",
        label=lambda node: (
            f"{node.name}: {node.facts.text}, {node.mechanism.name}{', gathers rows' * node.facts.gathers}"
        ),
        rule="one release: a query, answered by a mechanism at a loss",
        icon='<circle cx="8" cy="8" r="5" class="full"/>',
        compose=lambda node, parts, losses, plan: losses.release(plan.calibration(node)),
        write=lambda node, parts, noise, rows: write_step(node, noise, rows),
        read=lambda form, parts, mechanisms: read_step(form, mechanisms),
        facts=_step_facts,
        uses=lambda node: node.uses,
        leaf=True,
    ),
    Post: NodeKind(
        name="post",
        label=lambda node: f"{node.name}: post-processing",
        rule="post-processing of what has been released: free",
        icon='<circle cx="8" cy="8" r="5"/>',
        compose=lambda node, parts, losses, plan: losses.sequential([]),
        write=lambda node, parts, noise, rows: {"name": node.name, "uses": list(node.uses)},
        read=lambda form, parts, mechanisms: Post(form["name"], form["uses"]),
        facts=lambda node: {"uses": node.uses},
        uses=lambda node: node.uses,
        leaf=True,
        free=True,
    ),
    Sequential: NodeKind(
        name="sequential",
        label=lambda node: node.name or "sequential",
        rule="all of these, from the same rows: losses add up",
        icon='<path d="M8 2v11M4.5 9.5 8 13l3.5-3.5"/>',
        compose=lambda node, parts, losses, plan: losses.sequential(parts),
        write=lambda node, parts, noise, rows: {"name": node.name, "parts": parts},
        read=lambda form, parts, mechanisms: sequential(*parts, name=form["name"]),
    ),
    Parallel: NodeKind(
        name="parallel",
        label=_parallel_label,
        rule={
            Relation.ADD_OR_REMOVE_ONE: "over disjoint parts: a row lies in one of them; the largest loss counts",
            Relation.REPLACE_ONE: "over disjoint parts: a row stays in its part, or leaves one and enters another; the "
            "largest loss counts, or the sum of the two largest add-or-remove losses if that is larger",
        },
        icon='<path d="M5 2v12M11 2v12"/>',
        # A node that stands for all parts is given twice, since a row may move from one part to another.
        compose=lambda node, parts, losses, plan: losses.over_parts(
            parts * 2 if len(parts) == 1 and node.number != 1 else parts, plan
        ),
        write=lambda node, parts, noise, rows: {"name": node.name, "by": write_cut(node.by), "parts": parts},
        read=lambda form, parts, mechanisms: parallel(*parts, by=read_cut(form["by"]), name=form["name"]),
        facts=lambda node: {"parts": _cut_text(node)},
        uses=lambda node: (node.by.step,) if isinstance(node.by, FromRelease) else (),
        times=_parallel_times,
        several=lambda node: len(node.parts) == 1,
        rows="parts",
    ),
    Either: NodeKind(
        name="either",
        label=lambda node: "either, by what is released",
        rule="one of these, chosen by what has been released: the largest loss counts",
        icon='<path d="M8 14V9L3.5 2.5M8 9l4.5-6.5"/>',
        compose=lambda node, parts, losses, plan: losses.either(parts),
        write=lambda node, parts, noise, rows: {"parts": parts},
        read=lambda form, parts, mechanisms: either(*parts),
    ),
    Repeat: NodeKind(
        name="repeat",
        label=lambda node: f"repeat {node.times} times",
        rule="the same, several times on the same rows: its loss counts each time",
        icon='<path d="M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3"/>',
        compose=lambda node, parts, losses, plan: losses.repeat(parts[0], node.times),
        write=lambda node, parts, noise, rows: {"times": node.times, "part": parts[0]},
        read=lambda form, parts, mechanisms: repeat(form["times"], *parts),
        facts=lambda node: {"times": node.times},
        times=lambda node, position: f"{node.times} times",
        several=lambda node: True,
    ),
    Sample: NodeKind(
        name="sample",
        label=lambda node: f"sample at rate {decimal_text(node.rate)}",
        rule={
            Relation.ADD_OR_REMOVE_ONE: "from a random sample, which a unit is in with probability q: a pure "
            "epsilon E becomes at most log(1 + q (exp(E) - 1)); rho counts as from all rows",
            Relation.REPLACE_ONE: "from a random sample: no theorem is known under replace-one, so nothing is claimed",
        },
        icon='<path d="M2 3h12L9.5 9v5l-3-1.5V9z"/>',
        compose=lambda node, parts, losses, plan: losses.over_sample(parts[0], node.rate, plan),
        write=lambda node, parts, noise, rows: {"name": node.name, "rate": str(node.rate), "part": parts[0]},
        read=lambda form, parts, mechanisms: sample(form["rate"], *parts, name=form["name"]),
        facts=lambda node: {"rate": node.rate},
        times=lambda node, position: "on the sample",
        rows="sample",
    ),
    Spend: NodeKind(
        name="spend",
        label=lambda node: f"{node.name}: a block of at most {node.caps}",
        rule={
            Relation.ADD_OR_REMOVE_ONE: "a block: its miner asks for releases of these kinds as it goes, and the run "
            "refuses what would take their sum above a cap; the caps count, whatever the miner asks for",
            Relation.REPLACE_ONE: "a block: its miner asks for releases of these kinds as it goes, and the run refuses "
            "what would take their sum above a cap; the caps count; a row that moves costs half of them in each part",
        },
        icon='<path d="M3 3h10v10H3zM3 9h10"/>',
        compose=lambda node, parts, losses, plan: losses.release(plan.calibration(node)),
        write=lambda node, parts, noise, rows: write_spend(node, parts, noise),
        read=lambda form, parts, mechanisms: read_spend(form, parts),
        facts=lambda node: {
            "caps": str(node.caps),
            **{f"bounds of '{step.name}'": _spend_times(node, k) for k, step in enumerate(node.parts)},
        },
        times=_spend_times,
        several=lambda node: True,
        scope=True,
    ),
}
