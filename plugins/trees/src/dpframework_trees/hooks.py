"""The hooks of this plugin, which add its miners and mechanisms to dpframework."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from dpframework.study import hookimpl

_MINERS = {
    "dp-id3": "id3:DPID3",
    "dp-tree": "dptree:DPTree",
    "dp-additive": "additive:DPAdditive",
    "dp-additive-regression": "additive:DPAdditiveRegression",
    "dp-classifier": "default_classifier_miner:DPClassifierMiner",
    "alt-expm": "redescribe:AltExpM",
    "alt-mcmc": "redescribe:AltMCMC",
    "mcmc-tree-pair": "redescribe:MCMCTreePair",
    "matched-trees": "redescribe:MatchedTrees",
}


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Return the miners of trees, additive models and redescriptions, and the one that chooses a kind of classifier."""
    return [EntryPoint(name, f"dpframework_trees.{place}", "dpframework") for name, place in _MINERS.items()]


@hookimpl
def dpframework_mechanisms() -> list[type[Any]]:
    """Return the samplers of whole trees and pairs of trees, and the private fit of an additive model."""
    from dpframework_trees.additive import ObjectivePerturbation
    from dpframework_trees.exact_pair_sampler import ExactPairs
    from dpframework_trees.sampling import ExactTrees, MarkovChainTrees
    from dpframework_trees.tree_pairs import MarkovChainPairs

    return [ExactTrees, MarkovChainTrees, ExactPairs, MarkovChainPairs, ObjectivePerturbation]
