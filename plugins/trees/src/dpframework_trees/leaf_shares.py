"""Estimates of the class shares in a tree's leaves, from the noisy counts of all leaves together.

This is post-processing. It reads the released counts, the variance of their noise and the released tree, so it costs
no budget.

A leaf's own counts may be mostly noise. The other leaves then show which shares are likely, and leaves of the same
branch show it best. How much leaves differ is not known either, and is estimated from the same counts. The estimates
are posterior means, divided by their sum, under this model:

- The share of a class among all rows is exponential with mean 1/C, where C is the number of classes. Exponential shares
  divided by their sum are uniform among all shares.
- A node's share of a class is gamma. Its mean is the parent's share g, and its variance is g / a. Gamma shares divided
  by their sum have a Dirichlet distribution around the parent's. All leaves have one concentration a, and all nodes
  between the root and the leaves have another.
- A noisy count is Laplace. Its mean is the leaf's rows times the share. Its variance is the sum of the noise's variance
  and the variance of a Poisson number of rows, because the shares are used to predict other rows.

Given both concentrations, classes are independent, and the shares of one class are a Markov chain from the root to the
leaves. Belief propagation (Pearl 1988, chapter 4) sums over all shares exactly, on a grid of `CELLS` cells. First each
node sends its parent the likelihood of the counts below it, for each share that the parent may have. Then the root's
prior and the counts elsewhere in the tree are sent back down to each leaf. The likelihood of a pair of concentrations
is the product of the likelihoods of all classes.

Cells are equally wide in the square root of the share, on which scale the gamma distribution's deviation is about the
same everywhere. A count may be more exact than a cell is wide. So a cell's likelihood is the mean over the cell. The
expected number of rows of a cell is a mean over the cell, too, with the likelihood as weight.

The leaves' concentration is one of `LEAF_CONCENTRATIONS`, with a prior that makes the deviation of shares, 1 / sqrt(a),
uniform (Gelman 2006). The nodes' concentrations in `NODE_CONCENTRATIONS` are equally likely. An infinite concentration
gives all nodes the shares of the whole tree, so that only leaves differ.

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

CELLS = 48  # the number of cells of the grid of shares
LARGEST = 1.25  # the largest share on the grid. It is above 1, since a leaf's rows are only estimated
EDGES: Reals = np.linspace(0, math.sqrt(LARGEST), CELLS + 1) ** 2
MIDDLES: Reals = np.linspace(0, math.sqrt(LARGEST), 2 * CELLS + 1)[1::2] ** 2
LEAF_CONCENTRATIONS = tuple(2.0**k for k in range(-1, 9))
NODE_CONCENTRATIONS = (1.0, 4.0, 16.0, 64.0, math.inf)
#: A number that is added to each cell's probability, so that counts which contradict each other have a posterior, too.
LEAST = 1e-12


@attrs.frozen(eq=False)
class NoisyLeaves:
    """The noisy counts of a tree's leaves.

    Attributes
    ----------
    counts
        Noisy counts of classes, shape (leaves, classes).
    variances
        The variance of the noise of each leaf's counts, shape (leaves,).
    rows
        The estimated number of rows of each leaf, above 0, shape (leaves,).
    """

    counts: Reals
    variances: Reals
    rows: Reals


def estimate_rows(totals: Reals, variances: Reals) -> Reals:
    """Return positive estimates of leaves' rows. The more noise a total has, the nearer its estimate is to the mean.

    The numbers of rows are taken to vary between leaves with half of their squared mean as variance.

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
    # The best linear estimate weighs a total by its share of signal, V / (V + noise) with V = mean**2 / 2.
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
    root = (tree,) if isinstance(tree, int) else tree
    messages, prior = _Messages.of(leaves), _prior_of(leaves)
    likelihoods = messages.send_up(root)
    messages.send_down(root, np.log(prior), _weigh_concentrations(likelihoods, prior))
    return np.asarray(messages.rows / messages.rows.sum(axis=1, keepdims=True))


def _prior_of(leaves: NoisyLeaves) -> Reals:
    """Return the prior probability of each cell of a class's share among all rows."""
    return np.asarray(np.diff(-np.exp(-leaves.counts.shape[1] * EDGES)) + LEAST)


