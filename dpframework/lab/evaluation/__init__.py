"""Evaluations of results against the exact rows. Nothing here is private, and printed evaluations say so."""

from dpframework.lab.evaluation.class_prediction_quality import Prediction, prediction_of
from dpframework.lab.evaluation.exact_redescription_quality import (
    Matching,
    RedescriptionQuality,
    exact_counts,
    match_redescriptions,
    redescription_quality,
)
from dpframework.lab.evaluation.experiment_measures import MEASURES, measure
from dpframework.lab.evaluation.measure_correlations import Correlations, correlations
from dpframework.lab.evaluation.pattern_retention_between_tables import Retention, retention_of
from dpframework.lab.evaluation.rank_tests import Friedman, MannWhitney, PageTrend, friedman, mann_whitney, page_trend
from dpframework.lab.evaluation.readable_rows_and_folds import folds, select_rows
from dpframework.lab.evaluation.row_noise import distribution_preserving_noise, uniform_noise
from dpframework.lab.evaluation.sklearn_baselines import EncodedClassifier, Encoding, cart
from dpframework.lab.evaluation.trial_record import Measure, Trial

__all__ = [
    "MEASURES",
    "Correlations",
    "EncodedClassifier",
    "Encoding",
    "Friedman",
    "MannWhitney",
    "Matching",
    "Measure",
    "PageTrend",
    "Prediction",
    "RedescriptionQuality",
    "Retention",
    "Trial",
    "cart",
    "correlations",
    "distribution_preserving_noise",
    "exact_counts",
    "folds",
    "friedman",
    "mann_whitney",
    "match_redescriptions",
    "measure",
    "page_trend",
    "prediction_of",
    "redescription_quality",
    "retention_of",
    "select_rows",
    "uniform_noise",
]
