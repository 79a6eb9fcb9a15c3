"""Queries for scores of splits, whole trees and pairs of trees, and for class counts by code and by leaf."""

from dpframework_trees.queries.splits import CodesByClass, SplitScores, ThresholdScores, table_scores
from dpframework_trees.queries.trees import JointLeaves, LeavesByClass, TreeScores
from dpframework_trees.queries.views import Associations, TreePairScores

__all__ = [
    "Associations",
    "CodesByClass",
    "JointLeaves",
    "LeavesByClass",
    "SplitScores",
    "ThresholdScores",
    "TreePairScores",
    "TreeScores",
    "table_scores",
]
