"""Predictions of two private regressions on a saved task, by packages that need an environment of their own.

    python -m venv peers && peers/bin/pip install diffprivlib interpret-core 'scikit-learn<=1.4.2' 'numpy<2' 'pandas<3'
    peers/bin/python regression_peers.py TASK.npz diffprivlib 0.1 17

TASK.npz holds, by `compare_regression.py`, `train` and `test` with a column for each value of a nominal attribute and
one for each number, shapes (rows, columns), `lower` and `upper` of these, shape (columns,), `y` of the training rows,
and its public bounds `ends`. The last two arguments are epsilon and a seed. Writes predictions of the test rows to
TASK.npz.out.npy.

`diffprivlib` is its `LinearRegression`, of pure epsilon; `dp-ebm` the boosting of interpret-core, at a delta of 1e-6.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

DELTA = 1e-6


def main(path: str, peer: str, epsilon: float, seed: int) -> None:
    """Fit one peer and predict."""
    warnings.simplefilter("ignore")
    task = np.load(path)
    lower, upper = task["lower"], task["upper"]
    low, high = (float(end) for end in task["ends"])
    if peer == "diffprivlib":
        from diffprivlib.models import LinearRegression

        model = LinearRegression(epsilon=epsilon, bounds_X=(lower, upper), bounds_y=(low, high), random_state=seed)
    else:
        from interpret.privacy import DPExplainableBoostingRegressor

        names = [f"x{k}" for k in range(len(lower))]
        model = DPExplainableBoostingRegressor(
            epsilon=epsilon,
            delta=DELTA,
            feature_names=names,
            feature_types=["continuous"] * len(names),
            privacy_bounds=dict(zip(names, zip(lower.tolist(), upper.tolist(), strict=True), strict=True)),
            privacy_target_min=low,
            privacy_target_max=high,
            random_state=seed,
            n_jobs=1,
        )
    model.fit(task["train"], task["y"])
    predicted = np.clip(model.predict(task["test"]), low, high)  # the bounds are public
    with Path(f"{path}.out.npy").open("wb") as out:
        np.save(out, predicted)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
