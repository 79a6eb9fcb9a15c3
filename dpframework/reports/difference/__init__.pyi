from .merged_plan_node import Mark as Mark, MergedNode as MergedNode
from .node_side import Side as Side
from .plan_changes import (
    Difference as Difference,
    PlanChange as PlanChange,
    Topic as Topic,
    difference as difference,
)
