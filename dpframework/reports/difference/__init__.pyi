from .marks import Mark as Mark
from .merged_plans import MergedNode as MergedNode
from .plan_changes import (
    Change as Change,
    Difference as Difference,
    Topic as Topic,
    difference as difference,
)
from .sides import Side as Side
