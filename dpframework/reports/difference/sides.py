"""The nodes of one of two plans: where each is, what it declares, and what it costs."""

from __future__ import annotations

import functools
import json
from typing import Any, final

import attrs

from dpframework.facts.privacy import PrivacyLoss
from dpframework.plan.graph import label_of
from dpframework.plan.nodes import Node, Post, Step, scopes, walk
from dpframework.plan.plan import Plan
from dpframework.plan.writing import node_to_dict
from dpframework.reports.losses import loss_of


class PlacedPlan:
    """A plan with the place and number of each node."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._scopes: dict[int, str] = {}
        for path, nodes in scopes(plan.root):
            for node in nodes:
                self._scopes.setdefault(id(node), path)
        self._sides = {
            id(node): Side(node, number, self._scopes[id(node)], plan) for number, node in enumerate(walk(plan.root))
        }

    def side(self, node: Node) -> Side:
        """Return a node of the plan with its place."""
        return self._sides[id(node)]


@final
@attrs.frozen(eq=False)
class Side:
    """A node as one of two plans has it; what it costs is worked out when it is asked.

    Attributes
    ----------
    node
        The node itself, with all that is below it.
    number
        Its number in that plan's graph (see `plan_graph`).
    scope
        The path of the scope that it is in; empty for the plan's own.
    plan
        The plan.
    """

    node: Node
    number: int
    scope: str
    plan: Plan

    @property
    def kind(self) -> str:
        """What kind of node it is: "step", "sequential", ..."""
        return type(self.node).__name__.lower()

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        name: str | None = getattr(self.node, "name", None)
        return name

    @property
    def path(self) -> str:
        """Its name after the scopes around it; for what has no name, the scope that it is in."""
        return "/".join(filter(None, (self.scope, self.name)))

    @property
    def where(self) -> str:
        """The scope that it is in, to begin a sentence with."""
        return f"in '{self.scope}': " if self.scope else ""

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        return label_of(self.node)

    @functools.cached_property
    def loss(self) -> PrivacyLoss | None:
        """What all releases below it cost at most, in pure epsilon; for a step without one its rho.

        None if there is no valid claim, and for post-processing, which is free.
        """
        return None if isinstance(self.node, Post) else loss_of(self.node, self.plan)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        loss = {} if self.loss is None else {"epsilon": self.loss.epsilon, "rho": self.loss.rho}
        known = {name: str(amount) for name, amount in loss.items() if amount is not None}
        return {"number": self.number, "kind": self.kind, "path": self.path, "label": self.label, "loss": known}


def is_composition(node: Node) -> bool:
    """Tell whether a node has parts."""
    return not isinstance(node, Step | Post)


def own_content(node: Node) -> str:
    """Return, as text, all that a plan says of a node besides its parts and losses."""
    form = node_to_dict(node, lambda _: None)
    return json.dumps({key: value for key, value in form.items() if key not in ("parts", "part")}, sort_keys=True)
