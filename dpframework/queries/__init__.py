"""Queries: deterministic functions of the private table that declare their sensitivity."""

from dpframework.queries.base import Declared, Norm, Query, QueryFacts, Sensitivity
from dpframework.queries.counts import Count, Histogram, JointHistogram, histogram_sensitivities
from dpframework.queries.scores import CandidateScores, PiecewiseScores, Supports

__all__ = [
    "CandidateScores",
    "Count",
    "Declared",
    "Histogram",
    "JointHistogram",
    "Norm",
    "PiecewiseScores",
    "Query",
    "QueryFacts",
    "Sensitivity",
    "Supports",
    "histogram_sensitivities",
]
