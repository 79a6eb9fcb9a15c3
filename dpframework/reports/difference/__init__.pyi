from .marks import Mark as Mark
from .merged_plans import MergedNode as MergedNode
from .node_side import Side as Side
from .plan_changes import (
    Difference as Difference,
    PlanChange as PlanChange,
    Topic as Topic,
    difference as difference,
)
