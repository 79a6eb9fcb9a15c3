"""Redescription mining from alternating or jointly sampled pairs of trees (Mihelčić and Miettinen 2023).

A starting attribute or test of one view gives the classes for a tree on the other view. The leaves of this tree give
the classes for a tree on the first view, and so on. If all goes well, the leaves of two successive trees hold for
nearly the same rows, and unions of them are redescriptions. `MatchedTrees` works differently (see `matched_trees`).
Names of the paper: InTr is the number of `starts`, RMIter `rounds`, omega `tree_share`, MCIter `iterations`.

Claim: pure epsilon under either neighbouring relation. A walk is assumed to have converged. All other samplers assume
nothing.

What differs from the paper by default, and why:

- thresholds and classes come from the schema's public values and cuts, never from the data;
- trees are complete, and drawn exactly or by a walk of a fixed number of steps. No leaf closes because it is pure, and
  no walk stops because scores settle;
- scores are 3-norms of class counts, which are monotonic with sensitivity 1. The paper's sensitivity is 2 for one tree
  and, for a pair scored in rows, the number of rows;
- one noisy table of leaves by leaves, with the whole budget for counts, gives all supports;
- trees are shallow, since at a small epsilon there are too many deep trees for the exponential mechanism to find a good
  one. If the schema bounds the rows, the check DP007 warns of a plan whose scores drown in noise.
"""

from dpframework_trees.redescribe.alternation import AltExpM, AltMCMC
from dpframework_trees.redescribe.matched_trees import MatchedTrees
from dpframework_trees.redescribe.pair_miner import MCMCTreePair

__all__ = ["AltExpM", "AltMCMC", "MCMCTreePair", "MatchedTrees"]
