"""Decision trees for dpframework, with DP-ID3, trees sampled as a whole, and redescriptions from pairs of trees."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from dpframework.study import hookimpl

if TYPE_CHECKING:
    from dpframework_trees.additive import (
        AdditiveModel,
        AdditiveRegression,
        DPAdditive,
        DPAdditiveRegression,
        ObjectivePerturbation,
    )
    from dpframework_trees.additive.estimator import DPAdditiveClassifier
    from dpframework_trees.additive.regressor import DPAdditiveRegressor
    from dpframework_trees.default import DPClassifierMiner
    from dpframework_trees.default_estimator import DPClassifier
    from dpframework_trees.dptree import DPTree
    from dpframework_trees.estimator import DPID3Classifier, DPTreeClassifier, PrivateClassifier, TreeClassifier
    from dpframework_trees.id3 import DPID3
    from dpframework_trees.private_estimator import PrivateEstimator
    from dpframework_trees.redescribe import AltExpM, AltMCMC, MatchedTrees, MCMCTreePair
    from dpframework_trees.search import PrivateTreeSearch

__all__ = [
    "DPID3",
    "AdditiveModel",
    "AdditiveRegression",
    "AltExpM",
    "AltMCMC",
    "DPAdditive",
    "DPAdditiveClassifier",
    "DPAdditiveRegression",
    "DPAdditiveRegressor",
    "DPClassifier",
    "DPClassifierMiner",
    "DPID3Classifier",
    "DPTree",
    "DPTreeClassifier",
    "MCMCTreePair",
    "MatchedTrees",
    "ObjectivePerturbation",
    "PrivateClassifier",
    "PrivateEstimator",
    "PrivateTreeSearch",
    "TreeClassifier",
]


_ESTIMATORS = {
    "DPAdditiveClassifier": "dpframework_trees.additive.estimator",
    "DPAdditiveRegressor": "dpframework_trees.additive.regressor",
    "DPClassifier": "dpframework_trees.default_estimator",
    "PrivateEstimator": "dpframework_trees.private_estimator",
    "PrivateTreeSearch": "dpframework_trees.search",
    **dict.fromkeys(
        ("DPID3Classifier", "DPTreeClassifier", "PrivateClassifier", "TreeClassifier"),
        "dpframework_trees.estimator",
    ),
}


_MINERS = {
    "dp-id3": "id3:DPID3",
    "dp-tree": "dptree:DPTree",
    "dp-additive": "additive:DPAdditive",
    "dp-additive-regression": "additive:DPAdditiveRegression",
    "dp-classifier": "default:DPClassifierMiner",
    "alt-expm": "redescribe:AltExpM",
    "alt-mcmc": "redescribe:AltMCMC",
    "mcmc-tree-pair": "redescribe:MCMCTreePair",
    "matched-trees": "redescribe:MatchedTrees",
}


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Bring the miners of trees, the additive models, and the one that chooses."""
    return [EntryPoint(name, f"dpframework_trees.{place}", "dpframework") for name, place in _MINERS.items()]


@hookimpl
def dpframework_mechanisms() -> list[type[Any]]:
    """Bring the samplers of whole trees, and the fit of an additive model."""
    from dpframework_trees.additive import ObjectivePerturbation
    from dpframework_trees.exact_pairs import ExactPairs
    from dpframework_trees.sampling import ExactTrees, MarkovChainTrees
    from dpframework_trees.tree_pairs import MarkovChainPairs

    return [ExactTrees, MarkovChainTrees, ExactPairs, MarkovChainPairs, ObjectivePerturbation]


def __getattr__(name: str) -> Any:
    if name == "DPID3":
        from dpframework_trees.id3 import DPID3

        return DPID3
    if name == "DPClassifierMiner":
        from dpframework_trees.default import DPClassifierMiner

        return DPClassifierMiner
    if name == "DPTree":
        from dpframework_trees.dptree import DPTree

        return DPTree
    if name in ("AdditiveModel", "AdditiveRegression", "DPAdditive", "DPAdditiveRegression", "ObjectivePerturbation"):
        from dpframework_trees import additive

        return getattr(additive, name)
    if name in ("AltExpM", "AltMCMC", "MCMCTreePair", "MatchedTrees"):
        from dpframework_trees import redescribe

        return getattr(redescribe, name)
    if name in _ESTIMATORS:
        # scikit-learn is an extra and slow to import: only who asks for an estimator needs it and waits for it
        try:
            return getattr(importlib.import_module(_ESTIMATORS[name]), name)
        except ModuleNotFoundError as error:
            raise ImportError(f"{name} needs scikit-learn: pip install 'dpframework[sklearn]'") from error
    raise AttributeError(f"module 'dpframework_trees' has no attribute {name!r}")
