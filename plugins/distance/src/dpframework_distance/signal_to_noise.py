"""Tell whether a model's distances differ by more than the noise of its tables explains, as post-processing.

The model is taken as the truth. A few times, noise as large as that of the released tables is drawn again, from a
fixed seed, and added to the model's tables (a parametric bootstrap, Efron 1979). Squared distances between an
attribute's values then move, and they also differ from each other. If the moves are on average at least as large as the
differences, the order of the distances is mere noise. In that case the caller (`distance_model`) also looks at the
distances that follow from the shares of the values alone, without the model's tables. It takes these if their squares
differ more from each other than the squares of the model's distances do. If they do not, shares do not tell the values
apart either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dpframework_distance.distance_estimates import Array, NoisyPair
from dpframework_distance.forest import Forest, Pair

DRAWS = 6  # how often the noise of all tables is drawn again


def redraw(forest: Forest, pairs: Mapping[Pair, NoisyPair]) -> list[Forest]:
    """Return the model several times, each time estimated from its own tables with fresh noise.

    Parameters
    ----------
    forest
        The model.
    pairs
        The released tables of its edges.
    """
    rng = np.random.default_rng(0)  # a fixed seed, so that the same releases give everybody the same result

    def once() -> Forest:
        noisy = {}
        for edge, pair in pairs.items():
            noise = rng.normal(0.0, np.sqrt(pair.variance), pair.counts.shape)
            noisy[edge] = attrs.evolve(pair, counts=forest.tables[edge] + noise)
        return Forest.of(forest.marginals, noisy)

    return [once() for _ in range(DRAWS)]


def signal_in(distances: Array, others: Sequence[Array]) -> float:
    """Return the share of the differences between squared distances that noise does not explain, from 0 to 1.

    Parameters
    ----------
    distances, others
        As for `is_noise`. All differences count as signal if `others` is empty, or if all distances are equal, as for
        an attribute with two values.

    Examples
    --------
    >>> flat, steep = np.array([[0, 0.3, 0.3], [0.3, 0, 0.4], [0.3, 0.4, 0]]), 1 - np.eye(3)
    >>> signal_in(flat, [steep]), signal_in(flat, [flat])
    (0.0, 1.0)
    """
    whole = spread(np.square(distances))
    if whole <= 0 or not others:
        return 1.0
    moved = float(np.mean([spread(np.square(one) - np.square(distances)) for one in others]))
    return max(1 - moved / whole, 0.0)


def is_noise(distances: Array, others: Sequence[Array]) -> bool:
    """Tell whether noise on average moves squared distances by at least as much as they differ from each other.

    Parameters
    ----------
    distances
        The distances between the values of an attribute, shape (codes, codes).
    others
        The same distances from models with noise that was drawn again, one matrix for each draw.

    Examples
    --------
    >>> flat, steep = np.array([[0, 0.3, 0.3], [0.3, 0, 0.4], [0.3, 0.4, 0]]), 1 - np.eye(3)
    >>> steep[0, 1] = steep[1, 0] = 0.1
    >>> is_noise(flat, [steep]), is_noise(steep, [steep + 0.1 * flat])
    (True, False)
    """
    return bool(np.mean([spread(np.square(one) - np.square(distances)) for one in others]) >= spread(distances**2))


def spread(squares: Array) -> float:
    """Return how much squared distances differ: the sum of their squared deviations from their mean.

    Parameters
    ----------
    squares
        Squared distances, or differences between them, shape (codes, codes).
    """
    upper = squares[np.triu_indices(len(squares), 1)]
    return float(np.square(upper - upper.mean()).sum())
