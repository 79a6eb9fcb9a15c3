"""Classical scaling, which turns values into points whose Euclidean distances are the learned ones.

Source: Crippen and Havel 1978. The Gram matrix of points centred at their mean is -J D2 J / 2, with D2 the squared
distances and J = I - 1/n. Its eigenvectors, scaled by the square roots of their eigenvalues, are the points. Learned
distances are Euclidean, so no eigenvalue is negative, except by rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def coordinates(distances: Array) -> Array:
    """Return points with these distances, shape (values, dimensions), the dimension of the largest spread first.

    Examples
    --------
    >>> line = coordinates(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]))
    >>> line.shape, round(float(abs(line[0, 0] - line[2, 0])), 9)
    ((3, 1), 3.0)
    """
    squares = np.square(distances)
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    kept = np.flatnonzero(values > 1e-12 * max(values.max(initial=0.0), 1e-300))[::-1]
    points = vectors[:, kept] * np.sqrt(values[kept])
    # an eigenvector is known up to its sign: its largest coordinate is made positive, so that results repeat
    signs = np.sign(points[np.abs(points).argmax(axis=0), np.arange(len(kept))])
    return np.asarray(points * signs)
