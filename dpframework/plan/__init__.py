"""Plans: steps and their composition, described before anything runs."""

from dpframework.plan.nodes import (
    Either,
    Node,
    Parallel,
    Post,
    Released,
    Repeat,
    Sequential,
    Step,
    either,
    parallel,
    post,
    repeat,
    scopes,
    sequential,
    step,
    walk,
    within_scope,
)
from dpframework.plan.plan import SCHEMA_VERSION, Budget, Plan, PublicFacts
from dpframework.plan.reading import plan_from_json

__all__ = [
    "SCHEMA_VERSION",
    "Budget",
    "Either",
    "Node",
    "Parallel",
    "Plan",
    "Post",
    "PublicFacts",
    "Released",
    "Repeat",
    "Sequential",
    "Step",
    "either",
    "parallel",
    "plan_from_json",
    "post",
    "repeat",
    "scopes",
    "sequential",
    "step",
    "walk",
    "within_scope",
]
