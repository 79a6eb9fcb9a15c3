"""What the paper's figures 2 and 3 show of redescriptions. Not private: measured on the rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpframework.lab.evaluation import redescription_quality
from dpframework.lab.evaluation.trial_record import Trial


def reported_above(trial: Trial, *, least: float) -> Mapping[str, float]:
    """Return the quality of the redescriptions that an analyst would look at (see `RedescriptionQuality.to_dict`).

    Parameters
    ----------
    trial
        Its result is a `Redescriptions`.
    least
        The noisy Jaccard index below which a redescription is removed.
    """
    return redescription_quality([one for one in trial.result if one.jaccard >= least], trial.table).to_dict()


def honesty(trial: Trial, *, by: float = 0.1) -> Mapping[str, float]:
    """Return the median "reported" Jaccard index, and how often it is "flattering" or "modest" (shares).

    Parameters
    ----------
    trial
        Its result is a `Redescriptions`.
    by
        How far above (or below) the true Jaccard index the noisy one must be.
    """
    quality = redescription_quality(trial.result, trial.table)
    if not len(quality.true):
        return dict.fromkeys(("reported", "flattering", "modest"), np.nan)
    above = quality.noisy - quality.true
    return {
        "reported": float(np.median(quality.noisy)),
        "flattering": float(np.mean(above > by)),
        "modest": float(np.mean(above < -by)),
    }
