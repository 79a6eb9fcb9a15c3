"""Decision trees for dpframework: DP-ID3, trees sampled as a whole, and redescriptions from pairs of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpframework.study import hookimpl

if TYPE_CHECKING:
    from dpframework_trees.dptree import DPTree
    from dpframework_trees.estimator import DPID3Classifier, DPTreeClassifier, PrivateTreeSearch, TreeClassifier
    from dpframework_trees.id3 import DPID3
    from dpframework_trees.redescribe import AltExpM, AltMCMC, MCMCTreePair

__all__ = [
    "DPID3",
    "AltExpM",
    "AltMCMC",
    "DPID3Classifier",
    "DPTree",
    "DPTreeClassifier",
    "MCMCTreePair",
    "PrivateTreeSearch",
    "TreeClassifier",
]


@hookimpl
def dpframework_miners() -> list[type[Any]]:
    """Bring the tree miners."""
    from dpframework_trees.dptree import DPTree
    from dpframework_trees.id3 import DPID3
    from dpframework_trees.redescribe import AltExpM, AltMCMC, MCMCTreePair

    return [DPID3, DPTree, AltExpM, AltMCMC, MCMCTreePair]


@hookimpl
def dpframework_mechanisms() -> list[type[Any]]:
    """Bring the samplers of whole trees, and the fit of an additive model."""
    from dpframework_trees.additive import ObjectivePerturbation
    from dpframework_trees.pairing import MarkovChainPairs
    from dpframework_trees.sampling import ExactTrees, MarkovChainTrees

    return [ExactTrees, MarkovChainTrees, MarkovChainPairs, ObjectivePerturbation]


def __getattr__(name: str) -> Any:
    if name == "DPID3":
        from dpframework_trees.id3 import DPID3

        return DPID3
    if name == "DPTree":
        from dpframework_trees.dptree import DPTree

        return DPTree
    if name in ("AltExpM", "AltMCMC", "MCMCTreePair"):
        from dpframework_trees import redescribe

        return getattr(redescribe, name)
    if name in ("DPID3Classifier", "DPTreeClassifier", "PrivateTreeSearch", "TreeClassifier"):
        # scikit-learn is an extra and slow to import: only who asks for an estimator needs it and waits for it
        try:
            from dpframework_trees import estimator
        except ModuleNotFoundError as error:
            raise ImportError(f"{name} needs scikit-learn: pip install 'dpframework[sklearn]'") from error
        return getattr(estimator, name)
    raise AttributeError(f"module 'dpframework_trees' has no attribute {name!r}")