def _weigh_concentrations(likelihoods: Reals, prior: Reals) -> Reals:
    """Return the posterior weights of all pairs of concentrations, shape (nodes' concentrations, leaves').

    Parameters
    ----------
    likelihoods
        The message to the root (see `_Messages`).
    prior
        The probability of each cell of the root's share.
    """
    most = likelihoods.max(axis=3)
    of_classes = np.log(np.exp(likelihoods - most[..., np.newaxis]) @ prior) + most
    # The leaves' a are equally spaced in log(a), where a uniform 1 / sqrt(a) has a density in proportion to it.
    evidence = of_classes.sum(axis=2) - np.log(LEAF_CONCENTRATIONS) / 2
    return np.asarray(np.exp(evidence - evidence.max()))


@cache
def _transitions(concentrations: tuple[float, ...]) -> Reals:
    """Return the probability of a child's cell given its parent's, shape (concentrations, parent's, child's)."""
    from scipy.special import gammainc

    found = []
    for a in concentrations:
        below = np.diff(gammainc(a * MIDDLES[:, None], a * EDGES), axis=1) if a < math.inf else np.eye(CELLS)
        found.append(below + LEAST)
    return np.asarray(np.array(found) / np.sum(found, axis=2, keepdims=True))


def _cells_of(leaves: NoisyLeaves) -> tuple[Reals, Reals]:
    """Return each cell's log-likelihood and mean number of rows of the class, of shape (leaves, classes, cells).

    With u = rows times share - count, the likelihood is exp(-|u| / b) / (2 b). It is integrated, alone and times u,
    over the part of a cell where u is positive and the part where it is negative.
    """
    # A negative count says no more than 0 does: the rest of it is noise, however many rows there are.
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
class _Messages:
    """The messages of belief propagation in a tree.

    A message holds log-likelihoods of shape (nodes' concentrations, leaves' concentrations, classes, cells). If it is
    the same for all concentrations of nodes, the first axis has length 1.

    Attributes
    ----------
    likelihoods
        The likelihood of a leaf's counts in each cell, up to a factor, shape (leaves, classes, cells).
    means
        The mean number of rows of the class, for each cell of a leaf's share, of the same shape.
    sent
        By child, the message that it sent up: the likelihood of the counts below it, for each cell of its parent.
    rows
        The posterior mean of the leaves' rows by class, shape (leaves, classes), once messages were sent down.
    """

    likelihoods: Reals
    means: Reals
    sent: dict[Branch, Reals]
    rows: Reals

    @classmethod
    def of(cls, leaves: NoisyLeaves) -> _Messages:
        """Return the leaves' own likelihoods, before any message is sent."""
        logs, means = _cells_of(leaves)
        likelihoods = np.exp(logs - logs.max(axis=2, keepdims=True))
        return cls(likelihoods, means, {}, np.zeros(leaves.counts.shape))

    def send_up(self, node: tuple[Branch, ...]) -> Reals:
        """Send all messages up to a node, and return the likelihood of the counts below it for each of its cells."""
        for child in node:
            if isinstance(child, int):
                back = _transitions(LEAF_CONCENTRATIONS).transpose(0, 2, 1)
                message = np.log(self.likelihoods[child] @ back)[np.newaxis]
            else:
                back = _transitions(NODE_CONCENTRATIONS).transpose(0, 2, 1)[:, None]
                own = self.send_up(child)
                most = own.max(axis=3, keepdims=True)
                message = np.log(np.exp(own - most) @ back) + most
            self.sent[child] = message
        return sum((self.sent[child] for child in node[1:]), self.sent[node[0]])

    def send_down(self, node: tuple[Branch, ...], elsewhere: Reals, weights: Reals) -> None:
        """Send the evidence of all other counts down to the leaves below a node, and average their rows.

        Parameters
        ----------
        node
            The node.
        elsewhere
            A message to the node: the prior and the likelihood of all counts that are not below it.
        weights
            The posterior weights of the concentrations, shape (nodes' concentrations, leaves').
        """
        all_counts = elsewhere + sum(self.sent[child] for child in node)
        for child in node:
            others = all_counts - self.sent[child]  # A child's own counts must not come back to it.
            likely = np.exp(others - others.max(axis=3, keepdims=True))
            if isinstance(child, int):
                cells = likely @ _transitions(LEAF_CONCENTRATIONS) * self.likelihoods[child]
                expected = (cells * self.means[child]).sum(axis=3) / cells.sum(axis=3)
                self.rows[child] = (weights[..., np.newaxis] * expected).sum(axis=(0, 1))
            else:
                self.send_down(child, np.log(likely @ _transitions(NODE_CONCENTRATIONS)[:, None]), weights)
