"""A node of one of two plans, with its place, its label and its cost."""

from __future__ import annotations

import functools
import json
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy_losses import PrivacyLoss
from dpframework.plan.node_kind_table import kind_of
from dpframework.plan.nodes import Node
from dpframework.plan.plan_node_index import PlacedNode
from dpframework.reports.plan_and_node_losses import loss_of


@final
@attrs.frozen(eq=False)
class Side:
    """A node of one of two plans. Its cost is worked out on demand.

    Attributes
    ----------
    placed
        The node with its place in its plan.
    plan
        The plan that has the node.
    """

    placed: PlacedNode
    plan: AccountedPlan

    @property
    def node(self) -> Node:
        """The node itself, with all that is below it."""
        return self.placed.node

    @property
    def number(self) -> int:
        """The number of the node in its plan's graph (see `plan_graph`)."""
        return self.placed.number

    @property
    def scope(self) -> str:
        """The path of the scope that holds the node; empty for the scope of the whole plan.

        A scope is a part of a plan in which a run finds releases by name, such as a named sequential composition.
        """
        return self.placed.scope

    @property
    def kind(self) -> str:
        """The name of the node's kind, such as "step" or "sequential"."""
        return self.placed.kind.name

    @property
    def name(self) -> str | None:
        """The name of the node, or None."""
        return self.placed.name or None

    @property
    def path(self) -> str:
        """The names of the scopes around the node, then the node's own name if it has one, separated by slashes."""
        return self.placed.path

    @property
    def where(self) -> str:
        """The node's scope, worded as the beginning of a sentence."""
        return f"in '{self.scope}': " if self.scope else ""

    @property
    def label(self) -> str:
        """A few words that describe the node."""
        return self.placed.label

    @functools.cached_property
    def loss(self) -> PrivacyLoss | None:
        """The most that all releases of the node cost: a pure epsilon, or a rho for a step without a pure epsilon.

        None if there is no valid claim, and for post-processing, which is free.
        """
        return None if self.placed.kind.free else loss_of(self.node, self.plan)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        loss = {} if self.loss is None else {"epsilon": self.loss.epsilon, "rho": self.loss.rho}
        known = {name: str(amount) for name, amount in loss.items() if amount is not None}
        return {"number": self.number, "kind": self.kind, "path": self.path, "label": self.label, "loss": known}


def own_content(node: Node) -> str:
    """Return, as JSON, all that a plan file says about a node itself, without its parts."""
    kind = kind_of(node)
    form = {"kind": kind.name, **kind.write(node, [{} for _ in node.children], None, 1)}
    return json.dumps({key: value for key, value in form.items() if key not in ("parts", "part")})
