"""The class shares of a tree's leaves, as the joint posterior of the noisy counts of all of them.

Post-processing: it reads released counts, the variance of their noise and the released tree, and costs nothing.

A leaf's own counts may be mostly noise. What other leaves hold says which shares are likely: first those of its branch,
then those of the whole tree. How much leaves differ is not known, and shows in the same counts. So let

- the share of a class among all rows be exponential with the mean 1/C, of C classes. Divided by their sum, such shares
  are uniform among all shares;
- a node's share of a class be gamma, with its parent's share g as the mean and g / a as the variance. Divided by their
  sum, such shares have a Dirichlet distribution around the parent's. The concentration a is one number for all leaves,
  and another for all nodes between the root and the leaves;
- a count be Laplace, with a leaf's rows times its share as the mean. Its variance is that of the noise, and that of a
  Poisson number of rows, since other rows are to be predicted.

Given both concentrations, classes are independent, and the shares of one class are a Markov chain from the root to the
leaves. Sums over all of them are exact on a grid of `CELLS` cells: each node tells its parent how likely each share of
the parent makes what was counted below, then each is told what was counted elsewhere (Pearl 1988, chapter 4). The
concentrations make all counts as likely as the product over classes says. Cells are equally wide in the square root of
the share, in which the gamma distribution's deviation is about the same everywhere. A count may be more exact than a
cell is wide, so a cell's likelihood is its mean, and a leaf's share in a cell is the mean by that likelihood.

The deviation of shares, 1 / sqrt(a), is uniform before anything is counted (Gelman 2006), for the leaves' a among
`OF_LEAVES`. Any of `OF_NODES` is as likely as the others; where it is infinite, leaves differ from the whole tree only.

Sources: Pearl 1988, Probabilistic Reasoning in Intelligent Systems; Gelman 2006, Prior distributions for variance
parameters in hierarchical models; the model is ours.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]
Branch: TypeAlias = int | tuple[Any, ...]  # a leaf's position, or a node's children, each a branch

CELLS = 48
LARGEST = 1.25  # a share may be above 1, as a leaf's rows are not known exactly
EDGES: Reals = np.linspace(0, math.sqrt(LARGEST), CELLS + 1) ** 2
MIDDLES: Reals = np.linspace(0, math.sqrt(LARGEST), 2 * CELLS + 1)[1::2] ** 2
OF_LEAVES = tuple(2.0**k for k in range(-1, 9))
OF_NODES = (1.0, 4.0, 16.0, 64.0, math.inf)
LEAST = 1e-12  # the probability of a cell is at least that, so that counts which contradict each other have a posterior


@attrs.frozen(eq=False)
class NoisyLeaves:
    """What was counted in a tree's leaves.

    Attributes
    ----------
    counts
        Noisy counts of classes, shape (leaves, classes).
    variances
        The variance of the noise of each leaf's counts, shape (leaves,).
    rows
        Estimated rows of the leaves, all positive, shape (leaves,).
    """

    counts: Reals
    variances: Reals
    rows: Reals


def estimate_rows(totals: Reals, variances: Reals) -> Reals:
    """Return positive estimates of leaves' rows, drawn towards their mean by how much noise there is.

    A leaf's rows are expected to have half of the squared mean as their variance.

    Parameters
    ----------
    totals
        Noisy numbers of rows, shape (leaves,).
    variances
        The variances of their noise, shape (leaves,).

    Examples
    --------
    >>> totals = np.array([-10.0, 60])
    >>> estimate_rows(totals, np.zeros(2)), estimate_rows(totals, np.full(2, 1e12)).round(3)
    (array([ 1., 60.]), array([25., 25.]))
    """
    mean = max(float(totals.mean()), 1.0)
    known = mean**2 / (mean**2 + 2 * variances)
    return np.maximum(known * np.maximum(totals, 0) + (1 - known) * mean, 1.0)


def posterior_shares(tree: Branch, leaves: NoisyLeaves) -> Reals:
    """Return the expected class shares of each leaf, shape (leaves, classes), each row with the sum 1.

    Examples
    --------
    >>> sure = NoisyLeaves(np.array([[900.0, 100], [0, 500]]), np.full(2, 1e-6), np.array([1000.0, 500]))
    >>> posterior_shares((0, 1), sure).round(2)
    array([[0.9, 0.1],
           [0. , 1. ]])
    >>> posterior_shares((0, 1), attrs.evolve(sure, variances=np.full(2, 1e12))).round(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    chain, root = _Chain.of(leaves), (tree,) if isinstance(tree, int) else tree
    told, prior = chain.tell_parents(root), _prior_of(leaves)
    chain.tell_children(root, np.log(prior), _concentrations(told, prior))
    return np.asarray(chain.rows / chain.rows.sum(axis=1, keepdims=True))


def _prior_of(leaves: NoisyLeaves) -> Reals:
    """Return the probability of each cell of a class's share among all rows, before anything is counted."""
    return np.asarray(np.diff(-np.exp(-leaves.counts.shape[1] * EDGES)) + LEAST)


def _concentrations(told: Reals, prior: Reals) -> Reals:
    """Return how likely concentrations are by what the root is told, shape (those of nodes, those of leaves)."""
    most = told.max(axis=3)
    evidence = (np.log(np.exp(told - most[..., np.newaxis]) @ prior) + most).sum(axis=2) - np.log(OF_LEAVES) / 2
    return np.asarray(np.exp(evidence - evidence.max()))


@cache
def _steps(concentrations: tuple[float, ...]) -> Reals:
    """Return the probability of a child's cell given its parent's, shape (concentrations, parent's, child's)."""
    from scipy.special import gammainc

    found = []
    for a in concentrations:
        below = np.diff(gammainc(a * MIDDLES[:, None], a * EDGES), axis=1) if a < math.inf else np.eye(CELLS)
        found.append(below + LEAST)
    return np.asarray(np.array(found) / np.sum(found, axis=2, keepdims=True))


def _cells_of(leaves: NoisyLeaves) -> tuple[Reals, Reals]:
    """Return the log-likelihood of each cell, and the mean rows in it, both of shape (leaves, classes, cells).

    With u = rows times share - count, the likelihood is exp(-|u| / b) / (2 b). Its integral, and that times u, are over
    the part of a cell where u is positive, and the part where it is not. A negative count tells what 0 does: the rest
    of it is noise, however many rows there are.
    """
    rows, counts = leaves.rows[:, None, None], np.maximum(leaves.counts, 0)[..., None]
    b = np.sqrt((leaves.variances[:, None, None] + rows * MIDDLES) / 2)
    u = rows * EDGES - counts
    low, high = u[..., :-1], u[..., 1:]
    above, above_times = _integrals(np.maximum(low, 0), np.maximum(high, 0), b)
    below, below_times = _integrals(np.maximum(-high, 0), np.maximum(-low, 0), b)
    whole = above + below
    means = (above_times - below_times) / whole + counts
    least = np.maximum(np.maximum(low, -high), 0)  # the least |u| of a cell, where the integrals start
    return np.log(whole / (b * (high - low))) - least / b, np.maximum(means, 0)


def _integrals(start: Reals, end: Reals, b: Reals) -> tuple[Reals, Reals]:
    """Return the integrals of exp((start - v) / b), and of that times v, over v from start to end."""
    whole = -b * np.expm1((start - end) / b)
    return whole, (start + b) * whole - b * (end - start) * np.exp((start - end) / b)


@attrs.frozen(eq=False)
class _Chain:
    """Sums over all shares in a tree.

    What nodes tell and are told is a logarithm, of shape (concentrations of nodes, those of leaves, classes, cells), or
    1 in place of the first.

    Attributes
    ----------
    likely
        How likely each cell of a leaf makes its counts, up to a factor, shape (leaves, classes, cells).
    means
        The rows in each cell of a leaf, of the same shape.
    told
        By child: how likely each cell of its parent makes what was counted below.
    rows
        The expected rows of leaves by class, shape (leaves, classes), when children have been told.
    """

    likely: Reals
    means: Reals
    told: dict[Branch, Reals]
    rows: Reals

    @classmethod
    def of(cls, leaves: NoisyLeaves) -> _Chain:
        """Return sums of which none is made yet."""
        likely, means = _cells_of(leaves)
        return cls(np.exp(likely - likely.max(axis=2, keepdims=True)), means, {}, np.zeros(leaves.counts.shape))

    def tell_parents(self, node: tuple[Branch, ...]) -> Reals:
        """Return how likely each cell of a node makes what was counted below, and keep what each child tells it."""
        for child in node:
            if isinstance(child, int):
                told = np.log(self.likely[child] @ _steps(OF_LEAVES).transpose(0, 2, 1))[np.newaxis]
            else:
                own = self.tell_parents(child)
                most = own.max(axis=3, keepdims=True)
                told = np.log(np.exp(own - most) @ _steps(OF_NODES).transpose(0, 2, 1)[:, None]) + most
            self.told[child] = told
        return sum((self.told[child] for child in node[1:]), self.told[node[0]])

    def tell_children(self, node: tuple[Branch, ...], elsewhere: Reals, weights: Reals) -> None:
        """Tell the leaves below a node what was counted elsewhere, and add up their rows.

        Parameters
        ----------
        node
            The node.
        elsewhere
            How likely each of its cells is by all that was not counted below.
        weights
            How likely the concentrations are, shape (those of nodes, those of leaves).
        """
        known = elsewhere + sum(self.told[child] for child in node)
        for child in node:
            rest = known - self.told[child]
            likely = np.exp(rest - rest.max(axis=3, keepdims=True))
            if isinstance(child, int):
                cells = likely @ _steps(OF_LEAVES) * self.likely[child]
                expected = (cells * self.means[child]).sum(axis=3) / cells.sum(axis=3)
                self.rows[child] = (weights[..., np.newaxis] * expected).sum(axis=(0, 1))
            else:
                self.tell_children(child, np.log(likely @ _steps(OF_NODES)[:, None]), weights)
