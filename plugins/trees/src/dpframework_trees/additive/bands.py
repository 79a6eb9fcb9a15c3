"""The expected and the largest standard deviation of the noise in the functions of an additive model.

Noise b in the gradient moves the minimiser by about - (H + R)**-1 b, with R the ridge and H the Hessian of the rows'
loss. The covariance B of b is known. The variance of b is the same in all directions of an attribute's function. It
differs only along the sums that the blocks of a group share (see `group_noise`). H is private, since it depends on how
many rows each cell has, and on which attributes carry the same information.

- **As expected:** H is taken as if rows were spread evenly over cells (`NoiseAndRidge.curvatures`), and as if its
  entries between different columns were 0. Real rows leave more noise. A cell with few rows has a small entry of H. If
  two attributes carry the same information, the ridge alone decides how their effect is divided between them.
- **At most:** H is positive semidefinite, whatever the rows. For a linear function c'w of the coefficients w let
  u = R**-1/2 c and N = R**1/2 (H + R)**-1 R**1/2, so that 0 <= N <= I, with I the identity. The variance of c'w is
  v'R**-1/2 B R**-1/2 v, with v = N u. Let beta be the eigenvalue of R**-1/2 B R**-1/2 in the directions of an
  attribute's function, and beta_max its largest eigenvalue. From N**2 <= N follows v'v <= u'v, so v lies in the ball
  that has the line from 0 to u as its diameter. If u is in the directions of one attribute, let a be v's component
  along u. The rest of v has a squared length of at most a (abs(u) - a), so the variance is at most

      max over a of beta a**2 + beta_max a (abs(u) - a)
          = u'u beta                                          if beta_max <= 2 beta,
            u'u beta_max**2 / (4 (beta_max - beta))           otherwise.

  The first bound is attained by a block without rows.

Both deviations compare the fit with one that has the same ridge and no noise, to first order in the noise. Neither of
the two takes account of `shrinkage`, which removes most of a function that is mostly noise, and may add some noise to a
function that is about half noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpframework.facts import Attribute
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge


def expected_deviations(tuned: NoiseAndRidge) -> Reals:
    """Return the approximate standard deviation of each cell's value for evenly spread rows, shape (cells,)."""
    of_columns = tuned.deviations / (tuned.curvatures + tuned.ridge)
    return np.asarray(np.abs(tuned.design.of_cells.T) @ of_columns)


def most_deviations(tuned: NoiseAndRidge, given: Sequence[Attribute]) -> Reals:
    """Return the largest standard deviation that each cell's value can have, shape (cells,), whatever the rows are.

    A cell's value is what it adds, minus the mean over all cells of the attribute except the cell of missing values.
    For a leaf of a tree, it is what the leaf adds.

    Parameters
    ----------
    tuned
        The columns, the noise and the ridge.
    given
        The attributes that predict the target, in the order of the design's blocks.
    """
    design, ridge = tuned.design, tuned.ridge
    beta = tuned.deviations**2 / ridge
    largest, found = tuned.largest_ratio, np.zeros(design.of_cells.shape[1])
    for j, size in enumerate(design.sizes):
        contrasts = design.of_cells[:, design.first_cells[j] : design.first_cells[j + 1]]
        if j < len(given):
            contrasts = contrasts - contrasts[:, : size - given[j].missing].mean(axis=1, keepdims=True)
        own = beta[design.starts[j]]
        factor = own if largest <= 2 * own else largest**2 / (4 * (largest - own))
        found[design.first_cells[j] : design.first_cells[j + 1]] = (contrasts**2 / ridge[:, None]).sum(axis=0) * factor
    return np.sqrt(found)
