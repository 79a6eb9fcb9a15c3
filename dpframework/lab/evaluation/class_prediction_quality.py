"""Accuracy, F-measure and area under the ROC curve of predicted classes, computed with scikit-learn."""

from __future__ import annotations

import math
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.errors import InputError, nearest
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.lab.evaluation.sklearn_baselines import require_scikit_learn
from dpframework.lab.evaluation.trial_record import NOT_PRIVATE
from dpframework.tables.coded_table import Table


@final
@attrs.frozen
class Prediction:
    """The quality of predicted classes. Not private.

    Attributes
    ----------
    accuracy
        The share of rows whose class was predicted correctly.
    f_measure
        The harmonic mean of precision and recall for one class, or the mean of this number over the classes that occur.
    auc
        The area under the ROC curve for one class against all others, or the mean of this area over the classes that
        occur. NaN if the model gives no probabilities, if the rows have a single class, or if no row has the class for
        which the area is measured.
    rows
        The number of predicted rows.
    """

    accuracy: float
    f_measure: float
    auc: float
    rows: int

    def to_dict(self) -> dict[str, float]:
        """Return the measures by name."""
        return {"accuracy": self.accuracy, "f_measure": self.f_measure, "auc": self.auc}

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.3f}, F-measure {self.f_measure:.3f}, AUC {self.auc:.3f} on {self.rows} rows\n"
            f"{NOT_PRIVATE}"
        )


def prediction_of(model: Any, table: Table, target: str, *, positive: str | None = None) -> Prediction:
    """Measure how well a model predicts the classes of a table. Not private.

    Parameters
    ----------
    model
        An object with a method `predict` that takes a table, and perhaps `predict_proba`: a tree of this project, or a
        scikit-learn classifier with its encoding (`EncodedClassifier`).
    table
        The rows to predict. If the measures should hold for new rows, the model must not have been trained on these.
    target
        The class attribute.
    positive
        The class whose F-measure and area are measured. By default F-measure and area are means over the classes that
        occur.

    Raises
    ------
    InputError
        If the model does not predict, the table has no rows, or the class attribute or `positive` is unknown.
    ImportError
        If scikit-learn is not installed.
    """
    if not hasattr(model, "predict"):
        raise InputError(f"a model that predicts is needed, such as a result's tree, not {type(model).__name__}")
    require_scikit_learn("prediction")
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

    labels = table.schema[target].labels
    if positive is not None and positive not in labels:
        raise InputError(f"attribute '{target}' has no value {positive!r}; {nearest(positive, labels)}")
    if not table.rows:
        raise InputError("there are no rows to predict")
    true = np.array(labels)[columns_of(table).codes(target)]
    found = np.asarray(model.predict(table)).astype(str)
    wanted = sorted(set(true)) if positive is None else [positive]
    areas = []
    if hasattr(model, "predict_proba") and len(set(true)) > 1:
        probabilities = np.asarray(model.predict_proba(table))
        # A classifier of scikit-learn has one column for each class that it has seen. A tree of this project has one
        # column for each label.
        known = [str(label) for label in getattr(model, "classes_", labels)]
        for label in wanted:
            is_label = true == label
            if is_label.any() and not is_label.all():
                scores = probabilities[:, known.index(label)] if label in known else np.zeros(len(true))
                areas.append(float(roc_auc_score(is_label, scores)))
    return Prediction(
        accuracy=float(accuracy_score(true, found)),
        f_measure=float(f1_score(true, found, labels=wanted, average="macro", zero_division=0)),
        auc=float(np.mean(areas)) if areas else math.nan,
        rows=len(true),
    )
