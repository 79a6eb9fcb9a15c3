"""The expected and the largest change that noise makes to the functions of an additive model.

Noise b in the gradient moves the minimiser by about - (H + R)**-1 b, with R the ridge and H the Hessian of the rows'
loss. The covariance B of b is known: in the directions of an attribute's function it is the same, and beside these
there is only what a group's columns share. H is private: it depends on how many rows each cell has, and on
which attributes tell the same.

- **As expected** H is taken as that of rows which are spread evenly over cells (`Tuned.curvatures`), and its entries
  between columns as 0. Real rows leave more noise: a cell with few rows has a small h, and where two attributes tell
  the same, the ridge alone decides how they share what they tell.
- **At most:** H is positive semidefinite, whatever the rows. For a linear function c of the coefficients let
  u = R**-1/2 c and N = R**1/2 (H + R)**-1 R**1/2, which has 0 <= N <= I. The variance of c is v'R**-1/2 B R**-1/2 v,
  with v = N u. Let beta be what that matrix has in the directions of an attribute's function, and beta_max its largest
  eigenvalue. From N**2 <= N follows v'v <= u'v: v lies in the ball between 0 and u. If u is in the directions of one
  attribute, let a be v's part along u: then the rest has a squared length of at most a (abs(u) - a), so the variance is
  at most

      max over a of beta a**2 + beta_max a (abs(u) - a)
          = u'u beta                                          if beta_max <= 2 beta,
            u'u beta_max**2 / (4 (beta_max - beta))           otherwise.

  No rows at all in a block attain the first.

Both are about the fit with the same ridge and no noise, to the first order in the noise. Both leave out `shrinkage`: it
takes off most of a function that is mostly noise, and may add some noise to one that is about half of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpframework.facts import Attribute
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.tuning import Tuned


def expected_deviations(tuned: Tuned) -> Reals:
    """Return about the standard deviation of each cell's value, shape (cells,), for even rows (see the module)."""
    of_columns = tuned.deviations / (tuned.curvatures + tuned.ridge)
    return np.asarray(np.abs(tuned.design.of_cells.T) @ of_columns)


def most_deviations(tuned: Tuned, given: Sequence[Attribute]) -> Reals:
    """Return the standard deviation of each cell's value for the rows that leave it most noise, shape (cells,).

    Parameters
    ----------
    tuned
        Columns, noise and ridge.
    given
        The attributes: a cell's value is what it adds more than the mean of the cells that are not missing. What a
        leaf of a tree adds is compared with 0.
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
