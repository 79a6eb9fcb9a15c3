"""The nodes of one of two plans, with their places, claims and costs."""

from __future__ import annotations

import functools
import json
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy import PrivacyLoss
from dpframework.plan.index import PlacedNode
from dpframework.plan.kinds import kind_of
from dpframework.plan.nodes import Node
from dpframework.reports.loss_text import loss_of


@final
@attrs.frozen(eq=False)
class Side:
    """A node as one of two plans has it, with its cost worked out on demand.

    Attributes
    ----------
    placed
        The node with its place in that plan.
    plan
        The plan.
    """

    placed: PlacedNode
    plan: AccountedPlan

    @property
    def node(self) -> Node:
        """The node itself, with all that is below it."""
        return self.placed.node

    @property
    def number(self) -> int:
        """Its number in that plan's graph (see `plan_graph`)."""
        return self.placed.number

    @property
    def scope(self) -> str:
        """The path of its scope, empty for the plan's own."""
        return self.placed.scope

    @property
    def kind(self) -> str:
        """The name of its kind, such as "step" or "sequential"."""
        return self.placed.kind.name

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self.placed.name or None

    @property
    def path(self) -> str:
        """Its name after the scopes around it, or the scope that a node without a name is in."""
        return self.placed.path

    @property
    def where(self) -> str:
        """The scope that it is in, to begin a sentence with."""
        return f"in '{self.scope}': " if self.scope else ""

    @property
    def label(self) -> str:
        """A few words that describe it."""
        return self.placed.label

    @functools.cached_property
    def loss(self) -> PrivacyLoss | None:
        """The most that all releases below it cost in pure epsilon, or the rho of a step without one.

        None if there is no valid claim, and for post-processing, which is free.
        """
        return None if self.placed.kind.free else loss_of(self.node, self.plan)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        loss = {} if self.loss is None else {"epsilon": self.loss.epsilon, "rho": self.loss.rho}
        known = {name: str(amount) for name, amount in loss.items() if amount is not None}
        return {"number": self.number, "kind": self.kind, "path": self.path, "label": self.label, "loss": known}


def own_content(node: Node) -> str:
    """Return, as text, all that a plan says of a node besides its parts and losses."""
    kind = kind_of(node)
    form = {"kind": kind.name, **kind.write(node, [{} for _ in node.children], None, 1)}
    return json.dumps({key: value for key, value in form.items() if key not in ("parts", "part")})
