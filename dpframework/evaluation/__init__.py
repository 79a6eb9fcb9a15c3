"""How good is a result, beside the truth? Everything here reads the rows, is not private, and says so when printed."""

from dpframework.evaluation.classifiers import Encoded, Encoding, cart
from dpframework.evaluation.comparison import (
    Friedman,
    MannWhitney,
    PageTrend,
    friedman,
    mann_whitney,
    page_trend,
)
from dpframework.evaluation.correlation import Correlations, correlations
from dpframework.evaluation.measures import MEASURES, measure
from dpframework.evaluation.noise import distribution_preserving_noise, uniform_noise
from dpframework.evaluation.prediction import Prediction, prediction_of
from dpframework.evaluation.redescriptions import (
    Matching,
    RedescriptionQuality,
    exact_counts,
    matched,
    redescription_quality,
)
from dpframework.evaluation.retention import Pattern, Retention, retention_of
from dpframework.evaluation.rows import folds, select_rows
from dpframework.evaluation.trial import Measure, Trial

__all__ = [
    "MEASURES",
    "Correlations",
    "Encoded",
    "Encoding",
    "Friedman",
    "MannWhitney",
    "Matching",
    "Measure",
    "PageTrend",
    "Pattern",
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
    "matched",
    "measure",
    "page_trend",
    "prediction_of",
    "redescription_quality",
    "retention_of",
    "select_rows",
    "uniform_noise",
]
