"""Redescription mining from alternating or jointly sampled pairs of trees (Mihelčić and Miettinen 2023).

A starting attribute of one view gives the classes for a tree on the other view; its leaves give the classes for a tree
on the first view, and so on. The leaves of two trees in turn hold for nearly the same rows if all goes well, and unions
of them are redescriptions. Names of the paper: InTr is the number of `starts`, RMIter `rounds`, omega `tree_share`,
MCIter `iterations`.

Claim: pure epsilon under either relation. What differs from the paper by default, and why:

- thresholds and classes come from the schema's public values and cuts, never from the data;
- trees are complete, drawn for a fixed number of steps or exactly: no leaf closes because it is pure, no walk stops
  because scores settle;
- scores are 3-norms of class counts: monotonic with sensitivity 1, where the paper has 2 (one tree) or n (a pair);
- one noisy table of leaves by leaves, at the whole of its budget, gives all supports;
- trees are shallow: at a small epsilon the number of deep trees is more than the exponent can overcome. Where the
  schema bounds the rows, a plan whose scores drown is warned of (DP007).
"""

from dpframework_trees.redescribe.alternation import AltExpM, AltMCMC
from dpframework_trees.redescribe.matched_trees import MatchedTrees
from dpframework_trees.redescribe.pairs import MCMCTreePair

__all__ = ["AltExpM", "AltMCMC", "MCMCTreePair", "MatchedTrees"]
